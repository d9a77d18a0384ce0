"""Erasure and repair over HTTP and from the command line."""

import sqlite3
import subprocess
import sys

import pytest

from driftbandit import Features, Loop, Number, Reward
from driftbandit.loop import erasure
from driftbandit.service.http.auth import ApiKeys
from serving import ask, in_thread


@pytest.fixture
def path(tmp_path):
    features = Features(context={"age": Number(0, 99)}, arm={"price": Number(0, 9)})
    with Loop(tmp_path / "shop.db", features=features, reward=Reward(0, 1)) as loop:
        for k in range(20):
            arms = {"a": {"price": 1}, "b": {"price": 2}}
            made = loop.decide({"age": k}, arms, key="ann 17" if k % 2 else "bob", id=str(k))
            loop.reward(made.id, 1)
    return tmp_path / "shop.db"


def left(path):
    text = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    return text.count(b"ann 17")


def test_over_http(path, monkeypatch):
    keys = ApiKeys(path)
    admin, reader = keys.create("admin", ["admin"]), keys.create("reader", ["read", "decide"])
    url = "/v1/loops/loop/erasures"
    with in_thread(path, open_access=False) as port:
        assert ask(port, "POST", url, {"key": "ann 17"}, key=reader)[0] == 403
        for wrong in ({}, {"key": 3}, {"key": "x", "relearn": "yes"}, {"key": "x", "y": 1}):
            assert ask(port, "POST", url, wrong, key=admin)[0] == 400
        status, gone, _ = ask(port, "POST", url, {"key": "ann 17", "relearn": True}, key=admin)
        assert (status, gone) == (200, {"events": 20, "decisions": 10, "relearned": True})
        assert left(path) == 0
        assert ask(port, "POST", url, {"key": "ann 17"}, key=admin)[1]["events"] == 0
        monkeypatch.setattr(erasure, "PATIENCE", 0.1)
        shell = sqlite3.connect(path)
        shell.execute("BEGIN")
        shell.execute("SELECT count(*) FROM event").fetchone()
        status, problem, _ = ask(port, "POST", url, {"key": "bob"}, key=admin)
        assert status == 503
        assert "as soon as it can" in problem["detail"]
        shell.close()
        assert ask(port, "POST", url, {"key": "bob"}, key=admin)[0] == 200
        assert ask(port, "POST", "/v1/loops/loop/repair", {}, key=reader)[0] == 403
        assert ask(port, "POST", "/v1/loops/loop/repair", {"at": 3.0}, key=admin)[0] == 422
        status, found, _ = ask(port, "POST", "/v1/loops/loop/repair", {}, key=admin)
        assert (status, found["at"] > 1.7e9) == (200, True)


def test_from_the_command_line(path, driftbandit):
    assert driftbandit("erase", path, "ann 17")[1].startswith("20 events of 10 decisions erased")
    assert left(path) == 0
    code, _, words = driftbandit("erase", path.parent / "other.db", "x")
    assert (code, "does not exist" in words) == (2, True)
    assert "the clock of loop 'loop' is at 20" in driftbandit("repair", path)[1]
    code, _, words = driftbandit("repair", path, "--at", "yesterday")
    assert (code, "2026-11-18T12:00Z" in words) == (2, True)
    with Loop(path) as loop:
        assert loop.counts["repair"] == 1
        command = [sys.executable, "-m", "driftbandit", "erase", path, "bob"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, "open already" in done.stderr) == (2, True)
