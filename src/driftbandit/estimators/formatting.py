"""Numbers in words, as verdicts say them."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """Four digits, and no exponent where none is needed."""
    return f"{value:.4g}".replace("-", "−") if math.isfinite(value) else "–"


def between(low: float, high: float) -> str:
    return f"between {number(low)} and {number(high)}"


def percent(level: float) -> str:
    return f"{100.0 * level:g} %"


def more_rows(rows: float) -> str:
    """How many are needed until something can be said, to two digits."""
    if math.isinf(rows):
        return "no difference is in sight"
    digits = max(0, len(str(int(rows))) - 2)
    return f"about {round(rows, -digits):,.0f} more rows like these are needed"
