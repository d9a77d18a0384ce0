"""Training beside decisions: who waits for whom."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.training import trainer_thread
from driftbandit.loop.training.trainer_thread import TrainerThread


def is_free(lock):
    """Whether another thread could take the lock now, as a decision does."""

    def taken():
        return lock.acquire(blocking=False) and not lock.release()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(taken).result()


def test_decisions_go_first_until_training_is_behind_and_then_they_wait(monkeypatch):
    monkeypatch.setattr(trainer_thread, "PATIENT", 1.0)
    lock, free = threading.RLock(), []

    def train(changes):
        free.append(is_free(lock))
        time.sleep(1.2 if len(free) == 1 else 0.0)  # the first chunk takes too long

    training = TrainerThread(
        SimpleNamespace(learner=SimpleNamespace(lock=lock), train=train), print
    )
    training.submit([Example(k, k, 0.0, float(k)) for k in range(3 * trainer_thread.CHUNK)])
    assert training.wait(10.0)
    assert free == [True, False, False]  # what waits is older than what it may be
    training.submit([Example(1, 1, 0.0, 1.0)])
    assert training.wait(10.0)
    assert free[3:] == [True]
    training.close()
    assert is_free(lock)
