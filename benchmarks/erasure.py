"""Erasure beside decisions: `make bench-erasure` prints how long a decision waits at most.

Ledgers of some sizes are filled with decisions of many keys. Then a thread decides without a pause,
first alone and then while a key is erased. Afterwards the files are scanned for the key.
"""

from __future__ import annotations

import argparse
import glob
import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.features import COLUMNS, CONTEXT, arms
from benchmarks.tables import report
from driftbandit import DOMD, Features, Loop, Reward
from driftbandit.loop.errors import UnfinishedErasureError
from driftbandit.loop.storage import sqlite

DECLARED: dict[str, Any] = {"features": Features(**COLUMNS), "reward": Reward(0, 1, wait=3600)}
DECLARED |= {"policy": DOMD}
GIVEN = {f"arm {k}": arm for k, arm in enumerate(arms(20))}
WHO, EVERY = "person who asks", 50
MOST = 0.25  # seconds that a decision may wait


COPIED = """INSERT INTO event (loop, seq, kind, at, id, key, data, k, v, seal)
  SELECT loop, seq + (SELECT max(seq) FROM event) - 2, kind, at, lower(hex(randomblob(16))),
    CASE WHEN key LIKE 'person%' THEN 'user 0' ELSE key END, data, k, v, seal
  FROM event WHERE seq > 2 AND seq <= 10002 ORDER BY seq"""


def filled(path: str, megabytes: int) -> None:
    """Fill a ledger; of the first ten thousand decisions, every fiftieth is about the person who
    asks. The others are copies with other ids, about other people: that is faster, and `verify` is
    not asked."""
    with mock.patch.object(sqlite, "SYNCHRONOUS", "OFF"), Loop(path, **DECLARED) as loop:
        k = 0
        while os.path.getsize(path) < 1e6 * megabytes and k < 10_000:
            calls = []
            for _ in range(500):
                k += 1
                key = WHO if k % EVERY == 0 else f"user {k % 5000}"
                calls.append(("decide", {"context": CONTEXT, "arms": GIVEN, "key": key}))
            loop.submit_many(calls)
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute("PRAGMA synchronous = OFF")
        while os.path.getsize(path) < 1e6 * megabytes:
            base.execute(COPIED)
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()


class Decider(threading.Thread):
    """Decides without a pause."""

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.loop, self.times, self.ended = loop, list[float](), threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            tic = time.perf_counter()
            self.loop.decide(CONTEXT, GIVEN, key="user 1")
            self.times.append(time.perf_counter() - tic)


def decided(loop: Loop, work: Any) -> list[float]:
    """The times of decisions while something else is done."""
    decider = Decider(loop)
    decider.start()
    try:
        work()
    finally:
        decider.ended.set()
        decider.join()
    return decider.times


def erased(loop: Loop) -> None:
    """Erase, and wait until the loop has finished what it could not finish at once."""
    try:
        loop.erase(key=WHO)
    except UnfinishedErasureError:
        while loop.ledger.unpurged() is not None:
            time.sleep(0.1)


def copies(path: str) -> int:
    found = 0
    for name in glob.glob(f"{glob.escape(path)}*"):
        with open(name, "rb") as file:
            found += sum(part.count(WHO.encode()) for part in iter(lambda: file.read(1 << 26), b""))
    return found


def figures(sizes: list[int]) -> Iterator[tuple[str, float, str, bool]]:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for size in sizes:
            path = f"{folder}/{size}.db"
            filled(path, size)
            before = copies(path)
            with Loop(path) as loop:
                calm = decided(loop, lambda: time.sleep(5.0))
                tic = time.perf_counter()
                times = decided(loop, lambda: erased(loop))
                spent, left = time.perf_counter() - tic, copies(path)
            longest = max(times)
            what = f"a ledger of {size} MB"
            yield f"{what}: longest decision in calm times, s", max(calm), "", True
            yield (
                f"{what}: longest decision during an erasure, s",
                longest,
                f"<= {MOST:g}",
                (longest <= MOST),
            )
            slow = float(np.quantile(times, 0.99))
            yield f"{what}: 99 % of decisions during an erasure within, s", slow, "", True
            yield f"{what}: the erasure took, s", spent, "", True
            yield f"{what}: copies of the key before", before, "", before > 0
            yield f"{what}: copies of the key afterwards", left, "<= 0", left == 0
            os.remove(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[56, 500], help="MB")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    return report("Erasure beside decisions", figures(args.sizes), args.csv)


if __name__ == "__main__":
    sys.exit(main())
