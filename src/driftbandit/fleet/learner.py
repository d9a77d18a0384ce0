"""One learner of a fleet, seen as a `Bandit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.fleet.batch import Key
from driftbandit.policies.policy import Single

if TYPE_CHECKING:
    from driftbandit.fleet.fleet import Fleet


class Learner(Bandit):
    """A `Bandit` whose memory is a row of a fleet: what it learns, the fleet has learnt.

    Arrays it shows are copies of the row at that moment. Copying or pickling it gives a bandit
    of its own.
    """

    def __init__(self, fleet: Fleet, key: Key) -> None:
        self._fleet, self._key = fleet, key
        self.policy, self._limit, self._rng = fleet.policy, fleet._limit, fleet._rng
        self._noise = np.zeros((1, self.policy.noise_size))
        self._lock = fleet._lock  # type: ignore[assignment]
        self._single = Single(
            None,
            self._choose_plain,
            self._update_plain,
            self._best_plain,
            self._forget_plain,
            self._copy_plain,
        )
        self._choose, self._update = self._single.choose, self._single.update

    @property
    def _memory(self) -> Any:
        return self._fleet._read(self._key)

    @_memory.setter
    def _memory(self, memory: Any) -> None:
        self._fleet._write(self._key, memory)

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, key={self._key!r})"

    def __reduce__(self) -> Any:
        return _lone, (self.__getstate__(),)


def _lone(state: dict[str, Any]) -> Bandit:
    bandit = Bandit.__new__(Bandit)
    bandit.__setstate__(state)
    return bandit
