"""DAL: a policy made for a world that stands still, with a watch that starts it afresh.

Gerogiannis, Huang, Bose, Veeravalli 2025, our reading. At regular times a sweep of forced rounds
plays the arm that reaches farthest along each axis. The rewards of each axis are a stream, and a
generalized likelihood-ratio test on each stream finds changes. Then everything is forgotten.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Ints, Policy, Scores
from driftbandit.policies.master import check_base, tuned_base, widened
from driftbandit.problem import Problem
from driftbandit.theory import detection, rivals

OWN = ("sums", "counts", "tau", "restarts", "t")


@lru_cache
def _memory_type(fields: tuple[str, ...]) -> Any:
    """DAL's own arrays, then those of the base.

    sums     (n, d, room)  rewards of each stream, as shares of the range, added up
    counts   (n, d)        their number
    tau      (n,)          rounds since the last restart
    restarts (n,)
    """
    return namedtuple("Watched", [*OWN, *(f"base_{name}" for name in fields)])


def glr(sums: Floats) -> float:
    """The largest s (n - s) / n (mean of the first s - mean of the rest)^2 / (2 sigma^2), sigma =
    1/2, for n rewards in [0, 1] whose sums after 1, 2, ..., n rewards are given."""
    n, total = len(sums), sums[-1]
    s = np.arange(1.0, n)
    gap = sums[:-1] / s - (total - sums[:-1]) / (n - s)
    return float((s * (n - s) / n * gap**2).max() * 2.0)


@dataclass(frozen=True, kw_only=True)
class DAL(Policy):
    """DAL (Gerogiannis et al. 2025), our reading, over any base policy: GLB-OMD unless another is
    given, such as LinUCB.

    A stream of n rewards has changed if max over s of s (n - s) / n (mean of the first s - mean of
    the rest)^2 / (2 sigma^2) is above log(4 n^{3/2} / delta), sigma half the range. In the k-th
    episode a share min(1/2, sqrt(k d log T / T)) of the rounds is forced; the base decides and
    learns in the others only.

    `delta` is the probability of a false alarm in one stream. `reading` says which threshold the
    test has: "practical", the one above, or "theorem", which no change can meet at small horizons.
    """

    base: Policy
    delta: float
    reading: str = "practical"

    also_takes: ClassVar[tuple[str, ...]] = ("scale", "regularization")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_base(self.base, self.problem)
        meaning = "probability of a false alarm"
        self._set(delta=validate.interval("delta", self.delta, meaning, low=0.0, high=1.0))
        rivals.check_reading(self.reading, detection.READINGS)
        self._horizon()

    def _horizon(self) -> float:
        return self.problem.known("horizon", "DAL")

    @classmethod
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """Over GLB-OMD tuned by theory, or over another base: a policy, or the name of a class that
        theory then tunes, such as "LinUCB". delta = 1/T."""
        cls._check_problem(problem)
        passed = {k: overrides.pop(k) for k in cls.also_takes if k in overrides}
        base = tuned_base(problem, overrides.pop("base", "GLBOMD"), passed)
        delta = 1.0 / max(problem.known("horizon", "DAL"), 2.0)
        return cls(problem=problem, base=base, **({"delta": delta} | overrides))

    @property
    def name(self) -> str:
        return f"DAL + {self.base.name}"

    @property
    def on_reward_scale(self) -> bool:
        return self.base.on_reward_scale

    @property
    def noise_size(self) -> int:
        return self.base.noise_size

    @property
    def least_bytes(self) -> int:
        return self.base.least_bytes

    @property
    def growing(self) -> dict[str, tuple[int, ...]]:
        return {"sums": (2,)} | {f"base_{f}": axes for f, axes in self.base.growing.items()}

    def init(self, n: int = 1) -> Any:
        d, base = self.problem.dim, self.base.init(n)
        return _memory_type(base._fields)(
            np.zeros((n, d, 4)),
            np.zeros((n, d), dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.int64),
            *base,
        )

    @cached_property
    def _learner_type(self) -> Any:
        return type(self.base.init(1))

    def _base_of(self, memory: Any, rows: Any = slice(None)) -> Any:
        """The memory of the base for some learners."""
        return self._learner_type(*(array[rows] for array in memory[len(OWN) :]))

    def directions(self, memory: Any) -> Ints:
        """The axis that the coming round is forced to look along, (n,), or -1 in a free round."""
        d, T = self.problem.dim, self._horizon()
        period = [detection.dal_period(d, int(k) + 1, T) for k in memory.restarts]
        place = memory.tau % np.array(period, dtype=np.int64)
        return np.where(place < d, place, -1)

    def scores(self, memory: Any, arms: Floats) -> Scores:
        """Those of the base; in a forced round its arm has a bonus that no other arm can match."""
        arms, forced = self._arms(memory, arms), self.directions(memory)
        mean, bonus, upper = (a.copy() for a in self.base.scores(self._base_of(memory), arms))
        for i in np.flatnonzero(forced >= 0):
            arm = np.argmax(arms[i, :, forced[i]])
            upper[i, arm] = upper[i].max() + self.problem.family.range
            bonus[i, arm] = upper[i, arm] - mean[i, arm]
        return Scores(mean, bonus, upper)

    def choose(self, memory: Any, arms: Floats, noise: Floats | None = None) -> Ints:
        arms, forced = self._arms(memory, arms), self.directions(memory)
        choice = self.base.choose(self._base_of(memory), arms, noise)
        along = arms[np.arange(len(forced)), :, np.maximum(forced, 0)]  # (n, N)
        return np.where(forced >= 0, np.argmax(along, axis=1), choice)

    def update(self, memory: Any, x: Floats, r: Floats, noise: Floats | None = None) -> Any:
        x, r = self._played(memory, x, r)
        forced = self.directions(memory)
        memory.tau[:] += 1
        memory.t[:] += 1
        memory = self._teach(memory, np.flatnonzero(forced < 0), x, r, noise)
        for i in np.flatnonzero(forced >= 0):
            memory = self._listen(memory, int(i), int(forced[i]), float(r[i]))
        return memory

    def _teach(self, memory: Any, rows: Ints, x: Floats, r: Floats, noise: Floats | None) -> Any:
        """The base learns from the free rounds of some learners."""
        if not len(rows):
            return memory
        part = None if noise is None else noise[rows]
        learners = self.base.update(self._base_of(memory, rows), x[rows], r[rows], part)
        return self._put(memory, rows, learners)

    def _put(self, memory: Any, rows: Ints, learners: Any) -> Any:
        """Write learners of the base back, with more room for all where they needed it."""
        for name, array in zip(learners._fields, learners):
            old = getattr(memory, f"base_{name}")
            shape = np.maximum(old.shape[1:], array.shape[1:])
            if tuple(shape) != old.shape[1:]:
                old = widened(old, (len(old), *shape))
                memory = memory._replace(**{f"base_{name}": old})
            old[rows] = 0
            old[(rows, *(slice(k) for k in array.shape[1:]))] = array
        return memory

    def _listen(self, memory: Any, i: int, axis: int, reward: float) -> Any:
        """Add a forced reward to its stream, and start afresh if the stream has changed."""
        family, n = self.problem.family, int(memory.counts[i, axis])
        if n == memory.sums.shape[2]:
            shape = (*memory.sums.shape[:2], 2 * n)
            memory = memory._replace(sums=widened(memory.sums, shape))
        before = memory.sums[i, axis, n - 1] if n else 0.0
        memory.sums[i, axis, n] = before + (reward - family.low) / family.range
        memory.counts[i, axis] = n = n + 1
        if n > 1 and glr(memory.sums[i, axis, :n]) >= self.threshold(n):
            return self._restart(memory, i)
        return memory

    def threshold(self, n: int) -> float:
        """What the statistic of a stream of n rewards must reach to raise an alarm."""
        return detection.glr_threshold(n, self.delta, self.reading)

    def _restart(self, memory: Any, i: int) -> Any:
        """Forget everything but the numbers of rounds and of restarts."""
        memory.sums[i], memory.counts[i], memory.tau[i] = 0.0, 0, 0
        memory.restarts[i] += 1
        return self._put(memory, np.array([i]), self.base.init(1))
