"""Training beside decisions: who waits for whom."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from driftbandit import DOMD, Features, Flag, Loop, Number, Reward
from driftbandit.loop.midst import Midst
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.training import trainer_thread
from driftbandit.loop.training.trainer_thread import TrainerThread

FEATURES = Features(context={"age": Number(0, 100)}, arm={"new": Flag()})


def is_free(lock):
    """Whether another thread could take the lock now, as a decision does."""

    def taken():
        return lock.acquire(blocking=False) and not lock.release()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(taken).result()


class Notes:
    """Takes down what a trainer is asked."""

    def __init__(self):
        self.asked = []

    def train(self, changes, *, holds):
        self.asked.append((len(changes), holds))
        time.sleep(1.2 if len(self.asked) == 1 else 0.0)  # the first chunk takes too long


def test_decisions_go_first_until_training_is_behind_and_then_they_wait(monkeypatch):
    monkeypatch.setattr(trainer_thread, "PATIENT", 1.0)
    chunk, notes = trainer_thread.CHUNK, Notes()
    training = TrainerThread(notes, print, Midst())
    training.submit([Example(k, k, 0.0, float(k)) for k in range(3 * chunk)])
    assert training.wait(10.0)
    assert notes.asked == [(chunk, False), (chunk, True), (chunk, True)]
    training.submit([Example(1, 1, 0.0, 1.0)])
    assert training.wait(10.0)
    assert notes.asked[3:] == [(1, False)]
    training.close()


class BackfillError(Exception):
    """Nothing is to be filled back here."""


@pytest.mark.parametrize("holds", [False, True])
def test_the_lock_is_held_for_examples_but_not_while_a_candidate_is_trained(monkeypatch, holds):
    free = []
    with Loop(
        ":memory:", features=FEATURES, reward=Reward(0, 1), policy=DOMD, training="inline"
    ) as loop:
        trainer, lock = loop.runtime.trainer, loop.runtime.learner.lock

        def looks(*_):
            free.append(is_free(lock))

        def fails(*_):
            looks()
            raise BackfillError

        monkeypatch.setattr(trainer.learner, "train", looks)
        monkeypatch.setattr(trainer.backfill, "candidate", fails)
        made = loop.decide({"age": 30.0}, {"a": {"new": True}, "b": {"new": False}})
        seq = loop.runtime.windows.open[made.id].seq
        trainer.train([Example(seq + 1, seq, 0.0, 1.0)], holds=holds)
        with pytest.raises(BackfillError):
            trainer.train([SimpleNamespace(kind="shadow")], holds=holds)
    assert free == [not holds, True]
