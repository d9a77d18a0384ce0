"""More ways to move: two regimes in turn, bursts of drift, one coordinate, a fading signal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from driftbandit import validate
from driftbandit.environments.environment import Floats
from driftbandit.environments.paths import direction
from driftbandit.environments.simulated import Simulated


@dataclass(frozen=True, kw_only=True)
class Switching(Simulated):
    """theta alternates between two random points of the sphere, `period` rounds each."""

    period: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(period=validate.count("period", self.period, "rounds of a regime"))

    @property
    def change_points(self) -> int:
        return (self.horizon - 1) // self.period

    @property
    def path_length(self) -> float:
        return 2.0 * self.radius * self.change_points

    def _path(self, rng: np.random.Generator) -> Floats:
        regimes = np.array([direction(rng, self.dim) for _ in range(2)])
        return self.radius * regimes[np.arange(self.horizon) // self.period % 2]


@dataclass(frozen=True, kw_only=True)
class Bursts(Simulated):
    """theta rests, but for `bursts` evenly spaced bursts of `length` rounds in each of which it
    moves along the sphere to a new random point."""

    bursts: int = 4
    length: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(
            bursts=validate.count("bursts", self.bursts, "how often theta moves", least=0),
            length=validate.count("length", self.length, "rounds of a burst"),
        )
        if self.bursts * self.length >= self.horizon:
            raise ValueError(
                f"{self.bursts} bursts of {self.length} rounds leave no calm in {self.horizon}"
            )

    @property
    def path_length(self) -> float:
        return math.pi * self.radius * self.bursts

    def _path(self, rng: np.random.Generator) -> Floats:
        points = [direction(rng, self.dim) for _ in range(self.bursts + 1)]
        calm = (self.horizon - self.bursts * self.length) / (self.bursts + 1)
        rounds, path = np.arange(self.horizon), np.tile(points[0], (self.horizon, 1))
        for k in range(self.bursts):
            start = calm * (k + 1) + self.length * k
            share = np.clip((rounds - start) / self.length, 0.0, 1.0)
            path = np.where((share > 0)[:, None], _arc(points[k], points[k + 1], share), path)
        return np.asarray(self.radius * path)


def _arc(start: Floats, end: Floats, share: Floats) -> Floats:
    """Points on the great circle from `start` to `end`, at these shares of the way."""
    angle = math.acos(min(1.0, max(-1.0, float(start @ end))))
    if math.sin(angle) < 1e-9:  # the same point, or opposite ones in one dimension
        return np.where((share < 0.5)[:, None], start, end)
    weights = np.sin(angle * np.column_stack([1.0 - share, share])) / math.sin(angle)
    return np.asarray(weights @ np.stack([start, end]))


@dataclass(frozen=True, kw_only=True)
class OneCoordinate(Simulated):
    """Only the first coordinate moves, as a cosine between +-`swing` S; the others stand still, at
    norm S sqrt(1 - swing^2)."""

    turns: float = 1.0
    swing: float = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        meaning = "share of S that the coordinate covers"
        self._set(
            turns=validate.nonnegative("turns", self.turns, "periods in T rounds"),
            swing=validate.interval("swing", self.swing, meaning, low=0.0, high=1.0),
        )

    @property
    def path_length(self) -> float:
        return 4.0 * self.swing * self.radius * math.ceil(2.0 * self.turns) / 2.0

    def _path(self, rng: np.random.Generator) -> Floats:
        path = np.empty((self.horizon, self.dim))
        angle = 2.0 * math.pi * self.turns * np.arange(self.horizon) / self.horizon
        path[:, 0] = self.swing * np.cos(angle + 2.0 * math.pi * rng.random())
        if self.dim > 1:
            path[:, 1:] = math.sqrt(1.0 - self.swing**2) * direction(rng, self.dim - 1)
        return self.radius * path


@dataclass(frozen=True, kw_only=True)
class Fading(Simulated):
    """theta keeps its direction, while its norm shrinks from S to `last` S at constant speed."""

    last: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        meaning = "share of S that is left at the end"
        self._set(last=validate.interval("last", self.last, meaning, low=0.0, high=1.0))

    @property
    def path_length(self) -> float:
        return self.radius * (1.0 - self.last)

    def _path(self, rng: np.random.Generator) -> Floats:
        size = np.linspace(self.radius, self.last * self.radius, self.horizon)
        return size[:, None] * direction(rng, self.dim)
