"""Cells of a log as numbers, moments and text, however they are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.features.values import missing


def numbers(column: Iterable[Any]) -> Floats:
    """Floats, NaN for what is none; text of a number counts, as in CSV files."""
    return _floats(list(column), _number)


def _floats(column: list[Any], read: Callable[[Any], float]) -> Floats:
    """All cells at once where NumPy takes them as numbers; otherwise each on its own."""
    try:
        found = np.array(column, dtype=np.float64)
        if found.ndim == 1:  # it is not if cells are lists
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([read(value) for value in column], dtype=np.float64)


def _number(value: Any) -> float:
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else validate.real(value)
    except ValueError:
        return math.nan


def moments(column: Iterable[Any]) -> Floats:
    """Seconds since the epoch from numbers, datetimes or ISO text; without a zone it is UTC."""
    return _floats(list(column), _moment)


def _moment(value: Any) -> float:
    if isinstance(value, str):
        number = _number(value)
        return _iso(value) if math.isnan(number) else number
    if isinstance(value, np.datetime64):
        return float((value - np.datetime64(0, "s")) / np.timedelta64(1, "s"))
    return _instant(value) if isinstance(value, datetime) and value == value else _number(value)


def _iso(text: str) -> float:
    head, dot, tail = text.strip().replace("Z", "+00:00").partition(".")
    digits = len(tail) - len(tail.lstrip("0123456789"))
    try:  # Python 3.10 takes 3 or 6 digits; others write 7
        part = f".{tail[:digits][:6]:0<6}{tail[digits:]}" if dot else ""
        return _instant(datetime.fromisoformat(head + part))
    except ValueError:
        return math.nan


def _instant(at: datetime) -> float:
    return (at if at.utcoffset() is not None else at.replace(tzinfo=UTC)).timestamp()


def text(value: Any) -> str | None:
    return None if missing(value) else str(value)
