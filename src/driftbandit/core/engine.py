"""The doors from Python to the kernels: loaded when first used, for declared types only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, types

from driftbandit.core import auto, domd, rows
from driftbandit.core.compiled import COMPILED, atomic, inlined, ready
from driftbandit.core.large import LARGE, LOOPS_BELOW
from driftbandit.core.layout import Flag, Floats, Ints
from driftbandit.core.own import Function
from driftbandit.core.threads import parts_of, single, spread
from driftbandit.core.windows import window

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
upper = _door(domd.upper)
rank = inlined(_plain(domd.rank))


def _typed(function: Any) -> Any:
    """`learn` without numba, which would look at types before anything has changed."""

    def call(q: Floats, row: Floats, x: Any, r: Any, steps: float, large: Flag) -> Any:
        if x.ndim != 1 or np.ndim(r) or not isinstance(r, (int, float, np.number, np.bool_)):
            raise TypeError("no vector and number")
        return function(q, row, x, r, steps, large)

    return call


@atomic
def choose(q: Floats, row: Floats, arms: Floats) -> int:
    """`slate` for the most frequent call: each argument takes numba 20 to 40 ns to look at."""
    if len(arms) >= MANY:
        return -1
    return rank(q, row, arms, window(arms, 0, (0,)), np.empty(1, np.int64), None)


class RowEngine:
    """The kernels for learners of d dimensions; `mixed` rows are AutoDOMD's, and `own` is a family
    that kernels call, which may fail."""

    def __init__(self, d: int, mixed: bool, own: Function | None) -> None:
        self.d, self.mixed, self.own = d, mixed, own
        self.large = None if d < LOOPS_BELOW else LARGE
        self._loaded: set[Any] = set()  # batches by kernel and precision

    def choose(self) -> Any:
        """(recipe, row, arms) -> the arm to play; or -1 if an arm is no context, or if they are
        `MANY`, for which the caller may have a sharper floor."""
        if not self.mixed and self.large is None:
            ready(choose, VECTOR, VECTOR, MATRIX)
            return choose
        rank, large, noise, best = self.slate(), self.large, np.empty(0), np.empty(1, np.int64)
        return lambda q, row, arms: (
            rank(q, row, arms, noise, best, large) if len(arms) < MANY else -1
        )

    def slate(self) -> Any:
        """(recipe, row, arms, noise, best, large) -> the best arm, or -1, after filling `best`."""
        ready(slate, VECTOR, VECTOR, MATRIX, VECTOR, PLACES, _flag(self.large))
        return single(slate, self.d)

    def upper(self) -> Any:
        """(recipe, row, arms, value, large) -> -1 if an arm is no context, after filling `value`
        with the upper bounds that `slate` compares."""
        ready(upper, VECTOR, VECTOR, MATRIX, VECTOR, _flag(self.large))
        return upper

    def learn(self) -> Any:
        """(recipe, row, x, r, steps, large) -> whether x is a context and r a reward: then it is
        learnt."""
        found = learn_mixed if self.mixed else learn
        ready(found, VECTOR, VECTOR, VECTOR, float64, float64, _flag(self.large))
        found = single(found if COMPILED else _typed(found), self.d)
        return found if self.own is None else self.own.guarded(found)

    def _kinds(self, table: Any, learning: bool) -> tuple[Flag, ...]:
        """The flags single, double, and mixed where it is about learning."""
        single, mixed = table.dtype == np.float32, self.mixed and learning
        flags = single, not single and not mixed, mixed
        return tuple(LARGE if flag else None for flag in flags[: 2 + learning])

    def rank_rows(
        self, q: Floats, table: Any, which: Ints, arms: Floats, noise: Floats, best: Ints
    ) -> int:
        """`rows.rank_rows` on all cores: best (B, k) for the learners `which` (B,) of arms
        (B, N, d) or (1, N, d); returns the first b at which an arm is no context, or -1."""
        flags = *self._kinds(table, False), self.large
        if (rows.rank_rows, table.dtype) not in self._loaded:
            kinds = VECTOR, _table(table), PLACES, SETS, MATRIX, PLACE_TABLE
            ready(rows.rank_rows, *kinds, *map(_flag, flags))
            self._loaded.add((rows.rank_rows, table.dtype))
        parts, rank = parts_of(len(which)), single(rows.rank_rows, self.d)
        if parts == 1:
            return int(rank(q, table, which, arms, noise, best, *flags))
        ends, bad = np.linspace(0, len(which), parts + 1).astype(int), np.full(parts, -1)

        def work(part: int) -> None:
            span = slice(ends[part], ends[part + 1])
            X = arms if len(arms) == 1 else arms[span]
            found = rows.rank_rows(q, table, which[span], X, noise[span], best[span], *flags)
            bad[part] = found + ends[part] if found >= 0 else -1

        single(spread, self.d)(work, parts)
        return int(bad[np.argmax(bad >= 0)])

    def learn_rows(
        self, q: Floats, table: Any, which: Ints, x: Floats, r: Floats, steps: Floats
    ) -> None:
        """Teach the learners `which` (B,), on all cores; contexts and rewards are clean."""
        flags = *self._kinds(table, True), self.large
        if (rows.learn_rows, table.dtype) not in self._loaded:
            kinds = VECTOR, _table(table), PLACES, MATRIX, VECTOR, VECTOR, int64, int64
            ready(rows.learn_rows, *kinds, *map(_flag, flags))
            self._loaded.add((rows.learn_rows, table.dtype))
        parts = parts_of(len(which))

        def work(part: int) -> None:
            rows.learn_rows(q, table, which, x, r, steps, part, parts, *flags)

        shared = single(spread, self.d)
        if self.own is None:
            shared(work, parts)
        else:
            self.own.guard(table, which, lambda: shared(work, parts))

    def age(self, q: Floats, row: Floats, steps: float) -> None:
        """Age one row by so many rounds without data."""
        kernel_ = auto.age if self.mixed else domd.age_row
        ready(kernel_, VECTOR, VECTOR, float64)
        kernel_(q, row, steps)

    def warm(self, fresh: Floats, q: Floats) -> None:
        """Load or compile everything that a learner of these dimensions can ask for."""
        for door in (self.choose, self.slate, self.upper, self.learn):
            door()
        none, x, best = np.empty(0, np.int64), np.zeros((0, self.d)), np.empty((0, 1), np.int64)
        for dtype in (np.float64,) if self.mixed else (np.float64, np.float32):
            table = fresh[None].astype(dtype)
            self.rank_rows(q, table, none, np.zeros((1, 1, self.d)), x, best)
            self.learn_rows(q, table, none, x, np.zeros(0), np.zeros(0))
        self.age(q, fresh.copy(), 1.0)
