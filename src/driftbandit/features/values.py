"""One raw value: cleaned, or refused in the name of its column."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from driftbandit import validate

# Types that NumPy turns into the right float, None into NaN: whole columns are checked by type.
NUMBERS = frozenset({float, int, type(None), np.float64, np.float32, np.int64, np.int32, np.uint8})
FLAGS = frozenset({bool, type(None), np.bool_})


def missing(value: Any) -> bool:
    """None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA has no truth, arrays have many
        return type(value).__name__ == "NAType"


def number(name: str, value: Any) -> float:
    """A number as a float, NaN if it is missing."""
    clean = validate.real(value)
    if math.isnan(clean) and not missing(value):
        flag = isinstance(value, (bool, np.bool_))
        remedy = "declare it as Flag()" if flag else "pass an int or a float, or None"
        refuse(name, value, "a number", remedy)
    return clean


def flag(name: str, value: Any) -> float:
    """1.0 or 0.0, NaN if it is missing."""
    if missing(value):
        return math.nan
    clean = float(value) if isinstance(value, (bool, np.bool_)) else validate.real(value)
    if clean not in (0.0, 1.0):
        refuse(name, value, "True or False", "pass one of them, or None")
    return clean


def text(name: str, value: Any) -> str:
    """A category's value as it is hashed; 7, 7.0 and "7" are the same."""
    if isinstance(value, str):
        return f"{name}={value}"
    if isinstance(value, (float, np.floating)) and value == np.floor(value):
        value = int(value) if math.isfinite(value) else None
    scalar = isinstance(value, (int, float, np.integer, np.floating, np.bool_))
    size = abs(float(value) if isinstance(value, np.floating) else value) if scalar else math.inf
    if size > validate.LARGEST:
        refuse(name, value, "text or a whole number", "convert it with str()")
    return f"{name}={value}"


def refuse(name: str, value: Any, expected: str, remedy: str) -> NoReturn:
    got = " ".join(validate.show(value).split())  # arrays take several lines
    raise ValueError(f"{name!r} must be {expected}, got {got}: {remedy}")


def refuse_missing(name: str) -> NoReturn:
    raise ValueError(
        f"{name!r} is missing and was declared required=True: pass a value, or declare it without"
    )
