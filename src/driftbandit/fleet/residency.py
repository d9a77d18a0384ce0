"""Who is where: keys in memory, the others on disk, and the traffic between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from driftbandit.core.layout import Ints
from driftbandit.fleet.batch import Key, Keys, keys_of
from driftbandit.fleet.directory import Directory, distinct
from driftbandit.fleet.table import FleetTable

PAGE = 1 << 16  # learners that go to or come from a file at once


class Members:
    """The learners of a fleet by key.

    Without a disk all are in memory. With one at most `table.most` are, and each call to `find`
    is a tick of the clock that says who was used least recently.
    """

    def __init__(self, table: FleetTable, disk: Any) -> None:
        self.table, self.disk, self.directory, self.tick = table, disk, Directory(), 1

    def __len__(self) -> int:
        if self.disk is None:
            return len(self.directory)
        _, live = self.directory.items()
        return len(live) + self.disk.count - int(self.table.copied[live].sum())

    def parts(self, count: int) -> Iterator[slice]:
        """A batch in pieces whose learners fit into memory together."""
        size = min(self.table.most, max(count, 1))
        return (slice(start, start + size) for start in range(0, count, size))

    def find(self, keys: Keys) -> Ints:
        """Row of every key, 0 where there is no learner; brings back what the disk has."""
        rows, unknown = self.directory.find(keys)
        if self.disk is None:
            return rows
        if self.disk.closed:
            raise ValueError("this fleet is closed: open its store again")
        self.tick += 1
        self.table.used[rows] = self.tick
        if unknown and self.disk.count and self._recall(distinct(keys, rows == 0)):
            rows, _ = self.directory.find(keys)
        return rows

    def find_or_make(self, keys: Keys) -> Ints:
        """Row of every key; those that are new begin."""
        rows = self.find(keys)
        if len(rows) and not rows.min():
            self.make(distinct(keys, rows == 0))
            rows, _ = self.directory.find(keys)
        return rows

    def make(self, keys: Keys) -> Ints:
        """Rows for distinct new keys, after making room for them."""
        short = len(self.directory) + len(keys) - self.table.most
        if short > 0:
            self.evict(max(short, self.table.most // 8))
        rows = self.table.take(len(keys))
        self.table.used[rows] = self.tick
        self.directory.add(keys, rows)
        return rows

    def _recall(self, keys: Keys) -> bool:
        """Bring back those of the keys that are on disk; whether there were any."""
        names = keys.tolist() if isinstance(keys, np.ndarray) else keys
        places, found = self.disk.read(names)
        rows = self.make(keys_of([names[place] for place in places]))
        self.table.rows[rows] = found
        self.table.copied[rows] = True
        return bool(places)

    def evict(self, count: int) -> None:
        """Move the least recently used learners to the disk: there first, then away from here."""
        keys, live = self.directory.items()
        places = self.table.oldest(live, count, self.tick)
        gone, rows = [keys[place] for place in places.tolist()], live[places]
        self.disk.write(gone, self.table.rows[rows], int(self.table.copied[rows].sum()))
        self.directory.remove(gone)
        self.table.release(rows)

    def has(self, key: Key) -> bool:
        """Whether there is a learner of this key, wherever; it stays there."""
        _, unknown = self.directory.find(keys_of([key]))
        return not unknown or (self.disk is not None and bool(self.disk.read([key])[0]))

    def remove(self, key: Key) -> None:
        """Forget a learner, here and on disk."""
        if not self.has(key):
            raise KeyError(key)
        if self.disk is not None:
            self.disk.delete(key)
        rows, unknown = self.directory.find(keys_of([key]))
        if not unknown:
            self.directory.remove([key])
            self.table.release(rows)

    def pages(self) -> Iterator[tuple[list[Key], Any]]:
        """Keys and rows of all learners: those in memory, then those that are not."""
        keys, rows = self.directory.items()
        for start in range(0, len(keys), PAGE):
            part = slice(start, start + PAGE)
            yield keys[part], self.table.rows[rows[part]]
        for page, found in self.disk.pages(PAGE) if self.disk is not None else ():
            away = self.directory.find(keys_of(page))[0] == 0
            yield [key for key, is_away in zip(page, away) if is_away], found[away]

    def close(self) -> None:
        """Move everyone to the disk, and close it."""
        if self.disk is not None:
            self.tick += 1
            self.evict(len(self.directory))
            self.disk.close()
