"""Where theta goes: the paper's two worlds, and three more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftbandit import validate
from driftbandit.environments.environment import Floats
from driftbandit.environments.simulated import Simulated


def direction(rng: np.random.Generator, dim: int) -> Floats:
    """A random point of the unit sphere."""
    v = rng.standard_normal(dim)
    return v / math.sqrt(v @ v)


@dataclass(frozen=True, kw_only=True)
class Circle(Simulated):
    """theta turns at constant speed on a circle of radius S in a random plane (section 5).

    The last round is one step short of the start, so P_T = 2 S (T - 1) sin(pi turns / T).

    >>> round(Circle(horizon=5000).path_length, 4)
    6.2819
    """

    turns: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(turns=validate.nonnegative("turns", self.turns, "full turns in T rounds"))
        if self.dim < 2:
            raise ValueError("a circle needs dim >= 2: use RandomWalk or SignFlip for dim 1")

    @property
    def path_length(self) -> float:
        half_angle = math.pi * self.turns / self.horizon
        return 2.0 * self.radius * (self.horizon - 1) * abs(math.sin(half_angle))

    def _path(self, rng: np.random.Generator) -> Floats:
        plane, _ = np.linalg.qr(rng.standard_normal((self.dim, 2)))
        angle = 2.0 * math.pi * self.turns * np.arange(self.horizon) / self.horizon
        return np.asarray(self.radius * np.column_stack([np.cos(angle), np.sin(angle)]) @ plane.T)


@dataclass(frozen=True, kw_only=True)
class SignFlip(Simulated):
    """theta stands still for T/2 rounds, then becomes -theta (section 5)."""

    @property
    def path_length(self) -> float:
        return 2.0 * self.radius if self.horizon > 1 else 0.0

    @property
    def change_points(self) -> int:
        return 1 if self.horizon > 1 else 0

    def _path(self, rng: np.random.Generator) -> Floats:
        theta = self.radius * direction(rng, self.dim)
        sign = np.where(np.arange(self.horizon) < (self.horizon + 1) // 2, 1.0, -1.0)
        return sign[:, None] * theta


@dataclass(frozen=True, kw_only=True)
class RandomWalk(Simulated):
    """theta takes a step of length `stride` in a random direction every round and stays in the
    ball of radius S: a step that would leave it ends on the sphere."""

    stride: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(stride=validate.positive("stride", self.stride, "length of one step of theta"))

    @property
    def path_length(self) -> float:
        return min(self.stride, 2.0 * self.radius) * (self.horizon - 1)

    def _path(self, rng: np.random.Generator) -> Floats:
        path = np.empty((self.horizon, self.dim))
        path[0] = self.radius * rng.random() ** (1.0 / self.dim) * direction(rng, self.dim)
        steps = rng.standard_normal((self.horizon - 1, self.dim))
        steps *= self.stride / np.linalg.norm(steps, axis=1, keepdims=True)
        for t, step in enumerate(steps):
            theta = path[t] + step
            path[t + 1] = theta * min(1.0, self.radius / math.sqrt(theta @ theta))
        return path


@dataclass(frozen=True, kw_only=True)
class Jumps(Simulated):
    """theta is drawn anew on the sphere of radius S at `jumps` random moments."""

    jumps: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(jumps=validate.count("jumps", self.jumps, "changes of theta", least=0))
        if self.jumps >= self.horizon:
            raise ValueError(f"jumps={self.jumps} need a horizon above that, got {self.horizon}")

    @property
    def path_length(self) -> float:
        return 2.0 * self.radius * self.jumps

    @property
    def change_points(self) -> int:
        return self.jumps

    def _path(self, rng: np.random.Generator) -> Floats:
        moments = rng.choice(np.arange(1, self.horizon), size=self.jumps, replace=False)
        thetas = np.array([direction(rng, self.dim) for _ in range(self.jumps + 1)])
        segment = np.searchsorted(np.sort(moments), np.arange(self.horizon), side="right")
        return self.radius * thetas[segment]


@dataclass(frozen=True, kw_only=True)
class Stationary(Simulated):
    """theta is drawn once on the sphere of radius S and never moves."""

    @property
    def path_length(self) -> float:
        return 0.0

    @property
    def change_points(self) -> int:
        return 0

    def _path(self, rng: np.random.Generator) -> Floats:
        return np.tile(self.radius * direction(rng, self.dim), (self.horizon, 1))
