"""Services under load: killed, without a database, without room, with a clock that goes back.

`make torture` runs the long form of the same tests: 100 kills in each store, 30 s without the
database.
"""

import itertools
import os
import random
import resource
import signal
import threading
import time
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from driftbandit import Client, Loop
from driftbandit.client.client import UnreachableError
from driftbandit.loop import runtime
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.state.definition import defined
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training import replay
from driftbandit.service.http.auth import ApiKeys
from serving import ARMS, NEWS, Process, ask, in_thread, until_ready

LONG = bool(os.environ.get("TORTURE"))
KILLS = 100 if LONG else 1
BACK = 3.0  # seconds until all is open again
RESUMED = 10.0  # seconds until another one trains
SHOP = NEWS | {"policy": "AutoDOMD" if LONG else "DOMD"}
SHOP |= {"reward": {"low": 0, "high": 1, "wait": 0.05, "missing": 0}}
ASKED, DECISION = "/v1/loops/news/decisions", {"context": {"age": 30}, "arms": ARMS}


def hammer(port, acknowledged, over, k, key=None):
    """Decide and reward until it is over or the service away; note what it said was done."""
    with Client(f"http://127.0.0.1:{port}", "news", api_key=key, timeout=1.0) as client:
        try:
            for n in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
                made = client.decide({"age": 20 + n % 60}, ARMS)
                acknowledged[made.id] = None
                acknowledged[made.id] = client.reward(made.id, (n + k) % 2)
        except UnreachableError:
            return


@contextmanager
def hammered(port, acknowledged, threads=4, key=None):
    """Asked from some threads meanwhile."""
    over = threading.Event()
    args = [(port, acknowledged, over, k, key) for k in range(threads)]
    work = [threading.Thread(target=hammer, args=each) for each in args]
    for thread in work:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in work:
            thread.join()


def started(folder, address):
    """A service that is ready and knows the loop, and the seconds until it was ready."""
    begun = time.monotonic()
    served = Process(folder, "--open", ledger=address)
    until_ready(served.port)
    back = time.monotonic() - begun
    with Client(f"http://127.0.0.1:{served.port}", "news", timeout=120) as client:  # it may compile
        client.declare(**SHOP)
    return served, back


def check(address, acknowledged, head=None):
    """All that was acknowledged is there, once, and the learner follows from the log. The chain
    holds, from the `head` of before; returns its head."""
    (chain,) = verify(address, "news", head)
    assert chain.holds, chain
    ledger = Ledger(address, "news")
    try:
        events, past = list(ledger.read()), defined(ledger)
        decided = [e.id for e in events if e.kind == "decide"]
        rewarded = {e.id for e in events if e.kind == "reward"}
        assert len(decided) == len(set(decided))
        assert acknowledged.keys() <= set(decided)
        assert {id for id, said in acknowledged.items() if said} <= rewarded
        whole, resumed = replay.replay(ledger, past, None), replay.latest(ledger, past)
        assert whole.learner.digest == resumed.learner.digest
        assert whole.windows.counts == resumed.windows.counts
    finally:
        ledger.close()
    return chain.head


@pytest.fixture(params=["sqlite", *(["postgres"] if LONG else [])])
def address(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    return request.getfixturevalue("postgres").url()


def test_killed_under_load_it_has_all_that_it_acknowledged(address, tmp_path):
    rng, acknowledged, back, head = random.Random(3), {}, [], None
    for _ in range(KILLS):
        before = len(acknowledged)
        served, seconds = started(tmp_path, address)
        back.append(seconds)
        with hammered(served.port, acknowledged):
            time.sleep(rng.uniform(0.3, 1.0))
            served.stop(signal.SIGKILL)
        assert len(acknowledged) > before
        head = check(address, acknowledged, head)
    if LONG:
        print(f"{address}: {len(acknowledged)} acknowledged; ready within {max(back):.1f} s")
        assert max(back) < BACK


DEEP = b'{"context":{"x":' + b"[" * 600 + b"]" * 600 + b'},"arms":{},"default":"a","id":"deep"}'
NAMES = {"ab" * 19 + f"{k:02}": {} for k in range(40)}
HOSTILE = (  # of one key, all at once: each may cost the key that sends it, and no other
    ("POST", ASKED, None, DEEP),
    ("POST", ASKED, DECISION | {"arms": NAMES, "default": "ba" * 19}, None),
    ("POST", "/v1/loops/news/batches", {"decisions": [DECISION] * 500}, None),
    ("POST", ASKED, DECISION | {"arms": {str(k): {} for k in range(90)}, "k": 90}, None),
    ("POST", "/v1/loops/nothing/decisions", DECISION, None),
    ("PUT", "/v1/loops/news/decisions/none/reward", {"value": 1e308, "at": 253402300000.0}, None),
)


def flood(port, key, over, k):
    while not over.is_set():
        with suppress(OSError):  # the service was killed
            method, path, body, raw = HOSTILE[k % len(HOSTILE)]
            assert ask(port, method, path, body, key, raw)[0] not in (500, 502)


@pytest.mark.slow
def test_a_hostile_key_beside_honest_ones(address, tmp_path):
    """Whatever it sends, the others are answered, and what they were told is there; also if the
    service is killed meanwhile."""
    keys, acknowledged = ApiKeys(address), {}
    owner, hostile = keys.create("owner", ["admin"]), keys.create("hostile", ["decide", "reward"])
    keys.close()
    for end in (signal.SIGTERM, signal.SIGKILL) * (20 if LONG else 1):
        served = Process(tmp_path, ledger=address)
        until_ready(served.port)
        declared = ask(served.port, "PUT", "/v1/loops/news", SHOP, owner)[0]
        assert declared in (200, 201)
        over, before = threading.Event(), len(acknowledged)
        work = [
            threading.Thread(target=flood, args=(served.port, hostile, over, k)) for k in range(6)
        ]
        for thread in work:
            thread.start()
        try:
            with hammered(served.port, acknowledged, 2, owner):
                time.sleep(2.0)
                served.stop(end)
        finally:
            over.set()
            for thread in work:
                thread.join()
        assert len(acknowledged) > before
        check(address, acknowledged)


def training(port):
    """Whether the loop is trained there, and hardly behind."""
    status, found, _ = ask(port, "GET", "/v1/loops/news/health")
    return status == 200 and found["report"]["trains"] and found["behind"] < 1.0


def test_one_of_two_is_killed_and_the_other_goes_on(postgres, tmp_path):
    """Each time the one who trains; another one is started then."""
    url, rng, acknowledged, gaps, resumed = postgres.url(), random.Random(5), {}, [], []
    first, second = (started(tmp_path, url)[0] for _ in range(2))
    for _ in range(KILLS):
        assert training(first.port)
        assert not training(second.port)
        stayed = {}
        with hammered(first.port, acknowledged, 2), hammered(second.port, stayed, 2):
            time.sleep(rng.uniform(0.3, 1.0))
            first.stop(signal.SIGKILL)
            killed, before = time.monotonic(), len(stayed)
            while len(stayed) < before + 10:
                assert time.monotonic() - killed < RESUMED
                time.sleep(0.001)
            gaps.append(time.monotonic() - killed)
            while not training(second.port):
                assert time.monotonic() - killed < RESUMED
            resumed.append(time.monotonic() - killed)
        acknowledged |= stayed
        first, second = second, started(tmp_path, url)[0]
    for each in (first, second):
        each.stop(signal.SIGTERM)
    check(url, acknowledged)
    with Loop(url, name="news", training="inline") as loop:
        assert all(audit.logged == audit.computed for audit in loop.audits())
    if LONG:
        print(f"10 decisions after {max(gaps):.2f} s, training after {max(resumed):.2f} s")


def test_a_database_that_is_away(postgres, tmp_path):
    """Clear refusals meanwhile, and nothing lost: clients who name a default get it."""
    url, acknowledged = postgres.url(), {}
    served = started(tmp_path, url)[0]
    with hammered(served.port, acknowledged):
        time.sleep(0.5)
        postgres.stop()
        end = time.monotonic() + (30.0 if LONG else 1.0)
        statuses = set()
        while time.monotonic() < end:
            status, problem, headers = ask(served.port, "POST", ASKED, DECISION)
            statuses.add((status, headers.get("retry-after"), problem["title"]))
            time.sleep(0.05)
        with Client(f"http://127.0.0.1:{served.port}", "news", timeout=0.3) as client:
            assert client.decide({"age": 30}, ARMS, default="b").role == "fallback"
        postgres.start()
    assert statuses == {(503, "1", "Service Unavailable")}
    until_ready(served.port)
    with hammered(served.port, acknowledged):
        time.sleep(0.3)
    served.stop(signal.SIGTERM)
    check(url, acknowledged)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit")
def test_a_disk_without_room(tmp_path):
    """The file of the ledger, or of its log of writes, may not grow any more."""
    address, acknowledged = str(tmp_path / "shop.db"), {}
    served = started(tmp_path, address)[0]
    with hammered(served.port, acknowledged):
        time.sleep(0.3)
        files = [each for each in tmp_path.iterdir() if each.suffix in (".db", ".db-wal")]
        room = min(each.stat().st_size for each in files)
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        end, refused = time.monotonic() + 10.0, ""
        while "make room on the disk" not in refused:
            assert time.monotonic() < end
            status, problem, _ = ask(served.port, "POST", ASKED, DECISION)
            assert status in (200, 503)
            refused = problem.get("detail", "")
        assert ask(served.port, "GET", "/healthz")[0] == 200
    endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, endless)
    until_ready(served.port)
    with hammered(served.port, acknowledged):
        time.sleep(0.3)
    served.stop(signal.SIGTERM)
    check(address, acknowledged)


def test_a_clock_that_goes_back(tmp_path, monkeypatch):
    """An hour back: time stands still in the loop until it is caught up."""
    back, address = [0.0], str(tmp_path / "shop.db")
    monkeypatch.setattr(runtime, "time", SimpleNamespace(time=lambda: time.time() - back[0]))
    with in_thread(address) as port, Client(f"http://127.0.0.1:{port}", "news") as client:
        client.declare(**SHOP)
        made = [client.decide({"age": 30}, ARMS) for _ in range(5)]
        time.sleep(0.3)  # their windows are closed by then
        back[0] = 3600.0
        made += [client.decide({"age": 40}, ARMS) for _ in range(5)]
        assert client.reward(made[0].id, 1) == "late"
        assert client.reward(made[-1].id, 1) == "counted"
        back[0] = 0.0
        made += [client.decide({"age": 50}, ARMS)]
    check(address, {each.id: None for each in made})
    with Loop(address, name="news", training="inline") as loop:
        times = loop.log()["at"].to_list()
        assert times == sorted(times)
        assert all(audit.logged == audit.computed for audit in loop.audits())
