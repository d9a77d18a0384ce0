"""MASTER: a base policy run at many time scales at once, with tests that restart it all.

Wei and Luo 2021. A block of 2^n rounds starts instances of the base at random: at each multiple of
2^m rounds one of order m, which lives 2^m rounds, with probability 2^-((n-m)/2). The youngest scale
that is alive decides and learns; the others sleep. Plain Python: the base does the work.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Ints, Policy, Scores
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe
from driftbandit.theory import rivals

COINS = 40  # orders that can have a coin: 2^40 rounds are enough
OWN = ("order", "tau", "start", "gain", "low", "gap", "restarts", "t")


@lru_cache
def _memory_type(fields: tuple[str, ...]) -> Any:
    """MASTER's own arrays, then those of the base with an axis of orders after the first.

    order (n,)     n of the current block of 2^n rounds
    tau   (n,)     rounds played in it
    start (n, K)   tau at which the living instance of each order began, -1 if there is none
    gain  (n, K)   rewards received since then, whoever decided
    low   (n,)     smallest optimistic value in the block
    gap   (n,)     sum of optimistic values less rewards in the block
    """
    return namedtuple("Scales", [*OWN, *(f"base_{name}" for name in fields)])


def _kind(name: str) -> Any:
    """The class of a base by its name."""
    kind = Recipe.kinds(name).get(name)
    if kind is None or not issubclass(kind, Policy):
        raise ValueError(
            f"base must be a policy or the name of one, such as 'GLMUCB', got {name!r}"
        )
    return kind


def tuned_base(
    problem: Problem, base: Any, passed: dict[str, Any], own: dict[str, Any] | None = None
) -> Any:
    """The base of a wrapper: a policy as it is, or the class of that name tuned by theory with what
    was `passed` for it, and before that with the wrapper's `own` wishes."""
    if isinstance(base, str):
        return _kind(base).from_theory(problem, **((own or {}) | passed))
    if passed:
        raise ValueError(f"{', '.join(passed)}: set this in the base that you pass")
    return base


def check_base(base: Any, problem: Problem) -> None:
    """Raise ValueError unless the base of a wrapper can play for it."""
    if not isinstance(base, Policy) or base.problem != problem:
        raise ValueError("base must be a policy for the same problem, such as GLMUCB")


@dataclass(frozen=True, kw_only=True)
class MASTER(Policy):
    """MASTER over any base policy; GLM-UCB unless another is given.

    `first_order` is the n of the first block after a start. Its paper has 0, which restarts all
    the time at practical horizons; the comparisons here use 12. `threshold` multiplies both
    tests' published thresholds, which no gap can meet at practical horizons.
    `from_theory` gives GLM-UCB the radius of MASTER's own paper, 2 beta; `reading="restart"` gives
    it RestartGLB's, which is much smaller at the sizes of the comparison.
    """

    base: Policy
    delta: float = 0.01
    first_order: int = 12
    threshold: float = 1.0

    # from_theory gives these to the base
    also_takes: ClassVar[tuple[str, ...]] = ("scale", "regularization", "reading")

    @classmethod
    def _check_problem(cls, problem: Any) -> None:
        """Also that the radius is known: the tests' thresholds contain S."""
        super()._check_problem(problem)
        problem.known("radius", cls.__name__)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_base(self.base, self.problem)
        meaning, order = "level of the tests", self.first_order
        self._set(
            delta=validate.interval("delta", self.delta, meaning, low=0.0, high=1.0),
            first_order=validate.count("first_order", order, "n of the first block", least=0),
            threshold=validate.positive("threshold", self.threshold, "factor on both tests"),
        )
        if self.first_order >= COINS:
            raise ValueError(f"first_order must be below {COINS}, got {self.first_order}")
        self.problem.known("horizon", self.name)

    @classmethod
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """Over GLM-UCB tuned by theory, or over another base: a policy, or the name of a class that
        theory then tunes, such as "GLBOMD". Keywords that the base knows go to it."""
        cls._check_problem(problem)
        passed = {k: overrides.pop(k) for k in cls.also_takes if k in overrides}
        base = overrides.pop("base", "GLMUCB")
        own = {k: v for k, v in overrides.items() if k == "delta"}
        own |= {"reading": "master"} if base == "GLMUCB" else {}
        return cls(problem=problem, base=tuned_base(problem, base, passed, own), **overrides)

    @property
    def name(self) -> str:
        return f"MASTER + {self.base.name}"

    @property
    def noise_size(self) -> int:
        return COINS + self.base.noise_size

    @property
    def growing(self) -> dict[str, tuple[int, ...]]:
        own = {"start": (1,), "gain": (1,)}
        inner = self.base.growing
        names = self._learner_type._fields
        return own | {f"base_{f}": (1, *(axis + 1 for axis in inner.get(f, ()))) for f in names}

    def init(self, n: int = 1) -> Any:
        K, fresh = self.first_order + 1, self.base.init(1)
        stacked = [np.tile(a[None], (n, K, *([1] * (a.ndim - 1)))) for a in fresh]
        return _memory_type(fresh._fields)(
            np.full(n, self.first_order, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.full((n, K), -1, dtype=np.int64),
            np.zeros((n, K)),
            np.full(n, 1.0),
            np.zeros(n),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            *stacked,
        )

    @cached_property
    def _learner_type(self) -> Any:
        return type(self.base.init(1))

    def _plan(self, memory: Any, i: int, coins: Floats | None) -> tuple[Ints, list[int], int]:
        """Starts of the instances alive in the coming round, the new ones, and who decides."""
        n, tau, new = int(memory.order[i]), int(memory.tau[i]), []
        start = memory.start[i].copy()
        for m in range(n + 1):
            if tau % 2**m:
                break  # nor is it a multiple of any larger power of two
            lucky = m == n or (coins is not None and _share_below(coins[m]) < 2.0 ** (-(n - m) / 2))
            start[m] = tau if lucky else -1
            new += [m] if lucky else []
        return start, new, int(np.argmax(start >= 0))

    def _instance(self, memory: Any, i: int, m: int, new: list[int]) -> Any:
        """The base memory of one instance, as views; a fresh one if it is only now created."""
        if m in new:
            return self.base.init(1)
        return self._learner_type(*(array[i, m : m + 1] for array in memory[len(OWN) :]))

    def scores(self, memory: Any, arms: Floats) -> Scores:
        """Those of the instance that decides unless a coin of the coming round creates another."""
        rows = []
        for i in range(len(memory.t)):
            _, new, m = self._plan(memory, i, None)
            rows.append(self.base.scores(self._instance(memory, i, m, new), arms[i : i + 1]))
        return Scores(*(np.concatenate(column) for column in zip(*rows)))

    def choose(self, memory: Any, arms: Floats, noise: Floats | None = None) -> Ints:
        if noise is None:
            raise ValueError(f"MASTER tosses coins: pass standard normals (n, {self.noise_size})")
        arms, out = self._arms(memory, arms), np.empty(len(memory.t), dtype=np.int64)
        for i in range(len(out)):
            _, new, m = self._plan(memory, i, noise[i])
            learner = self._instance(memory, i, m, new)
            out[i] = self.base.choose(learner, arms[i : i + 1], noise[i : i + 1, COINS:])[0]
        return out

    def update(self, memory: Any, x: Floats, r: Floats, noise: Floats | None = None) -> Any:
        if noise is None:
            raise ValueError("MASTER needs the noise of the decision again: pass it to update")
        x, r = self._played(memory, x, r)
        for i in range(len(memory.t)):
            memory = self._learn(memory, i, x[i : i + 1], r[i : i + 1], noise[i : i + 1])
        return memory

    def _learn(self, memory: Any, i: int, x: Floats, r: Floats, noise: Floats) -> Any:
        memory = self._room(memory, int(memory.tau[i]) + 1)
        start, new, m = self._plan(memory, i, noise[0])
        for k in new:
            memory = self._put(memory, i, k, self.base.init(1))
            memory.gain[i, k] = 0.0
        memory.start[i] = start
        learner = self._instance(memory, i, m, [])
        reward, value = self._share(r[0]), self._optimism(learner, x)
        memory = self._put(memory, i, m, self.base.update(learner, x, r, noise[:, COINS:]))
        memory.gain[i, start >= 0] += reward
        memory.low[i] = min(memory.low[i], value)
        memory.gap[i] += value - reward
        memory.tau[i] += 1
        memory.t[i] += 1
        if self._alarm(memory, i):
            memory.restarts[i] += 1
            return self._block(memory, i, self.first_order)
        if memory.tau[i] == 2 ** memory.order[i]:
            return self._block(memory, i, int(memory.order[i]) + 1)
        return memory

    def _optimism(self, learner: Any, x: Floats) -> float:
        """The optimistic value of the arm played, the largest of all, as a share of the range."""
        upper = self.base.scores(learner, x[None]).upper[0, 0]
        value = upper if self.base.on_reward_scale else self.problem.family.mu(upper)
        return min(1.0, max(0.0, self._share(value)))

    def _share(self, reward: float) -> float:
        """A reward as a share of the range."""
        family = self.problem.family
        return float((reward - family.low) / family.range)

    def _alarm(self, memory: Any, i: int) -> bool:
        """Test 1 for every instance that ends now, test 2 for the block so far."""
        tau, start = int(memory.tau[i]), memory.start[i]
        for m in range(int(memory.order[i]) + 1):
            if tau % 2**m:
                break
            if start[m] >= 0 and memory.gain[i, m] / 2**m >= memory.low[i] + 9.0 * self._rhohat(
                2.0**m
            ):
                return True
        return bool(memory.gap[i] / tau >= 3.0 * self._rhohat(tau))

    def _rhohat(self, length: float) -> float:
        return self._rhohat_of_one / math.sqrt(length)

    @cached_property
    def _rhohat_of_one(self) -> float:
        T = self.problem.known("horizon", self.name)
        lam = float(getattr(self.base, "regularization", self.problem.dim))
        rhohat = rivals.master_threshold(self.problem, lam=lam, delta=self.delta, horizon=T)
        return self.threshold * rhohat

    def _block(self, memory: Any, i: int, order: int) -> Any:
        """Begin a block of 2^order rounds with no instance alive."""
        K = memory.start.shape[1]
        if order >= K:
            grown = {
                name: np.concatenate([array, array[:, -1:]], axis=1)
                for name, array in memory._asdict().items()
                if name in ("start", "gain") or name not in OWN
            }
            memory = memory._replace(**grown)
        memory.order[i], memory.tau[i] = order, 0
        memory.start[i], memory.gain[i] = -1, 0.0
        memory.low[i], memory.gap[i] = 1.0, 0.0
        return memory

    def _put(self, memory: Any, i: int, m: int, learner: Any) -> Any:
        """Write one instance back, unless it learnt in place."""
        for name, array in zip(learner._fields, learner):
            stack = getattr(memory, f"base_{name}")
            if not np.may_share_memory(array, stack):
                stack[(i, m, *(slice(n) for n in array.shape[1:]))] = array[0]
        return memory

    def _room(self, memory: Any, rounds: int) -> Any:
        """Room for as many rounds as the longest instance can have seen, doubled when it is short:
        a matter of time alone, not of company."""
        for name, axes in self.base.growing.items():
            stack = getattr(memory, f"base_{name}")
            shape = [
                2 * n if k - 1 in axes and n < rounds else n for k, n in enumerate(stack.shape)
            ]
            if shape != list(stack.shape):
                memory = memory._replace(**{f"base_{name}": widened(stack, shape)})
        return memory


def _share_below(z: float) -> float:
    """Normal distribution function: a normal number as a coin."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def widened(array: Any, shape: Sequence[int]) -> Any:
    """The array in the first corner of a larger one that holds zeros."""
    wide = np.zeros(shape, dtype=array.dtype)
    wide[tuple(slice(n) for n in array.shape)] = array
    return wide
