"""Coverage of every interval on simulated logs whose truth is known.

    python -m benchmarks.coverage [--logs 2000] [--rows 3000]

Logs are adaptive: the live policy follows discounted rewards and explores with one decision in
five. Values stand still, or drift. Printed: the share of logs in which an interval holds at the
end, and in which a sequence holds at all looks at once. Exit status 1 if one is not as promised.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from driftbandit.estimators import values
from driftbandit.estimators.bets import Arms
from driftbandit.estimators.streams import Difference, Value

ARMS, FLOOR, EVERY = 3, 0.2, 100
PROMISED = {"sequence": (0.95, 1.0), "interval": (0.93, 0.975), "clipped": (0.93, 1.0)}


class World:
    """Logs side by side."""

    def __init__(self, logs: int, n: int, seed: int, drift: float) -> None:
        rng = np.random.default_rng(seed)
        phase = np.arange(n)[:, None] / n + np.arange(ARMS) / ARMS
        self.n, self.truth = n, 0.3 + 0.2 * np.sin(2.0 * np.pi * phase * drift)
        self.h, self.R = np.empty((logs, n, ARMS)), np.empty((logs, n))
        self.A = np.empty((logs, n), dtype=np.int64)
        wins, plays, rows = np.ones((logs, ARMS)), np.full((logs, ARMS), 2.0), np.arange(logs)
        for t in range(n):
            h = np.full((logs, ARMS), FLOOR / ARMS)
            h[rows, np.argmax(wins / plays, axis=1)] += 1.0 - FLOOR
            a = (rng.random((logs, 1)) > np.cumsum(h, axis=1)).sum(axis=1).clip(0, ARMS - 1)
            r = (rng.random(logs) < self.truth[t, a]).astype(float)
            wins, plays = 0.99 * wins + 0.01, 0.99 * plays + 0.02
            wins[rows, a] += r
            plays[rows, a] += 1.0
            self.h[:, t], self.A[:, t], self.R[:, t] = h, a, r

    def log(self, k: int) -> tuple[Arms, Any]:
        start = np.arange(0, ARMS * self.n, ARMS)
        return Arms(start, start + self.A[k], self.h[k].ravel()), self.R[k]

    def always(self, arm: int) -> Any:
        pi = np.zeros((self.n, ARMS))
        pi[:, arm] = 1.0
        return pi.ravel()

    def mean(self, arm: int) -> Any:
        """The true mean value of an arm up to each row."""
        return np.cumsum(self.truth[:, arm]) / np.arange(1, self.n + 1)


def coverage(logs: int, n: int, seed: int, drift: float, clip: float = 5.0) -> dict[str, float]:
    """Shares of logs in which each interval holds."""
    world, looks = World(logs, n, seed, drift), np.arange(EVERY - 1, n, EVERY)
    first, second, q = world.always(1), world.always(0), np.full(ARMS * n, 0.35)
    value, gap = world.mean(1)[looks], (world.mean(1) - world.mean(0))[looks]
    held = dict.fromkeys(("value sequence", "difference sequence", *values.ESTIMATES), 0)
    for k in range(logs):
        arms, R = world.log(k)
        rows = Value(clip).columns(arms, first, q, R)
        both = Difference().columns(arms, (first, second), q, R)
        bands = [
            kind.band(np.cumsum(sums, axis=0)[looks], 0.05)
            for kind, sums in ((Value, rows), (Difference, both))
        ]
        for name, band, truth in zip(held, bands, (value, gap)):
            held[name] += bool(((band.low <= truth) & (truth <= band.high)).all())
        found = values.estimates(rows[:, : len(values.SUMS)].sum(axis=0), 0.95)
        for name, each in found.items():
            held[name] += bool(each.low <= value[-1] <= each.high)
    return {name: count / logs for name, count in held.items() if name != "dm"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=3000)
    given, missed = parser.parse_args(), False
    for drift in (0.0, 1.5):
        print("values drift" if drift else "values stand still")
        for name, share in coverage(given.logs, given.rows, 1, drift).items():
            low, high = PROMISED[name.split()[-1] if " " in name else "interval"]
            bad = not low <= share <= high
            missed |= bad
            print(f"  {name:<20} {share:.3f}  promised {low:g} to {high:g}{'  MISSED' * bad}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
