"""A loop under load: `make bench-loop` prints decisions a second, each stored on the disk, what it
takes to replay a log, and whether all of a log can be audited.

Exit status 1 if a figure is missed. The disk's own time is printed beside: a machine with slow
fsync has fewer groups a second, each with more decisions.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.features import COLUMNS, CONTEXT, REQUIRED, arms, microseconds
from benchmarks.tables import report
from driftbandit import DOMD, AutoDOMD, Features, Loop, Reward
from driftbandit.loop.state.definition import defined
from driftbandit.loop.storage.events import Decide, Event, RewardGiven, encode
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training import replay

THREADS = 8
PAIRS = [("age", "price"), ("country", "genre"), ("mobile", "price"), ("visits", "new")]
FEATURES = Features(**COLUMNS, interactions=PAIRS)
FOLDED = Features(**COLUMNS, interactions=PAIRS, dim=32)
WAIT = 2.0  # seconds until a decision is trained
SMALL = Features(
    context={name: COLUMNS["context"][name] for name in ("age", "hour", "visits")},
    arm=COLUMNS["arm"],
    interactions=[("age", "price"), ("hour", "genre"), ("visits", "new")],
)
ALLOWED = {DOMD: 30.0, AutoDOMD: 150.0}  # seconds for 10^6 events
START = 2.0  # seconds until a loop with a log and a checkpoint is open
DURABLE = {"": 3000, " on one core": 4000}  # decisions per second


def fsync(folder: Path) -> float:
    """Seconds that the disk takes to keep 8 kB, in the middle."""
    spent = []
    with (folder / "fsync").open("wb") as file:
        for _ in range(300):
            file.write(bytes(8192))
            file.flush()
            tic = time.perf_counter()
            os.fsync(file.fileno())
            spent.append(time.perf_counter() - tic)
    return float(np.median(spent))


def load(loop: Loop, seconds: float, rewarded: float) -> np.ndarray:
    """Seconds of every decision of 8 threads; a share of them is rewarded at once."""
    given, spent = {f"arm {k}": arm for k, arm in enumerate(arms(20))}, []
    end = time.perf_counter() + seconds

    def work(seed: int) -> None:
        rng, own = np.random.default_rng(seed), []
        while (tic := time.perf_counter()) < end:
            decision = loop.decide(CONTEXT | {"age": int(rng.integers(18, 90))}, given)
            own.append(time.perf_counter() - tic)
            if rng.random() < rewarded:
                loop.reward(decision.id, 1)
        spent.extend(own)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.array(spent)


def decision(seq: int, k: int, age: int, choice: int, given: list[dict]) -> Event:
    """The k-th decision of a log, as a loop would have stored it."""
    context = {"age": age, "hour": k % 24, "visits": 3}
    made = Decide(
        *(context, list(range(20)), given, [choice], [[0.05] * 20], [0.5], "active"),
        *(SMALL.version, 2, (0, 0, 0.0)),
    )
    return Event(seq, "decide", float(k), f"decision {k}", None, encode(made))


def history(ledger: Ledger, events: int) -> None:
    """Decisions and their rewards; windows close every 100 decisions."""
    rng, given, seq, group = np.random.default_rng(0), arms(20), ledger.last(), []
    for k in range(events // 2):
        seq += 2
        group.append(decision(seq - 1, k, int(rng.integers(18, 90)), int(rng.integers(20)), given))
        said = encode(RewardGiven(float(k % 2), False, seq - 1))
        group.append(Event(seq, "reward", float(k), f"decision {k}", None, said))
        if k % 100 == 99:
            seq += 1
            group.append(Event(seq, "advance", float(k)))
            ledger.append(group)
            group = []
    ledger.append(group)


def replays(events: int):
    for policy, allowed in ALLOWED.items():
        with tempfile.TemporaryDirectory(dir=".") as folder:
            path, reward = f"{folder}/loop.db", Reward(0, 1, wait=1000, missing=0)
            Loop(path, features=SMALL, reward=reward, policy=policy, clock="events").close()
            ledger = Ledger(path, "loop")
            history(ledger, events)
            tic = time.process_time()  # of one core, whoever else is busy
            replay.replay(ledger, defined(ledger), None)
            spent = (time.process_time() - tic) * 1e6 / events
            ledger.close()
            begun = start(path) if policy is DOMD else None
        what = f"{policy.__name__}, d={SMALL.size}: a replay of 10^6 events, s"
        yield what, spent, f"<= {allowed:g}", spent <= allowed
        if begun is not None:
            what = f"start of a loop with {events:,} events and a checkpoint: s"
            yield what, begun, f"<= {START:g}", begun <= START


def start(path: str) -> float:
    """Seconds until a loop is open that was closed before, so that there is a checkpoint."""
    Loop(path).close()
    tic = time.perf_counter()
    loop = Loop(path)
    spent = time.perf_counter() - tic
    loop.close()
    return spent


def audited(decisions: int) -> float:
    """Share of decisions whose logged probabilities the log gives again, bit for bit."""
    given, rng = {f"arm {k}": arm for k, arm in enumerate(arms(20))}, np.random.default_rng(1)
    declared = {"features": FEATURES, "reward": Reward(0, 1, wait=WAIT, missing=0)}
    with Loop(":memory:", exploration=0.1, clock="events", training="inline", **declared) as loop:
        for k in range(decisions):
            asked = {"id": f"{k}", "at": 0.1 * k, "k": 3 if k % 3 == 0 else None}
            loop.decide(CONTEXT | {"age": int(rng.integers(18, 90))}, given, **asked)
        return float(np.mean([each.logged == each.computed for each in loop.audits()]))


def figures(seconds: float, events: int):
    spent = microseconds(FEATURES, CONTEXT, arms(20))
    what = f"encoding 20 arms, 8 raw columns, d={FEATURES.size}: us"
    yield what, spent, f"<= {REQUIRED:g}", spent <= REQUIRED
    share = audited(3000)
    yield "share of a log of 3000 decisions that audits agree with", share, ">= 1", share == 1.0
    yield from replays(events)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yield "the disk's fsync: ms", 1e3 * fsync(Path(folder)), "", True
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else {0}
    for features in (FEATURES, FOLDED):
        yield from loaded(seconds, "", features)
        if len(cores) > 1:
            os.sched_setaffinity(0, {min(cores)})
            yield from loaded(seconds, " on one core", features)
            os.sched_setaffinity(0, cores)


def loaded(seconds: float, where: str, features: Features):
    """Threads that hand Python's lock from core to core pay for it: see it on one core, too."""
    reward = Reward(0, 1, wait=WAIT, missing=0)
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        Loop(f"{folder}/loop.db", features=features, reward=reward, exploration=0.02) as loop,
    ):
        load(loop, 2.0, 0.1)  # compile, and fill the window
        spent = load(loop, seconds, 0.1)
        lag = loop.lag.seconds
    wanted, where = DURABLE[where], f"{THREADS} threads{where}"
    rate, what = len(spent) / seconds, f"{where}, 20 arms, 8 raw columns, d={features.size}"
    yield f"{what}: decisions per second", rate, f">= {wanted}", rate >= wanted
    where += f", d={features.size}"
    slow = 1e3 * float(np.quantile(spent, 0.99))
    yield f"{where}: 99 % of decisions within: ms", slow, "<= 20", slow <= 20
    yield f"{where}: half of them within: ms", 1e3 * float(np.median(spent)), "", True
    yield f"{where}: behind after {seconds:g} s: s", lag, "<= 1", lag <= 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    parser.add_argument("--events", type=int, default=1_000_000, help="length of the log")
    args = parser.parse_args()
    return report("A loop under load", figures(args.seconds, args.events), args.csv)


if __name__ == "__main__":
    sys.exit(main())
