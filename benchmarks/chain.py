"""The chain of a ledger: `make bench-chain` prints what it adds to a decision.

Sealing an event is timed by itself: that is the share that must be reached. Decisions with the
chain and without it also take turns in one process, so that both meet the same load of the
machine: that figure has the cost of 80 more bytes in each row, too, and much more noise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.features import COLUMNS, CONTEXT, arms
from benchmarks.tables import report
from driftbandit import DOMD, Features, Loop, Reward
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.storage import ledger
from driftbandit.loop.storage.chain import Head, genesis, sealed

PAIRS = [("age", "price"), ("country", "genre"), ("mobile", "price"), ("visits", "new")]
MOST = 0.03  # of the CPU time of a decision
BLOCK = 50  # decisions from one change to the next


def unsealed(head: Head, events: Any) -> tuple[list[None], Head]:
    """Store events as if there were no chain."""
    return [None] * len(events), Head(events[-1].seq, head.link)


def decided(loop: Loop, given: dict[str, Any], n: int) -> float:
    """CPU seconds of a decision, on all threads."""
    tic = time.process_time()
    for _ in range(n):
        loop.decide(CONTEXT, given)
    return (time.process_time() - tic) / n


def blocks(loop: Loop, given: dict[str, Any], n: int) -> np.ndarray:
    """CPU seconds of a decision with the chain and without it, in turns, (n, 2)."""
    times = []
    for _ in range(n):
        own = decided(loop, given, BLOCK)
        with mock.patch.object(ledger, "sealed", unsealed):
            times.append((own, decided(loop, given, BLOCK)))
    return np.array(times)


def sealing(loop: Loop, n: int) -> float:
    """CPU seconds of sealing one decision: the median of n times 20."""
    found = [event for event in loop.ledger.read() if event.kind == "decide"][:20]
    times, head = [], Head(0, genesis("loop"))
    for _ in range(n):
        tic = time.process_time()
        for event in found:
            sealed(head, [event])
        times.append((time.process_time() - tic) / len(found))
    return float(np.median(times))


def figures(n: int) -> Iterator[tuple[str, float, str, bool]]:
    given = {f"arm {k}": arm for k, arm in enumerate(arms(20))}
    declared = {
        "features": Features(**COLUMNS, interactions=PAIRS),
        "reward": Reward(0, 1, wait=3600),
        "policy": DOMD,
    }
    with tempfile.TemporaryDirectory(dir=".") as folder:
        with Loop(f"{folder}/a.db", **declared) as loop:
            decided(loop, given, 4 * BLOCK)
            times = blocks(loop, given, n)
            seal = sealing(loop, 200)
        plain = float(np.median(times[:, 1]))
        ratios = times[:, 0] / times[:, 1] - 1.0
        yield "a decision without the chain, 20 arms, 8 raw columns: CPU us", 1e6 * plain, "", True
        yield "its seal: CPU us", 1e6 * seal, "", True
        share = seal / plain
        yield "the seal as a share of the decision", share, f"<= {MOST:g}", share <= MOST
        more = float(np.median(ratios))
        yield "with the chain over without it, less 1: median of blocks", more, "", True
        with Loop(f"{folder}/b.db", **declared) as loop:
            decided(loop, given, 2000)
        tic = time.process_time()
        (found,) = verify(f"{folder}/b.db")
        spent = time.process_time() - tic
    yield "verify: events per CPU second", found.events / spent, "", found.holds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=60, help="of 50 decisions each")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    return report("The chain of a ledger", figures(args.blocks), args.csv)


if __name__ == "__main__":
    sys.exit(main())
