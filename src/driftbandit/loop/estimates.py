"""Means with intervals, from values and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftbandit.estimators.values import snips

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
    start, end = (float(v.min()), float(v.max())) if ends is None else ends
    unit = end - start or 1.0
    R = (v - start) / unit  # parts of the range: squares of large values would cancel
    mean, spread = snips(
        total, squares, *(float(x.sum()) for x in (w * R, w * w * R, (w * R) ** 2))
    )
    low, high = -math.inf, math.inf
    if ends is not None:
        spread += squares / len(v) * (mean**2 + (1.0 - mean) ** 2)
        low, high = 0.0, 1.0
    half = WIDTH * math.sqrt(spread) / total
    found = mean, max(mean - half, low), min(mean + half, high)
    return Mean(len(v), total * total / squares, *(start + unit * each for each in found))
