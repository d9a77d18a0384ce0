"""BOB-DOMD: EXP3 over discounts, and DOMD with the theory's tuning restarted in every block.

Bandit over bandits (Cheung, Simchi-Levi, Zhu 2019) over Algorithm 1. docs/bob.md has the theorem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from driftbandit import theory, validate
from driftbandit.core.layout import Memory, packed, views
from driftbandit.policies.base import Floats, Ints, Policy, Scores
from driftbandit.policies.domd import DOMD
from driftbandit.policies.index import index_scores

LEARNT = (
    "g",
    "basis",
    "floor",
    "theta",
    "H",
)  # what a round changes in DOMD's part, besides the count


class BlockMemory(NamedTuple):
    """Everything n learners of BOB-DOMD remember; the last five are the DOMD of the block.

    A block begins when t is a multiple of its length. Then DOMD is fresh, and `arm` is that of
    the block before until the first reward draws another: no discount matters in a first round.
    """

    t: Ints  # (n,)       rounds seen
    arm: Ints  # (n,)       place of the block's discount in the grid
    gain: Floats  # (n,)       rewards of the block so far, as shares of the range
    log_weights: Floats  # (n, K)     EXP3's, the largest 0
    g: Floats  # (n,)       dispersion g(tau)
    basis: Floats  # (n,)       what a g that is learnt rests on
    floor: Floats  # (n,)       H >= floor I
    theta: Floats  # (n, d)     estimate
    H: Floats  # (n, d, d)  discounted curvature


@dataclass(frozen=True, kw_only=True)
class BOBDOMD(Policy):
    """DOMD that needs to know no drift, with a theorem (docs/bob.md).

    | here | docs/bob.md | |
    |---|---|---|
    | `block` | D | rounds until DOMD starts again with a discount drawn by EXP3 |
    | `delta` | delta | probability that the confidence sets of a block fail |
    | `scale` | | factor on beta_t(delta); the theorem has 1 |

    Unset, `block` is d sqrt(T) and `delta` is 1/T, as in the theorem; eta, lambda and beta_t are
    DOMD's own. It needs the horizon and the radius. Rounds after the horizon are played alike, but
    the theorem does not speak of them.

    >>> from driftbandit import Problem
    >>> policy = BOBDOMD(problem=Problem(dim=5, radius=1.0, horizon=5000))
    >>> policy.block, policy.discounts[:3]
    (354, (0.5, 0.75, 0.875))
    """

    block: int | None = None
    delta: float | None = None
    scale: float = 1.0

    @classmethod
    def _check_problem(cls, problem: Any) -> None:
        """Also that the radius and the horizon are known: the theorem's tuning contains them."""
        super()._check_problem(problem)
        for name in ("radius", "horizon"):
            problem.known(name, cls.__name__)

    def __post_init__(self) -> None:
        super().__post_init__()
        block = theory.bob_block(self.problem) if self.block is None else self.block
        delta = 1.0 / self.problem.known("horizon", self.name) if self.delta is None else self.delta
        failing = "probability that the confidence sets of a block fail"
        self._set(
            block=validate.count("block", block, "rounds of a block", least=2),
            delta=validate.interval("delta", delta, failing, low=0.0, high=1.0),
            scale=validate.nonnegative("scale", self.scale, "factor on beta_t"),
        )

    @property
    def name(self) -> str:
        return "BOB-DOMD"

    @property
    def noise_size(self) -> int:
        """One number draws the discount; only the first of a block is used."""
        return 1

    @property
    def least_bytes(self) -> int:
        return 8 * self.problem.dim**2

    @property
    def length(self) -> int:
        """D, the rounds of a block."""
        assert self.block is not None
        return self.block

    @property
    def discounts(self) -> tuple[float, ...]:
        """The grid 1 - 2^-j."""
        return theory.bob_discounts(self.length)

    @cached_property
    def rate(self) -> float:
        """EXP3's step rho."""
        return theory.bob_rate(theory.bob_blocks(self.problem, self.length), len(self.discounts))

    @cached_property
    def learners(self) -> tuple[DOMD, ...]:
        """DOMD with the theory's tuning, for every discount."""
        numbers: dict[str, Any] = {"delta": self.delta, "scale": self.scale}
        return tuple(
            DOMD.from_theory(self.problem, discount=gamma, **numbers) for gamma in self.discounts
        )

    def init(self, n: int = 1) -> BlockMemory:
        fresh = self.learners[0].init(n)._asdict()
        return BlockMemory(
            t=np.zeros(n, dtype=np.int64),
            arm=np.zeros(n, dtype=np.int64),
            gain=np.zeros(n),
            log_weights=np.zeros((n, len(self.discounts))),
            **{name: np.ascontiguousarray(fresh[name]) for name in LEARNT},
        )

    def inner(self, memory: BlockMemory) -> Memory:
        """DOMD's part: a learner that has seen the rounds of the block."""
        _, _, _, _, *domd = memory
        return Memory((memory.t % self.length).astype(float), *domd)

    def _teams(self, memory: BlockMemory) -> Iterator[tuple[DOMD, Ints]]:
        """Every discount that is in use, and the rows that use it."""
        for arm in np.unique(memory.arm):
            yield self.learners[arm], np.flatnonzero(memory.arm == arm)

    def _table(self, memory: BlockMemory) -> Floats:
        """DOMD's part as rows for its kernels."""
        return packed(self.inner(memory)._asdict(), self.learners[0].fields, len(memory.t))

    def width(self, memory: BlockMemory) -> Floats:
        """scale * beta_t of the coming round, (n,)."""
        out, inner = np.empty(len(memory.t)), self.inner(memory)
        for learner, which in self._teams(memory):
            out[which] = learner.width(Memory(*(array[which] for array in inner)))
        return out

    def scores(self, memory: BlockMemory, arms: Floats) -> Scores:
        arms, family = self._arms(memory, arms), self.problem.family
        return index_scores(family, True, memory.theta, memory.H, self.width(memory), arms)

    def deviation(self, memory: BlockMemory, arms: Floats) -> Floats:
        """DOMD's; it depends on no discount."""
        return self.learners[0].deviation(self.inner(memory), arms)

    def choose(self, memory: BlockMemory, arms: Floats, noise: Floats | None = None) -> Ints:
        arms, table = self._arms(memory, arms), self._table(memory)
        out = np.empty(len(table), dtype=np.int64)
        for learner, which in self._teams(memory):
            out[which] = learner.best_rows(table, which, arms[which], 1)[:, 0]
        return out

    def update(
        self, memory: BlockMemory, x: Floats, r: Floats, noise: Floats | None = None
    ) -> BlockMemory:
        x, r = self._played(memory, x, r)
        family, draws = self.problem.family, np.asarray(noise, dtype=float)
        if draws.shape != (len(r), 1):
            raise ValueError(
                f"{self.name} draws its discount from noise: pass standard normals of shape "
                f"({len(r)}, 1), those of the decision"
            )
        self.problem.check_contexts(x)
        if not family.contains(r).all():
            raise ValueError(f"rewards must each be {family.support} for {family!r}, got {r}")
        begin = np.flatnonzero(memory.t % self.length == 0)
        if len(begin):
            memory.arm[begin] = self._drawn(memory.log_weights[begin], draws[begin, 0])
        self._learn(memory, x, r)
        memory.gain[:] += (r - family.link.low) / family.range
        memory.t[:] += 1
        end = np.flatnonzero(memory.t % self.length == 0)
        if len(end):
            self._judge(memory, end)
        return memory

    def _learn(self, memory: BlockMemory, x: Floats, r: Floats) -> None:
        """A round of Algorithm 1, each row with its own discount."""
        table = self._table(memory)
        for learner, which in self._teams(memory):
            learner.update_rows(table, which, x[which], r[which])
        learnt = views(table, self.learners[0].fields)
        for name in LEARNT:
            getattr(memory, name)[:] = learnt[name]

    def _drawn(self, log_weights: Floats, noise: Floats) -> Ints:
        """Places in the grid with EXP3's probabilities, by normal numbers (n,)."""
        from scipy.special import ndtr  # a quarter of a second that importing should not take

        passed = np.cumsum(chances(log_weights), axis=1) <= ndtr(noise)[:, None]
        return np.asarray(np.minimum(passed.sum(axis=1), len(self.discounts) - 1))

    def _judge(self, memory: BlockMemory, rows: Ints) -> None:
        """The end of a block: EXP3 learns from its reward, and DOMD starts again."""
        arm, loss = memory.arm[rows], 1.0 - memory.gain[rows] / self.length
        chance = chances(memory.log_weights[rows])[np.arange(len(rows)), arm]
        memory.log_weights[rows, arm] -= self.rate * loss / chance
        memory.log_weights[rows] -= memory.log_weights[rows].max(axis=1, keepdims=True)
        memory.gain[rows] = 0.0
        for name in LEARNT:
            getattr(memory, name)[rows] = getattr(self.like, name)

    def sane(self, memory: BlockMemory) -> bool:
        if not super().sane(memory) or not self.learners[0].sane(self.inner(memory)):
            return False
        K, clock = len(self.discounts), memory.t % self.length
        drawn = (memory.arm >= 0) & (memory.arm < K)
        gained = (memory.gain >= 0.0) & (memory.gain <= clock * (1.0 + 1e-9))
        weighed = memory.log_weights.max(axis=1) == 0.0
        return bool((drawn & gained & weighed).all())


def chances(log_weights: Floats) -> Floats:
    """EXP3's probabilities (n, K)."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
