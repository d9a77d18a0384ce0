"""Erasure: complete or loud, beside decisions, in both databases; files are scanned for copies."""

import glob
import os
import sqlite3
import threading
import time

import psycopg
import pytest

from driftbandit import DOMD, Category, Features, Loop, Number, Reward
from driftbandit.loop import erasure
from driftbandit.loop.errors import LedgerError, UnfinishedErasureError
from driftbandit.loop.storage import postgres as postgres_store
from driftbandit.loop.storage import sqlite as sqlite_store
from driftbandit.loop.storage.free_space import PageFile
from driftbandit.loop.writing import writer

FEATURES = Features(context={"city": Category(size=4)}, arm={"p": Number(0, 1)})
ARMS = {"a": {"p": 0}, "b": {"p": 1}}
SECRET, WHO = "SECRET-OF-ALICE", "alice@example.org"
NEW = {"features": FEATURES, "reward": Reward(0, 1), "policy": DOMD, "exploration": 0.5}


def fill(loop, n=50, first=0):
    for k in range(first, first + n):
        made = loop.decide({"city": SECRET}, ARMS, key=WHO, id=f"{WHO} {k}")
        loop.reward(made.id, 1)
        loop.metric(made.id, SECRET, 1.0)
        made = loop.decide({"city": "bobtown"}, ARMS, key="bob", id=f"bob {k}")
        loop.reward(made.id, 0)


def copies(path):
    """How often a file, its write-ahead log and its index name the person."""
    found = 0
    for name in glob.glob(f"{glob.escape(str(path))}*"):
        with open(name, "rb") as file:
            text = file.read()
        found += text.count(SECRET.encode()) + text.count(WHO.encode())
    return found


def copies_in_postgres(server, url):
    """The same for all tables of a database; its write-ahead log is recycled by PostgreSQL."""
    with psycopg.connect(url, autocommit=True) as base:
        base.execute("CHECKPOINT")
        (folder,) = base.execute(
            "SELECT oid FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    return copies(f"{server.folder}/data/base/{folder}/")


class Deciding(threading.Thread):
    """Decides all the time; `longest` is how long the slowest decision took."""

    def __init__(self, loop):
        super().__init__()
        self.loop, self.longest, self.made, self.ended = loop, 0.0, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.005):
            begun = time.monotonic()
            self.loop.decide({"city": "bobtown"}, ARMS, key="bob")
            self.longest, self.made = max(self.longest, time.monotonic() - begun), self.made + 1

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


@pytest.mark.parametrize("key", [None, "user"])
@pytest.mark.parametrize("relearn", [False, True])
def test_nothing_is_left_in_the_files(tmp_path, monkeypatch, key, relearn):
    monkeypatch.setattr(writer, "EVERY", 20)
    with Loop(tmp_path / "a.db", key=key, **NEW) as loop:
        loop.shadow("other", exploration=0.1)
        fill(loop)
        loop.wait_until_trained()
        assert copies(tmp_path / "a.db") > 100
        gone = loop.erase(key=WHO, relearn=relearn)
        assert gone == (150, 50, relearn)
        assert copies(tmp_path / "a.db") == 0
        loop.decide({"city": "bobtown"}, ARMS, key="bob")
        assert all(audit.agrees for audit in loop.audits())
        digest = loop.digest
    assert copies(tmp_path / "a.db") == 0
    with Loop(tmp_path / "a.db") as loop:
        assert loop.digest == digest


def test_while_another_connection_reads(tmp_path, monkeypatch):
    """It raises in time, holds up no decision, and is finished once the reader has gone."""
    monkeypatch.setattr(erasure, "PATIENCE", 0.5)
    monkeypatch.setattr(erasure, "AGAIN", 0.05)
    path = tmp_path / "a.db"
    with Loop(path, **NEW) as loop:
        fill(loop)
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM event").fetchone()
        with Deciding(loop) as deciding:
            begun = time.monotonic()
            with pytest.raises(UnfinishedErasureError, match="another connection reads"):
                loop.erase(key=WHO)
            assert time.monotonic() - begun < 5.0
            assert loop.ledger.unpurged() is not None
            assert copies(path) > 0
            assert WHO not in loop.log()["key"].to_list()
            made = deciding.made
            reader.close()
            until(lambda: loop.ledger.unpurged() is None)
            assert copies(path) == 0
        assert deciding.made > made
        assert deciding.longest < 2.0


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("training", ["background", "inline"])
def test_a_restart_finishes_what_was_left(tmp_path, monkeypatch, training):
    monkeypatch.setattr(erasure, "PATIENCE", 0.1)
    path = tmp_path / "a.db"
    reader = None
    with Loop(path, training=training, **NEW) as loop:
        fill(loop)
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM event").fetchone()
        with pytest.raises(UnfinishedErasureError):
            loop.erase(key=WHO)
    assert copies(path) > 0
    monkeypatch.setattr(erasure, "AGAIN", 0.05)
    with Loop(path, training=training) as loop:
        assert loop.ledger.unpurged() is not None
        reader.close()
        until(lambda: loop.ledger.unpurged() is None)
        assert copies(path) == 0


def test_free_space_of_pages_keeps_nothing(tmp_path, no_wait_for_the_disk):
    """SQLite moves entries of an index between pages and leaves them in the free part of a page."""
    path = tmp_path / "a.db"
    with Loop(path, training="inline", **NEW) as loop:
        for n in range(30):
            calls = []
            for k in range(40):
                who = WHO if k % 4 == 0 else "bob"
                calls.append(("decide", {"context": {"city": who}, "arms": ARMS, "key": who}))
            loop.submit_many(calls)
            loop.erase(key=WHO)
            assert copies(path) == 0, n


def test_closing_does_not_wait_for_a_large_file(tmp_path, monkeypatch, no_wait_for_the_disk):
    path, overwrite = tmp_path / "a.db", PageFile.overwrite
    monkeypatch.setattr(sqlite_store, "LOOK", 1)
    monkeypatch.setattr(sqlite_store, "STEP", 1)
    monkeypatch.setattr(PageFile, "overwrite", lambda *a: time.sleep(0.2) or overwrite(*a))
    loop = Loop(path, **NEW)
    fill(loop, 200)
    found = []
    thread = threading.Thread(target=lambda: found.append(refused(loop)))
    thread.start()
    until(lambda: loop.ledger.unpurged() is not None)
    begun = time.monotonic()
    loop.close()
    thread.join()
    assert time.monotonic() - begun < 3.0
    assert "closed" in found[0]
    monkeypatch.undo()
    monkeypatch.setattr(erasure, "AGAIN", 0.02)
    with Loop(path) as loop:
        until(lambda: loop.ledger.unpurged() is None)
    assert copies(path) == 0


def refused(loop):
    try:
        loop.erase(key=WHO)
    except (UnfinishedErasureError, LedgerError) as error:
        return str(error)


def test_where_free_space_cannot_be_overwritten_the_file_is_rewritten(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    monkeypatch.setattr(sqlite_store, "descriptor_of", lambda _: None)
    with Loop(path, training="inline", **NEW) as loop:
        fill(loop)
        loop.erase(key=WHO)
        assert copies(path) == 0


def test_postgres_rewrites_its_table(postgres, monkeypatch):
    monkeypatch.setattr(erasure, "PATIENCE", 10.0)
    url = postgres.url()
    with Loop(url, **NEW) as loop:
        fill(loop)
        with Deciding(loop) as deciding:
            gone = loop.erase(key=WHO)
        assert gone.events == 150
        assert copies_in_postgres(postgres, url) == 0
        assert deciding.longest < 3.0
        assert loop.ledger.unpurged() is None


def test_postgres_with_an_old_reader(postgres, monkeypatch):
    monkeypatch.setattr(erasure, "PATIENCE", 0.5)
    monkeypatch.setattr(erasure, "AGAIN", 0.05)
    url = postgres.url()
    with Loop(url, **NEW) as loop:
        fill(loop)
        with psycopg.connect(url) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM event")
            with Deciding(loop) as deciding, pytest.raises(UnfinishedErasureError, match="session"):
                loop.erase(key=WHO)
            assert deciding.longest < 2.0
        until(lambda: loop.ledger.unpurged() is None)
        assert copies_in_postgres(postgres, url) == 0


def test_a_large_table_is_left_to_a_quiet_hour(postgres, monkeypatch):
    monkeypatch.setattr(erasure, "PATIENCE", 0.0)
    monkeypatch.setattr(erasure, "AGAIN", 0.05)
    monkeypatch.setattr(postgres_store, "REWRITTEN", 16_000)  # more than an empty table has
    url = postgres.url()
    with Loop(url, **NEW) as loop:
        fill(loop, 20)
        with pytest.raises(UnfinishedErasureError, match="VACUUM FULL event"):
            loop.erase(key=WHO)
        with psycopg.connect(url, autocommit=True) as base:
            base.execute("VACUUM FULL event")
        until(lambda: loop.ledger.unpurged() is None)  # noticed by the table's new file
        assert copies_in_postgres(postgres, url) == 0


def test_relearning_after_an_earlier_erasure(tmp_path):
    """What the second key has taught goes, however many erasures there were."""

    def thetas(first):
        simulated = {"clock": "events", "training": "inline"}
        with Loop(":memory:", **NEW, **simulated) as loop:
            for k in range(200):
                who = "BA"[k % 3 > 0]
                if first == "never" and who == "B":
                    continue
                loop.decide({"city": "x"}, ARMS, id=str(k), key=who, at=float(k))
                loop.reward(str(k), float(who == "B"), at=float(k))
            before = loop.runtime.learner.bandit.theta.copy()
            if first == "erase":
                loop.erase(key="C")
            if first != "never":
                assert loop.erase(key="B", relearn=True).relearned
            return before, loop.runtime.learner.bandit.theta.copy()

    (_, never), (before, once), (_, twice) = (thetas(each) for each in ("never", "", "erase"))
    assert abs(before - once).max() > 0.05
    assert (once == twice).all()
    assert (once == never).all() or abs(once - never).max() < 0.5  # other arms were chosen


def test_relearning_that_is_impossible_says_so_and_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "EVERY", 10)
    options = {"clock": "events", "training": "inline", "retention": 300}
    with Loop(tmp_path / "a.db", **NEW, **options) as loop:
        for k in range(200):
            loop.decide({"city": "x"}, ARMS, id=str(k), key=f"p{k % 5}", at=10.0 * k)
            loop.reward(str(k), k % 2, at=10.0 * k)
        assert loop.ledger.start > 1
        assert loop.erase(key="p1", relearn=True).relearned  # from the oldest checkpoint
        digest, last = loop.digest, loop.ledger.last()
        with pytest.raises(LedgerError, match="relearn is not possible"):
            loop.erase(key="p2", relearn=True)
        assert (loop.digest, loop.ledger.last()) == (digest, last)
        assert loop.erase(key="p2").events > 0


def test_relearning_holds_up_no_decision(tmp_path, no_wait_for_the_disk):
    with Loop(tmp_path / "a.db", **NEW) as loop:
        for k in range(8):
            calls = []
            for j in range(200):
                id, who = f"{k} {j}", WHO if j % 4 == 0 else "bob"
                calls.append(
                    ("decide", {"context": {"city": who}, "arms": ARMS, "id": id, "key": who})
                )
                calls.append(("reward", {"id": id, "value": j % 2}))
            loop.submit_many(calls)
        loop.wait_until_trained()
        with Deciding(loop) as deciding:
            loop.erase(key=WHO, relearn=True)
        assert deciding.made > 0
        assert deciding.longest < 1.0
        loop.wait_until_trained()
        assert all(audit.agrees for audit in loop.audits())


def test_a_decision_that_was_made_before_and_stored_after(tmp_path):
    """It was made by a learner that is gone, so no audit claims to compute it again."""
    simulated = {"clock": "events", "training": "inline", "key": "user"}
    with Loop(":memory:", **NEW, **simulated) as loop:
        for k in range(200):
            who = "ann" if k % 8 == 0 else f"u{k % 7}"
            made = loop.decide({"city": "x"}, ARMS, id=str(k), key=who, at=float(k))
            loop.reward(made.id, float((made.arm == "b") == (who == "ann")), at=float(k))
        submit, waiting = loop.runtime.writer.submit, []

        def later(pending):
            if pending.kind != "decide":
                return submit(pending)
            waiting.append(pending)
            loop.runtime.writer.submit = submit
            loop.erase(key="ann")
            return submit(pending)

        loop.runtime.writer.submit = later
        loop.decide({"city": "x"}, ARMS, id="in flight", key="ann", at=200.0)
        assert waiting
        made = loop.decide({"city": "x"}, ARMS, key="ann", at=201.0)
        assert [(audit.id, audit.agrees) for audit in loop.audits()] == [(made.id, True)]
        with pytest.raises(ValueError, match="older than"):
            loop.audit("in flight")


def test_old_checkpoints_name_nobody(tmp_path, monkeypatch):
    """Retention lets their numbers go; what they said goes, too."""
    monkeypatch.setattr(writer, "EVERY", 5)
    simulated = {"clock": "events", "training": "inline", "key": "user", "retention": 100}
    path = tmp_path / "a.db"
    with Loop(path, **NEW, **simulated) as loop:
        for k in range(60):
            who = WHO if k < 10 else "bob"
            loop.decide({"city": "x"}, ARMS, id=str(k), key=who, at=10.0 * k)
            loop.reward(str(k), 1, at=10.0 * k)
        loop.erase(key=WHO)
    assert copies(path) == 0
    assert not os.path.exists(f"{path}-wal")
