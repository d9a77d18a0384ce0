"""A declaration proposed from data, with a reason for every column."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.features import values
from driftbandit.features.columns import Frame, refuse_unknown
from driftbandit.features.declarations import CURVE, Category, Feature, Flag, Number, Vector
from driftbandit.features.features import Features
from driftbandit.features.projections import FEWEST, unit

Proposal = tuple[Feature | None, str]

CYCLES = {  # length of what comes again
    "hour": 24,
    "weekday": 7,
    "day_of_week": 7,
    "dayofweek": 7,
    "month": 12,
    "minute": 60,
}
TAIL = 8.0  # upper half of the range over the lower one, from which on a scale is logarithmic
RARE = 0.01  # share of the rows below which a value of a category is one of the others
LISTED = 12  # values of a category that are listed
LONGEST, KEPT = 64, 24  # numbers of a vector that is taken as it is, and of one that is not
HASHED = 16  # coordinates of a category whose values are too many to list


def propose(
    frame: Any, arm: Sequence[str], dim: int | str | None, report: Callable[[str], object]
) -> Features:
    """See `Features.from_sample`."""
    if isinstance(arm, str) or not arm:
        raise ValueError("say which columns describe arms: from_sample(frame, arm=['price', ...])")
    sample = Frame("the sample", frame)
    names = frozenset(sample.names)
    if not names.issuperset(arm):
        refuse_unknown("arm", arm, names)
    found: dict[str, Feature] = {}
    for name in sample.names:
        feature, why = _column(name, sample.values(name))
        report(f"{name}: {'left out' if feature is None else repr(feature)}, {why}")
        if feature is not None:
            found[name] = feature
    left = [name for name in arm if name not in found]
    if len(left) == len(arm):
        raise ValueError(f"no column of the arms can be used: {left}; report=print shows why")
    context = {name: f for name, f in found.items() if name not in arm}
    return Features(context=context, arm={n: _of_arm(found[n]) for n in arm if n in found}, dim=dim)


def _of_arm(feature: Feature) -> Feature:
    """A number of an arm as a curve on the scale that the sample has."""
    if not isinstance(feature, Number) or feature.log or feature.cyclic:
        return feature
    return replace(feature, curve=CURVE)


def _column(name: str, column: list[Any]) -> Proposal:
    given = [each for each in column if not values.missing(each)]
    kinds = {type(each) for each in given}
    if not given:
        return None, "because all its values are missing"
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return Flag(), "because it is True or False"
    if all(issubclass(kind, str) for kind in kinds):
        return _category(Counter(given))
    if all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds):
        return _vector(given)
    numbers = np.array([validate.real(each) for each in given])
    if not (np.abs(numbers) <= validate.LARGEST).all():  # NaN fails
        return None, f"because {validate.show(given[0])} is no number, text, flag or vector"
    return _number(name.lower(), numbers)


def _category(frequency: Counter[Any]) -> Proposal:
    total = sum(frequency.values())
    common = [v for v, n in frequency.most_common(LISTED) if n >= RARE * total]
    share = sum(frequency[value] for value in common) / total
    if len(frequency) == 1:
        return None, "because it never changes"
    if share < 0.5:
        return Category(size=HASHED), f"because it has {len(frequency)} values, most of them rare"
    return Category(tuple(common)), f"because these values are {share:.0%} of all"


def _vector(given: list[Any]) -> Proposal:
    sizes = {len(each) for each in given}
    if len(sizes) > 1 or 0 in sizes:
        return None, f"because its lists have {len(sizes)} different lengths"
    if np.array(given[0]).dtype.kind not in "iuf":
        return None, "because its lists hold no numbers"
    size = sizes.pop()
    if size <= LONGEST:
        return Vector(size), "because it is a list of numbers"
    if len(given) < FEWEST * KEPT:
        return Vector(size, keep=KEPT), "by chance, because the sample is too small to fit this"
    fitted, rows = Vector.fitted(given, keep=KEPT), unit(np.array(given, dtype=np.float64))
    varies = ((rows - rows.mean(axis=0)) ** 2).sum()
    kept = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)[:KEPT]
    return fitted, f"which keeps {(kept**2).sum() / varies:.0%} of how the sample varies"


def _number(name: str, numbers: Any) -> Proposal:
    different = np.unique(numbers)
    if different[-1] - different[0] < validate.SMALLEST:
        return None, "because it never changes"
    if (name == "id" or name.endswith("_id")) and (numbers == np.floor(numbers)).all():
        return _category(Counter(numbers.astype(np.int64).tolist()))
    if np.array_equal(different, [0.0, 1.0]):
        return Flag(), "because it is 0 or 1"
    cycle = next((n for hint, n in CYCLES.items() if _is_called(name, hint)), None)
    if cycle is not None:
        low = 1.0 if different[0] >= 1.0 and different[-1] == cycle else 0.0
        low = 1.0 if cycle == 12 and different[0] >= 1.0 else low
        if low <= different[0] and different[-1] < low + cycle:
            return Number(low, low + cycle, cyclic=True), "because of its name"
    return _range(numbers, different)


def _is_called(name: str, hint: str) -> bool:
    """Whether a name is this word, or ends or starts with it, as pickup_hour does."""
    return name == hint or name.endswith(f"_{hint}") or name.startswith(f"{hint}_")


def _range(numbers: Any, different: Any) -> Proposal:
    """A range that leaves out one value in two hundred at each end, where they are far out."""
    low, high = np.quantile(numbers, [0.005, 0.995])
    positive = numbers[numbers > 0.0]
    if different[0] >= 0.0 and positive.size > 0.5 * numbers.size:
        least, center, most = np.quantile(positive, [0.005, 0.5, 0.995])
        if most - center > TAIL * (center - least) and most > 10.0 * least:
            zeros = "; 0 counts as low" if positive.size < numbers.size else ""
            return Number(_down(least), _up(most), log=True), f"because of its long tail{zeros}"
    reach = 0.25 * (high - low)
    low = different[0] if different[0] >= low - reach else low
    high = different[-1] if different[-1] <= high + reach else high
    if not low < high:
        low, high = different[0], different[-1]
    within = np.mean((numbers >= low) & (numbers <= high))
    return Number(_down(low), _up(high)), f"because {within:.1%} of its values are in it"


def _down(value: float) -> float:
    """Rounded to two digits, away from larger numbers."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return float(f"{math.floor(value / unit) * unit:.3g}")


def _up(value: float) -> float:
    return -_down(-value)
