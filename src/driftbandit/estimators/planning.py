"""How many rows does an answer take? Before a log exists, and when one cannot say yet."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.estimators.increments import DEPTHS, Floats, scales
from driftbandit.estimators.sequences import lower

MOST = 1e12  # rows: never
CHANCES = (0.5, 0.8)


class Chances(NamedTuple):
    """Rows after which a difference shows with a chance of 50 %, and of 80 %."""

    fifty: int
    eighty: int


class Plan(NamedTuple):
    """Rows until a difference shows.

    `once`: by an interval that is looked at once, at the end.
    `watched`: by a confidence sequence that may be looked at all the time.
    """

    once: Chances
    watched: Chances


def plan(
    effect: float,
    *,
    share: float | None = None,
    exploration: float | None = None,
    arms: int | None = None,
    value: float = 0.5,
    differ: float = 1.0,
    level: float = 0.95,
) -> Plan:
    """Rows needed to see that one policy is better than another by `effect`.

    `effect` and `value`, the reward of the worse one, are parts of the reward's range: 0.05 for
    clicks of 5 %. `differ` is the share of decisions in which the two differ. What is compared is
    one of the two:

    | given | plan |
    |---|---|
    | `share` | a candidate with this share of decisions in a trial, and the live policy |
    | `exploration`, `arms` | two policies on a log with this share of uniform exploration. Each arm is logged with probability exploration/arms at least. The worst case: both play arms that the live policy does not |

    >>> trial = plan(0.005, share=0.1, value=0.05)
    >>> trial.once.fifty < trial.once.eighty < trial.watched.eighty
    True
    >>> plan(0.005, exploration=0.2, arms=10, value=0.05).once.eighty > trial.once.eighty
    True
    """  # noqa: E501
    effect = validate.interval("effect", effect, "part of the reward's range", low=0.0, high=1.0)
    value = validate.interval("value", value, "part of the reward's range", low=0.0, high=1.0)
    differ = validate.interval("differ", differ, "share of decisions", low=0.0, high=1.0)
    level = validate.interval("level", level, "confidence, below 1", low=0.0, high=1.0 - 1e-9)
    better, worse = _logged(share, exploration, arms)
    best = min(value + effect, 1.0)
    spread = differ * (best * (1.0 - best) / better + value * (1.0 - value) / worse)
    return Plan(
        Chances(*(_once(effect, spread, level, chance) for chance in CHANCES)),
        Chances(*(_watched(effect, spread, level, chance) for chance in CHANCES)),
    )


def _logged(share: Any, exploration: Any, arms: Any) -> tuple[float, float]:
    """The probabilities with which what the better and the worse one play is logged."""
    if share is not None and exploration is None and arms is None:
        s = validate.interval("share", share, "of decisions, below 1", low=0.0, high=1.0 - 1e-9)
        return s, 1.0 - s
    if share is not None or exploration is None or arms is None:
        raise ValueError(
            "pass share=, the share of a trial, or both exploration= and arms= for two policies "
            "that are compared on a log"
        )
    mixed = validate.interval("exploration", exploration, "share of exploration", low=0.0, high=1.0)
    p = mixed / validate.count("arms", arms, "to choose among")
    return p, p


def _once(effect: float, variance: float, level: float, chance: float) -> int:
    z = NormalDist().inv_cdf(0.5 + 0.5 * level) + NormalDist().inv_cdf(chance)
    return math.ceil(variance * (z / effect) ** 2)


def _watched(effect: float, variance: float, level: float, chance: float) -> int:
    units = scales(2.0)
    phi, V = np.full(len(DEPTHS), 1.0 + effect), variance / units**2
    return math.ceil(min(MOST, rows_until(1.0, phi, V, 1.0 - level, chance)))


def rows_until(n: float, phi: Floats, V: Floats, alpha: float, chance: float = 0.5) -> float:
    """Rows until a difference is above 0 with this chance, if rows go on as these n have: sums (k,)
    of a `Bettor` whose mean is 1 plus the difference. Infinite if that is not to be expected."""
    low, high = 0.0, math.log(MOST)
    late = NormalDist().inv_cdf(chance)  # deviations by which payoffs may stay behind
    if not _shows(math.exp(high), n, phi, V, alpha, late):
        return math.inf
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        shows = _shows(math.exp(middle), n, phi, V, alpha, late)
        low, high = (low, middle) if shows else (middle, high)
    return math.exp(high)


def _shows(rows: float, n: float, phi: Floats, V: Floats, alpha: float, late: float) -> bool:
    part = rows / n
    behind = late * np.sqrt(part * V) * scales(2.0)
    return bool(lower(rows, part * phi - behind, part * V, 0.5 * alpha, 2.0) > 1.0)


def rows_between(n: float, phi: Floats, V: Floats, alpha: float) -> tuple[float, float]:
    """The same if the difference is larger, or smaller, by the standard deviation of its estimate
    after these n rows: about two times in three it takes rows between these."""
    deviation = np.sqrt((V * scales(2.0) ** 2).min())  # of the sum of payoffs
    fewest, most = (rows_until(n, phi + sign * deviation, V, alpha) for sign in (1.0, -1.0))
    return fewest, most
