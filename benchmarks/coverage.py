"""Coverage of every interval on simulated logs whose truth is known.

    python -m benchmarks.coverage [--logs 2000] [--rows 3000] [--csv docs/results/intervals.csv]

The live policy follows discounted rewards and explores with one decision in five, or plays at
random. Values stand still, or drift. Candidates are an arm, and a learner that follows all rewards
so far; its means are the reward model. Printed: the share of logs in which an interval holds at the
end, and in which a sequence holds at all looks at once. Exit status 1 if one is not as promised.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import write_rows
from driftbandit.estimators import ope
from driftbandit.estimators.accumulators import Band, Difference, Value
from driftbandit.estimators.increments import LoggedArms

ARMS, FLOOR, EVERY, CLIP, ENOUGH = 3, 0.2, 100, 5.0, 100.0
WORLDS: dict[str, dict[str, Any]] = {
    "live policy at random": {"drift": 0.0, "adaptive": False},
    "live policy learns": {"drift": 0.0},
    "live policy learns, values drift": {"drift": 1.5},
}
PROMISED = {"sequence": (0.95, 1.0), "clipped": (0.93, 1.0)}  # a clipped interval has a margin
USUAL = (0.93, 0.975)
EFFECTIVE = "effective rows, at least"


class World:
    """Logs side by side."""

    def __init__(
        self, logs: int, n: int, seed: int, drift: float, *, adaptive: bool = True
    ) -> None:
        rng = np.random.default_rng(seed)
        phase = np.arange(n)[:, None] / n + np.arange(ARMS) / ARMS
        self.n, self.truth = n, 0.3 + 0.2 * np.sin(2.0 * np.pi * phase * drift)
        self.h, self.q = np.empty((2, logs, n, ARMS))  # q: the learner's means before each row
        self.A, self.R = np.empty((logs, n), dtype=np.int64), np.empty((logs, n))
        rows = np.arange(logs)
        live, learner = (
            np.stack([np.ones((logs, ARMS)), np.full((logs, ARMS), 2.0)]) for _ in "12"
        )
        for t in range(n):
            h = np.full((logs, ARMS), FLOOR / ARMS if adaptive else 1.0 / ARMS)
            if adaptive:
                h[rows, np.argmax(live[0] / live[1], axis=1)] += 1.0 - FLOOR
            a = (rng.random((logs, 1)) > np.cumsum(h, axis=1)).sum(axis=1).clip(0, ARMS - 1)
            r = (rng.random(logs) < self.truth[t, a]).astype(float)
            self.h[:, t], self.q[:, t], self.A[:, t], self.R[:, t] = (
                h,
                learner[0] / learner[1],
                a,
                r,
            )
            live = 0.99 * live + np.array([0.01, 0.02])[:, None, None]
            for sums in (live, learner):
                sums[0, rows, a] += r
                sums[1, rows, a] += 1.0

    def log(self, k: int) -> tuple[LoggedArms, Any]:
        start = np.arange(0, ARMS * self.n, ARMS)
        return LoggedArms(start, start + self.A[k], self.h[k].ravel()), self.R[k]

    def always(self, arm: int) -> Any:
        return np.eye(ARMS)[np.full(self.n, arm)].ravel()

    def learner(self, k: int) -> Any:
        """The arm that has earned most so far."""
        return np.eye(ARMS)[np.argmax(self.q[k], axis=1)].ravel()

    def mean(self, pi: Any) -> Any:
        """The true mean value of a candidate up to each row."""
        earned = (pi.reshape(self.n, ARMS) * self.truth).sum(axis=1)
        return np.cumsum(earned) / np.arange(1, self.n + 1)


def coverage(logs: int, n: int, seed: int, drift: float, **options: Any) -> dict[str, float]:
    """Shares of logs in which each interval holds, and the smallest effective sample size."""
    world, held, least = World(logs, n, seed, drift, **options), Counter[str](), np.inf
    for k in range(logs):
        for name, found in checks(world, k):
            if name == EFFECTIVE:
                least = min(least, found)
            else:
                held[name] += bool(found)
    return {name: held[name] / logs for name in held} | {EFFECTIVE: least}


def checks(world: World, k: int) -> Iterator[tuple[str, Any]]:
    """Which intervals of one log hold."""
    (arms, R), q = world.log(k), world.q[k].ravel()
    looks, pis = np.arange(EVERY - 1, world.n, EVERY), (world.always(1), world.learner(k))
    truths = [world.mean(pi) for pi in pis]
    for name, pi, truth in zip(("an arm", "a learner"), pis, truths):
        rows = Value(CLIP).columns(arms, pi, q, R)
        total = rows[:, : len(ope.SUMS)].sum(axis=0)
        yield EFFECTIVE, ope.effective(total)
        for kind, each in ope.estimates(total, 0.95).items():
            if kind != "dm":  # has no interval
                yield f"{name}: {kind}", each.low <= truth[-1] <= each.high
        yield f"{name}: sequence", always(Value.band(up_to(rows, looks), 0.05), truth[looks])
    rows, truth = Difference().columns(arms, pis, q, R), truths[0] - truths[1]
    once = Difference.estimate(rows.sum(axis=0), 0.95)
    yield "difference", once.low <= truth[-1] <= once.high
    yield "difference: sequence", always(Difference.band(up_to(rows, looks), 0.05), truth[looks])


def up_to(rows: Any, looks: Any) -> Any:
    return np.cumsum(rows, axis=0)[looks]


def always(band: Band, truth: Any) -> bool:
    return bool(((band.low <= truth) & (truth <= band.high)).all())


def promised(name: str) -> tuple[float, float]:
    if name == EFFECTIVE:
        return ENOUGH, np.inf
    return PROMISED.get(name.split()[-1], USUAL)


def lines(found: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """The table: a line for each interval, a column for each world."""
    yield ["interval", "promised, %", *found]
    for name in next(iter(found.values())):
        low, high = promised(name)
        if name == EFFECTIVE:
            yield [name, f"{low:g}", *(f"{each[name]:.0f}" for each in found.values())]
        else:
            shares = (f"{100.0 * each[name]:.1f}" for each in found.values())
            yield [name, f"{100.0 * low:g} to {100.0 * high:g}", *shares]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    found = {name: coverage(given.logs, given.rows, 1, **each) for name, each in WORLDS.items()}
    write_rows(given.csv, lines(found))
    for line in lines(found):
        print("  ".join(f"{cell:<24}" for cell in line))
    missed = [
        f"{world}, {name}: {share:.4g}"
        for world, shares in found.items()
        for name, share in shares.items()
        if not promised(name)[0] <= share <= promised(name)[1]
    ]
    print(*(f"MISSED {each}" for each in missed), sep="\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
