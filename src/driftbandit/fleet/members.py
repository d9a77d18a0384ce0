"""Who is where: keys in memory, the others on disk, and the traffic between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from driftbandit.fleet.batch import Key, Keys, keys_of
from driftbandit.fleet.index import Index, distinct
from driftbandit.fleet.rows import Rows
from driftbandit.policies.policy import Ints

PAGE = 1 << 16  # learners that go to or come from a file at once


class Members:
    """The learners of a fleet by key.

    Without a store all are in memory. With one at most `rows.most` are, and each call to `find`
    is a tick of the clock that says who was used least recently.
    """

    def __init__(self, rows: Rows, store: Any) -> None:
        self.rows, self.store, self.index, self.tick = rows, store, Index(), 1

    def __len__(self) -> int:
        if self.store is None:
            return len(self.index)
        _, live = self.index.items()
        return len(live) + self.store.count - int(self.rows.copied[live].sum())

    def parts(self, count: int) -> Iterator[slice]:
        """A batch in pieces whose learners fit into memory together."""
        size = min(self.rows.most, max(count, 1))
        return (slice(start, start + size) for start in range(0, count, size))

    def find(self, keys: Keys) -> Ints:
        """Row of every key, 0 where there is no learner; brings back what the store has."""
        rows, unknown = self.index.find(keys)
        if self.store is None:
            return rows
        self.tick += 1
        self.rows.used[rows] = self.tick
        if unknown and self.store.count and self._recall(distinct(keys, rows == 0)):
            rows, _ = self.index.find(keys)
        return rows

    def find_or_make(self, keys: Keys) -> Ints:
        """Row of every key; those that are new begin."""
        rows = self.find(keys)
        if len(rows) and not rows.min():
            self.make(distinct(keys, rows == 0))
            rows, _ = self.index.find(keys)
        return rows

    def make(self, keys: Keys) -> Ints:
        """Rows for distinct new keys, after making room for them."""
        short = len(self.index) + len(keys) - self.rows.most
        if short > 0:
            self.evict(max(short, self.rows.most // 8))
        rows = self.rows.take(len(keys))
        self.rows.used[rows] = self.tick
        self.index.add(keys, rows)
        return rows

    def _recall(self, keys: Keys) -> bool:
        """Bring back those of the keys that are in the store; whether there were any."""
        names = keys.tolist() if isinstance(keys, np.ndarray) else keys
        places, records = self.store.read(names)
        rows = self.make(keys_of([names[place] for place in places]))
        self.rows.fill(rows, records)
        self.rows.copied[rows] = True
        return bool(places)

    def evict(self, count: int) -> None:
        """Move the least recently used learners to the store: there first, then away from here."""
        keys, live = self.index.items()
        places = self.rows.oldest(live, count, self.tick)
        gone, rows = [keys[place] for place in places.tolist()], live[places]
        self.store.write(gone, self.rows.records(rows), int(self.rows.copied[rows].sum()))
        self.index.remove(gone)
        self.rows.release(rows)

    def has(self, key: Key) -> bool:
        """Whether there is a learner of this key, wherever; it stays there."""
        _, unknown = self.index.find(keys_of([key]))
        return not unknown or (self.store is not None and bool(self.store.read([key])[0]))

    def remove(self, key: Key) -> None:
        """Forget a learner, here and in the store."""
        if not self.has(key):
            raise KeyError(key)
        if self.store is not None:
            self.store.delete(key)
        rows, unknown = self.index.find(keys_of([key]))
        if not unknown:
            self.index.remove([key])
            self.rows.release(rows)

    def pages(self) -> Iterator[tuple[list[Key], Any]]:
        """Keys and records of all learners: those in memory, then those that are not."""
        keys, rows = self.index.items()
        for start in range(0, len(keys), PAGE):
            part = slice(start, start + PAGE)
            yield keys[part], self.rows.records(rows[part])
        for page, records in self.store.pages(PAGE) if self.store is not None else ():
            away = self.index.find(keys_of(page))[0] == 0
            yield [key for key, is_away in zip(page, away) if is_away], records[away]

    def close(self) -> None:
        """Move everyone to the store, and close it."""
        if self.store is not None:
            self.tick += 1
            self.evict(len(self.index))
            self.store.close()
