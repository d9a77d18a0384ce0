"""Doubly robust values with smaller weights, and a choice among them by the data.

dr is the mean of sum_a pi(a) q(a) + w (R - q(A)). It has no bias, and varies much where weights w
are large. Two families have smaller weights, with a strength s:

| name | weight | from |
|---|---|---|
| dr shrunk | w s^2/(w^2 + s^2) | Su, Dimakopoulou, Krishnamurthy and Dudik 2020 (lambda = s^2) |
| dr switch | w where w <= s, else 0 | Wang, Agarwal and Dudik 2017 |

Strength infinity is dr, 0 is dm: the smaller s, the less variance and the more bias. SLOPE (Su,
Srinath and Krishnamurthy 2020) goes from dr to dm while the intervals of all estimates so far, each
sqrt(6) - 1 times as wide (Tucker and Lee 2021), have a point in common: as long as they have, bias
cannot be told from noise, and the estimate with the least noise is taken. How wide an interval is
meant to be is left open there. One deviation is taken here: wider ones accept a model that is wrong
by several times what dr is off (`make bench-coverage` has figures).

No interval follows from that, because the bias of what is taken is unknown. But dr has one: it is
the interval shown, and the value is moved into it. That can only help wherever the interval holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from driftbandit.estimators.increments import Floats, LoggedArms
from driftbandit.estimators.overlap import Estimate, Overlap, half_width, variance_of_mean

STRENGTHS = (math.inf, 100.0, 30.0, 10.0, 3.0, 1.0, 0.0)
INNER = STRENGTHS[1:-1]
WIDER, DEVIATION = math.sqrt(6.0) - 1.0, 0.6827  # confidence of one deviation to both sides


def shrunk(w: Floats, s: float) -> Floats:
    """Return weights that are at most s/2."""
    return w * (s * s / (w * w + s * s))


def switched(w: Floats, s: float) -> Floats:
    """Return weights that are at most s."""
    return np.where(w <= s, w, 0.0)


FAMILIES: dict[str, Callable[[Floats, float], Floats]] = {
    "dr shrunk": shrunk,
    "dr switch": switched,
}


def sums(arms: LoggedArms, pi: Floats, q: Floats, R: Floats) -> Floats:
    """Return what each row adds, (n, columns): the value for every strength, and its square."""
    w, error = pi[arms.chosen] / arms.h[arms.chosen], R - q[arms.chosen]
    dm = arms.total(pi * q)
    inner = [dm + smaller(w, s) * error for smaller in FAMILIES.values() for s in INNER]
    values = np.stack([dm + w * error, dm, *inner], axis=1)
    return np.hstack([values, values * values])


def estimates(total: Floats, seen: Overlap, dr: Estimate, dm: float) -> dict[str, Estimate]:
    """Return both, chosen by SLOPE, from sums (columns,), the overlap of the rows, and the
    estimates dr and dm."""
    surprise = max(dm, 1.0 - dm)
    found = {name: slope(_widths(path, seen, surprise)) for name, path in paths(total, seen.n)}
    return {name: dr._replace(value=min(max(v, dr.low), dr.high)) for name, v in found.items()}


def paths(total: Floats, n: float) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield the mean and its variance for every strength, by name."""
    values, squares = np.split(total, 2)
    each = [(v / n, variance_of_mean(n, v, vv)) for v, vv in zip(values.tolist(), squares.tolist())]
    for k, name in enumerate(FAMILIES):
        inner = each[2 + k * len(INNER) : 2 + (k + 1) * len(INNER)]
        yield name, [each[0], *inner, each[1]]


def slope(intervals: list[tuple[float, float]]) -> float:
    """Return the last value whose interval, made wider, meets those of all before. They are values
    and half widths, the least bias first."""
    low, high, chosen = -math.inf, math.inf, math.nan
    for value, half in intervals:
        low, high = max(low, value - WIDER * half), min(high, value + WIDER * half)
        if low > high:
            break
        chosen = value
    return chosen


def _widths(
    path: list[tuple[float, float]], seen: Overlap, surprise: float
) -> list[tuple[float, float]]:
    """Return values and half widths. As for dr, the variance is at least what the design makes of
    it: weights of at most s add up to n, so their squares to at most s n."""
    found = []
    for s, (value, spread) in zip(STRENGTHS, path):
        least = seen.noise(min(seen.second, s * seen.n))
        event = surprise * min(seen.heaviest, s) / seen.n
        found.append((value, half_width(max(spread, least), event, DEVIATION)))
    return found
