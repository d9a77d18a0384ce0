"""The shared arrays: a learner per row, rows that come and go, and when each was last used."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit.policies.policy import Ints

OWN = 17  # bytes of a row beside the memory: `used`, `copied`, and its place in `free`


class Rows:
    """A memory that grows by doubling; row 0 is a learner that has seen nothing.

    New room is not written to before it is needed, so the system gives out its pages only then:
    growing never holds more than the rows there were, twice.
    """

    def __init__(self, fresh: Any) -> None:
        self.memory, self.most = fresh, 2**62
        self.used = np.zeros(1, dtype=np.int64)  # tick of the latest use
        self.copied = np.zeros(1, dtype=bool)  # whether the store holds an older copy
        self.free: Ints = np.empty(0, dtype=np.int64)
        self.end = 1  # rows from here on were never taken
        fields = zip(fresh._fields, fresh)
        self.record = np.dtype([(name, a.dtype, a.shape[1:]) for name, a in fields])

    @property
    def nbytes(self) -> int:
        arrays = (*self.memory, self.used, self.copied, self.free)
        return sum(a.nbytes for a in arrays)

    def take(self, count: int) -> Ints:
        """Rows for so many new learners, which have seen nothing."""
        again = self.free[:count]
        end = self.end + count - len(again)
        if end > len(self.used):
            self._grow(end)
        for array in self.memory:
            array[self.end : end] = array[0]
            array[again] = array[0]
        rows = np.concatenate([again, np.arange(self.end, end)])
        self.copied[rows] = False
        self.free, self.end = self.free[count:], end
        return rows

    def release(self, rows: Ints) -> None:
        """These learners are gone."""
        self.free = np.concatenate([self.free, rows])

    def records(self, rows: Ints) -> Any:
        """These learners as they are, a record each."""
        out = np.empty(len(rows), dtype=self.record)
        for name, array in zip(self.memory._fields, self.memory):
            out[name] = array[rows]
        return out

    def fill(self, rows: Ints, records: Any) -> None:
        """Write what `records` gave, or a mapping of arrays."""
        for name, array in zip(self.memory._fields, self.memory):
            array[rows] = records[name]

    def oldest(self, live: Ints, count: int, before: int) -> Ints:
        """Places in `live` of the least recently used rows, none of them used at tick `before`."""
        places = np.flatnonzero(self.used[live] < before)
        if count >= len(places):
            return places
        return places[np.argpartition(self.used[live[places]], count)[:count]]

    def _grow(self, end: int) -> None:
        size = max(end, min(2 * len(self.used), self.most + 1))

        def wider(array: Any) -> Any:
            new = np.empty((size, *array.shape[1:]), dtype=array.dtype)
            new[: self.end] = array[: self.end]
            return new

        for name in self.memory._fields:  # one by one: an old array is gone before the next comes
            self.memory = self.memory._replace(**{name: wider(getattr(self.memory, name))})
        self.copied = wider(self.copied)
        self.used = wider(self.used)  # last: its length is the room there is
