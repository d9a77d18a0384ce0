"""Items that have an effect of their own: names in a fixed number of slots.

A context that names an item has, at the coordinate `at` of `Problem.items`, the weight of an
item's effect, and behind it a number that stands for the name. A learner knows which names hold its
slots. If the name holds slot j, the weight moves to coordinate at + 1 + j, which has learnt the
item's effect; if not, it stays at `at`, which is never trained: a new item begins at the prediction
that it shares with all others, with the variance of the prior.

A name gets a slot when it is trained first. If all are taken, it gets the one whose name has not
been trained for the longest time, and the learner forgets that name: coordinate j goes back to the
prior, and the others keep what they know without it (it is marginalised out).

The names are the end of a learner's row: a number and the round of its latest training per slot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit.core.layout import GRID, LAM, AutoMemory, K
from driftbandit.policies.base import Floats
from driftbandit.policies.rows import RowPolicy
from driftbandit.problem import is_name

NAME, WHEN = range(2)  # columns of the table of slots


class PointEstimate(NamedTuple):
    """theta at some moment, and the names that held slots then."""

    theta: Floats
    at: int = -1  # coordinate of a new item; -1: contexts name no items
    held: Floats | None = None  # (slots,)

    def of(self, x: Floats) -> Floats:
        """Return theta as it counts for a row that may name an item: x'of(x) is its value."""
        if self.held is None:
            return self.theta
        theta, first = self.theta.copy(), self.at + 1
        slot = np.flatnonzero(self.held == x[first])
        if is_name(x[first : first + 1])[0]:
            theta[first] = 0.0
            theta[self.at] = self.theta[first + slot[0]] if slot.size else 0.0
        return theta

    def values(self, X: Floats) -> Floats:
        """Return x'theta of rows X (N, d)."""
        if self.held is not None:
            X = placed(X, self.at, self.held)
        return np.asarray(X @ self.theta)


def placed(X: Floats, at: int, held: Floats) -> Floats:
    """Rows X (N, d) with names in the slots that they hold. What is placed already stays."""
    X, names = X.copy(), X[:, at + 1]
    named = is_name(names)
    X[named, at + 1] = 0.0
    row, slot = np.nonzero(named[:, None] & (names[:, None] == held))
    X[row, at + 1 + slot] = X[row, at]
    X[row, at] = 0.0
    return X


class ItemSlots:
    """The slots of one learner, in its row."""

    def __init__(self, policy: RowPolicy, row: Floats) -> None:
        assert policy.problem.items is not None
        self.at, slots = policy.problem.items
        self._policy, self._row = policy, row[: policy.kernel_size]
        self._memory = policy.view(row[None])
        self._table = row[policy.kernel_size :].reshape(slots, 2)

    @property
    def held(self) -> Floats:
        """The names that hold slots."""
        return self._table[:, NAME]

    def placed(self, X: Floats) -> Floats:
        """Rows X (N, d) with names in their slots."""
        return placed(X, self.at, self.held)

    def take(self, x: Floats) -> Floats:
        """Return the row x (d,) with its name in a slot, a new one if it holds none."""
        name = x[self.at + 1 : self.at + 2]
        if not is_name(name)[0]:
            return x
        slot = np.flatnonzero(self.held == name)
        j = int(slot[0]) if slot.size else self._free(float(name[0]))
        self._table[j, WHEN] = self._memory.t[0] + 1.0
        return self.placed(x[None])[0]

    def _free(self, name: float) -> int:
        """Give a name the slot that has not been trained for the longest time."""
        j = int(np.argmin(self._table[:, WHEN]))
        if self._table[j, WHEN] > 0.0:
            self._forget(self.at + 1 + j)
        self._table[j, NAME] = name
        return j

    def _forget(self, c: int) -> None:
        """Coordinate c goes back to the prior."""
        memory, q = self._memory, self._policy.recipe
        if not isinstance(memory, AutoMemory):
            _marginalise(memory.H, np.array([q[LAM]]), c)
            memory.theta[0, c] = 0.0
            return
        n, kept = int(q[K]), memory.kept[0]
        lam = q[GRID + n : GRID + 2 * n] / kept
        _marginalise(memory.Hs[0], lam, c)
        P = memory.Ps[0]
        P[:, c, :] = P[:, :, c] = 0.0
        P[:, c, c] = 1.0 / lam
        memory.thetas[0, :, c] = 0.0
        self._policy.engine.age(q, self._row, 0.0)  # pools the learners again


def _marginalise(H: Floats, lam: Floats, c: int) -> None:
    """Curvatures H (n, d, d) without coordinate c, which gets lam (n,): a Schur complement."""
    h = H[:, :, c].copy()
    H -= h[:, :, None] * h[:, None, :] / h[:, c, None, None]
    H[:, c, :] = H[:, :, c] = 0.0
    H[:, c, c] = lam
