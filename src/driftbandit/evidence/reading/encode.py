"""Rows of a log as contexts: every arm of every row, by the declared features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit.evidence.reading.chunk import ARM, Chunk, Floats, Menu
from driftbandit.features import Features
from driftbandit.features.encoders import Slots
from driftbandit.validate import LARGEST, nearest, real


class LogColumns:
    """Raw rows by name; columns that are not declared are not looked at."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows, self.size = rows, len(rows)

    def values(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]

    numbers = values


def encoded(features: Features, chunk: Chunk) -> Floats:
    """Contexts (m, d) of all arms, row after row: the same numbers as `features.encode`. Both sides
    are encoded once, and menus that rows share are shared."""
    menus = {id(menu): menu for menu in chunk.menus}
    firsts = dict(zip(menus, _firsts(list(menus.values()))))
    left = features.plan.context.encode(LogColumns(chunk.context))
    arms = [arm for menu in menus.values() for arm in _arms(features, menu)]
    right = features.plan.arm.encode(LogColumns(arms))
    place = np.arange(chunk.sizes.sum()) - np.repeat(chunk.start, chunk.sizes)
    first = np.repeat([firsts[id(menu)] for menu in chunk.menus], chunk.sizes)
    row = np.repeat(np.arange(len(chunk)), chunk.sizes)
    return features.plan.rows(_taken(left, row), _taken(right, first + place))


def _arms(features: Features, menu: Menu) -> Sequence[Mapping[str, Any]]:
    return menu.described() if ARM in features.arm else menu.columns


def _firsts(menus: list[Menu]) -> list[int]:
    sizes = np.array([len(menu) for menu in menus])
    return (np.cumsum(sizes) - sizes).tolist()


def _taken(slots: Slots, which: Any) -> Slots:
    at, value = slots
    return at[:, which], value[:, which]


def check_columns(features: Features, chunk: Chunk) -> None:
    """Refuse a declared column that the log does not have: it would be missing in every row."""
    menus = {id(menu): menu for menu in chunk.menus}.values()
    offered = {name for menu in menus for arm in menu.described() for name in arm}
    seen = {"context": {name for row in chunk.context for name in row}, "arm": offered}
    for side, names in seen.items():
        for name in getattr(features, side):
            if len(chunk) and name not in names:
                raise ValueError(
                    f"no {side} of this log has the declared column {name!r}: "
                    f"{nearest(name, sorted(names))}"
                )


def proposed(chunk: Chunk) -> Features:
    """A declaration proposed from rows of the log. Each row shows one of its arms, in turn: what
    was played would hide arms that are rarely played."""
    from driftbandit.evidence.reading.files import arrow

    menus = {id(menu): menu.described() for menu in chunk.menus}
    shown = [menus[id(menu)][k % len(menu)] for k, menu in enumerate(chunk.menus)]
    offered = {name: None for menu in menus.values() for arm in menu for name in arm}
    known = {name for row in chunk.context for name in row}
    if known & set(offered):
        raise ValueError(
            f"contexts and arms share the column {min(known & set(offered))!r}: rename one of "
            "them, or pass features="
        )
    rows = [dict(row) | dict(arm) for row, arm in zip(chunk.context, shown)]
    names = [*sorted(known), *offered]
    try:
        sample = arrow().table({name: _alike([row.get(name) for row in rows]) for name in names})
    except (arrow().ArrowException, OverflowError, UnicodeError) as error:
        raise ValueError(f"no features can be proposed ({error}): pass features=") from None
    return Features.from_sample(sample, arm=list(offered))


def _alike(column: list[Any]) -> list[Any]:
    """A column without the cells that are of another kind than most: the features that are proposed
    refuse them, and their rows are counted as bad."""
    kinds = Counter(_kind(value) for value in column if value is not None)
    usual = kinds.most_common(1)[0][0] if kinds else None
    return column if len(kinds) < 2 else [v if _kind(v) == usual else None for v in column]


def _kind(value: Any) -> str:
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return "number" if abs(real(value)) <= LARGEST else "no number"
    return type(value).__name__
