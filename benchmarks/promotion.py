"""The gate by which a candidate is promoted: a sequence that may be looked at all the time.

    python -m benchmarks.promotion [--runs 1000] [--csv docs/results/promotion.csv]

A trial gives a candidate one decision in ten, and the probabilities of the mixture are logged. Arms
are clicked 5 times in 100. The candidate is promoted at the first look at which it is better than
the live policy with 95 % confidence. Printed: how many equal, worse and better candidates are, and
after how many rows, next to a test on the same traffic whose size is fixed before. Exit status 1 if
the gate opens too often, or too late.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

import numpy as np

from benchmarks.tables import write_rows
from driftbandit.estimators.accumulators import Difference
from driftbandit.estimators.increments import Arms
from driftbandit.estimators.sequences import lower

SHARE, FLOOR, ARMS, CLICKS, ALPHA, POWER = 0.1, 0.02, 20, 0.05, 0.05, 0.8
EFFECTS = {"equal": 0.0, "10 % worse": -0.1, "10 % better": 0.1}
LOOKS = 200  # in a run, after equal numbers of rows
MOST = 64  # equal candidates of 1,000: 50, and two standard deviations


def fixed_size(effect: float) -> int:
    """Rows of a test that is looked at once and finds the effect in 80 % of all cases."""
    new, old = CLICKS * (1.0 + effect), CLICKS
    variance = new * (1.0 - new) / SHARE + old * (1.0 - old) / (1.0 - SHARE)
    z = NormalDist().inv_cdf(1.0 - ALPHA) + NormalDist().inv_cdf(POWER)
    return round(variance * (z / (new - old)) ** 2)


Part = tuple[Arms, Any, tuple[Any, Any], Any]  # arms, clicks, candidate and live policy, model


def trial(n: int, effect: float, rng: np.random.Generator) -> Part:
    """n rows in which the two never play the same arm. The other arms, which nobody plays but by
    exploration, are laid together: no weight is on them."""
    each, rest = FLOOR / ARMS, FLOOR * (ARMS - 2) / ARMS
    h = np.array([(1.0 - FLOOR) * SHARE + each, (1.0 - FLOOR) * (1.0 - SHARE) + each, rest])
    played = rng.choice(3, p=h, size=n)
    value = CLICKS * np.array([1.0 + effect, 1.0, 1.0])
    start = np.arange(0, 3 * n, 3)
    arms = Arms(start, start + played, np.tile(h, n))
    clicks = (rng.random(n) < value[played]).astype(float)
    pi = np.tile([1.0, 0.0, 0.0], n), np.tile([0.0, 1.0, 0.0], n)
    return arms, clicks, pi, np.full(3 * n, CLICKS)


def lead(parts: Iterable[Part]) -> Any:
    """Lower bounds on how much better the candidate is, after each part of the rows. `Loop.promote`
    has the same bounds on the same rows (tests/loop/test_candidates.py), so what is found here
    holds there."""
    stream = Difference()
    added = [stream.columns(arms, pi, q, clicks).sum(axis=0) for arms, clicks, pi, q in parts]
    sums = np.cumsum(added, axis=0)
    return lower(sums[:, 0], *Difference.bets(sums, True), ALPHA, 2.0) - 1.0


def promoted(n: int, effect: float, seed: int) -> int | None:
    """The row after which the gate opens; None if it stays closed."""
    rng, each = np.random.default_rng(seed), n // LOOKS
    opened = np.flatnonzero(lead(trial(each, effect, rng) for _ in range(LOOKS)) > 0.0)
    return int(opened[0] + 1) * each if len(opened) else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    given, n, missed = parser.parse_args(), 3 * fixed_size(0.1), False
    runs, lines = given.runs, [["candidate", f"promoted in {given.runs:,} runs", "median rows"]]
    print(f"{runs:,} runs of {n:,} rows, three times a test of fixed size ({n // 3:,})")
    for name, effect in EFFECTS.items():
        found = [promoted(n, effect, seed) for seed in range(runs)]
        rows = [row for row in found if row is not None]
        allowed = {0.0: (0, MOST * runs / 1000), -0.1: (0, 0), 0.1: (POWER * runs, runs)}[effect]
        bad = not allowed[0] <= len(rows) <= allowed[1]
        missed |= bad
        after = f", half of them within {median(rows):,.0f} rows" if rows else ""
        print(f"  {name:<12} promoted {len(rows):,} times{after}{'  MISSED' * bad}", flush=True)
        lines.append([name, f"{len(rows):,}", f"{median(rows):,.0f}" if rows else ""])
    write_rows(given.csv, lines)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
