"""How many rows does an answer take? Before a log exists, and when one cannot say yet."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.estimators.increments import DEPTHS, Floats, scales
from driftbandit.estimators.sequences import lower

MOST = 1e12  # rows: never


class Plan(NamedTuple):
    """Rows until a difference shows.

    `once`: an interval that is looked at once, at the end, shows it with probability 80 %.
    `watched`: a confidence sequence that may be looked at all the time is expected to.
    """

    once: int
    watched: int


def plan(
    effect: float,
    *,
    exploration: float,
    arms: int,
    value: float = 0.5,
    differ: float = 1.0,
    level: float = 0.95,
) -> Plan:
    """Rows needed to see that one policy is better than another by `effect`.

    `effect` and `value`, the reward of the worse one, are parts of the reward's range: 0.05 for
    clicks of 5 %. `exploration` is the share of uniform exploration among `arms`: each is logged
    with probability exploration/arms at least. The plan is for the worst case, in which both
    policies play arms that the live one does not. `differ` is the share of decisions in which the
    two differ.

    >>> few = plan(0.02, exploration=0.2, arms=10).once
    >>> plan(0.01, exploration=0.2, arms=10, value=0.05).once > few
    False
    """
    effect = validate.interval("effect", effect, "part of the reward's range", low=0.0, high=1.0)
    value = validate.interval("value", value, "part of the reward's range", low=0.0, high=1.0)
    exploration = validate.interval(
        "exploration", exploration, "share of exploration", low=0.0, high=1.0
    )
    differ = validate.interval("differ", differ, "share of decisions", low=0.0, high=1.0)
    level = validate.interval("level", level, "confidence, below 1", low=0.0, high=1.0 - 1e-9)
    p = exploration / validate.count("arms", arms, "to choose among")
    better = min(value + effect, 1.0)
    spread = differ * (value * (1.0 - value) + better * (1.0 - better)) / p
    return Plan(_once(effect, spread, level), _watched(effect, spread, level))


def _once(effect: float, variance: float, level: float) -> int:
    z = NormalDist().inv_cdf(0.5 + 0.5 * level) + NormalDist().inv_cdf(0.8)
    return math.ceil(variance * (z / effect) ** 2)


def _watched(effect: float, variance: float, level: float) -> int:
    units = scales(2.0)
    phi, V = np.full(len(DEPTHS), 1.0 + effect), variance / units**2
    return math.ceil(min(MOST, rows_until(1.0, phi, V, 1.0 - level)))


def rows_until(n: float, phi: Floats, V: Floats, alpha: float) -> float:
    """Rows until a difference is above 0, if rows go on as these n have: sums (k,) of a `Bettor`
    whose mean is 1 plus the difference. Infinite if that is not to be expected."""
    low, high = 0.0, math.log(MOST)
    if not _shows(math.exp(high), n, phi, V, alpha):
        return math.inf
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        shows = _shows(math.exp(middle), n, phi, V, alpha)
        low, high = (low, middle) if shows else (middle, high)
    return math.exp(high)


def _shows(rows: float, n: float, phi: Floats, V: Floats, alpha: float) -> bool:
    part = rows / n
    return bool(lower(rows, part * phi, part * V, 0.5 * alpha, 2.0) > 1.0)
