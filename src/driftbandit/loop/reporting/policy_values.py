"""What other policies would have earned, by the probabilities in the log itself (SNIPS):
means with intervals, over all of it and over time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftbandit.estimators.increments import Floats
from driftbandit.estimators.ope import snips
from driftbandit.estimators.overlap import Overlap
from driftbandit.estimators.windows import by_window, width_of
from driftbandit.loop.deciding.types import Name
from driftbandit.reward import Reward

LEVEL = 0.95


class Mean(NamedTuple):
    """A mean with an interval of 95 %, from `rows` values that are worth `effective` equal ones."""

    rows: int
    effective: float
    mean: float
    low: float
    high: float


class Weight(NamedTuple):
    """How much a row counts, and the means of that, of its square and of its cube, over all arms
    that could have been drawn: `Overlap` says why."""

    drawn: float
    mean: float = 1.0
    second: float = 1.0
    third: float = 1.0

    def times(self, other: Weight) -> Weight:
        return Weight(*(a * b for a, b in zip(self, other)))


ONE = Weight(1.0)


def bounded(
    values: Sequence[float], ends: tuple[float, float], weights: ArrayLike | None = None
) -> Mean | None:
    """The self-normalized mean of values between two ends, each with its `Weight`, or 1. None if
    there is too little to tell."""
    v = np.asarray(values, dtype=float)
    if len(v) < 2:
        return None
    w, mean, second, third = np.ones((4, len(v))) if weights is None else np.asarray(weights).T
    if w.sum() <= 0.0:
        return None
    low, unit = ends[0], ends[1] - ends[0]
    R = np.clip((v - low) / unit, 0.0, 1.0)
    seen = Overlap(*(float(x.sum()) for x in (mean, second, third)))
    sums = [float(x.sum()) for x in (w, w * w, w * R, w * w * R, (w * R) ** 2)]
    found = snips(sums, seen, LEVEL)
    return Mean(len(v), seen.effective, *(low + unit * each for each in found))


def unbounded(values: Sequence[float]) -> Mean | None:
    """The mean of values of which no range is known, by Student's t: a rare large value that was
    never seen is not in its interval. None if there is too little to tell."""
    from scipy.special import stdtrit

    v = np.asarray(values, dtype=float)
    if len(v) < 2:
        return None
    deviation = float(v.std(ddof=1)) / math.sqrt(len(v))
    half = float(stdtrit(len(v) - 1.0, 0.5 + 0.5 * LEVEL)) * deviation
    mean = float(v.mean())
    return Mean(len(v), float(len(v)), mean, mean - half, mean + half)


Line = dict[str, Any]  # of the log
ASIDE = ("holdout", "fallback")  # roles: the default was played, and the loop not asked
Target = Callable[[Line], Weight | None]  # pi/p of what was chosen; None if the log cannot tell


def uniform(line: Line) -> Weight | None:
    """Every arm that is left alike."""
    left = [p for p in line["probabilities"] if p > 0.0]
    if len(left) < len(line["names"]) - (line["position"] or 0):
        return None  # the log never plays some of them
    weights = [1.0 / (len(left) * p) for p in left]
    second, third = (math.fsum(w**k for w in weights) / len(left) for k in (1, 2))
    return Weight(1.0 / (len(left) * line["probability"]), 1.0, second, third)


def default(line: Line) -> Weight | None:
    """The default alone."""
    names = line["names"]
    p = 0.0 if line["default"] is None else line["probabilities"][names.index(line["default"])]
    if not p:
        return None
    drawn = 1.0 / p if line["arm"] == line["default"] else 0.0
    return Weight(drawn, 1.0, 1.0 / p, 1.0 / p**2)


def itself(line: Line) -> Weight | None:
    """Return what was played, where the loop was asked."""
    return None if line["role"] in ASIDE else ONE


def unknown(line: Line) -> Weight | None:
    """Return nothing: a preference says which of two arms is better, and not what one earns."""
    return None


def value(lines: list[Line], target: Target, reward: Reward) -> Mean | None:
    """Mean reward of a target, raw; None where the log cannot tell.

    A position of a slate counts with the weights of those before it: its reward may depend on them.
    """
    found: dict[bool, list[Seen]] = {True: [], False: []}  # of the holdout, and of the others
    for line, weight in _weighed(lines, target):
        if weight is None and line["role"] not in ASIDE:
            return None
        if weight is not None and line["status"] == "trained":
            row = Seen(line["key"], seen(line, reward), weight)
            found[line["role"] == "holdout"].append(row)
    rows = sum(map(len, found.values()))
    if any(line["role"] == "holdout" and line["key"] is not None for line in lines):
        found = {held: _by_key(each) for held, each in found.items()}
    values = [row.value for held in found for row in found[held]]
    balanced = np.vstack([_balanced([row.weight for row in found[held]]) for held in found])
    mean = bounded(values, (reward.low, reward.high), balanced)
    return mean and mean._replace(rows=rows)


class Seen(NamedTuple):
    """What a row says, or all rows of a key together."""

    key: str | None
    value: float
    weight: Weight


def _by_key(rows: list[Seen]) -> list[Seen]:
    """Return the rows of each key as one. Whether a key is in the holdout is drawn once, for all of
    its decisions, so ten decisions of a user do not tell what those of ten users do."""
    found, keys = [row for row in rows if row.key is None], dict[str, list[Seen]]()
    for row in rows:
        if row.key is not None:
            keys.setdefault(row.key, []).append(row)
    return found + [_together(key, each) for key, each in keys.items()]


def _together(key: str, rows: list[Seen]) -> Seen:
    """Return rows as one, whose weight is the sum of theirs. Weights have mean 1 and are drawn for
    each row on its own, so of a sum of n, E[W^2] and E[W^3] follow from theirs."""
    n = float(len(rows))
    drawn, _, second, third = (math.fsum(each) for each in zip(*(row.weight for row in rows)))
    value = math.fsum(row.weight.drawn * row.value for row in rows) / drawn if drawn else 0.0
    square, cube = second + n * (n - 1.0), third + (n - 1.0) * (3.0 * second + n * (n - 2.0))
    return Seen(key, value, Weight(drawn, n, square, cube))


def _balanced(weights: list[Weight]) -> Floats:
    """Weights with which a group counts for as many rows as it is worth. The holdout and the others
    were both drawn at random; a few explored defaults of large weights must not drown a holdout."""
    found = np.array(weights).reshape(-1, len(ONE))
    part = found[:, 1].sum() / found[:, 2].sum() if len(found) else 0.0
    return np.asarray(found * part ** np.array([1.0, 1.0, 2.0, 3.0]))


def _weighed(lines: list[Line], target: Target) -> Iterator[tuple[Line, Weight | None]]:
    """Lines and their weights; `lines` are in order, so a slate's follow each other."""
    before: Weight | None = ONE
    for line in lines:
        if line["role"] == "empty":
            continue
        weight = target(line)
        if line["position"]:  # not the first
            weight = _both(before, weight)
        before = weight
        yield line, weight


def _both(before: Weight | None, weight: Weight | None) -> Weight | None:
    """Return the weight of both. What the target does not begin, it need not go on with."""
    if before is not None and before.drawn == 0.0:
        return before
    return None if before is None or weight is None else before.times(weight)


def seen(line: Line, reward: Reward) -> float:
    """The reward of a line as it was learnt: raw, and inside the range."""
    return float(reward.outside(reward.inside(line["reward"])[0]))


class Uplift(NamedTuple):
    """By how much the loop's mean reward differs from the default's, with an interval of 95 %.

    `relative`: as a share of the default's mean; else in the unit of the reward. `better` says
    whether the loop is the better one, by the reward's goal; None while the log cannot tell.
    """

    mean: float
    low: float
    high: float
    relative: bool
    better: bool | None


def uplift(ours: Mean | None, default: Mean | None, goal: str = "max") -> Uplift | None:
    """Compare two means by their intervals; None if one of them is unknown.

    The interval treats both means as independent. They share rows in which the loop played the
    default, where both rise and fall together, so the true interval is no wider.
    """
    if ours is None or default is None:
        return None
    relative = ours.low >= 0.0 and default.low > 0.0
    found = _ratio(ours, default) if relative else _gap(ours, default)
    sign = (found[1] > 0.0) - (found[2] < 0.0)
    return Uplift(*found, relative, (sign > 0) == (goal == "max") if sign else None)


def _gap(a: Mean, b: Mean) -> tuple[float, float, float]:
    """a - b, and the ends of its interval: squares of half-widths add up on each side."""
    middle = a.mean - b.mean
    down = math.hypot(a.mean - a.low, b.high - b.mean)
    up = math.hypot(a.high - a.mean, b.mean - b.low)
    return middle, middle - down, middle + up


def _ratio(a: Mean, b: Mean) -> tuple[float, float, float]:
    """a / b - 1, and the ends of its interval: those q at which an end of that of a - q b is 0.

    At its lower end (a - q b)^2 = (a - a.low)^2 + q^2 (b.high - b)^2, and alike at the upper one.
    """
    both = a.mean * b.mean
    ends = a.low * (2.0 * a.mean - a.low), a.high * (2.0 * a.mean - a.high)
    other = b.high * (2.0 * b.mean - b.high), b.low * (2.0 * b.mean - b.low)
    roots = [math.sqrt(max(both**2 - x * y, 0.0)) for x, y in zip(ends, other)]
    low = ends[0] / (both + roots[0]) if both else 0.0
    return a.mean / b.mean - 1.0, low - 1.0, (both + roots[1]) / other[1] - 1.0


WINDOWS = 20  # at most
ENOUGH = 30  # trained rows of a window, so that its mean says something
SHOWN = 6  # arms of which each window has the share


class Window(NamedTuple):
    """Decisions from `start` to before `end`, of which `rows` were trained, their `values`, and the
    `shares` of the arms that the whole curve has most often; the rest is of all others."""

    start: float
    end: float
    rows: int
    values: Mapping[str, Mean | None]
    shares: Mapping[Name, float]


def curve(lines: list[Line], targets: Mapping[str, Target], reward: Reward) -> tuple[Window, ...]:
    """Return windows that begin at multiples of their width, so that they stay where they are while
    time goes on. Those with fewer than 30 trained rows are left out, unless all have fewer."""
    trained = [line["at"] for line in lines if line["status"] == "trained"]
    if not trained:
        return ()
    width = _width(max(trained) - min(trained), len(trained))
    places = by_window((line["at"] for line in lines), width)
    parts = {k: [lines[place] for place in own] for k, own in places.items()}
    arms = sorted((arm for arm, _ in _played(lines).most_common(SHOWN)), key=str)
    found = (
        Window(
            k * width,
            (k + 1) * width,
            sum(line["status"] == "trained" for line in part),
            {name: value(part, target, reward) for name, target in targets.items()},
            _shares(part, arms),
        )
        for k, part in parts.items()
    )
    known = [window for window in found if window.rows]
    return tuple([window for window in known if window.rows >= ENOUGH] or known)


def _played(lines: list[Line]) -> Counter[Name]:
    """Count the decisions of each arm, without those that were never shown."""
    known = (line for line in lines if line["role"] != "empty" and line["status"] != "cancelled")
    return Counter(line["arm"] for line in known)


def _shares(lines: list[Line], arms: list[Name]) -> dict[Name, float]:
    played = _played(lines)
    return {arm: played[arm] / max(played.total(), 1) for arm in arms}


def _width(span: float, rows: int) -> float:
    """Return the smallest width that needs at most so many windows, one of which is not full at
    either end, and gives each of them enough rows."""
    return width_of(max(span / (WINDOWS - 1), span * min(1.0, ENOUGH / rows)))
