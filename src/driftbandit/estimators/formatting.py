"""Numbers in words, as verdicts say them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number(value: float) -> str:
    """Write three digits, and no exponent where none is needed."""
    if not math.isfinite(value):
        return "–"
    return f"{value:{',.0f' if abs(value) >= 999.5 else '.3g'}}".replace("-", "−")


def between(low: float, high: float) -> str:
    return f"between {number(low)} and {number(high)}"


def ahead(value: float, low: float, high: float) -> str:
    """By how much the better one is better, from a difference whose interval does not hold 0: sizes
    have no sign, whoever was subtracted and whether a reward should be large or small."""
    return f"by {number(abs(value))}, {between(*sorted((abs(low), abs(high))))}"


def percent(level: float) -> str:
    return f"{100.0 * level:g} %"


def more_rows(rows: float, fewest: float | None = None, most: float | None = None) -> str:
    """How many are needed until something can be said, to two digits, and between which numbers
    that lies, if they are given."""
    if math.isinf(rows):
        return "no difference is in sight"
    between = ""
    if fewest is not None and most is not None:
        last = f"to {_rounded(most)}" if math.isfinite(most) else "or far more"
        between = f" ({_rounded(fewest)} {last})"
    return f"about {_rounded(rows)} more rows like these are needed{between}"


def _rounded(rows: float) -> str:
    digits = max(0, len(str(int(rows))) - 2)
    return f"{round(rows, -digits):,.0f}"


def as_json(value: Any) -> Any:
    """Return results as JSON knows them: no infinity, and names for what tuples have in order."""
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [as_json(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "row"), plural(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"
