"""A level that all arms share: rare clicks, and days that raise or lower every reward."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from driftbandit import validate
from driftbandit.environments.arms import Arms, FreshArms
from driftbandit.environments.environment import Floats
from driftbandit.environments.paths import direction
from driftbandit.environments.simulated import Simulated
from driftbandit.problem import Problem

FARTHEST = 2.0  # deviations of a day from the mean level, at most


@dataclass(frozen=True, kw_only=True)
class Levels(Simulated):
    """Which arm is best stands still; the level of all rewards need not.

    Every x'theta is `level` plus what ranks the arms: their other features times a point of the
    sphere of radius S (`radius`), drawn once. With `spread`, the level is drawn anew every `day`
    rounds, with that deviation. The level belongs to the arms' intercept, so they must have one.

    >>> round(float(Levels(level=-3.9).family.mu(-3.9)), 3)  # two clicks in a hundred
    0.02
    """

    level: float = 0.0
    spread: float = 0.0
    day: int = 1
    arms: Arms = field(default_factory=lambda: FreshArms(intercept=0.5))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(
            level=validate.number("level", self.level, "what is added to every x'theta"),
            spread=validate.nonnegative("spread", self.spread, "deviation of the level"),
            day=validate.count("day", self.day, "rounds for which a level stays"),
        )
        if not self.intercept > 0.0:
            raise ValueError("the level needs arms with an intercept: FreshArms(intercept=0.5)")

    @property
    def intercept(self) -> float:
        """The constant feature of the arms."""
        return float(getattr(self.arms, "intercept", 0.0))

    @property
    def change_points(self) -> int:
        return (self.horizon - 1) // self.day if self.spread > 0.0 else 0

    @property
    def path_length(self) -> float:
        return self.change_points * 2.0 * FARTHEST * self.spread / self.intercept

    @property
    def problem(self) -> Problem:
        farthest = (abs(self.level) + FARTHEST * self.spread) / self.intercept
        return replace(super().problem, radius=math.hypot(self.radius, farthest))

    def _path(self, rng: np.random.Generator) -> Floats:
        path = np.tile(self.radius * direction(rng, self.dim - 1), (self.horizon, 1))
        days = rng.standard_normal(-(-self.horizon // self.day))
        moved = self.level + self.spread * np.clip(days, -FARTHEST, FARTHEST)
        level = np.repeat(moved, self.day)[: self.horizon]
        return np.column_stack([level / self.intercept, path])
