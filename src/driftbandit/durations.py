"""Durations and moments at the public door: "30min" and datetimes become seconds."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from driftbandit import validate

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0  # seconds
UNITS = {"ms": 0.001, "s": 1.0, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
LAST = 253402300800.0  # the year 10000: seconds beyond are milliseconds by mistake

_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]+)\s*", re.ASCII)


def seconds(duration: Any, name: str = "a duration") -> float:
    """A duration in seconds: text such as "30min", a timedelta, or a number of seconds.

    >>> seconds("30min"), seconds("1.5h"), seconds("250ms"), seconds(90)
    (1800.0, 5400.0, 0.25, 90.0)
    """
    if isinstance(duration, np.timedelta64):
        clean = float(duration / np.timedelta64(1, "s"))
    elif isinstance(duration, timedelta):
        clean = duration.total_seconds()
    else:
        clean = _read(duration) if isinstance(duration, str) else validate.real(duration)
    if not 0.0 <= clean < LAST:  # NaN fails
        raise ValueError(
            f"{name} must be a number of seconds, a timedelta, or text of a number and one of "
            f"{', '.join(UNITS)}, such as '30min', got {validate.show(duration)}"
        )
    return clean


def _read(text: str) -> float:
    """Seconds in "30min"; NaN if it says no duration."""
    found = _TEXT.fullmatch(text)
    return float(found[1]) * UNITS.get(found[2], np.nan) if found else np.nan


def moment(at: Any, now: float, name: str = "at") -> float:
    """A point in time in seconds since the epoch: a number, a datetime with a time zone, or `now`
    where none is given.

    >>> from datetime import datetime, timezone
    >>> moment(datetime(1970, 1, 2, tzinfo=timezone.utc), now=0.0), moment(None, now=5.0)
    (86400.0, 5.0)
    """
    if at is None:
        return now
    if isinstance(at, datetime) and at == at:  # pandas' NaT is a datetime too
        return _instant(at)
    clean = np.nan if isinstance(at, np.datetime64) else validate.real(at)  # it has no time zone
    if not abs(clean) < LAST:  # NaN fails
        remedy = "divide milliseconds by 1000" if abs(clean) >= LAST else "pass time.time()"
        raise ValueError(
            f"{name} must be seconds since the epoch or a datetime with a time zone, got "
            f"{validate.show(at)}: {remedy}"
        )
    return clean


def _instant(at: datetime) -> float:
    """A datetime in seconds; without a time zone it would mean another moment on every machine."""
    if at.utcoffset() is None:
        raise ValueError(
            f"at={at} has no time zone, so it is no moment: use datetime.now(timezone.utc), or "
            "at.astimezone() if it is local time"
        )
    return at.timestamp()
