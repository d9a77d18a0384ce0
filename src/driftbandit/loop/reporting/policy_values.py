"""What other policies would have earned, by the probabilities in the log itself (SNIPS):
means with intervals, over all of it and over time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.estimators.increments import Floats
from driftbandit.estimators.ope import snips
from driftbandit.reward import Reward

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


Line = dict[str, Any]  # of the log
ASIDE = ("holdout", "fallback")  # roles: the default was played, and the loop not asked
Target = Callable[[Line], float | None]  # pi/p of what was chosen; None if the log cannot tell


def uniform(line: Line) -> float | None:
    """Every arm that is left alike."""
    left = [p for p in line["probabilities"] if p > 0.0]
    if len(left) < len(line["names"]) - (line["position"] or 0):
        return None  # the log never plays some of them
    return 1.0 / (len(left) * line["probability"])


def default(line: Line) -> float | None:
    """The default alone."""
    names = line["names"]
    if line["default"] is None or not line["probabilities"][names.index(line["default"])]:
        return None
    return 1.0 / line["probability"] if line["arm"] == line["default"] else 0.0


def itself(line: Line) -> float | None:
    """What was played, where the loop was asked."""
    return None if line["role"] in ASIDE else 1.0


def value(lines: list[Line], target: Target, reward: Reward) -> Mean | None:
    """Mean reward of a target, raw; None where the log cannot tell.

    A position of a slate counts with the weights of those before it: its reward may depend on them.
    """
    values, weights, held = [], [], []
    for line, weight in _weighed(lines, target):
        if weight is None and line["role"] not in ASIDE:
            return None
        if weight is not None and line["status"] == "trained":
            values.append(seen(line, reward))
            weights.append(weight)
            held.append(line["role"] == "holdout")
    return estimate(values, _balanced(weights, held), (reward.low, reward.high))


def _balanced(weights: list[float], held: list[bool]) -> list[float]:
    """Weights with which the holdout and the others count for as many rows as they are worth. Both
    were drawn at random; a few explored defaults of large weights must not drown a holdout."""
    w, apart = np.array(weights), np.array(held, dtype=bool)
    for group in (apart, ~apart):
        squares = float((w[group] ** 2).sum())
        w[group] *= float(w[group].sum()) / squares if squares else 0.0
    return list(w.tolist())


def _weighed(lines: list[Line], target: Target) -> Iterator[tuple[Line, float | None]]:
    """Lines and their weights; `lines` are in order, so a slate's follow each other."""
    before: float | None = 1.0
    for line in lines:
        if line["role"] == "empty":
            continue
        weight = target(line)
        if line["position"]:  # not the first
            weight = _both(before, weight)
        before = weight
        yield line, weight


def _both(before: float | None, weight: float | None) -> float | None:
    """What the target would not have begun, it need not go on with."""
    if before == 0.0:
        return 0.0
    return None if before is None or weight is None else before * weight


def seen(line: Line, reward: Reward) -> float:
    """The reward of a line as it was learnt: raw, and inside the range."""
    return float(reward.outside(reward.inside(line["reward"])[0]))


WINDOWS = 20  # at most
# Seconds that people count in; longer windows are whole days.
WIDTHS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400)


class Window(NamedTuple):
    """Decisions from `start` to before `end`, of which `rows` were trained, and their `values`."""

    start: float
    end: float
    rows: int
    values: Mapping[str, Mean | None]


def curve(lines: list[Line], targets: Mapping[str, Target], reward: Reward) -> tuple[Window, ...]:
    """Windows begin at multiples of their width, so that they stay where they are while time goes
    on. Those in which nothing was trained yet are left out."""
    trained = [line["at"] for line in lines if line["status"] == "trained"]
    if not trained:
        return ()
    width = _width(max(trained) - min(trained))
    parts: dict[int, list[Line]] = {}
    for line in lines:
        parts.setdefault(math.floor(line["at"] / width), []).append(line)
    found = (
        Window(
            k * width,
            (k + 1) * width,
            sum(line["status"] == "trained" for line in parts[k]),
            {name: value(parts[k], target, reward) for name, target in targets.items()},
        )
        for k in sorted(parts)
    )
    return tuple(window for window in found if window.rows)


def _width(span: float) -> float:
    """The smallest that needs at most so many windows, one of which is not full at either end."""
    least = span / (WINDOWS - 1)
    return float(next((w for w in WIDTHS if w >= least), 86400 * math.ceil(least / 86400)))
