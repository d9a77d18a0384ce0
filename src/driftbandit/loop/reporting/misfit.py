"""Misfit: where rewards differ from what the model expected, for so long that learning longer
would not mend it.

The latest trained decisions are cut into cells: by arm, and by the value (or a part of the range)
of every column. A cell compares rewards with the means that were logged when the arms were chosen,
all of them scaled by one factor, so that they are right on average.
Its evidence against "the model is right" is the capital of Robbins' normal mixture,

    E = sqrt(rho / (V + rho)) exp(S^2 / (2 (V + rho)))

with S the sum of the errors and V that of their squares. It may be looked at any time, because it
exceeds 1/alpha with probability alpha at most. Capitals of the cells of one column multiply,
because their decisions are different ones. What is not yet learnt, or has just changed, deviates
only for a while. So S is what exceeds a tolerance, and 0 if the halves of the cell's time differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit.features import Category, Feature, Features, Flag, Number
from driftbandit.loop.reporting.policy_values import Line, seen
from driftbandit.policies.base import Floats
from driftbandit.reward import Reward

ALPHA = 0.05  # chance that a loop whose model is right has a misfit, at most
TINY = 1e-300
RHO = 2.0  # the sum of squares at which the mixture is sharpest
LEAST = 30  # decisions of a cell
YOUNG = 0.3  # part of the decisions that are left out: the first of a loop train it
TOLERANCE = 0.1  # part of the mean reward, or of what is left to its end, that is no misfit
PARTS = 6  # of a number's range
MOST = 200  # cells of arms and of a column's values


class Misfit(NamedTuple):
    """Decisions that a model cannot describe: what they have in common, their mean reward and what
    was expected, in the reward's unit, and what to declare."""

    what: str
    rows: int
    observed: float
    expected: float
    remedy: str

    def __str__(self) -> str:
        return (
            f"{self.what} earns {self.observed:.3g}, the model expects {self.expected:.3g}: "
            f"{self.remedy}"
        )


def misfits(lines: list[Line], features: Features, reward: Reward) -> tuple[Misfit, ...]:
    """Return what does not fit, the surest first: of each column the cell that deviates most."""
    known = [line for line in lines if line["status"] == "trained" and line["mean"] is not None]
    known = known[int(YOUNG * len(known)) :]
    unit = reward.range if reward.counts else 1.0
    expected = np.array([line["mean"] for line in known]) / unit
    observed = np.array([reward.inside(seen(line, reward))[0] for line in known]) / unit
    if known:  # a model that is wrong everywhere alike, as a young one is, has no cell to blame
        expected = np.minimum(expected * observed.sum() / max(expected.sum(), TINY), 1.0)
    groups: dict[str, list[tuple[float, Group]]] = {}
    for cell in _cells(known, features):
        capital = _log_capital(observed[cell.rows], expected[cell.rows])
        groups.setdefault(cell.column, []).append((capital, cell))
    found = []
    for cells in groups.values():
        sure, worst = _surest(cells)
        if sure > math.log(len(groups) / ALPHA):
            seen_mean, mean = (float(each[worst.rows].mean()) for each in (observed, expected))
            misfit = Misfit(
                what=worst.what,
                rows=len(worst.rows),
                observed=float(reward.outside(unit * seen_mean)),
                expected=float(reward.outside(unit * mean)),
                remedy=worst.remedy,
            )
            found.append((sure, worst.column, misfit))
    return _told(found)


def _told(found: list[tuple[float, str, Misfit]]) -> tuple[Misfit, ...]:
    """Return misfits, the surest first; columns say more than arms."""
    if len(found) > 1:
        found = [each for each in found if each[1] != ARMS]
    return tuple(misfit for *_, misfit in sorted(found, key=lambda each: -each[0]))


def _surest(cells: list[tuple[float, Group]]) -> tuple[float, Group]:
    """Return the logarithm of a column's capital, half of it put on all cells together and half
    spread over them, and the cell that deviates most."""
    capitals = [capital for capital, _ in cells]
    alone = float(np.logaddexp.reduce(capitals)) - math.log(len(cells))
    both = float(np.logaddexp(math.fsum(capitals), alone)) - math.log(2.0)
    return both, max(cells, key=lambda pair: pair[0])[1]


def _log_capital(observed: Floats, expected: Floats) -> float:
    """Return log E of a cell."""
    errors, mean = observed - expected, float(observed.mean())
    tolerated = TOLERANCE * min(mean, 1.0 - mean)
    halves = [float(half.mean()) for half in np.array_split(errors, 2)]
    agree = halves[0] * halves[1] > 0.0 and min(map(abs, halves)) > tolerated
    s = abs(float(errors.sum())) - tolerated * len(errors) if agree else 0.0
    v = float((errors * errors).sum())
    return 0.5 * math.log(RHO / (v + RHO)) + 0.5 * s * s / (v + RHO)


ARMS = "arms*"  # no column's name has a star


class Group(NamedTuple):
    """Decisions with something in common: a column, what it is in words, a remedy, their places."""

    column: str
    what: str
    remedy: str
    rows: Any


def _cells(lines: list[Line], features: Features) -> Iterator[Group]:
    """Yield cells of enough decisions."""
    arms = [line["arm"] for line in lines]
    remedy = (
        "declare a column that tells these arms apart, such as their names as a Category, or as an "
        "Item if they come and go; or curves and more interactions"
    )
    for value, rows in _grouped(arms):
        yield Group(ARMS, f"arm {value!r}", remedy, rows)
    chosen = [_chosen(line) for line in lines]
    contexts = [line["context"] for line in lines]
    for side, raw in ((features.context, contexts), (features.arm, chosen)):
        for name, feature in side.items():
            values = [_value(feature, each.get(name)) for each in raw]
            for value, rows in _grouped(values):
                yield Group(name, f"{name} {value}", _remedy(name, feature, features), rows)


def _chosen(line: Line) -> Mapping[str, Any]:
    """Return the columns of the arm that was chosen."""
    names = line["names"]
    return line["arms"][names.index(line["arm"])] if line["arm"] in names else {}


def _grouped(values: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield values and the places where they stand, if these are enough."""
    places: dict[Any, list[int]] = {}
    for k, value in enumerate(values):
        if value is not None:
            places.setdefault(value, []).append(k)
    often = sorted(places.items(), key=lambda item: -len(item[1]))[:MOST]
    for value, rows in often:
        if len(rows) >= LEAST:
            yield value, np.array(rows)


def _value(feature: Feature, raw: Any) -> str | None:
    """Return a value in words, or the part of the range that a number is in; None if there is no
    such thing."""
    if raw is None or not isinstance(feature, (Number, Flag, Category)):
        return None
    if not isinstance(feature, Number):
        return repr(raw)
    low, high = feature.ends
    try:
        x = min(max(float(raw), feature.low), feature.high)
    except (TypeError, ValueError):
        return None
    if x != x:
        return None
    place = ((math.log(x) if feature.log else x) - low) / (high - low)
    k = min(int(PARTS * place), PARTS - 1)
    ends = (low + (high - low) * j / PARTS for j in (k, k + 1))
    return "from {:.3g} to {:.3g}".format(*(math.exp(e) if feature.log else e for e in ends))


def _remedy(name: str, feature: Feature, features: Features) -> str:
    """Return what to declare instead."""
    if isinstance(feature, Number) and not feature.cyclic:
        if not feature.curve:
            return f"declare {name} as a curve (curve=True) or as a category"
        return f"declare {name} with more bends than curve={feature.curve} has, or as a category"
    if isinstance(feature, Category) and (feature.values is None or feature.room):
        return f"values of {name} share coordinates: list its values, or raise its size or room"
    if features.folded:
        return f"products of {name} may be folded: raise dim, or list the interactions that matter"
    return f"declare {name} as a category, or its interactions with other columns"
