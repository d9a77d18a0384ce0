"""Durations and moments: what is read, and what is refused with a remedy."""

import math
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from driftbandit.durations import UNITS, moment, seconds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("30min", 1800.0),
        ("7d", 604800.0),
        ("250ms", 0.25),
        (" 1.5 h ", 5400.0),
        (".5s", 0.5),
        ("2.w", 1209600.0),
        (0, 0.0),
        (90, 90.0),
        (np.float32(0.5), 0.5),
        (timedelta(minutes=2), 120.0),
        (pd.Timedelta("1h"), 3600.0),
        (np.timedelta64(3, "m"), 180.0),
    ],
)
def test_durations_that_are_read(given, expected):
    assert seconds(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        *("", "30", "min", "30m", "30 minutes", "30MIN", "-5min", "1h30min", "1e3s", "inf s", "٣s"),
        *(-1, math.inf, math.nan, True, None, [30], b"30min", 1j, 10**400, "9" * 400 + "d"),
        *(timedelta(seconds=-1), np.timedelta64("NaT"), pd.NaT, datetime(2024, 1, 1)),
    ],
)
def test_durations_that_are_refused_with_the_remedy(given):
    with pytest.raises(ValueError, match=r"^wait must be .*one of ms, s, min, h, d, w") as error:
        seconds(given, "wait")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("unit", UNITS)
def test_a_duration_in_text_is_the_number_times_the_unit(unit):
    for count in (1, 2.5, 40):
        assert seconds(f"{count}{unit}") == count * UNITS[unit]


def test_moments_are_seconds_since_the_epoch():
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    assert moment(None, 17.5) == 17.5
    assert moment(3, 17.5) == 3.0
    assert moment(noon, 0.0) == noon.timestamp() == moment(noon.timestamp(), 0.0)
    assert moment(noon.astimezone(ZoneInfo("Asia/Tokyo")), 0.0) == noon.timestamp()
    assert moment(pd.Timestamp("2024-05-01 12:00", tz="UTC"), 0.0) == noon.timestamp()


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (datetime(2024, 5, 1), "astimezone"),
        (pd.Timestamp("2024-05-01"), "astimezone"),
        (1714521600000, "divide milliseconds by 1000"),
        (math.inf, "divide milliseconds by 1000"),
        (math.nan, "time.time"),
        ("2024-05-01", "time.time"),
        (True, "time.time"),
        (date(2024, 5, 1), "time.time"),
        (pd.NaT, "time.time"),
        (np.datetime64("2024-05-01"), "time.time"),
        (np.datetime64("2024-05-01", "ns"), "time.time"),
    ],
)
def test_moments_that_are_refused_with_the_remedy(given, remedy):
    with pytest.raises(ValueError, match=remedy) as error:
        moment(given, 0.0)
    assert "\n" not in str(error.value)
