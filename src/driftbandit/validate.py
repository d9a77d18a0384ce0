"""Numbers at the public door: each check returns the clean value or says what to pass instead."""

from __future__ import annotations

import math
import operator
from typing import Any


def number(name: str, value: Any, meaning: str) -> float:
    """`value` as a finite float."""
    try:
        clean = float(value)
    except (TypeError, ValueError):
        clean = math.nan
    if isinstance(value, (bool, str)) or not math.isfinite(clean):
        raise ValueError(f"{name} must be a finite number ({meaning}), got {value!r}")
    return clean


def positive(name: str, value: Any, meaning: str) -> float:
    """`value` as a finite float above zero."""
    clean = number(name, value, meaning)
    if clean <= 0:
        raise ValueError(f"{name} must be above 0 ({meaning}), got {value!r}")
    return clean


def nonnegative(name: str, value: Any, meaning: str) -> float:
    """`value` as a finite float that is zero or above."""
    clean = number(name, value, meaning)
    if clean < 0:
        raise ValueError(f"{name} must be 0 or above ({meaning}), got {value!r}")
    return clean


def interval(name: str, value: Any, meaning: str, *, low: float, high: float) -> float:
    """`value` as a float in (low, high]."""
    clean = number(name, value, meaning)
    if not low < clean <= high:
        raise ValueError(f"{name} must lie in ({low:g}, {high:g}] ({meaning}), got {value!r}")
    return clean


def count(name: str, value: Any, meaning: str, *, least: int = 1) -> int:
    """`value` as a whole number of at least `least`."""
    try:
        clean = operator.index(value)
    except TypeError:
        clean = least - 1
    if isinstance(value, bool) or clean < least:
        raise ValueError(f"{name} must be a whole number >= {least} ({meaning}), got {value!r}")
    return clean
