"""What this package says to the oracles' questions, in the same form."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks.oracles.inputs import BOUNDS, MOMENTS, Rows, logs
from driftbandit.estimators import ope, shrinkage
from driftbandit.estimators.increments import LoggedArms
from driftbandit.estimators.overlap import overlap
from driftbandit.estimators.sequences import log_mixture


def values_of() -> dict[str, dict[str, float]]:
    """All estimates of all logs."""
    return {name: _values(rows) for name, rows in logs().items()}


def _values(rows: Rows) -> dict[str, float]:
    n, K = rows.h.shape
    start = np.arange(0, n * K, K)
    arms = LoggedArms(start, start + rows.action, rows.h.ravel())
    given = arms, rows.pi.ravel(), rows.q.ravel(), rows.reward
    sums = ope.sums(*given, rows.clip).sum(axis=0)
    found = ope.estimates(sums, overlap(*given, rows.clip), 0.95, rows.clip)
    return {name: each.value for name, each in found.items()} | dict(_shrunk(given, n))


def _shrunk(given: tuple[Any, ...], n: int) -> Iterator[tuple[str, float]]:
    """Values for every strength between dr and dm."""
    for name, path in shrinkage.paths(shrinkage.sums(*given).sum(axis=0), float(n)):
        for strength, (value, _) in zip(shrinkage.STRENGTHS[1:-1], path[1:-1]):
            yield f"{name} {strength:g}", value


def capital_of() -> dict[str, Any]:
    """The mixture's capital, and where it reaches 1/alpha."""
    capital = [float(log_mixture(S, V)) for S, V in MOMENTS]
    return {"log capital": capital, "bound": [_bound(*each) for each in BOUNDS]}


def _bound(V: float, alpha: float) -> float:
    def above(S: float) -> float:
        return float(log_mixture(S, V)) + math.log(alpha)

    return float(brentq(above, 0.0, 1e4, xtol=1e-13, rtol=1e-15))
