"""One learner of a fleet, seen as a `Bandit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftbandit.bandit import Bandit
from driftbandit.fleet.batch import Key
from driftbandit.policies.rows import RowPolicy

if TYPE_CHECKING:
    from driftbandit.fleet.fleet import Fleet


class FleetLearner(Bandit):
    """A `Bandit` whose memory is a row of a fleet: what it learns, the fleet has learnt.

    Copying or pickling it gives a bandit of its own.
    """

    def __init__(self, fleet: Fleet, key: Key) -> None:
        self._fleet, self._key, self._version = fleet, key, -1
        self._slots = None  # a fleet has no items
        self.policy, self._lock, self._stream = fleet.policy, fleet._lock, fleet._stream
        self._prepare(fleet.dtype == "float64")

    def choose(self, arms: Any, *, k: int | None = None) -> Any:
        with self._lock:  # the fleet's: its rows may move
            return super().choose(arms) if k is None else super().choose(arms, k=k)

    def update(self, x: Any, reward: float, *, steps: float = 1.0) -> None:
        with self._lock:
            super().update(x, reward, steps=steps)

    @property
    def _row(self) -> Any:  # type: ignore[override]
        """The row as it lies in the fleet, or None where the policy or single precision wants
        another way."""
        table = self._fleet._members.table
        if self._version != table.version or self._fleet._members.disk is not None:
            place = self._fleet._place(self._key)  # which may move the table
            fits = isinstance(self.policy, RowPolicy) and self._fleet.dtype == "float64"
            self._here, self._version = table.rows[place] if fits else None, table.version
        return self._here

    @property
    def _memory(self) -> Any:
        with self._lock:
            if self._row is not None:
                return self.policy.view(self._row[None])  # type: ignore[attr-defined]
            place = self._fleet._place(self._key)
            return self.policy.from_rows(self._fleet._members.table.rows[place : place + 1])

    @_memory.setter
    def _memory(self, memory: Any) -> None:
        with self._lock:
            rows = self.policy.rows(memory)
            self._fleet._write(self._key, rows)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, key={self._key!r})"

    def __reduce__(self) -> Any:
        return _lone, (self.__getstate__(),)


def _lone(state: dict[str, Any]) -> Bandit:
    bandit = Bandit.__new__(Bandit)
    bandit.__setstate__(state)
    return bandit
