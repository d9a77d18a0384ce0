"""Loops and services whose ledger is in PostgreSQL."""

import time

import psycopg
import pytest

from driftbandit import DOMD, Category, Client, Features, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.storage.ledger import Ledger, names
from serving import ARMS as TOPICS
from serving import NEWS, ask, in_thread, until_ready

FEATURES = Features(context={"age": Number(18, 90)}, arm={"topic": Category(["x", "y"])})
ARMS = {"a": {"topic": "x"}, "b": {"topic": "y"}}
NEW = {"features": FEATURES, "reward": Reward(0, 1, wait=50, missing=0), "policy": DOMD}
NEW |= {"clock": "events", "exploration": 0.3, "training": "inline"}


@pytest.fixture
def url(postgres):
    return postgres.url()


def play(loop, start, n=40):
    for k in range(start, start + n):
        loop.decide({"age": 20 + k % 50}, ARMS, id=f"d{k}", key=f"p{k % 3}", at=10.0 * k)
        loop.reward(f"d{k - k % 4}", k % 2, at=10.0 * k)
        if k % 7 == 0:
            loop.cancel(f"d{k}", at=10.0 * k)


@pytest.mark.usefixtures("no_wait_for_the_disk")
def test_the_same_calls_give_the_same_learner_as_in_a_file(url, tmp_path):
    found = []
    for address in (url, tmp_path / "a.db"):
        with Loop(address, **NEW) as loop:
            play(loop, 0)
        with Loop(address, training="inline") as loop:
            play(loop, 40)
            assert all(audit.logged == audit.computed for audit in loop.audits())
            before = loop.digest, loop.counts, loop.log()
            assert loop.erase(key="p1", relearn=True).events > 10
            found.append((*before, loop.digest, loop.log()))
        assert names(address) == ["loop"]
    (digest, counts, log, *rest), other = found
    assert (digest, counts) == other[:2]
    assert log.equals(other[2])
    assert rest[0] == other[3]
    assert rest[1].equals(other[4])


def test_messages_name_the_database_and_no_password(url, postgres):
    secret = url.replace("test@", "test:Sesam123@")
    with Loop(secret, **NEW) as loop:
        assert "Sesam" not in repr(loop)
        with pytest.raises(LedgerError, match="open already") as refused:
            Loop(secret)
        assert "Sesam" not in str(refused.value)
    for wrong in (url + "x", url.replace(str(postgres.port), "1")):
        with pytest.raises(LedgerError, match="unreachable or refused the login"):
            Loop(wrong, **NEW)
    with pytest.raises(LedgerError, match="not the address"):
        Loop("postgresql://[", **NEW)
    with pytest.raises(ValueError, match="pass features="):
        Loop(url, name="other")


def test_a_database_of_others_and_a_newer_one(url):
    with pytest.raises(LedgerError, match="holds no loops"):
        Ledger(url, "shop", write=False)
    Ledger(url, "shop").close()
    with psycopg.connect(url, autocommit=True) as base:
        base.execute("INSERT INTO driftbandit_migration VALUES (99)")
    with pytest.raises(LedgerError, match="upgrade"):
        Ledger(url, "shop")


def test_a_writer_that_lost_its_connection_writes_nothing_more(url):
    """Its lock is gone with it, and another one may have it."""
    first = Loop(url, **NEW)
    play(first, 0, 5)
    with psycopg.connect(url, autocommit=True) as base:
        others = "pid <> pg_backend_pid() AND datname = current_database()"
        base.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    with Loop(url, training="inline") as second:
        with pytest.raises(LedgerError, match="open the loop again"):
            play(first, 5, 1)
        play(second, 5, 5)
        assert second.counts["decide"] == 10
    with pytest.raises(LedgerError):
        first.decide({"age": 30}, ARMS, at=9e9)
    first.close()


def test_a_service_survives_a_restart_of_its_database(postgres):
    url = postgres.url()
    with in_thread(url) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        asked = {"context": {"age": 30}, "arms": TOPICS, "id": "before"}
        before = ask(port, "POST", "/v1/loops/news/decisions", asked)[1]
        postgres.stop()
        status, problem, _ = ask(port, "POST", "/v1/loops/news/decisions", asked | {"id": "no"})
        assert status == 503
        assert "the database is unreachable" in problem["detail"]
        assert ask(port, "GET", "/healthz")[0] == 200
        postgres.start()
        until_ready(port)
        assert ask(port, "POST", "/v1/loops/news/decisions", asked)[1] == before


def test_two_services_decide(url):
    with in_thread(url) as one, in_thread(url) as two:
        clients = [Client(f"http://127.0.0.1:{port}", "news", timeout=15) for port in (one, two)]
        clients[0].declare(**NEWS)
        made = [clients[k % 2].decide({"age": 20 + k}, TOPICS) for k in range(20)]
        assert all(made[0] == each.decide({"age": 20}, TOPICS, id=made[0].id) for each in clients)
        assert clients[1].reward(made[0].id, 1) == "counted"
        assert clients[0].reward(made[0].id, 0) == "corrected"
        until_ready(two)
        status, problem, _ = ask(two, "PUT", "/v1/loops/news", NEWS | {"exploration": 0.2})
        assert (status, problem["difference"][0]["declared"]) == (409, 0.1)
        assert ask(two, "PATCH", "/v1/loops/news", {"exploration": 0.2})[0] == 200
        health = [client.health() for client in clients]
        assert [each["report"]["trains"] for each in health] == [True, False]
        end = time.monotonic() + 10
        while ask(one, "GET", "/v1/loops/news")[1]["settings"]["exploration"]["uniform"] != 0.2:
            assert time.monotonic() < end
        why = ask(one, "GET", f"/v1/loops/news/decisions/{made[1].id}/why")[1]
        assert why["logged"] == why["computed"]
        for client in clients:
            client.close()
