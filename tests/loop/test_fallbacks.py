"""Decisions made while the loop was away: recorded once, with probability 1 on the default."""

import time

import pytest

from driftbandit import DOMD, Category, Client, Features, Loop, Number, Reward
from driftbandit.client import outbox
from driftbandit.client.client import UnreachableError
from serving import ARMS, NEWS, ask, free_port, in_thread

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(
    context={"age": Number(18, 90)}, arm={"topic": Category(["sport", "world"], required=True)}
)


def opened(path=":memory:", **options):
    new = {"features": FEATURES, "reward": Reward(0, 1, wait=100, missing=0), "policy": DOMD}
    new |= {"clock": "events", "training": "inline", "exploration": 0.5}
    return Loop(path, **(new | options))


def other(arm):
    return "b" if arm == "a" else "a"


def test_a_recorded_decision_is_the_default_and_trains():
    with opened() as loop:
        for _ in range(2):  # the same id, the same answer
            said = loop.record_fallback({"age": 30}, ARMS, id="x", default="b", key="ann", at=0.0)
            assert said == "recorded"
        loop.reward("x", 1, at=5.0)
        loop.close_windows(200.0)
        (row,) = loop.log().to_dicts()
        assert loop.counts["decide"] == 1
        assert all(audit.agrees for audit in loop.audits())
    assert (row["arm"], row["role"], row["probability"]) == ("b", "fallback", 1.0)
    assert row["probabilities"] == [0.0, 1.0]
    assert (row["status"], row["reward"]) == ("trained", 1.0)


def test_recorded_and_replayed_learners_are_equal(tmp_path):
    with opened(tmp_path / "shop.db") as loop:
        for k in range(40):
            act = loop.record_fallback if k % 3 == 0 else loop.decide
            act({"age": 20 + k}, ARMS, id=f"d{k}", default="a", at=float(k))
            loop.reward(f"d{k}", k % 2, at=float(k))
        loop.close_windows(1000.0)
        digest = loop.digest
        assert len({audit.id for audit in loop.audits() if audit.agrees}) == 40
    with Loop(tmp_path / "shop.db", training="inline") as loop:
        assert loop.digest == digest


def test_values_leave_it_to_the_default():
    with opened() as loop:
        for k in range(60):
            loop.record_fallback({"age": 30}, ARMS, id=f"r{k}", default="a", at=float(k))
            loop.decide({"age": 30}, ARMS, id=f"d{k}", default="a", at=float(k))
            for id in (f"r{k}", f"d{k}"):
                loop.reward(id, float(id[0] == "r"), at=float(k))
        loop.close_windows(1000.0)
        found = loop.health().values
    assert (found["loop"].rows, found["loop"].mean, found["uniform"].mean) == (60, 0.0, 0.0)
    assert found["default"].rows == 120
    assert 0.0 < found["default"].mean < 1.0


def test_what_the_loop_chose_otherwise_was_never_seen():
    """The answer was lost on its way, and the default was played."""
    with opened() as loop:
        made = loop.decide({"age": 30}, ARMS, id="x", at=0.0)
        options = {"id": "x", "at": 0.0}
        with pytest.raises(ValueError, match="another decision"):
            loop.record_fallback({"age": 31}, ARMS, default=made.arm, **options)
    for agree in (True, False):
        with opened() as loop:
            chosen = loop.decide({"age": 30}, ARMS, default="a", **options).arm
            id = "x"
            while (chosen == "a") != agree:  # another id draws anew
                id += "x"
                chosen = loop.decide({"age": 30}, ARMS, default="a", id=id, at=0.0).arm
            for _ in range(2):
                said = loop.record_fallback({"age": 30}, ARMS, default="a", id=id, at=0.0)
                assert said == ("recorded" if agree else "cancelled")
            assert loop.reward(id, 1, at=1.0) == ("counted" if agree else "late")


def test_slates_can_be_recorded():
    with opened() as loop:
        said = loop.record_fallback({"age": 30}, ARMS, k=2, id="s", default=["b", "a"], at=0.0)
        rows = loop.log().to_dicts()
    assert said == "recorded"
    assert [(row["arm"], row["probability"]) for row in rows] == [("b", 1.0), ("a", 1.0)]


def test_refusals():
    with opened() as loop:
        with pytest.raises(ValueError, match="pass both"):
            loop.record_fallback({"age": 30}, ARMS, id="x", default=None)
        with pytest.raises(ValueError, match="one of the arms"):
            loop.record_fallback({"age": 30}, ARMS, id="x", default="c", at=0.0)
        (wrong,) = loop.submit_many([("record_fallback", {"context": {"age": 30}, "arms": ARMS})])
        assert "pass both" in str(wrong)
        loop.close_windows(at=500.0)
        with pytest.raises(ValueError, match="too long ago"):
            loop.record_fallback({"age": 30}, ARMS, id="x", default="a", at=0.0)


def test_over_http_each_is_recorded_or_refused(tmp_path):
    good = {"context": {"age": 30}, "arms": ARMS, "id": "x", "default": "b"}
    wrong = good | {"id": "y", "default": "c"}
    with in_thread(tmp_path / "shop.db") as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        body = {"decisions": [good, wrong, good]}
        status, found, _ = ask(port, "POST", "/v1/loops/news/records", body)
        assert status == 200
        assert found["decisions"][0] == found["decisions"][2] == {"outcome": "recorded"}
        assert found["decisions"][1]["problem"]["status"] == 422
        del good["default"]
        assert ask(port, "POST", "/v1/loops/news/records", {"decisions": [good]})[0] == 400


def test_a_client_sends_what_it_decided_once_the_service_is_back(tmp_path):
    port, path = free_port(), tmp_path / "shop.db"
    client = Client(f"http://127.0.0.1:{port}", "news", timeout=0.3)
    away = [client.decide({"age": 30 + k}, ARMS, default="b", key=f"k{k}") for k in range(3)]
    slate = client.decide({"age": 50}, ARMS, default=["b", "a"], k=2)
    with pytest.raises(UnreachableError):
        client.reward(away[0].id, 1)
    with in_thread(path, port=port):
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        assert client.reward(away[0].id, 1) == "counted"
        assert client.send() == 0  # all was sent before the reward
        made = client.decide({"age": 40}, ARMS, default="b")
        client.close()
    with Loop(path, name="news") as loop:
        rows = loop.log().to_dicts()
    assert [row["id"] for row in rows] == [*(each.id for each in away), slate.id, slate.id, made.id]
    assert [row["role"] for row in rows] == ["fallback"] * 5 + ["active"]
    assert [row["key"] for row in rows[:3]] == ["k0", "k1", "k2"]
    assert rows[0]["reward"] == 1.0


def test_what_is_refused_is_not_sent_for_ever(tmp_path, caplog):
    port = free_port()
    client = Client(f"http://127.0.0.1:{port}", "news", timeout=0.3)
    client.decide({"agee": 30}, ARMS, default="b", id="wrong")
    client.decide({"age": 30}, ARMS, default="b", id="right")
    with in_thread(tmp_path / "shop.db", port=port):
        assert client.send() == 0  # no such loop: logged
        ask(port, "PUT", "/v1/loops/news", NEWS)
        assert client.send() == 0
    client.decide({"agee": 30}, ARMS, default="b", id="wrong")
    client.decide({"age": 30}, ARMS, default="b", id="right")
    with in_thread(tmp_path / "shop.db", port=port):
        assert client.send() == 1
        client.close()
    assert "2 fallback decisions are refused: no loop 'news'" in caplog.text
    assert "decision wrong is refused" in caplog.text
    assert "did you mean 'age'" in caplog.text


def test_a_client_keeps_a_bounded_number_and_says_what_is_lost(monkeypatch, caplog):
    monkeypatch.setattr(outbox, "MOST", 2)
    with Client("http://127.0.0.1:1", "news", timeout=0.05) as client:
        for k in range(3):
            client.decide({"age": 30}, ARMS, default="b", id=f"d{k}")
    assert "decision d0 is dropped" in caplog.text
    assert "2 fallback decisions were not sent" in caplog.text


def test_batches_are_small_and_in_order(monkeypatch):
    monkeypatch.setattr(outbox, "BYTES", 50)
    waiting = outbox.Outbox()
    for k in range(5):
        waiting.add({"id": f"d{k}", "at": time.time()})
    first = waiting.take()
    assert [each["id"] for each in first] == ["d0", "d1"]
    waiting.put_back(first)
    assert "d1" in waiting
    found = []
    while batch := waiting.take():
        found += [each["id"] for each in batch]
    assert found == [f"d{k}" for k in range(5)]
    assert waiting.take() == []
