"""Yardsticks: the policy that knows nothing and the one that knows everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from driftbandit.policies.base import Floats, Ints, Policy, Scores
from driftbandit.problem import Problem


class RoundCount(NamedTuple):
    """All that `Uniform` remembers."""

    t: Ints  # (n,) rounds seen


class Truth(NamedTuple):
    """What `Oracle` is told."""

    theta: Floats  # (n, d) the true parameter of this round
    t: Ints  # (n,)   rounds seen


@dataclass(frozen=True, kw_only=True)
class Uniform(Policy):
    """Every arm with the same probability, whatever happened before."""

    problem: Problem = field(default_factory=lambda: Problem(dim=1))  # all are the same to it
    takes_items: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "Uniform"

    @property
    def noise_size(self) -> int:
        return 1

    def init(self, n: int = 1) -> RoundCount:
        return RoundCount(t=np.zeros(n, dtype=np.int64))

    def scores(self, memory: RoundCount, arms: Floats) -> Scores:
        zeros = np.zeros(np.shape(arms)[:2])
        return Scores(zeros, zeros.copy(), zeros.copy())

    def choose(self, memory: RoundCount, arms: Floats, noise: Floats | None = None) -> Ints:
        if noise is None:
            raise ValueError(
                "Uniform draws its arm from noise: pass standard normals of shape (n, 1)"
            )
        n_arms = np.shape(arms)[1]
        from scipy.special import ndtr

        arm: Ints = (ndtr(noise[:, 0]) * n_arms).astype(np.int64)
        return np.minimum(arm, n_arms - 1)

    def update(
        self, memory: RoundCount, x: Floats, r: Floats, noise: Floats | None = None
    ) -> RoundCount:
        memory.t[:] += 1
        return memory


@dataclass(frozen=True, kw_only=True)
class Oracle(Policy):
    """Plays the best arm of the true parameter, which `simulate` reveals to it each round."""

    clairvoyant: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "Oracle"

    def init(self, n: int = 1) -> Truth:
        return Truth(theta=np.zeros((n, self.problem.dim)), t=np.zeros(n, dtype=np.int64))

    def reveal(self, memory: Truth, theta: Floats) -> None:
        """Tell the true parameters (n, d) of the coming round."""
        memory.theta[:] = theta

    def scores(self, memory: Truth, arms: Floats) -> Scores:
        mean = np.einsum("nad,nd->na", arms, memory.theta)
        return Scores(mean, np.zeros_like(mean), mean)

    def update(self, memory: Truth, x: Floats, r: Floats, noise: Floats | None = None) -> Truth:
        memory.t[:] += 1
        return memory
