"""Scores over many worlds: geometric means of regrets, with bootstrap intervals over seeds.

A policy's regrets are a mapping from worlds to the final regret of every seed. The same seeds mean
the same contexts and the same luck, so two policies are compared seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.lab.report.statistics import CONFIDENCE, paired_difference

Floats = NDArray[np.float64]
Regrets = Mapping[str, Sequence[float]]

RESAMPLES = 4000


class Interval(NamedTuple):
    """A figure, and between what it lies with 95 % confidence."""

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def score(regrets: Regrets, reference: Mapping[str, float]) -> Interval:
    """Geometric mean over worlds of mean regret over reference."""
    return _interval([_logs(regrets[world]) - math.log(reference[world]) for world in reference])


def ratio(a: Regrets, b: Regrets) -> Interval:
    """Geometric mean over worlds of a's mean regret over b's, on the same seeds."""
    return _interval([_logs(a[world]) - _logs(b[world]) for world in a])


def difference(a: Sequence[float], b: Sequence[float]) -> Interval:
    """Mean of a - b, seed by seed, with Student's t."""
    found = paired_difference(a, b)
    return Interval(found.mean, found.low, found.high)


def _logs(regrets: Sequence[float]) -> Floats:
    """Logarithm of the mean, and of the means of resamples. The same seeds are drawn in every world
    and for every policy: what a seed brings is not independent from world to world."""
    values = np.asarray(regrets, dtype=float)
    places = np.random.default_rng(0).integers(values.size, size=(RESAMPLES, values.size))
    with np.errstate(divide="ignore"):  # who knows the truth has no regret
        return np.log(np.concatenate([[values.mean()], values[places].mean(axis=1)]))


def _interval(logs: Sequence[Floats]) -> Interval:
    found = np.exp(np.mean(logs, axis=0))
    tail = (1.0 - CONFIDENCE) / 2
    low, high = np.quantile(found[1:], [tail, 1.0 - tail])
    return Interval(float(found[0]), float(low), float(high))
