"""Tiny synthetic files with the columns of the real ones: tests never need the internet."""

from __future__ import annotations

import csv
import gzip
import io
from functools import cache

import numpy as np


def csv_text(header, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([header, *rows])
    return out.getvalue()


@cache
def elec(rows=700):
    rng = np.random.default_rng(1)
    period = np.arange(rows) % 48 / 47
    demand = np.sin(2 * np.pi * period) + 0.3 * rng.standard_normal(rows)
    level = (demand > 0).astype(int)
    header = ["period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer", "class"]
    rest = rng.random((rows, 2)).round(4)
    lines = zip(period.round(6), demand, demand, [0.0035] * rows, *rest.T, level)
    return csv_text(header, lines)


@cache
def weather(rows=700):
    rng = np.random.default_rng(2)
    values = rng.standard_normal((rows, 8)).round(3)
    rain = (values[:, 0] + 0.5 * rng.standard_normal(rows) > 0.4).astype(int)
    header = [*(f"feat_{k}" for k in range(1, 9)), "target"]
    return csv_text(header, [[*row, label] for row, label in zip(values, rain)])


@cache
def bike(rows=760, padded=()):
    """`padded` rows have no weather, as in some copies."""
    rng = np.random.default_rng(3)
    header = ["instant", "dteday", "mnth", "hr", "workingday", "weathersit", "temp", "hum"]
    lines = []
    for k in range(rows):
        day, hour = divmod(k, 24)
        count = int(100 + 90 * np.sin(2 * np.pi * hour / 24) + 20 * rng.random())
        known = ["NA", "NA", "NA", "NA"] if k in padded else [1, 0.3, 0.5, 0.1]
        date = f"2011-{1 + day // 28:02d}-{1 + day % 28:02d}"
        lines.append([k, date, 1 + day // 28, hour, int(day % 7 < 5), *known, count])
    return csv_text([*header, "windspeed", "cnt"], lines)


@cache
def flights(days=60):
    """23 flights a day to each of two cities, 9 to a third: 4 rounds a day."""
    rng = np.random.default_rng(4)
    header = ["month", "day", "sched_dep_time", "arr_delay", "carrier", "origin", "dest", "hour"]
    lines = []
    for k in range(days):
        for city, count in (("ATL", 23), ("BOS", 23), ("XNA", 9)):
            for _ in range(count):
                hour, carrier = int(rng.integers(5, 23)), rng.choice(["UA", "B6", "OO"])
                delay = "NA" if rng.random() < 0.02 else int(rng.integers(-30, 30) + hour - 14)
                origin = rng.choice(["EWR", "JFK", "LGA"])
                place = [1 + k // 28, 1 + k % 28]
                lines.append([*place, 100 * hour, delay, carrier, origin, city, hour, 15])
    return csv_text([*header, "minute"], lines)


def write(folder):
    """A folder for DRIFTBANDIT_DATA; one of the files is compressed."""
    (folder / "elec.csv").write_text(elec())
    (folder / "weather.csv.gz").write_bytes(gzip.compress(weather().encode()))
    (folder / "bike-hour.csv").write_text(bike(padded=(30, 51, 52)))
    (folder / "flights.csv").write_text(flights())


def open_bandit(folder, rows=30, items=4):
    """A folder laid out as the logs in obp's wheel."""
    rng = np.random.default_rng(5)
    place = folder / "obd" / "random" / "men"
    place.mkdir(parents=True)
    header = ["", "timestamp", "item_id", "position", "click", "propensity_score"]
    header += ["user_feature_0", "user_feature_1"]
    header += [f"user-item_affinity_{k}" for k in range(items)]
    lines = []
    for k in rng.permutation(rows):
        time = f"2019-11-24 00:{k:02d}:13.442536+00:00"
        user = [f"u{rng.integers(3)}", f"v{rng.integers(2)}"]
        lines.append(
            [k, time, k % items, 1 + k % 3, int(k % 10 == 0), 1 / items, *user, *[0.5] * 4]
        )
    (place / "men.csv").write_text(csv_text(header, lines))
    shown = [[k, k, 0.1 * k, f"a{k % 2}"] for k in range(items)]
    header = ["", "item_id", "item_feature_0", "item_feature_1"]
    (place / "item_context.csv").write_text(csv_text(header, shown))
    return place.parent.parent
