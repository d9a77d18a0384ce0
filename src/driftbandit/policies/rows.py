"""Policies whose learner is one row, behind the protocol of `Policy`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.core.custom_family import function_of
from driftbandit.core.engine import RowEngine
from driftbandit.core.layout import AutoMemory, Fields, Memory, packed, size, views
from driftbandit.policies.base import Floats, Ints, Policy


class Rows(Memory):
    """DOMD's memory, whose arrays are views of `rows`.

    A memory that was copied, pickled or put together otherwise has no rows, and is packed anew.
    """

    rows: Floats

    def __reduce__(self) -> Any:
        return Memory, tuple(self)


class AutoRows(AutoMemory):
    """The same for AutoDOMD."""

    rows: Floats

    def __reduce__(self) -> Any:
        return AutoMemory, tuple(self)


@dataclass(frozen=True, kw_only=True)
class RowPolicy(Policy):
    """Base of DOMD and AutoDOMD: kernels do the work.

    A subclass says what a row holds (`fields`), how it begins (`fresh`), and what kernels are to
    know of the recipe (`recipe`).
    """

    memory_type: ClassVar[type[Any]] = Rows
    takes_items: ClassVar[bool] = True

    @property
    def recipe(self) -> Floats:
        """The recipe as an array."""
        raise NotImplementedError

    @property
    def fresh(self) -> Floats:
        """The row of a learner that has seen nothing."""
        raise NotImplementedError

    @property
    def fields(self) -> Fields:
        raise NotImplementedError

    @property
    def least_bytes(self) -> int:
        return 4 * self.row_size  # in single precision

    @cached_property
    def kernel_size(self) -> int:
        """Numbers of a row that kernels know: all but the names of items."""
        return size(self.fields)

    @cached_property
    def row_size(self) -> int:
        """Numbers in a row."""
        return self.kernel_size + (2 * self.problem.items[1] if self.problem.items else 0)

    def _with_names(self, row: Floats) -> Floats:
        """A row that begins, with the slots for names of items, if there are any."""
        return np.concatenate([row, np.zeros(self.row_size - row.size)])

    @cached_property
    def engine(self) -> RowEngine:
        own = function_of(self.problem.family)
        return RowEngine(self.problem.dim, self.memory_type is AutoRows, own)

    def warm(self) -> None:
        """Load or compile everything that learners of this kind can ask for, for images and
        services that must not wait later."""
        self.engine.warm(self.fresh, self.recipe)

    def init(self, n: int = 1) -> Any:
        """n learners that have seen nothing."""
        return self.view(np.tile(self.fresh, (n, 1)))

    def view(self, rows: Floats) -> Any:
        """The memory that lies in these rows."""
        memory: Any = self.memory_type(**views(rows, self.fields))
        memory.rows = rows
        return memory

    def rows(self, memory: Any) -> Floats:
        """The rows that a memory is a view of, or new ones with what it holds."""
        rows: Floats | None = getattr(memory, "rows", None)
        if rows is not None and type(memory) is self.memory_type:
            own = memory.theta.shape[1], rows.shape[1]
            if own == (self.problem.dim, self.row_size) and rows.flags.writeable:
                return rows
        self._refuse_items("a memory that was put together")
        if getattr(memory, "_fields", None) != tuple(self.fields):
            raise ValueError(f"the memory is none of {self.name}'s: pass what init returned")
        n = len(memory.t)
        for (name, shape), array in zip(self.fields.items(), memory):
            if np.shape(array) != (n, *shape):
                raise ValueError(
                    f"the memory's {name} has shape {np.shape(array)}, expected {(n, *shape)}: "
                    "pass what init or update returned"
                )
        return packed(memory._asdict(), self.fields, n)

    def _refuse_items(self, what: str) -> None:
        if self.problem.items is not None:
            raise ValueError(f"{what} knows no items: use a Bandit or a Loop")

    def from_rows(self, rows: Any) -> Any:
        return self.view(np.array(rows, dtype=np.float64, order="C"))

    def _count(self, memory: Any, write: bool = False) -> int:
        return len(self.rows(memory))

    def choose(self, memory: Any, arms: Floats, noise: Floats | None = None) -> Ints:
        return self.best(memory, arms, 1, noise)[:, 0]

    def best(self, memory: Any, arms: Floats, k: int, noise: Floats | None = None) -> Ints:
        arms, rows = self._arms(memory, arms), self.rows(memory)
        k = validate.count("k", k, "arms to choose")
        if k > arms.shape[1]:
            raise ValueError(f"k must be at most the number of arms, {arms.shape[1]}, got {k}")
        return self._ranked(rows, np.arange(len(rows)), arms, k, noise)

    def _ranked(self, rows: Any, which: Ints, arms: Floats, k: int, noise: Floats | None) -> Ints:
        self._refuse_items("a batch of learners")
        given = np.empty((len(which), 0)) if noise is None else noise
        draws = np.require(given, np.float64, ["C", "W"])
        if draws.shape != (len(which), self.noise_size):
            raise ValueError(
                f"{self.name} draws from noise: pass standard normals of shape "
                f"({len(which)}, {self.noise_size}), got {draws.shape}"
            )
        best = np.empty((len(which), k), dtype=np.int64)
        bad = self.engine.rank_rows(self.recipe, rows, which, arms, draws, best)
        if bad >= 0:
            self.problem.check_contexts(arms[0 if len(arms) == 1 else bad])
        return best

    def update(self, memory: Any, x: Floats, r: Floats, noise: Floats | None = None) -> Any:
        x, r = self._played(memory, x, r)
        rows, family = self.rows(memory), self.problem.family
        self.problem.check_contexts(x)
        if not family.contains(r).all():
            raise ValueError(f"rewards must each be {family.support} for {family!r}, got {r}")
        self.update_rows(rows, np.arange(len(rows)), x, r)
        return memory if rows is getattr(memory, "rows", None) else self.view(rows)

    def best_rows(
        self, rows: Any, which: Ints, arms: Floats, k: int, noise: Floats | None = None
    ) -> Ints:
        return self._ranked(rows, which, arms, k, noise)

    def update_rows(
        self, rows: Any, which: Ints, x: Floats, r: Floats, noise: Floats | None = None
    ) -> None:
        self._refuse_items("a batch of learners")
        self.engine.learn_rows(self.recipe, rows, which, x, r, np.ones(len(r)))

    def forget(self, memory: Any, steps: float) -> Any:
        rows = self.rows(memory)
        for row in rows:
            self.engine.age(self.recipe, row, float(steps))
        return self.view(rows)
