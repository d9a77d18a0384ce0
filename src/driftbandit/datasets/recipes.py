"""How the rows of each file become rounds: features, and the outcome of every arm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.datasets.files import DataTable
from driftbandit.datasets.rounds import Floats

ELEC2 = ("period", "nswdemand", "vicprice", "vicdemand", "transfer")
WEATHER = (
    "temperature",
    "dew point",
    "sea level pressure",
    "visibility",
    "wind",
    "sustained wind",
    "highest temperature",
    "lowest temperature",
)
BIKE = ("temp", "hum", "windspeed", "weathersit")
CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX")  # the ten largest
ORIGINS = ("EWR", "JFK", "LGA")
FLIGHTS = 10  # to choose from
MISSING = ("", "NA")


class Raw(NamedTuple):
    """Rows of features, one per arm or one for all classes."""

    features: Floats  # (R, N or 1, p)
    names: tuple[str, ...]
    rewards: Floats  # (R, N)
    times: NDArray[Any] | None = None


def elec2(table: DataTable) -> Raw:
    """Will the price be above its mean of 24 hours (arm 1) or not (arm 0)?"""
    unnamed = "feat_1" in table.header  # as some copies are
    columns = [f"feat_{k}" for k in (1, 3, 4, 5, 6)] if unnamed else list(ELEC2)
    period, *rest = table.numbers(columns)
    (label,) = table.numbers(["target" if unnamed else "class"])
    features = np.column_stack([*_waves(period, 2), *rest])
    return Raw(features[:, None], (*_wave_names("period", 2), *ELEC2[1:]), _one_of(label, 2))


def weather(table: DataTable) -> Raw:
    """Rain (arm 1) or not (arm 0)?"""
    *features, label = table.numbers([*(f"feat_{k}" for k in range(1, 9)), "target"])
    return Raw(np.column_stack(features)[:, None], WEATHER, _one_of(label, 2))


def bike(table: DataTable) -> Raw:
    """Low, middle or high demand (thirds of the file)? Hours without weather are left out."""
    table = table.where(lambda text: text not in MISSING, "temp")
    hour, month, work, count = table.numbers(["hr", "mnth", "workingday", "cnt"])
    daily, names = np.array(_waves(hour / 24.0, 2)), _wave_names("hour", 2)
    columns = [*daily, work, *(work * daily), *table.numbers(BIKE), *_waves(month / 12.0, 1)]
    names = (*names, "workingday", *(f"workingday x {name}" for name in names), *BIKE)
    demand = np.searchsorted(np.quantile(count, [1 / 3, 2 / 3]), count)
    times = np.array([_day(text) for text in table["dteday"]]) + hour.astype("timedelta64[h]")
    features = np.column_stack(columns)[:, None]
    return Raw(features, (*names, *_wave_names("month", 1)), _one_of(demand, 3), times)


def flights(table: DataTable) -> Raw:
    """Which of ten flights of a day to a city arrives on time? A cancelled one does not."""
    rows = tens(table)
    carrier, origin = np.array(table["carrier"]), np.array(table["origin"])
    hour, minute, month, day = table.numbers(["hour", "minute", "month", "day"])
    columns = [*(carrier == name for name in CARRIERS), *(origin == name for name in ORIGINS)]
    features = np.column_stack([*columns, hour, hour**2, minute])[rows]
    delay = np.array([np.inf if t in MISSING else float(t) for t in table["arr_delay"]])
    first = rows[:, 0]
    dates = [f"2013-{m:02.0f}-{d:02.0f}" for m, d in zip(month[first], day[first])]
    names = (*CARRIERS, *ORIGINS, "hour", "hour squared", "minute")
    return Raw(features, names, (delay <= 0)[rows].astype(float), np.array(dates, "datetime64[D]"))


def tens(table: DataTable) -> NDArray[np.int64]:
    """Flights of a day to a city, dealt at random into tens; what is left over is not played."""
    month, day = table.numbers(["month", "day"])
    date, (_, city) = 31 * month + day, np.unique(table["dest"], return_inverse=True)
    deal = np.random.default_rng(0).permutation(len(date))
    order = np.lexsort((deal, city, date))
    changes = (np.diff(date[order]) != 0) | (np.diff(city[order]) != 0)
    groups = np.split(order, np.flatnonzero(changes) + 1)
    whole = [group[: len(group) // FLIGHTS * FLIGHTS] for group in groups]
    return np.concatenate(whole).reshape(-1, FLIGHTS)


def _waves(share: Floats, harmonics: int) -> list[Floats]:
    """sin and cos of a share of a period."""
    angles = [2.0 * np.pi * k * share for k in range(1, harmonics + 1)]
    return [wave(angle) for angle in angles for wave in (np.sin, np.cos)]


def _wave_names(name: str, harmonics: int) -> tuple[str, ...]:
    return tuple(f"{w} {k} {name}" for k in range(1, harmonics + 1) for w in ("sin", "cos"))


def _one_of(label: Any, classes: int) -> Floats:
    """1 for the arm of the true class, 0 for the others, (R, classes)."""
    return np.eye(classes)[np.asarray(label, dtype=int)]


def _day(text: str) -> np.datetime64:
    """2011-01-31, or 1/31/11 as in some copies."""
    if "/" in text:
        month, day, year = text.split("/")
        text = f"20{year[-2:]}-{int(month):02d}-{int(day):02d}"
    return np.datetime64(text, "h")
