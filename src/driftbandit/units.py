"""From parts of a reward's range to its own unit."""

from __future__ import annotations

from typing import NamedTuple

from driftbandit.estimators.overlap import Estimate
from driftbandit.reward import Reward


class Interval(NamedTuple):
    low: float
    high: float


class Unit:
    """The unit of a reward. With goal="min", what is best inside is smallest outside."""

    def __init__(self, reward: Reward) -> None:
        self.reward = reward
        self.sign = -1.0 if reward.goal == "min" else 1.0

    def value(self, part: float) -> float:
        """A mean reward."""
        start = self.reward.high if self.sign < 0.0 else self.reward.low
        return start + self.sign * self.reward.range * part

    def gap(self, part: float) -> float:
        """A difference of mean rewards."""
        return self.sign * self.reward.range * part

    def interval(self, low: float, high: float, *, gap: bool = False) -> Interval:
        ends = (self.gap(low), self.gap(high)) if gap else (self.value(low), self.value(high))
        return Interval(*(ends if self.sign > 0.0 else ends[::-1]))

    def estimate(self, found: Estimate, *, gap: bool = False) -> Estimate:
        middle = self.gap(found.value) if gap else self.value(found.value)
        return Estimate(middle, *self.interval(found.low, found.high, gap=gap))
