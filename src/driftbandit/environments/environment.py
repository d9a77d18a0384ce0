"""Environments: rounds of arms, and what a choice gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftbandit import validate
from driftbandit.environments.delay import Delay
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive rounds for n seeds; a subclass knows what a choice gives."""

    arms: Floats  # (rounds, n, N, d)
    theta: Floats  # (rounds, n, d)    true parameters, NaN where they are unknown

    def __len__(self) -> int:
        return len(self.arms)

    def play(self, t: int, choice: Ints) -> tuple[Floats, Floats]:
        """Rewards (n,) of these choices in round t of the block, and how much larger the mean
        reward of the best arm is than that of the chosen one."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Environment(Recipe):
    """Base of every world: `Simulated` ones, whose true parameters are known, and `Stream`s.

    A subclass says how many arms a round has (`n_arms`), what a policy may know (`problem`), and
    lays out its rounds in `blocks`. Every world takes `delay=Delay(...)`: rewards come late.
    """

    horizon: int = 5000
    delay: Delay | None = None

    def __post_init__(self) -> None:
        self._set(horizon=validate.count("horizon", self.horizon, "number of rounds T"))
        if self.delay is not None and not isinstance(self.delay, Delay):
            raise ValueError(
                f"delay must be one such as Delay(mean=5), got {validate.show(self.delay)}"
            )

    @property
    def name(self) -> str:
        """What figures call it."""
        return type(self).__name__

    @property
    def n_arms(self) -> int:
        """Arms in a round."""
        raise NotImplementedError(f"{type(self).__name__} must say its n_arms")

    @property
    def problem(self) -> Problem:
        """What a policy may know beforehand."""
        raise NotImplementedError(f"{type(self).__name__} must say its problem")

    def together(self, seeds: Sequence[int]) -> list[Sequence[int]]:
        """The seeds in groups that are played side by side: all of them, or each alone where
        rewards are late, because then seeds do not learn in the same rounds."""
        return [seeds] if self.delay is None else [[seed] for seed in seeds]

    def blocks(self, seeds: Sequence[int], size: int) -> Iterator[Block]:
        """The whole horizon in blocks of at most `size` rounds; the split changes no number."""
        raise NotImplementedError(f"{type(self).__name__} must play its rounds in blocks")
