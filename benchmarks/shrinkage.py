"""How far estimates are off on simulated logs whose truth is known, with good and bad models.

    python -m benchmarks.shrinkage [--logs 200] [--csv docs/results/shrinkage.csv]

In a tenth of the rows the candidate plays an arm that is hardly ever logged. The reward model is
right, or wrong by some amount in just those rows. Printed is the root of the mean squared error of
each estimate over that of dr. Seeds from 1000 on; those below were used to choose how wide SLOPE's
intervals are.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import write_rows
from driftbandit.estimators import ope, shrinkage
from driftbandit.estimators.increments import LoggedArms
from driftbandit.estimators.overlap import overlap

ARMS, HARD, CLIP = 4, 0.1, 20.0
KINDS = ("ips", "snips", "dm", "dr clipped", *shrinkage.FAMILIES)


class Setting(NamedTuple):
    rows: int
    logged: float  # probability of the candidate's arm in hard rows
    wrong: float  # the error of the model there


SETTINGS = [
    Setting(*each)
    for each in (
        (500, 0.02, 0.0), (500, 0.02, 0.1), (500, 0.02, 0.4), (2_000, 0.01, -0.3),
        (5_000, 0.05, 0.2), (5_000, 0.05, 0.4), (5_000, 0.2, -0.2), (20_000, 0.05, 0.4),
    )
]  # fmt: skip


def log(setting: Setting, seed: int) -> tuple[LoggedArms, Any, Any, Any, float]:
    """A log, the candidate, the model, rewards, and the candidate's value."""
    rng, n, p = np.random.default_rng(seed), setting.rows, setting.logged
    hard = (rng.random(n) < HARD)[:, None]
    h = np.where(hard, [p, 1.0 - 3.0 * p, p, p], 1.0 / ARMS)
    truth = np.where(hard, [0.6, 0.2, 0.2, 0.2], [0.5, 0.3, 0.3, 0.3])
    A = (rng.random((n, 1)) > np.cumsum(h, axis=1)).sum(axis=1).clip(0, ARMS - 1)
    R = (rng.random(n) < truth[np.arange(n), A]).astype(float)
    q = np.clip(truth + setting.wrong * hard + rng.normal(0.0, 0.02, (n, ARMS)), 0.01, 0.99)
    start, pi = np.arange(0, n * ARMS, ARMS), np.zeros((n, ARMS))
    pi[:, 0] = 1.0
    arms = LoggedArms(start, start + A, h.ravel())
    return arms, pi.ravel(), q.ravel(), R, (1.0 - HARD) * 0.5 + HARD * 0.6


def errors(setting: Setting, seed: int) -> dict[str, float]:
    *rows, truth = log(setting, seed)
    seen = overlap(*rows, CLIP)
    found = ope.estimates(ope.sums(*rows, CLIP).sum(axis=0), seen, 0.95, CLIP)
    total = shrinkage.sums(*rows).sum(axis=0)
    found |= shrinkage.estimates(total, seen, found["dr"], found["dm"].value)
    return {kind: found[kind].value - truth for kind in ("dr", *KINDS)}


def line(setting: Setting, logs: int) -> list[str]:
    found = [errors(setting, 1000 + k) for k in range(logs)]
    size = {kind: np.sqrt(np.mean([each[kind] ** 2 for each in found])) for kind in found[0]}
    head = [f"{setting.rows:,}", f"{setting.logged:g}", f"{setting.wrong:+g}", f"{size['dr']:.4f}"]
    return [*head, *(f"{size[kind] / size['dr']:.2f}" for kind in KINDS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    lines = [["rows", "logged with", "model off by", "error of dr", *KINDS]]
    lines += [line(setting, given.logs) for setting in SETTINGS]
    write_rows(given.csv, lines)
    for cells in lines:
        print("  ".join(f"{cell:<12}" for cell in cells))


if __name__ == "__main__":
    main()
