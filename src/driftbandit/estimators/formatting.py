"""Numbers in words, as verdicts say them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


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


def as_json(value: Any) -> Any:
    """Return results as JSON knows them: no infinity, and names for what tuples have in order."""
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if isinstance(value, (tuple, list)):
        return [as_json(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
