"""Estimates with intervals, from values and weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

WIDTH = 1.96  # standard deviations: 95 %


class Estimate(NamedTuple):
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
) -> Estimate | None:
    """The self-normalized mean sum(w v) / sum(w), by the delta method.

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
    mean = float(w @ v) / total
    spread = float((w * w) @ (v - mean) ** 2)
    if ends is not None:
        spread += squares / len(v) * sum((end - mean) ** 2 for end in ends)
    half = WIDTH * math.sqrt(spread) / total
    low, high = mean - half, mean + half
    if ends is not None:
        low, high = max(low, ends[0]), min(high, ends[1])
    return Estimate(len(v), total * total / squares, mean, low, high)
