"""The protocol of a policy: a recipe that reads and writes a memory it does not hold."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.core.layout import Fields, packed, views
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe
from driftbandit.validate import MOST, show

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Scores(NamedTuple):
    """What a policy thinks of every arm; it plays the first arm with the largest `upper`."""

    mean: Floats
    bonus: Floats
    upper: Floats


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy(Recipe):
    """Base of every policy: a frozen dataclass whose first field is the `Problem`.

    The memory is a NamedTuple of arrays with a leading axis n (replicates, users, segments).
    A policy implements

        init(n)                      -> memory of n learners that have seen nothing
        scores(memory, arms)         -> `Scores` of arms (n, N, d), each array (n, N)
        update(memory, x, r, noise)  -> memory after contexts x (n, d) gave rewards r (n,)

    `update` may write into the arrays it is given and returns the memory to go on with.
    `choose` leaves the memory untouched. Randomness is an argument: a policy that needs it says
    how many standard normal numbers a round takes (`noise_size`) and gets them as `noise`
    (n, noise_size), the same in `choose` and in `update`. Learners never see each other: row 7
    alone is row 7 in a batch.
    """

    problem: Problem

    clairvoyant: ClassVar[bool] = False
    takes_items: ClassVar[bool] = False  # whether a context may name an item
    also_takes: ClassVar[tuple[str, ...]] = ()  # options that are no fields

    def __init_subclass__(cls) -> None:
        """A custom class does not carry the name of the paper whose policy it derives from."""
        super().__init_subclass__()
        if not cls.__module__.startswith("driftbandit.") and "name" not in vars(cls):
            cls.name = property(lambda self: type(self).__name__)  # type: ignore[method-assign,assignment]

    def __post_init__(self) -> None:
        if type(self) is Policy:
            raise ValueError("Policy is the base of policies: use one of them, such as DOMD")
        self._check_problem(self.problem)
        if self.problem.items is not None and not self.takes_items:
            raise ValueError(
                f"{type(self).__name__} knows no items: use AutoDOMD or DOMD, or declare the "
                "column as a Category"
            )

    @staticmethod
    def _check_problem(problem: Any) -> None:
        if not isinstance(problem, Problem):
            raise ValueError(
                f"problem must be a Problem(dim=...), what is known, got {show(problem)}"
            )

    @classmethod
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """The policy with every tuning its paper prescribes; keywords replace single values."""
        cls._check_problem(problem)
        return cls(problem=problem, **overrides)

    @property
    def name(self) -> str:
        """How papers and figures call it."""
        return type(self).__name__

    @property
    def on_reward_scale(self) -> bool:
        """Whether scores are mean rewards; otherwise they are x'theta, before the link."""
        return False

    @property
    def noise_size(self) -> int:
        """Standard normal numbers that one decision consumes."""
        return 0

    def init(self, n: int = 1) -> Any:
        """Memory of n learners that have seen nothing."""
        raise NotImplementedError

    def scores(self, memory: Any, arms: Floats) -> Scores:
        """`Scores` of arms (n, N, d), each array (n, N)."""
        raise NotImplementedError

    def choose(self, memory: Any, arms: Floats, noise: Floats | None = None) -> Ints:
        """Index of the arm to play for each learner, (n,); ties go to the lowest index."""
        return np.asarray(np.argmax(self.scores(memory, arms).upper, axis=1))

    def best(self, memory: Any, arms: Floats, k: int, noise: Floats | None = None) -> Ints:
        """The k best arms of each learner, (n, k): its choice, its choice without that, ..."""
        n, n_arms = np.shape(arms)[:2]
        rows, left = np.arange(n), np.tile(np.arange(n_arms), (n, 1))
        out = np.empty((n, k), dtype=np.int64)
        for place in range(k):
            choice = self.choose(memory, arms[rows[:, None], left] if place else arms, noise)
            out[:, place] = left[rows, choice]
            left = left[left != out[:, place, None]].reshape(n, n_arms - place - 1)
        return out

    def update(self, memory: Any, x: Floats, r: Floats, noise: Floats | None = None) -> Any:
        """Memory after contexts x (n, d) gave rewards r (n,)."""
        raise NotImplementedError

    @property
    def growing(self) -> dict[str, tuple[int, ...]]:
        """Arrays of the memory that grow with time, and along which axes."""
        return {}

    def sane(self, memory: Any) -> bool:
        """Whether a memory could have come from this policy; guards what is read from files."""
        t = np.asarray(memory.t)
        counts = bool(((t >= 0) & (t <= MOST) & (t == np.floor(t))).all())
        return counts and all(bool(np.isfinite(a).all()) for a in memory)

    def deviation(self, memory: Any, arms: Floats) -> Floats | None:
        """Standard deviation of x'theta for every arm, (n, N), where the policy has an estimate of
        it; None where its metric is a design matrix and says nothing of the noise."""
        return None

    def _arms(self, memory: Any, arms: Floats) -> Floats:
        """arms as the algorithms take them: one (N, d) set per learner."""
        n, d = self._count(memory), self.problem.dim
        clean = np.require(arms, np.float64, ["C", "W"])
        if clean.ndim != 3 or clean.shape[0] != n or clean.shape[1] < 1 or clean.shape[2] != d:
            raise ValueError(
                f"arms must have shape ({n}, N >= 1, {d}), a set per learner, got {np.shape(arms)}"
            )
        return clean

    def _played(self, memory: Any, x: Floats, r: Floats) -> tuple[Floats, Floats]:
        """x and r as the algorithms take them: a context and a reward per learner."""
        n, d = self._count(memory, write=True), self.problem.dim
        contexts = np.require(x, np.float64, ["C", "W"])
        rewards = np.require(r, np.float64, ["C", "W"])
        if contexts.shape != (n, d) or rewards.shape != (n,):
            raise ValueError(
                f"x and r must have shapes ({n}, {d}) and ({n},), one row per learner, got "
                f"{np.shape(x)} and {np.shape(r)}"
            )
        return contexts, rewards

    @cached_property
    def like(self) -> Any:
        """The memory of one learner that has seen nothing: what others are compared with."""
        return self.init(1)

    @property
    def least_bytes(self) -> int:
        """Bytes that the memory of one learner takes at least; guards what is read from files."""
        return 8 * self.problem.dim

    def _count(self, memory: Any, write: bool = False) -> int:
        """How many learners a memory holds, if it is one of this policy; `write` if it is to be
        written to."""
        like = self.like
        if getattr(memory, "_fields", None) != like._fields:
            raise ValueError(
                f"the memory is no {type(like).__name__}, as {self.name}.init makes it"
            )
        n = len(memory.t)
        for name, given, one in zip(like._fields, memory, like):
            array = np.asanyarray(given)
            expected, free = (n, *one.shape[1:]), self.growing.get(name, ())
            if array.ndim == one.ndim:
                sizes = enumerate(zip(array.shape, expected))
                expected = tuple(found if k in free else size for k, (found, size) in sizes)
            if array.dtype != one.dtype or array.shape != expected:
                raise ValueError(
                    f"the memory's {name} is {array.dtype} {array.shape}, expected {one.dtype} "
                    f"{expected}: pass what init or update returned"
                )
            if write and not array.flags.writeable:
                raise ValueError(f"the memory's {name} is read-only: pass a copy to update")
        return n

    @property
    def fields(self) -> Fields:
        """Names and shapes of what one learner remembers; its row holds them in this order."""
        return {name: array.shape[1:] for name, array in zip(self.like._fields, self.like)}

    def rows(self, memory: Any) -> Floats:
        """A memory as rows (n, size) of float64: a fleet's, or a file's."""
        return packed(memory._asdict(), self.fields, len(memory.t))

    def from_rows(self, rows: Floats) -> Any:
        """The memory that `rows` packed."""
        parts = views(rows.astype(np.float64, copy=False), self.fields).items()
        return type(self.like)(**{k: v.astype(getattr(self.like, k).dtype) for k, v in parts})

    def best_rows(
        self, rows: Floats, which: Ints, arms: Floats, k: int, noise: Floats | None = None
    ) -> Ints:
        """`best` for some of many rows, arms (B, N, d) or (1, N, d) for all."""
        arms = np.broadcast_to(arms, (len(which), *arms.shape[1:]))
        return self.best(self.from_rows(rows[which]), arms, k, noise)

    def update_rows(
        self, rows: Floats, which: Ints, x: Floats, r: Floats, noise: Floats | None = None
    ) -> None:
        """`update` for some of many rows, in order where one comes again."""
        for turn in turns(which):
            part = None if noise is None else noise[turn]
            memory = self.update(self.from_rows(rows[which[turn]]), x[turn], r[turn], part)
            rows[which[turn]] = self.rows(memory)

    def narrow(self, rows: Floats) -> Any:
        """Rows in single precision, where that is safe."""
        raise ValueError(f"{self.name} is not known to be safe in float32: use float64")

    def forget(self, memory: Any, steps: float) -> Any:
        """The memory as it would be after `steps` rounds without data."""
        raise ValueError(f"{self.name} has no way to age its memory without data")


def memory_bytes(memory: Any) -> int:
    """Bytes in the arrays of a memory."""
    return sum(a.nbytes for a in memory)


def turns(rows: Ints) -> list[Ints]:
    """Positions in `rows` such that none comes twice in a turn, and every row in order."""
    order = np.argsort(rows, kind="stable")
    place, first = np.arange(len(rows)), np.diff(rows[order], prepend=-1) != 0
    turn = np.empty_like(place)
    turn[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    ends = np.cumsum(np.bincount(turn))
    return np.split(np.argsort(turn, kind="stable"), ends)[:-1]
