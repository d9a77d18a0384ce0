"""Rivals that weigh rounds by their variance, and start afresh at regular times.

Wang, Xie, Chen, Lui, Zhou 2025, our reading of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Ints, Policy, Scores
from driftbandit.policies.index import index_scores
from driftbandit.policies.linear import LinUCB, Moments
from driftbandit.problem import Problem
from driftbandit.theory import rivals


def restarted(memory: Any, fresh: Any, period: int) -> Any:
    """The memory, in which learners at the end of a period have forgotten all but t, its last."""
    ended = np.flatnonzero(memory.t % period == 0)
    for array, start in zip(memory[:-1], fresh[:-1]):
        array[ended] = start
    return memory


@dataclass(frozen=True, kw_only=True)
class RestartedWeightedOFUL(LinUCB):
    """Restarted WeightedOFUL+ (Wang et al. 2025), our reading: ridge regression in which a round
    counts 1 / sigma^2,

    sigma = max(deviation of a reward, alpha, gamma ||x||_{V^-1}^{1/2}).

    The deviation is the largest that the family allows; its paper is told each round's.
    """

    period: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(period=validate.count("period", self.period, "rounds between restarts"))

    @property
    def name(self) -> str:
        return "Restarted WeightedOFUL+"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"period": rivals.oful_period}

    def coefficient(self, t: Any) -> Any:
        """beta of the round t."""
        k, lam, w = (np.asarray(t) - 1.0) % self.period + 1.0, self.regularization, self.period
        return rivals.weighted_oful(self.problem, k, lam=lam, delta=self._delta, period=w)

    def deviations(self, memory: Moments, x: Floats) -> Floats:
        """sigma of contexts x (n, d)."""
        solved = np.linalg.solve(memory.V, x[:, :, None])[:, :, 0]
        norm = np.sqrt(np.einsum("nd,nd->n", x, solved))
        least = rivals.reward_deviation(self.problem), rivals.oful_floor(self.problem, self.period)
        return np.maximum(max(least), rivals.oful_caution(self.problem) * np.sqrt(norm))

    def update(self, memory: Moments, x: Floats, r: Floats, noise: Floats | None = None) -> Moments:
        x, r = self._played(memory, x, r)
        sigma, zero = self.deviations(memory, x), self._zero
        s = super().update(memory, x / sigma[:, None], (r - zero) / sigma + zero)
        return restarted(s, self.like, self.period)


class Layers(NamedTuple):
    """Everything n learners remember: L ridge regressions each."""

    thetas: Floats  # (n, L, d)
    V: Floats  # (n, L, d, d)
    b: Floats  # (n, L, d)
    rr: Floats  # (n, L)     weighted squared rewards
    size: Ints  # (n, L)     rounds in each layer
    t: Ints  # (n,)       rounds seen


@dataclass(frozen=True, kw_only=True)
class RestartedSAVE(Policy):
    """Restarted SAVE+ (Wang et al. 2025), our reading: a round goes to the coarsest layer l in
    which its context is still uncertain, ||x||_{V_l^-1} >= 2^-l, and counts so little there that
    this norm becomes 2^-l.

    Each layer estimates the variance of its rewards. An arm is worth the least of its layers'
    optimistic values.
    """

    period: int
    delta: float = 0.01
    scale: float = 1.0
    centre: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(
            period=validate.count("period", self.period, "rounds between restarts"),
            delta=validate.interval("delta", self.delta, "of the radius", low=0.0, high=1.0),
            scale=validate.nonnegative("scale", self.scale, "factor on the published radius"),
        )

    @classmethod
    def _check_problem(cls, problem: Any) -> None:
        super()._check_problem(problem)
        problem.known("radius", cls.__name__)

    @classmethod
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """The published period with delta = 0.01; keywords replace single values."""
        cls._check_problem(problem)
        if "period" not in overrides:
            overrides["period"] = rivals.save_period(problem)
        return cls(problem=problem, **overrides)

    @property
    def name(self) -> str:
        return "Restarted SAVE+"

    @property
    def on_reward_scale(self) -> bool:
        return True

    @property
    def _zero(self) -> float:
        """The mean reward that x'theta = 0 stands for."""
        return float(self.problem.family.mu(0.0)) if self.centre else 0.0

    @property
    def sizes(self) -> Floats:
        """2^-l of every layer."""
        return np.asarray(2.0 ** -np.arange(1.0, rivals.save_layers(self.period) + 1.0))

    def init(self, n: int = 1) -> Layers:
        d, sizes = self.problem.dim, self.sizes
        L, eye = len(sizes), self.problem.context_norm**2 * np.eye(d)
        return Layers(
            thetas=np.zeros((n, L, d)),
            V=np.tile((sizes**2)[:, None, None] * eye, (n, 1, 1, 1)),
            b=np.zeros((n, L, d)),
            rr=np.zeros((n, L)),
            size=np.zeros((n, L), dtype=np.int64),
            t=np.zeros(n, dtype=np.int64),
        )

    def radii(self, memory: Layers) -> Floats:
        """beta of every layer, (n, L), unscaled."""
        sizes, theta = self.sizes, memory.thetas
        eye = (sizes * self.problem.context_norm) ** 2  # V before any data
        explained = np.einsum("nld,nld->nl", theta, memory.b)
        spent = eye * np.einsum("nld,nld->nl", theta, theta)
        errors = np.maximum(memory.rr - explained - spent, 0.0)  # V theta = b
        layer, size, delta = np.arange(1, len(sizes) + 1), memory.size, self.delta
        return np.asarray(
            rivals.save_radius(self.problem, layer, size, errors, delta=delta, period=self.period)
        )

    def scores(self, memory: Layers, arms: Floats) -> Scores:
        """Mean and bonus of the layer whose optimistic value is the least, for every arm."""
        arms = self._arms(memory, arms)
        width, family = self.scale * self.radii(memory), self.problem.family
        each = [
            index_scores(family, True, memory.thetas[:, k], memory.V[:, k], width[:, k], arms)
            for k in range(width.shape[1])
        ]
        mean, bonus, upper = (np.stack(column) for column in zip(*each))  # (L, n, N)
        least = np.argmin(upper, axis=0)[None]
        mean, bonus = (np.take_along_axis(a, least, axis=0)[0] for a in (mean, bonus))
        mean = mean + self._zero
        return Scores(mean, bonus, mean + bonus)

    def update(self, memory: Layers, x: Floats, r: Floats, noise: Floats | None = None) -> Layers:
        x, r = self._played(memory, x, r)
        s, r, rows = memory, r - self._zero, np.arange(len(r))
        solved = np.linalg.solve(s.V, x[:, None, :, None])[..., 0]
        norm = np.sqrt(np.einsum("nd,nld->nl", x, solved))
        uncertain = norm >= self.sizes
        layer = np.argmax(uncertain, axis=1)
        w = np.where(uncertain.any(axis=1), self.sizes[layer] / norm[rows, layer], 0.0)
        y, z = w[:, None] * x, w * r
        s.V[rows, layer] += y[:, :, None] * y[:, None, :]
        s.b[rows, layer] += z[:, None] * y
        s.rr[rows, layer] += z * z
        s.size[rows, layer] += w > 0.0
        new = np.linalg.solve(s.V[rows, layer], s.b[rows, layer][:, :, None])
        s.thetas[rows, layer] = new[:, :, 0]
        s.t[:] += 1
        return restarted(s, self.like, self.period)
