"""The protocol of a policy: a recipe that reads and writes a memory it does not hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.problem import Problem
from driftbandit.recipe import Recipe
from driftbandit.validate import show

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Scores(NamedTuple):
    """What a policy thinks of every arm; it plays the first arm with the largest `upper`."""

    mean: Floats
    bonus: Floats
    upper: Floats


class Single(NamedTuple):
    """One learner as `Bandit` holds it; each function is atomic, threads may call it at once.

    `choose` and `update` may be asked anything, and look for themselves: arrays of another kind or
    shape, contexts that are not finite or too long and impossible rewards are declined, and change
    nothing.
    """

    memory: Any
    choose: Callable[[Any], int]  # arms (N, d) -> the arm, or -1
    update: Callable[[Any, Any], bool]  # x (d,) and its reward -> whether it was learnt
    best: Callable[[Floats, Floats, int], Ints]  # clean arms, their norms, k -> the k best
    forget: Callable[[float], None]  # age the memory by so many rounds
    copy: Callable[[], Any]  # the memory as it is now


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
    also_takes: ClassVar[tuple[str, ...]] = ()  # options that are no fields

    def __post_init__(self) -> None:
        if type(self) is Policy:
            raise ValueError("Policy is the base of policies: use one of them, such as DOMD")
        self._check_problem(self.problem)

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
        raise NotImplementedError

    def scores(self, memory: Any, arms: Floats) -> Scores:
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
        raise NotImplementedError

    def single(self, memory: Any, limit: float) -> Single | None:
        """A copy of the memory of one learner with compiled short cuts, where there are any.

        `limit` is the largest norm of a context.
        """
        return None

    @property
    def growing(self) -> dict[str, tuple[int, ...]]:
        """Arrays of the memory that grow with time, and along which axes."""
        return {}

    def sane(self, memory: Any) -> bool:
        """Whether a memory could have come from this policy; guards what is read from files."""
        return all(bool(np.isfinite(a).all()) for a in memory) and bool((memory.t >= 0).all())

    def deviation(self, memory: Any, arms: Floats) -> Floats | None:
        """Standard deviation of x'theta for every arm, (n, N), where the policy has an estimate of
        it; None where its metric is a design matrix and says nothing of the noise."""
        return None

    def _arms(self, memory: Any, arms: Floats) -> Floats:
        """arms as compiled code takes them: one (N, d) set per learner."""
        n, d = len(memory.t), self.problem.dim
        clean = np.ascontiguousarray(arms, dtype=np.float64)
        if clean.ndim != 3 or clean.shape[0] != n or clean.shape[1] < 1 or clean.shape[2] != d:
            raise ValueError(
                f"arms must have shape ({n}, N >= 1, {d}), a set per learner, got {np.shape(arms)}"
            )
        self._check_layout(memory)
        return clean

    def _played(self, memory: Any, x: Floats, r: Floats) -> tuple[Floats, Floats]:
        """x and r as compiled code takes them: a context and a reward per learner."""
        n, d = len(memory.t), self.problem.dim
        contexts = np.ascontiguousarray(x, dtype=np.float64)
        rewards = np.ascontiguousarray(r, dtype=np.float64)
        if contexts.shape != (n, d) or rewards.shape != (n,):
            raise ValueError(
                f"x and r must have shapes ({n}, {d}) and ({n},), one row per learner, got "
                f"{np.shape(x)} and {np.shape(r)}"
            )
        self._check_layout(memory)
        return contexts, rewards

    @staticmethod
    def _check_layout(memory: Any) -> None:
        for array in memory:
            if not array.flags.c_contiguous:
                raise ValueError("the memory's arrays must be contiguous: pass copies, not strides")

    def choose_rows(
        self, memory: Any, rows: Ints, arms: Floats, limit: float, noise: Floats | None = None
    ) -> Ints:
        """`choose` for these rows (B,) of a larger memory, arms (B, N, d) or (1, N, d) for all;
        -1 where a context is longer than `limit` or not finite."""
        with np.errstate(over="ignore"):
            good = (np.einsum("bad,bad->ba", arms, arms) <= limit * limit).all(axis=1)
        if not good.all():
            return np.broadcast_to(np.where(good, 0, -1), len(rows))
        arms = np.broadcast_to(arms, (len(rows), *arms.shape[1:]))
        return self.choose(taken(memory, rows), arms, noise)

    def update_rows(
        self, memory: Any, rows: Ints, x: Floats, r: Floats, noise: Floats | None = None
    ) -> None:
        """`update` for these rows (B,) of a larger memory, in order where one comes again."""
        for turn in turns(rows):
            luck = None if noise is None else noise[turn]
            part = self.update(taken(memory, rows[turn]), x[turn], r[turn], luck)
            self.put(memory, rows[turn], part)

    def put(self, memory: Any, rows: Ints, part: Any) -> None:
        """Write the memory of some learners into these rows of a larger one."""
        if any(a.dtype == np.float32 for a in memory):
            part = self.narrow(part)
        for array, new in zip(memory, part):
            array[rows] = new

    def narrow(self, memory: Any) -> Any:
        """The memory in single precision, where that is safe."""
        raise ValueError(f"{self.name} is not known to be safe in float32: use float64")

    def forget(self, memory: Any, steps: float) -> Any:
        """The memory as it would be after `steps` rounds without data."""
        raise ValueError(f"{self.name} has no way to age its memory without data")


def memory_bytes(memory: Any) -> int:
    """Bytes in the arrays of a memory."""
    return sum(a.nbytes for a in memory)


def taken(memory: Any, rows: Ints) -> Any:
    """A copy of these rows of a memory, in double precision."""
    parts = (array[rows] for array in memory)
    return type(memory)(*(a.astype(np.float64) if a.dtype == np.float32 else a for a in parts))


def turns(rows: Ints) -> list[Ints]:
    """Positions in `rows` such that none comes twice in a turn, and every row in order."""
    order = np.argsort(rows, kind="stable")
    place, first = np.arange(len(rows)), np.diff(rows[order], prepend=-1) != 0
    turn = np.empty_like(place)
    turn[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    ends = np.cumsum(np.bincount(turn))
    return np.split(np.argsort(turn, kind="stable"), ends)[:-1]
