"""The shared table: a learner per row, rows that come and go, and when each was last used."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit.core.layout import Ints

OWN = 17  # bytes of a row beside the learner: `used`, `copied`, and its place in `free`


class FleetTable:
    """Rows (n, size) that grow by doubling; row 0 is a learner that has seen nothing.

    New room is not written to before it is needed, so the system gives out its pages only then:
    growing never holds more than the rows there were, twice. `version` changes whenever a row may
    lie elsewhere or belong to another learner.
    """

    def __init__(self, fresh: Any) -> None:
        self.rows, self.most, self.version = fresh[None].copy(), 2**62, 0
        self.used = np.zeros(1, dtype=np.int64)  # tick of the latest use
        self.copied = np.zeros(1, dtype=bool)  # whether the disk holds an older copy
        self.free: Ints = np.empty(0, dtype=np.int64)
        self.end = 1  # rows from here on were never taken

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self.rows, self.used, self.copied, self.free))

    def take(self, count: int) -> Ints:
        """Rows for so many new learners, which have seen nothing."""
        again = self.free[:count]
        end = self.end + count - len(again)
        if end > len(self.rows):
            self._grow(end)
        self.rows[self.end : end] = self.rows[0]
        self.rows[again] = self.rows[0]
        taken = np.concatenate([again, np.arange(self.end, end)])
        self.copied[taken] = False
        self.free, self.end = self.free[count:], end
        return taken

    def release(self, rows: Ints) -> None:
        """These learners are gone."""
        self.free, self.version = np.concatenate([self.free, rows]), self.version + 1

    def oldest(self, live: Ints, count: int, before: int) -> Ints:
        """Places in `live` of the least recently used rows, none of them used at tick `before`."""
        places = np.flatnonzero(self.used[live] < before)
        if count >= len(places):
            return places
        return places[np.argpartition(self.used[live[places]], count)[:count]]

    def _grow(self, end: int) -> None:
        size = max(end, min(2 * len(self.rows), self.most + 1))

        def wider(array: Any) -> Any:
            new = np.empty((size, *array.shape[1:]), dtype=array.dtype)
            new[: self.end] = array[: self.end]
            return new

        self.used, self.copied = wider(self.used), wider(self.copied)
        self.rows, self.version = wider(self.rows), self.version + 1
