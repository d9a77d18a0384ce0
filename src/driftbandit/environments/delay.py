"""Rewards that come late or never: how long each waits, and the order in which they are learnt."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from driftbandit import validate
from driftbandit.environments.random_streams import DELAYS, tape
from driftbandit.recipe import Recipe

T = TypeVar("T")
NEVER = -1  # the wait of a reward that is lost


@dataclass(frozen=True, kw_only=True)
class Delay(Recipe):
    """How many rounds pass until a reward is learnt.

    A reward waits `mean` rounds in the mean: a geometric number of rounds, or exactly `mean` with
    `fixed`. Where rewards of 0 are known later (a click comes soon, but that there will be none
    only time tells), `zero` is their mean; then what has arrived is no fair sample of what
    happened. A reward with delay k of round t is learnt at the end of round t + k, before the
    next decision; what would arrive after the horizon is never learnt.

    A share `lost` of the rewards is censored: it is never learnt. `lost_zero` is the share of
    rewards of 0, if it is another; then, too, what arrives is no fair sample.

    >>> Delay(mean=5, zero=100)
    Delay(mean=5.0, zero=100.0, fixed=False, lost=0.0, lost_zero=None)
    """

    mean: float = 0.0
    zero: float | None = None
    fixed: bool = False
    lost: float = 0.0
    lost_zero: float | None = None

    absent: ClassVar[Mapping[str, Any]] = {"lost": 0.0, "lost_zero": None}

    def __post_init__(self) -> None:
        self._set(mean=validate.nonnegative("mean", self.mean, "rounds until a reward is learnt"))
        if self.zero is not None:
            meaning = "rounds until a reward of 0 is learnt"
            self._set(zero=validate.nonnegative("zero", self.zero, meaning))
        self._set(lost=validate.share("lost", self.lost, "rewards that are never learnt"))
        if self.lost_zero is not None:
            meaning = "rewards of 0 that are never learnt"
            self._set(lost_zero=validate.share("lost_zero", self.lost_zero, meaning))
        if not isinstance(self.fixed, bool):
            raise ValueError(f"fixed must be true or false, got {validate.show(self.fixed)}")

    def lucks(self, seed: int, horizon: int) -> list[float]:
        """Uniform numbers that decide the delays of a seed, one a round, whoever plays."""
        return tape(seed, DELAYS).random(horizon).tolist()

    def wait(self, reward: float, luck: float) -> int:
        """Rounds that this reward waits, the quantile of `luck` in [0, 1); `NEVER` if lost."""
        lost = self.lost if self.lost_zero is None or reward != 0.0 else self.lost_zero
        if luck < lost:
            return NEVER
        luck = (luck - lost) / (1.0 - lost)  # uniform again
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
        if wait != NEVER:
            self._due[t + wait].append(item)
        return self._due.pop(t, [])
