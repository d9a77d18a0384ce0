"""Which row holds which key: a compiled hash table for whole numbers, a dict for names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from driftbandit.core.compiled import COMPILED, inlined, kernel
from driftbandit.core.layout import Ints
from driftbandit.fleet.batch import Key, Keys

GOLDEN = -7046029254386353131  # 2^64 / golden ratio, as a signed number


@inlined
def home(table: Ints, key: int) -> int:
    """Where the search for a key begins: every bit of it counts, whatever pattern keys have."""
    mixed = key * GOLDEN
    mixed = (mixed ^ (mixed >> 32)) * GOLDEN
    return (mixed ^ (mixed >> 29)) & (len(table) - 1)


@inlined
def place(table: Ints, key: int) -> int:
    """Where a key is, or the empty place where it would go."""
    h = home(table, key)
    while table[h, 1] != 0 and table[h, 0] != key:
        h = (h + 1) & (len(table) - 1)
    return h


@kernel
def find(table: Ints, keys: Ints, rows: Ints) -> int:
    """rows = those of the keys, 0 for unknown ones; returns how many are unknown."""
    unknown = 0
    for b in range(len(keys)):
        rows[b] = table[place(table, keys[b]), 1]
        unknown += rows[b] == 0
    return unknown


@kernel
def insert(table: Ints, keys: Ints, rows: Ints) -> None:
    for b in range(len(keys)):
        h = place(table, keys[b])
        table[h, 0], table[h, 1] = keys[b], rows[b]


@kernel
def remove(table: Ints, keys: Ints) -> None:
    """Take keys out, and move up those that stand behind a gap on the way from their home."""
    last = len(table) - 1
    for b in range(len(keys)):
        gap = place(table, keys[b])
        h = gap
        while table[gap, 1] != 0:
            table[gap, 1] = 0
            h = (h + 1) & last
            while table[h, 1] != 0:
                if ((h - home(table, table[h, 0])) & last) >= ((h - gap) & last):
                    table[gap, 0], table[gap, 1] = table[h, 0], table[h, 1]
                    gap = h
                    break
                h = (h + 1) & last


if not COMPILED:  # NumPy would warn of what compiled code wraps around
    quiet = np.errstate(over="ignore")
    find, insert, remove = quiet(find), quiet(insert), quiet(remove)


class Directory:
    """Rows by key; row 0 means that there is none."""

    def __init__(self) -> None:
        self.table = np.zeros((64, 2), dtype=np.int64)  # key and row, at most half full
        self.numbers = 0
        self.names: dict[Key, int] = {}

    def __len__(self) -> int:
        return self.numbers + len(self.names)

    @property
    def nbytes(self) -> int:
        return self.table.nbytes

    def find(self, keys: Keys) -> tuple[Ints, int]:
        """Row of every key, 0 for unknown ones, and how many these are."""
        rows = np.empty(len(keys), dtype=np.int64)
        if isinstance(keys, np.ndarray):
            return rows, find(self.table, keys, rows)
        rows[:] = [self.names.get(key, 0) for key in keys]
        places, numbers = whole(keys)
        found = np.empty(len(numbers), dtype=np.int64)
        find(self.table, numbers, found)
        rows[places] = found
        return rows, int((rows == 0).sum())

    def add(self, keys: Keys, rows: Ints) -> None:
        """Distinct new keys."""
        places, numbers = whole(keys)
        self.numbers += len(numbers)
        if 2 * self.numbers > len(self.table):
            self._grow()
        insert(self.table, numbers, rows[places])
        if not isinstance(keys, np.ndarray):
            named = ((k, r) for k, r in zip(keys, rows.tolist()) if not isinstance(k, int))
            self.names.update(named)

    def remove(self, keys: Sequence[Key]) -> None:
        """Distinct keys that are there."""
        _, numbers = whole(list(keys))
        remove(self.table, numbers)
        self.numbers -= len(numbers)
        for key in keys:
            self.names.pop(key, None)

    def items(self) -> tuple[list[Key], Ints]:
        """All keys and their rows."""
        full = self.table[self.table[:, 1] != 0]
        rows = [full[:, 1], np.fromiter(self.names.values(), np.int64, len(self.names))]
        return [*full[:, 0].tolist(), *self.names], np.concatenate(rows)

    def _grow(self) -> None:
        size = 1 << (2 * self.numbers - 1).bit_length()
        old, self.table = self.table, np.zeros((size, 2), dtype=np.int64)
        full = old[old[:, 1] != 0]
        insert(self.table, full[:, 0].copy(), full[:, 1].copy())


def whole(keys: Keys) -> tuple[Ints, Ints]:
    """Places of the whole numbers among the keys, and the numbers."""
    if isinstance(keys, np.ndarray):
        return np.arange(len(keys)), keys
    places = [place for place, key in enumerate(keys) if isinstance(key, int)]
    return np.array(places, dtype=np.int64), np.array([keys[p] for p in places], dtype=np.int64)


def distinct(keys: Keys, chosen: NDArray[np.bool_]) -> Keys:
    """The chosen ones of the keys, each once, in their order: so neighbours stay neighbours."""
    if isinstance(keys, np.ndarray):
        some = keys[chosen]
        return some[np.sort(np.unique(some, return_index=True)[1])]
    return list(dict.fromkeys(keys[b] for b in np.flatnonzero(chosen)))
