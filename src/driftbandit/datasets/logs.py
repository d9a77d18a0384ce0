"""Logs of decisions: only what was shown has an outcome, with the probability of showing it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit.datasets.files import FOLDER, DataSource, DataTable, cache, read
from driftbandit.datasets.rounds import Floats
from driftbandit.files import atomically

WHEEL = "obp-0.4.1-py3-none-any.whl"
SHA256 = "87dec9caf4283c25ab13036532e0a24566f1c7bdcad1653a8ded43b2f5ef8208"
INSIDE = "obp/dataset/obd"
POLICIES, CAMPAIGNS = ("random", "bts"), ("all", "men", "women")


@dataclass(frozen=True, eq=False)
class LoggedRounds:
    """Decisions of a policy that ran, in order of time; no outcome of anything else is known."""

    name: str
    context: Floats  # (T, p)       user features, one column per level
    affinity: Floats  # (T, N)      clicks of similar users on each item so far
    items: Floats  # (N, q)         item features, one column per level
    action: NDArray[np.int64]  # (T,)
    position: NDArray[np.int64]  # (T,)  0, 1, 2 from the left
    pscore: Floats  # (T,)          probability with which the action was chosen
    reward: Floats  # (T,)          1 for a click
    times: NDArray[Any]  # (T,)     datetime64
    features: tuple[str, ...]  # names of the p user features
    source: str
    licence: str
    checksum: str

    def __len__(self) -> int:
        return len(self.action)


def open_bandit(
    policy: str = "random",
    campaign: str = "all",
    *,
    path: str | os.PathLike[str] | None = None,
) -> LoggedRounds:
    """A small log of the Open Bandit Dataset (ZOZO, Inc.), 10,000 decisions of a fashion shop.

    `policy` is "random" or "bts" (Thompson sampling), `campaign` "all", "men" or "women". The
    logs lie in the wheel of the package obp, which is fetched with pip and kept in a cache;
    `path` is that wheel, or a folder laid out as its `obp/dataset/obd`.
    """
    if policy not in POLICIES or campaign not in CAMPAIGNS:
        raise ValueError(
            f"policy must be one of {', '.join(POLICIES)} and campaign one of "
            f"{', '.join(CAMPAIGNS)}, got {policy!r} and {campaign!r}"
        )
    return _log(policy, campaign, str(path or _folder()))


def _folder() -> Path:
    """A folder or wheel of the user's own, or the wheel in the cache."""
    own = Path(os.environ.get(FOLDER, "")) / "obd"
    return own if os.environ.get(FOLDER) and own.is_dir() else _wheel()


def _wheel() -> Path:
    """The wheel of obp, fetched on first use from wherever pip is told to look."""
    cached = cache() / WHEEL
    if not cached.exists():
        with TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "obp==0.4.1"]
            done = subprocess.run([*pip, "--dest", folder], capture_output=True, text=True)
            fetched = Path(folder) / WHEEL
            if done.returncode or not fetched.exists():
                reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
                raise ValueError(f"pip cannot fetch obp 0.4.1 ({reason}): pass path=its wheel")
            cached.parent.mkdir(parents=True, exist_ok=True)
            with atomically(cached) as part:
                part.write_bytes(fetched.read_bytes())
    if hashlib.sha256(cached.read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{cached} is not the wheel that was tested: delete it, and try again")
    return cached


@lru_cache(maxsize=4)
def _log(policy: str, campaign: str, place: str) -> LoggedRounds:
    with TemporaryDirectory() as scratch:
        folder = Path(place)
        if folder.is_file():
            with zipfile.ZipFile(folder) as wheel:
                inside = [n for n in wheel.namelist() if f"{INSIDE}/{policy}/{campaign}/" in n]
                wheel.extractall(scratch, inside)
            folder = Path(scratch) / INSIDE
        rows = _table(folder / policy / campaign / f"{campaign}.csv")
        items = _table(folder / policy / campaign / "item_context.csv")
    return _arrays(f"open bandit, {policy}, {campaign}", rows, items)


def _table(path: Path) -> DataTable:
    return read(DataSource(files=(path.name,), url="", licence=""), path)


def _arrays(name: str, rows: DataTable, items: DataTable) -> LoggedRounds:
    users = [column for column in rows.header if column.startswith("user_feature")]
    affinities = [column for column in rows.header if column.startswith("user-item_affinity")]
    item, place, click, pscore = rows.numbers(["item_id", "position", "click", "propensity_score"])
    order = np.argsort(np.array(rows["timestamp"]), kind="stable")
    context, features = _levels(rows, users)
    kinds = [column for column in items.header if column.startswith("item_feature")]
    return LoggedRounds(
        name=name,
        context=context[order],
        affinity=np.column_stack(rows.numbers(affinities))[order],
        items=np.column_stack([*items.numbers(kinds[:1]), _levels(items, kinds[1:])[0]]),
        action=item.astype(np.int64)[order],
        position=place.astype(np.int64)[order] - 1,
        pscore=pscore[order],
        reward=click[order],
        times=np.array([text[:26] for text in rows["timestamp"]], "datetime64[us]")[order],
        features=features,
        source="the Python package obp",
        licence="CC BY 4.0",
        checksum=rows.checksum,
    )


def _levels(table: DataTable, columns: list[str]) -> tuple[Floats, tuple[str, ...]]:
    """One column of 0 and 1 per level of each of these columns, and their names."""
    parts, names = [], []
    for column in columns:
        levels, codes = np.unique(table[column], return_inverse=True)
        parts.append(np.eye(len(levels))[codes])
        names += [f"{column} = {level}" for level in levels]
    return np.concatenate(parts, axis=1), tuple(names)
