"""Loops under torture: any order of events, and kill -9 at any moment.

`make torture` runs the long form of the same tests: 10,000 steps, 200 kills.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from driftbandit import DOMD, Category, Features, Flag, Loop, Number, Reward
from driftbandit.loop import erasure
from driftbandit.loop.errors import UnfinishedErasureError
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.state.definition import defined
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training import replay
from driftbandit.loop.writing import writer
from naive_book import examples

LONG = bool(os.environ.get("TORTURE"))
FEATURES = Features(
    context={"age": Number(0, 10), "position": Category([0, 1, 2])}, arm={"price": Number(0, 10)}
)
ARMS = {"a": {"price": 1}, "b": {"price": 9}, "c": {"price": 5}}
REFUSED = ("too long ago", "ahead of the clock", "another decision", "is a slate", "is not a slate")

ids = st.sampled_from([f"id {k}" for k in range(12)])
sizes = positions = st.sampled_from([None, 1, 2, 3])
times = st.integers(0, 60).map(float)


@contextmanager
def allowed():
    """What a loop may refuse here."""
    try:
        yield
    except ValueError as error:
        if not any(words in str(error) for words in REFUSED):
            raise


class Play(RuleBasedStateMachine):
    """A loop and its log: the naive reading of the log and the windows agree at every step."""

    @initialize(
        wait=st.sampled_from([0, 5, 20]),
        missing=st.sampled_from([0, 0.5, None]),
        key=st.sampled_from([None, "user_id"]),
    )
    def begin(self, wait, missing, key):
        self.folder = tempfile.TemporaryDirectory()
        self.reward, self.grown, self.now = Reward(0, 1, wait=wait, missing=missing), 0, 0.0
        declared = {"features": FEATURES, "reward": self.reward, "policy": DOMD, "key": key}
        self.open(exploration=0.5, clock="events", **declared)

    def open(self, **declared):
        self.loop = Loop(f"{self.folder.name}/a.db", training="inline", **declared)

    @rule(id=ids, age=st.integers(0, 10), k=sizes, ahead=st.integers(-30, 5))
    def decide(self, id, age, k, ahead):
        at = max(0.0, self.now + ahead)
        with allowed():
            asked = {"k": k, "id": id, "key": f"user {age % 3}", "at": at}
            made = self.loop.decide({"age": age}, ARMS, **asked)
            self.now = max(self.now, at)
            assert self.loop.decide({"age": age}, ARMS, **asked) == made

    @rule(id=ids, value=st.sampled_from([0.0, 0.25, 1.0, 3.0]), position=positions, at=times)
    def say(self, id, value, position, at):
        with allowed():
            self.loop.reward(id, value, position=position, at=min(at, self.now))

    @rule(id=ids, position=positions, at=times)
    def cancel(self, id, position, at):
        with allowed():
            self.loop.cancel(id, position=position, at=min(at, self.now))

    @rule(by=st.integers(0, 25))
    def advance(self, by):
        self.now += by
        self.loop.close_windows(self.now)

    @rule(id=ids, k=sizes)
    def decide_in_the_wrong_unit(self, id, k):
        with allowed():
            self.loop.decide({"age": 1}, ARMS, k=k, id=id, key="user 1", at=1e9)

    @rule(id=ids, value=st.sampled_from([0.0, 1.0]), position=positions)
    def say_in_the_wrong_unit(self, id, value, position):
        with allowed():
            self.loop.reward(id, value, position=position, at=1e9)

    @rule(back=st.integers(0, 40))
    def repair(self, back):
        self.now = max(0.0, self.now - back)
        self.loop.repair(self.now)

    @rule(closed=st.booleans())
    def restart(self, closed):
        digest = self.loop.digest
        if closed:
            self.loop.close()
        else:  # as after a crash: without a last checkpoint
            self.loop.ledger.close()
        self.open()
        assert self.loop.digest == digest

    @rule()
    def grow(self):
        if self.grown < 2:
            self.grown += 1
            self.loop.add_features(context={f"c{self.grown}": Flag()})

    @invariant()
    def agree(self):
        if not hasattr(self, "loop"):
            return
        ledger, past = self.loop.ledger, self.loop.runtime.reread()
        state, changes = replay.unfold(ledger, past, None)
        trained = [(c.decision, c.position, c.value) for c in changes if isinstance(c, Example)]
        assert trained == examples(list(ledger.read()), self.reward.wait, self.reward.missing)
        assert state.windows.counts == self.loop.counts
        assert state.windows.open == self.loop.runtime.windows.open

    def teardown(self):
        if hasattr(self, "loop"):
            ledger, past = self.loop.ledger, self.loop.runtime.reread()
            replayed, audits = replay.replay(ledger, past, None), list(self.loop.audits())
            digest = self.loop.digest
            self.loop.close()
            (chain,) = verify(f"{self.folder.name}/a.db")
            self.folder.cleanup()
            assert chain.holds, chain
            assert replayed.learner.digest == digest
            assert all(audit.logged == audit.computed for audit in audits)


@pytest.fixture(autouse=True)
def _quick(monkeypatch, no_wait_for_the_disk):
    """No wait for the disk: kill -9 does not stop the system."""
    monkeypatch.setattr(writer, "EVERY", 3)


def test_any_order_of_events():
    Play.TestCase.settings = settings(
        max_examples=200 if LONG else 10,
        stateful_step_count=50 if LONG else 30,
        deadline=None,
        derandomize=not LONG,
        suppress_health_check=list(HealthCheck),
    )
    Play.TestCase("runTest").runTest()


@pytest.mark.parametrize("store", ["file", "postgres"])
def test_jumps_of_the_clock(tmp_path, request, monkeypatch, store):
    """Forward, back and both, with crashes: what is learnt follows from the log, and once the clock
    is right, everything goes on."""
    now, start = [0.0], 1.7e9
    monkeypatch.setattr("driftbandit.loop.runtime.time.time", lambda: now[0])
    declared = {"features": FEATURES, "policy": DOMD, "exploration": 0.5, "retention": "9000d"}
    declared["reward"] = Reward(0, 1, wait="1min", missing=0)
    for seed in range(60 if LONG else 2):
        rng, now[0] = random.Random(seed), start
        database = store == "postgres"
        path = request.getfixturevalue("postgres").url() if database else tmp_path / f"{seed}.db"
        loop = Loop(path, training="inline", **declared)

        def play(loop, n, step):
            for k in range(n):
                now[0] += step
                made = loop.decide({"age": k % 10}, ARMS)
                loop.reward(made.id, k % 2)

        made = 0
        for _ in range(rng.randrange(2, 8)):
            far = rng.choice([-1, 1]) * 10 ** rng.uniform(0, 8.6)
            now[0] = max(1e6, (now[0] if rng.random() < 0.5 else start) + far)
            n, digest = rng.randrange(1, 20), loop.digest
            play(loop, n, 10 ** rng.uniform(-1, 2.5))
            made, digest = made + n, loop.digest
            if rng.random() < 0.5:
                loop.ledger.close()  # a crash
            else:
                loop.close()
            loop = Loop(path, training="inline")
            assert loop.digest == digest
        now[0] = start + 5 * 86400.0
        play(loop, 30, 60.0)
        now[0] += 61.0
        loop.wait_until_trained()
        assert not loop.runtime.windows.open
        assert loop.runtime.learner.bandit.rounds == len(loop.log()) == made + 30
        whole = replay.replay(loop.ledger, loop.runtime.reread(), None)
        assert whole.learner.digest == loop.digest
        assert all(audit.logged == audit.computed for audit in loop.audits())
        loop.close()


def test_erasures_under_readers(tmp_path, monkeypatch):
    """Decisions, readers that come and go, erasures and restarts: in the end nothing is left."""
    monkeypatch.setattr(erasure, "PATIENCE", 0.05)
    monkeypatch.setattr(erasure, "AGAIN", 0.02)
    path, rng, ended = tmp_path / "a.db", random.Random(3), threading.Event()
    features = Features(context={"city": Category(size=8)}, arm={"price": Number(0, 10)})
    loop = Loop(path, features=features, reward=Reward(0, 1), policy=DOMD, exploration=0.5)

    def read():
        chance = random.Random(4)
        while not ended.wait(chance.uniform(0.0, 0.05)):
            reader = sqlite3.connect(path, timeout=5.0)
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM event").fetchone()
            ended.wait(chance.uniform(0.0, 0.3))
            reader.close()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    unfinished = 0
    try:
        for n in range(60 if LONG else 4):
            for k in range(10):
                for who in (f"person-{n}", "bob"):
                    made = loop.decide({"city": f"city of {who}"}, ARMS, key=who)
                    loop.reward(made.id, k % 2)
            try:
                loop.erase(key=f"person-{n}", relearn=rng.random() < 0.3)
            except UnfinishedErasureError:
                unfinished += 1
            if rng.random() < 0.3:
                digest = loop.digest
                loop.close()
                loop = Loop(path)
                assert loop.digest == digest
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    end = time.monotonic() + 20
    while loop.ledger.unpurged() is not None and time.monotonic() < end:
        time.sleep(0.02)
    assert b"person-" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    loop.wait_until_trained()
    assert all(audit.agrees for audit in loop.audits())
    loop.close()
    assert unfinished or not LONG


VICTIM = """
    import sys, threading
    from driftbandit import DOMD, AutoDOMD, Features, Loop, Number, Reward
    from driftbandit.loop.learning import key_cache
    from driftbandit.loop.writing import writer

    writer.EVERY, writer.PAUSE, key_cache.MEMORY = 20, 0.01, 1000
    keyed = sys.argv[2] == "keyed"
    options = {"policy": DOMD, "key": "user_id"} if keyed else {"policy": AutoDOMD}
    features = Features(context={"age": Number(0, 10)}, arm={"price": Number(0, 10)})
    reward = Reward(0, 1, wait=0.02, missing=0)
    loop = Loop(sys.argv[1], features=features, reward=reward, exploration=0.1, **options)
    lock = threading.Lock()

    def work(k):
        n = 0
        while True:
            n += 1
            slate = n % 3 == 0
            arms = {"a": {"price": k}, "b": {"price": 9}}
            who = f"user {n % 25}" if keyed else None
            made = loop.decide({"age": n % 10}, arms, k=2 if slate else None, key=who)
            said = loop.reward(made.id, n % 2, position=n % 2 if slate else None)
            with lock:
                print(made.id, said, loop.counts["decide"], flush=True)

    for k in range(4):
        threading.Thread(target=work, args=(k,), daemon=True).start()
    threading.Event().wait()
"""


def killed(path, kind, seconds):
    """What a process printed before it was killed, so many seconds after its first line."""
    command = [sys.executable, "-c", textwrap.dedent(VICTIM), path, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        text = process.stdout.readline()  # it lives
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        text += process.stdout.read()
    return [line.split() for line in text.splitlines() if len(line.split()) == 3]


@pytest.mark.parametrize("kind", ["one learner", "keyed"])
def test_kill_at_any_moment(tmp_path, kind):
    path, rng, acknowledged, head = str(tmp_path / "a.db"), random.Random(7), {}, None
    for _ in range(100 if LONG else 3):
        for id, said, _ in killed(path, kind, rng.uniform(0.0, 0.3)):
            acknowledged[id] = said
        (chain,) = verify(path, head=head)
        assert chain.holds, chain
        head = chain.head
        ledger = Ledger(path, "loop")
        events, past = list(ledger.read()), defined(ledger)
        decided = {e.id for e in events if e.kind == "decide"}
        rewarded = {e.id for e in events if e.kind == "reward"}
        assert acknowledged.keys() <= decided
        assert acknowledged.keys() <= rewarded
        whole, resumed = replay.replay(ledger, past, None), replay.latest(ledger, past)
        assert whole.learner.digest == resumed.learner.digest
        assert whole.windows.counts == resumed.windows.counts
        changes = [c for c in replay.unfold(ledger, past, None)[1] if isinstance(c, Example)]
        trained = [(c.decision, c.position) for c in changes]
        assert len(trained) == len(set(trained)) == whole.learner.examples
        if not LONG:
            assert [(c.decision, c.position, c.value) for c in changes] == examples(events, 0.02, 0)
        ledger.close()
    with Loop(path, training="inline") as loop:
        assert all(audit.logged == audit.computed for audit in loop.audits())
