"""A service under load is killed at any moment. `make torture` does it 50 times, in both stores."""

import os
import random
import signal
import threading
import time

import pytest

from driftbandit import Client
from driftbandit.loop import replay
from driftbandit.loop.ledger import Ledger
from driftbandit.service.client import AwayError
from serving import ARMS, NEWS, Process, until_ready

LONG = bool(os.environ.get("TORTURE"))
KILLS = 50 if LONG else 1
BACK = 3.0  # seconds until all is open again
SHOP = NEWS | {"policy": "AutoDOMD" if LONG else "DOMD"}
SHOP |= {"reward": {"low": 0, "high": 1, "wait": 0.05, "missing": 0}}


def hammer(port, acknowledged, k):
    """Decide and reward until the service is away; note what it said was done."""
    with Client(f"http://127.0.0.1:{port}", "news", timeout=1.0) as client:
        try:
            for n in range(10**6):
                made = client.decide({"age": 20 + n % 60}, ARMS)
                acknowledged[made.id] = None
                acknowledged[made.id] = client.reward(made.id, (n + k) % 2)
        except AwayError:
            return


def killed(folder, address, acknowledged, seconds):
    """Start a service, ask from four threads, kill it; says how long it took to be ready."""
    begun = time.monotonic()
    served = Process(folder, "--open", ledger=address)
    until_ready(served.port)
    back = time.monotonic() - begun
    with Client(f"http://127.0.0.1:{served.port}", "news", timeout=20) as client:
        client.declare(**SHOP)
    work = [threading.Thread(target=hammer, args=(served.port, acknowledged, k)) for k in range(4)]
    for thread in work:
        thread.start()
    time.sleep(seconds)
    served.stop(signal.SIGKILL)
    for thread in work:
        thread.join()
    return back


def check(address, acknowledged):
    """All that was acknowledged is there, once, and the learner follows from the log."""
    ledger = Ledger(address, "news")
    try:
        events, past = list(ledger.read()), replay.past(ledger)
        decided = [e.id for e in events if e.kind == "decide"]
        rewarded = {e.id for e in events if e.kind == "reward"}
        assert len(decided) == len(set(decided))
        assert acknowledged.keys() <= set(decided)
        assert {id for id, said in acknowledged.items() if said} <= rewarded
        whole, resumed = replay.replay(ledger, past, None), replay.latest(ledger, past)
        assert whole.learner.digest == resumed.learner.digest
        assert whole.book.counts == resumed.book.counts
    finally:
        ledger.close()


@pytest.mark.parametrize("store", ["sqlite", *(["postgres"] if LONG else [])])
def test_killed_under_load_it_has_all_that_it_acknowledged(store, tmp_path, request):
    address = str(tmp_path / "shop.db")
    if store == "postgres":
        address = request.getfixturevalue("postgres").url()
    rng, acknowledged, back = random.Random(3), {}, []
    for _ in range(KILLS):
        before = len(acknowledged)
        back.append(killed(tmp_path, address, acknowledged, rng.uniform(0.3, 1.0)))
        assert len(acknowledged) > before
        check(address, acknowledged)
    if LONG:
        print(f"{store}: {len(acknowledged)} acknowledged; ready within {max(back):.1f} s")
        assert max(back) < BACK
