"""Means with intervals, from values and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftbandit.estimators.increments import Floats
from driftbandit.estimators.ope import snips

WIDTH = 1.96  # standard deviations: 95 %


class Mean(NamedTuple):
    """A mean with an interval of 95 %, from `rows` values that are worth `effective` equal ones."""

    rows: int
    effective: float
    mean: float
    low: float
    high: float


def estimate(
    values: Sequence[float],
    weights: Sequence[float] | None = None,
    ends: tuple[float, float] | None = None,
) -> Mean | None:
    """The self-normalized mean of values.

    `ends` are the smallest and the largest value there can be: the deviation is computed as if each
    had been seen once more, so that a few equal values do not look certain. None if there is too
    little to tell.
    """
    v, w = np.asarray(values, dtype=float), np.ones(len(values))
    if weights is not None:
        w = np.asarray(weights, dtype=float)
    total, squares = float(w.sum()), float((w * w).sum())
    if len(v) < 2 or total <= 0.0:
        return None
    low, high = (float(v.min()), float(v.max())) if ends is None else ends
    unit = high - low or 1.0
    parts = _parts((v - low) / unit, w, bounded=ends is not None)
    return Mean(len(v), total * total / squares, *(low + unit * each for each in parts))


def _parts(R: Floats, w: Floats, bounded: bool) -> tuple[float, float, float]:
    """Mean and interval of values from 0 to 1: squares of others would cancel."""
    sums = [float(x.sum()) for x in (w, w * w, w * R, w * w * R, (w * R) ** 2)]
    mean, spread = snips(*sums)
    if bounded:
        spread += sums[1] / len(R) * (mean**2 + (1.0 - mean) ** 2)
    half = WIDTH * math.sqrt(spread) / sums[0]
    low, high = (0.0, 1.0) if bounded else (-math.inf, math.inf)
    return mean, max(mean - half, low), min(mean + half, high)
