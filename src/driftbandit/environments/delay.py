"""Rewards that come late: how long each waits, and the order in which they are learnt."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Generic, TypeVar

from driftbandit import validate
from driftbandit.environments.random_streams import DELAYS, tape
from driftbandit.recipe import Recipe

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Delay(Recipe):
    """How many rounds pass until a reward is learnt.

    A reward waits `mean` rounds in the mean: a geometric number of rounds, or exactly `mean` with
    `fixed`. Where rewards of 0 are known later (a click comes soon, but that there will be none
    only time tells), `zero` is their mean; then what has arrived is no fair sample of what
    happened. A reward with delay k of round t is learnt at the end of round t + k, before the
    next decision; what would arrive after the horizon is never learnt.

    >>> Delay(mean=5, zero=100)
    Delay(mean=5.0, zero=100.0, fixed=False)
    """

    mean: float = 0.0
    zero: float | None = None
    fixed: bool = False

    def __post_init__(self) -> None:
        self._set(mean=validate.nonnegative("mean", self.mean, "rounds until a reward is learnt"))
        if self.zero is not None:
            meaning = "rounds until a reward of 0 is learnt"
            self._set(zero=validate.nonnegative("zero", self.zero, meaning))
        if not isinstance(self.fixed, bool):
            raise ValueError(f"fixed must be true or false, got {validate.show(self.fixed)}")

    def lucks(self, seed: int, horizon: int) -> list[float]:
        """Uniform numbers that decide the delays of a seed, one a round, whoever plays."""
        return tape(seed, DELAYS).random(horizon).tolist()

    def wait(self, reward: float, luck: float) -> int:
        """Rounds that this reward waits: the quantile of `luck` in [0, 1)."""
        mean = self.mean if self.zero is None or reward != 0.0 else self.zero
        if mean == 0.0 or self.fixed:
            return round(mean)
        return math.floor(math.log1p(-luck) / math.log(mean / (1.0 + mean)))


class Mail(Generic[T]):
    """Rewards on their way, delivered in the order of the decisions."""

    def __init__(self) -> None:
        self._due: defaultdict[int, list[T]] = defaultdict(list)

    def exchange(self, t: int, wait: int, item: T) -> list[T]:
        """Send an item that waits so many rounds; returns what arrives in round t."""
        self._due[t + wait].append(item)
        return self._due.pop(t, [])
