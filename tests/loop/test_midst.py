"""Calls that come in the middle of the loop's own work, from a handler of a signal or a finalizer:
each is made or refused, and none waits for itself. The programs have a time limit."""

import signal
import subprocess
import sys

import pytest

HEAD = """
import signal, sys, threading, time
from driftbandit import Budget, Features, Loop, Number, Reward
from driftbandit.loop.errors import BusyError
from driftbandit.loop.storage import sqlite

sqlite.SYNCHRONOUS = "OFF"
FEATURES = Features(context={"age": Number(18, 90)}, arm={"price": Number(0, 100)})
ARMS = {"a": {"price": 9}, "b": {"price": 50}}
path, training = sys.argv[1:]
loop = Loop(path, features=FEATURES, reward=Reward(0, 1), exploration=0.1, training=training,
            budget=Budget("price", mean=30))
"""

ONCE = """
told, at = [], []

def call(*_):
    try:
        told.append(loop.decide({"age": 40}, ARMS, id="nested").id)
    except BusyError as error:
        told.append(str(error))

def append(*args, first=loop.ledger.append):
    loop.ledger.append = first
    at.append(threading.current_thread().name)
    INTERRUPT
    first(*args)

loop.decide({"age": 20}, ARMS, id="first")
loop.ledger.append = append
BEGIN
assert len(told) == len(at) == 1 and "queue.SimpleQueue" in told[0], told
assert at == ["MainThread"], at
assert loop.reward("second", 1) == "counted"
loop.decide({"age": 50}, ARMS, id="nested")  # the thread is free again
assert all(audit.agrees for audit in loop.audits())
assert loop.log()["id"].to_list() == ["first", "second", "nested"]
loop.close()
"""
SIGNAL = "signal.signal(signal.SIGWINCH, call); signal.raise_signal(signal.SIGWINCH)"
FINALIZER = """type("Last", (), {"__del__": call})()"""
CALLER = 'loop.decide({"age": 30}, ARMS, id="second")'

TRAINER = """
told, trained = [], threading.Event()

def call(*_):
    try:
        told.append(loop.decide({"age": 40}, ARMS, id="nested").id)
    except BusyError as error:
        told.append(str(error))

def train(changes, *, holds, first=loop.runtime.trainer.train):
    loop.runtime.trainer.train = first
    type("Last", (), {"__del__": call})()
    first(changes, holds=holds)
    trained.set()

loop.runtime.trainer.train = train
loop.reward(loop.decide({"age": 20}, ARMS).id, 1)
assert trained.wait(60) and loop.wait_until_trained(60)
assert len(told) == 1 and "queue.SimpleQueue" in told[0], told
loop.close()
"""

STORM = """
import random

rng, made, refused, last = random.Random(5), [], [], []

def call(*_):
    if last:  # handlers do not nest
        return
    last.append(1)
    try:
        known = rng.choice(made) if made and rng.random() < 0.5 else None
        made.append(loop.decide({"age": 40}, ARMS, id=known).id)
        loop.reward(rng.choice(made), 1)
        loop.health() if rng.random() < 0.02 else None
    except BusyError as error:
        refused.append(error)
    finally:
        last.clear()

signal.signal(NUMBER, call)
k = 0
signal.setitimer(TIMER, 0.0007, 0.0011)
try:
    while min(k, len(made)) < 150:  # a call of the program is never refused
        loop.decide({"age": 30}, ARMS, id=f"d{k}")
        loop.decide({"age": 30}, ARMS, id=f"d{rng.randrange(k + 1)}")
        loop.reward(f"d{k}", 0)
        k += 1
finally:
    signal.setitimer(TIMER, 0.0)
assert {f"d{j}" for j in range(k)} <= {*loop.log()["id"].to_list()}
loop.wait_until_trained()
assert all(audit.agrees for audit in loop.audits())
loop.close()
print(k, len(made), len(refused))
"""


def run(tmp_path, training, program):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program, str(tmp_path / "a.db"), training],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("training", ["background", "inline"])
@pytest.mark.parametrize(
    "interrupt",
    [
        pytest.param(
            SIGNAL,
            marks=pytest.mark.skipif(not hasattr(signal, "SIGWINCH"), reason="no SIGWINCH"),
        ),
        FINALIZER,
    ],
    ids=["signal", "finalizer"],
)
def test_a_call_in_the_middle_of_a_write_is_refused(tmp_path, training, interrupt):
    """Such a signal is not held back while the main thread writes, and no finalizer is."""
    program = ONCE.replace("INTERRUPT", interrupt)
    run(tmp_path, training, program.replace("BEGIN", CALLER))


def test_a_call_in_the_middle_of_training_is_refused(tmp_path):
    """It could wait for the thread that writes, which waits to hand its changes to the trainer."""
    run(tmp_path, "background", TRAINER)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("name", ["ALRM", "PROF"])
def test_a_storm_of_calls_from_a_handler_ends(tmp_path, name):
    """They come anywhere in a decision: some are made and others refused, and all is in the log."""
    timer = {"ALRM": "signal.ITIMER_REAL", "PROF": "signal.ITIMER_PROF"}[name]
    program = STORM.replace("NUMBER", f"signal.SIG{name}").replace("TIMER", timer)
    run(tmp_path, "background", program)
