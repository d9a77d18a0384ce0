"""The doors from Python to the kernels: loaded when first used, for declared types only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, types

from driftbandit.core import auto, domd, row_batch
from driftbandit.core.compiled import COMPILED, atomic, inlined, ready
from driftbandit.core.custom_family import Function
from driftbandit.core.high_dim import HIGH_DIM, LOOPS_BELOW
from driftbandit.core.layout import Flag, Floats, Ints
from driftbandit.core.threads import parts_of, single, spread
from driftbandit.core.views import view

# Arrays that Python may write to, also where kernels only read: another match is slower to find.
VECTOR, MATRIX, SETS = float64[::1], float64[:, ::1], float64[:, :, ::1]
PLACES, PLACE_TABLE = int64[::1], int64[:, ::1]
MANY = 10_000  # arms from which on a sharper bound pays


def _table(table: Any) -> Any:
    return MATRIX if table.dtype == np.float64 else types.float32[:, ::1]


def _flag(value: Flag) -> Any:
    return types.none if value is None else int64


def _door(function: Any) -> Any:
    """The kernel once more, for Python: `ready` closes it to other types, which must not keep
    other kernels from calling it as they like."""
    return atomic(_plain(function))


def _plain(function: Any) -> Any:
    return getattr(function, "py_func", function)


slate, learn, learn_mixed = _door(domd.rank), _door(domd.learn), _door(auto.learn)
afford = _door(domd.afford)
rank = inlined(_plain(domd.rank))


def _typed(function: Any) -> Any:
    """`learn` without numba, which would look at types before anything has changed."""

    def call(q: Floats, row: Floats, x: Any, r: Any, steps: float, high_dim: Flag) -> Any:
        if x.ndim != 1 or np.ndim(r) or not isinstance(r, (int, float, np.number, np.bool_)):
            raise TypeError("no vector and number")
        return function(q, row, x, r, steps, high_dim)

    return call


@atomic
def choose(q: Floats, row: Floats, arms: Floats) -> int:
    """`slate` for the most frequent call: each argument takes numba 20 to 40 ns to look at."""
    if len(arms) >= MANY:
        return -1
    return rank(q, row, arms, view(arms, 0, (0,)), np.empty(1, np.int64), None)


class RowEngine:
    """The kernels for learners of d dimensions; `mixed` rows are AutoDOMD's, and `custom` is a
    family that kernels call, which may fail."""

    def __init__(self, d: int, mixed: bool, custom: Function | None) -> None:
        self.d, self.mixed, self.custom = d, mixed, custom
        self.high_dim = None if d < LOOPS_BELOW else HIGH_DIM
        self._loaded: set[Any] = set()  # batches by kernel and precision

    def choose(self) -> Any:
        """(recipe, row, arms) -> the arm to play; or -1 if an arm is no context, or if they are
        `MANY`, for which the caller may have a sharper floor."""
        if not self.mixed and self.high_dim is None:
            ready(choose, VECTOR, VECTOR, MATRIX)
            return choose
        rank, high_dim = self.slate(), self.high_dim
        noise, best = np.empty(0), np.empty(1, np.int64)
        return lambda q, row, arms: (
            rank(q, row, arms, noise, best, high_dim) if len(arms) < MANY else -1
        )

    def slate(self) -> Any:
        """(recipe, row, arms, noise, best, high_dim) -> the best arm, or -1; `best` is filled."""
        ready(slate, VECTOR, VECTOR, MATRIX, VECTOR, PLACES, _flag(self.high_dim))
        return single(slate, self.d)

    def afford(self) -> Any:
        """(recipe, row, arms, penalty, optimism, high_dim) -> the arm to play at these penalties,
        or -1."""
        ready(afford, VECTOR, VECTOR, MATRIX, VECTOR, float64, _flag(self.high_dim))
        return single(afford, self.d)

    def learn(self) -> Any:
        """(recipe, row, x, r, steps, high_dim) -> whether x is a context and r a reward: then it is
        learnt."""
        found = learn_mixed if self.mixed else learn
        ready(found, VECTOR, VECTOR, VECTOR, float64, float64, _flag(self.high_dim))
        found = single(found if COMPILED else _typed(found), self.d)
        return found if self.custom is None else self.custom.guarded(found)

    def _kinds(self, table: Any, learning: bool) -> tuple[Flag, ...]:
        """The flags single, double, and mixed where it is about learning."""
        single, mixed = table.dtype == np.float32, self.mixed and learning
        flags = single, not single and not mixed, mixed
        return tuple(HIGH_DIM if flag else None for flag in flags[: 2 + learning])

    def rank_rows(
        self, q: Floats, table: Any, which: Ints, arms: Floats, noise: Floats, best: Ints
    ) -> int:
        """`row_batch.rank_rows` on all cores: best (B, k) for the learners `which` (B,) of arms
        (B, N, d) or (1, N, d); returns the first b at which an arm is no context, or -1."""
        flags = *self._kinds(table, False), self.high_dim
        if (row_batch.rank_rows, table.dtype) not in self._loaded:
            kinds = VECTOR, _table(table), PLACES, SETS, MATRIX, PLACE_TABLE
            ready(row_batch.rank_rows, *kinds, *map(_flag, flags))
            self._loaded.add((row_batch.rank_rows, table.dtype))
        parts, rank = parts_of(len(which)), single(row_batch.rank_rows, self.d)
        if parts == 1:
            return int(rank(q, table, which, arms, noise, best, *flags))
        ends, bad = np.linspace(0, len(which), parts + 1).astype(int), np.full(parts, -1)

        def work(part: int) -> None:
            span = slice(ends[part], ends[part + 1])
            X = arms if len(arms) == 1 else arms[span]
            found = row_batch.rank_rows(q, table, which[span], X, noise[span], best[span], *flags)
            bad[part] = found + ends[part] if found >= 0 else -1

        single(spread, self.d)(work, parts)
        return int(bad[np.argmax(bad >= 0)])

    def learn_rows(
        self, q: Floats, table: Any, which: Ints, x: Floats, r: Floats, steps: Floats
    ) -> None:
        """Teach the learners `which` (B,), on all cores; contexts and rewards are clean."""
        flags = *self._kinds(table, True), self.high_dim
        if (row_batch.learn_rows, table.dtype) not in self._loaded:
            kinds = VECTOR, _table(table), PLACES, MATRIX, VECTOR, VECTOR, int64, int64
            ready(row_batch.learn_rows, *kinds, *map(_flag, flags))
            self._loaded.add((row_batch.learn_rows, table.dtype))
        parts = parts_of(len(which))

        def work(part: int) -> None:
            row_batch.learn_rows(q, table, which, x, r, steps, part, parts, *flags)

        shared = single(spread, self.d)
        if self.custom is None:
            shared(work, parts)
        else:
            self.custom.guard(table, which, lambda: shared(work, parts))

    def age(self, q: Floats, row: Floats, steps: float) -> None:
        """Age one row by so many rounds without data."""
        kernel_ = auto.age if self.mixed else domd.age_row
        ready(kernel_, VECTOR, VECTOR, float64)
        kernel_(q, row, steps)

    def warm(self, fresh: Floats, q: Floats) -> None:
        """Load or compile everything that a learner of these dimensions can ask for."""
        for door in (self.choose, self.slate, self.afford, self.learn):
            door()
        none, x, best = np.empty(0, np.int64), np.zeros((0, self.d)), np.empty((0, 1), np.int64)
        for dtype in (np.float64,) if self.mixed else (np.float64, np.float32):
            table = fresh[None].astype(dtype)
            self.rank_rows(q, table, none, np.zeros((1, 1, self.d)), x, best)
            self.learn_rows(q, table, none, x, np.zeros(0), np.zeros(0))
        self.age(q, fresh.copy(), 1.0)
