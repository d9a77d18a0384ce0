"""Numbers at the public door: each check returns the clean value or says what to pass instead."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

import numpy as np

LARGEST, SMALLEST = 1e100, 1e-100  # beyond, squares and products of options overflow
MOST = 2**53  # whole numbers that floats can count
COMPARED = 40  # characters of a name to compare with others: the time grows with their square


def show(value: Any) -> str:
    """A value as an error message can quote it, however long or odd."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        text = f"a number of {value.bit_length()} bits"
    return text if len(text) <= 80 else text[:77] + "..."


def closest(given: Any, known: Iterable[Any], cutoff: float = 0.5) -> str | None:
    """Return the known name that may have been meant, or None. One pass over the names finds the
    one that shares most letters; only that one is compared letter by letter, so that a request with
    many names costs no more than reading it."""
    import difflib  # only ever needed for messages

    word = (given if isinstance(given, str) else show(given))[:COMPARED]
    letters = Counter(word)

    def shared(name: str) -> tuple[float, int]:
        common = sum(min(n, letters[letter]) for letter, n in Counter(name).items())
        return common / (len(name) + len(word)), sum(map(operator.eq, name, word))

    names = sorted(name for name in map(str, known) if 0 < len(name) <= COMPARED)
    near = max(names, key=shared, default="")
    return near if difflib.SequenceMatcher(None, near, word).ratio() >= cutoff else None


def real(value: Any) -> float:
    """`value` as a float, NaN if it is no real number."""
    if isinstance(value, (str, bytes, bytearray, bool, np.bool_, complex, np.complexfloating)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def number(name: str, value: Any, meaning: str) -> float:
    """`value` as a float of reasonable size."""
    clean = real(value)
    if not abs(clean) <= LARGEST:
        raise ValueError(
            f"{name} must be a number of size at most {LARGEST:g} ({meaning}), got {show(value)}"
        )
    return clean


def positive(name: str, value: Any, meaning: str) -> float:
    """`value` as a float above zero."""
    clean = number(name, value, meaning)
    if clean < SMALLEST:
        raise ValueError(f"{name} must be above {SMALLEST:g} ({meaning}), got {show(value)}")
    return clean


def nonnegative(name: str, value: Any, meaning: str) -> float:
    """`value` as a float that is zero or above."""
    clean = number(name, value, meaning)
    if clean < 0:
        raise ValueError(f"{name} must be 0 or above ({meaning}), got {show(value)}")
    return clean


def interval(name: str, value: Any, meaning: str, *, low: float, high: float) -> float:
    """`value` as a float in (low, high]."""
    clean = number(name, value, meaning)
    if not max(low, SMALLEST) < clean <= high:
        raise ValueError(f"{name} must lie in ({low:g}, {high:g}] ({meaning}), got {show(value)}")
    return clean


def share(name: str, value: Any, meaning: str) -> float:
    """`value` as a float in [0, 1]."""
    clean = number(name, value, meaning)
    if not 0.0 <= clean <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1] (share of {meaning}), got {show(value)}")
    return clean


def count(name: str, value: Any, meaning: str, *, least: int = 1) -> int:
    """`value` as a whole number of at least `least`."""
    try:
        clean = operator.index(value)
    except TypeError:
        clean = least - 1
    if isinstance(value, (bool, np.bool_)) or not least <= clean <= MOST:
        raise ValueError(
            f"{name} must be a whole number from {least} to 2^53 ({meaning}), got {show(value)}"
        )
    return clean


LONGEST = 200  # characters of an id or a key


def text(name: str, value: Any) -> str:
    """Return an id, a key or a name; raise if it is not short printable text."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= LONGEST:
        raise ValueError(
            f"{name} must be printable text of at most {LONGEST} characters, got {show(value)}: "
            "convert numbers with str()"
        )
    return value if type(value) is str else str.__str__(value)  # of an Enum, what it stands for


def nearest(given: Any, known: Iterable[Any]) -> str:
    """Return what may have been meant, as the end of an error message."""
    names = [str(each) for each in islice(known, 1000)]
    near = closest(given, names, cutoff=0.4)
    return f"did you mean {near!r}?" if near else f"there is {show(names)}"
