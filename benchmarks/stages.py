"""Where the CPU time of a decision goes, with its reward and its training: `make bench-walk` stores
it as docs/results/walk-stages.csv.

Whole loops are measured with and without a wait for the disk, and with and without threads of their
own; the differences are the disk and the hand-overs. The other stages are measured one by one in a
loop, where processor caches are warm. What no stage explains is the Python between them. The floor
is what would be left without that Python and without hand-overs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.features import COLUMNS, CONTEXT, arms
from benchmarks.tables import Figure, report
from benchmarks.walk import PAIRS
from driftbandit import AutoDOMD, Features, Loop, Reward
from driftbandit.ids import new_id
from driftbandit.loop.deciding.offers import Offers
from driftbandit.loop.deciding.request import request
from driftbandit.loop.exploration import draw
from driftbandit.loop.storage import sqlite
from driftbandit.loop.storage.chain import Head, genesis, sealed
from driftbandit.loop.storage.events import Event, RewardGiven, encode

FEATURES = Features(**COLUMNS, interactions=PAIRS, dim=32)
GIVEN = {f"arm {k}": arm for k, arm in enumerate(arms(20))}
FLOOR = ("disk", "encoding", "choice", "training", "JSON", "chain", "SQLite")


def each(step: Callable[[], object], n: int) -> float:
    """Microseconds of CPU time of a step."""
    for _ in range(n // 10):
        step()
    tic = time.thread_time()
    for _ in range(n):
        step()
    return 1e6 * (time.thread_time() - tic) / n


def whole(folder: str, n: int, training: str, synchronous: str) -> float:
    """Microseconds of CPU time of a decision, its reward and its training, by all threads."""
    before, sqlite.SYNCHRONOUS = sqlite.SYNCHRONOUS, synchronous
    rng = np.random.default_rng(0)
    declared = {"features": FEATURES, "reward": Reward(0, 1), "policy": AutoDOMD}
    path = f"{folder}/{training} {synchronous}.db"
    try:
        with Loop(path, training=training, exploration=0.05, **declared) as loop:
            for k in range(n + 200):
                if k == 200:
                    tic = time.process_time()
                made = loop.decide(CONTEXT | {"age": int(rng.integers(18, 90))}, GIVEN)
                loop.reward(made.id, float(rng.random() < 0.3))
            loop.wait_until_trained()
            return 1e6 * (time.process_time() - tic) / n
    finally:
        sqlite.SYNCHRONOUS = before


def alone(folder: str, n: int) -> dict[str, float]:
    """Microseconds of CPU time of stages that are measured one by one."""
    declared = {"features": FEATURES, "reward": Reward(0, 1), "policy": AutoDOMD}
    with Loop(f"{folder}/alone.db", exploration=0.05, **declared) as loop:
        for k in range(300):
            loop.reward(loop.decide(CONTEXT, GIVEN).id, float(k % 3 == 0))
        loop.wait_until_trained()
        event = next(e for e in loop.ledger.read() if e.kind == "decide")
        bandit = loop.runtime.learner.bandit
    logged, said = event.read(), RewardGiven(1.0, False, 7)
    asked = request(CONTEXT, GIVEN, None)
    X, offers = FEATURES.encode(asked.context, asked.arms), Offers()
    pair = [event, Event(event.seq + 1, "reward", event.at, event.id, None, encode(said))]
    head = Head(event.seq - 1, genesis("loop"))
    return {
        "request": each(lambda: request(CONTEXT, GIVEN, None), n),
        "encoding": each(lambda: offers.rows(FEATURES.plan, asked.context, asked.arms), n),
        "choice": each(lambda: bandit.choose(X), n),
        "id and draw": each(lambda: draw(7, "loop", new_id(), "AutoDOMD", "pick"), n),
        "JSON": each(lambda: (encode(logged), encode(said)), n),
        "chain": each(lambda: sealed(head, pair), n),
        "training": each(lambda: bandit.update(X[3], 1.0), n),
        "SQLite": _statements(folder, event, n),
    }


def _statements(folder: str, event: Event, n: int) -> float:
    """Of the two statements that store both events, without a wait for the disk."""
    before, sqlite.SYNCHRONOUS = sqlite.SYNCHRONOUS, "OFF"
    store, seq = sqlite.SQLite(f"{folder}/statements.db", write=True), iter(range(1, 1 << 40))
    sqlite.SYNCHRONOUS = before
    seal, said = bytes(80), encode(RewardGiven(1.0, False, 7))

    def both() -> None:
        id = new_id()
        store.insert(1, (1, next(seq), "decide", 1.0, id, None, event.data, None, 2, seal))
        store.insert(1, (1, next(seq), "reward", 1.0, id, None, said, None, 2, seal))

    try:
        return each(both, n)
    finally:
        store.close()


def figures(n: int) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        durable = whole(folder, n, "background", "FULL")
        stored = whole(folder, n, "background", "OFF")
        inline = whole(folder, n, "inline", "OFF")
        found = {"disk": durable - stored, "hand-overs": stored - inline, **alone(folder, n)}
    asked = request(CONTEXT, GIVEN, None)
    new = each(lambda: FEATURES.encode(asked.context, asked.arms), n)
    yield "all of it: us", durable, "", True
    names = {
        "disk": "two waits for the disk (fsync)",
        "hand-overs": "hand-overs between threads",
        "request": "request: checked and made plain",
        "encoding": "features: raw values to contexts, for arms of an earlier decision",
        "choice": "kernel: choice",
        "id and draw": "id and random draw",
        "JSON": "JSON of both events",
        "chain": "seals of both events",
        "training": "kernel: training",
        "SQLite": "SQLite statements of both events, without the disk",
    }
    for name, what in names.items():
        yield f"{what}: us", found[name], "", True
    yield "Python between these: us", durable - sum(found.values()), "", True
    yield "features for arms that are new: us", new, "", True
    floor = sum(found[name] for name in FLOOR)
    yield "floor (disk, features, kernels, JSON, seals, SQLite): us", floor, "", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    return report("Where a decision's time goes", figures(options.decisions), options.csv)


if __name__ == "__main__":
    sys.exit(main())
