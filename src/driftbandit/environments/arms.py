"""Where the arms of a round come from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit import validate
from driftbandit.environments.random_streams import ARMS, LENGTHS, tape
from driftbandit.recipe import Recipe
from driftbandit.validate import LARGEST, show

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]  # the next so many rounds: (rounds, N, d)


class Arms(Recipe):
    """Base: `stream(seed, dim)` gives a function that draws the next rounds, (rounds, N, d)."""

    def stream(self, seed: int, dim: int) -> Draw:
        """A function that draws the next rounds of a seed, (rounds, N, dim)."""
        raise NotImplementedError

    def norm(self) -> float:
        """Largest norm an arm can have."""
        return 1.0


@dataclass(frozen=True)
class DrawnArms(Arms):
    """Base of random arms: `count` Gaussian directions, of unit length unless told otherwise.

    `shortest` below 1 makes lengths uniform between it and 1; `intercept` puts a constant of that
    size first and scales the rest by sqrt(1 - intercept^2), so that no arm is longer than 1.
    """

    count: int = 30
    shortest: float = 1.0
    intercept: float = 0.0

    def __post_init__(self) -> None:
        if type(self) is DrawnArms:
            raise ValueError("DrawnArms is the base of random arms: use FreshArms or FixedArms")
        meaning = "length of the shortest arm", "the constant feature"
        self._set(
            count=validate.count("count", self.count, "arms in a round"),
            shortest=validate.interval("shortest", self.shortest, meaning[0], low=0.0, high=1.0),
            intercept=validate.nonnegative("intercept", self.intercept, meaning[1]),
        )
        if self.intercept >= 1.0:
            raise ValueError(
                f"intercept must be below 1, the length of an arm, got {self.intercept}"
            )

    def _draw(self, seed: int, dim: int) -> Draw:
        rng, lengths = tape(seed, ARMS), tape(seed, LENGTHS)
        return lambda rounds: self._arms(rng, lengths, rounds, dim)

    def _arms(
        self, rng: np.random.Generator, lengths: np.random.Generator, rounds: int, dim: int
    ) -> Floats:
        c, free = self.intercept, dim - (self.intercept > 0.0)
        if free < 1:
            raise ValueError("an intercept needs dim >= 2: one feature is the constant")
        x = _unit(rng.standard_normal((rounds, self.count, free)))
        if self.shortest < 1.0:
            x *= lengths.uniform(self.shortest, 1.0, (rounds, self.count, 1))
        if c == 0.0:
            return x
        constant = np.full((rounds, self.count, 1), c)
        return np.concatenate([constant, math.sqrt(1.0 - c * c) * x], axis=2)


@dataclass(frozen=True)
class FreshArms(DrawnArms):
    """`count` random arms, new in every round (the paper's choice)."""

    def stream(self, seed: int, dim: int) -> Draw:
        return self._draw(seed, dim)


@dataclass(frozen=True)
class FixedArms(DrawnArms):
    """`count` random arms, drawn once per seed and kept."""

    def stream(self, seed: int, dim: int) -> Draw:
        arms = self._draw(seed, dim)(1)[0]
        return lambda rounds: np.broadcast_to(arms, (rounds, *arms.shape))


@dataclass(frozen=True, eq=False)
class GivenArms(Arms):
    """Your own arms: one set (N, d) for all rounds, or one set per round (T, N, d).

    A single set is shuffled once per seed (`order(seed)`), because ties go to the lowest index
    and would otherwise favour the same arm in every replicate.
    """

    arms: Any

    def __post_init__(self) -> None:
        try:
            given = np.asarray(self.arms)
            arms = np.array(given, dtype=float) if given.dtype.kind in "biuf" else np.empty(0)
        except (TypeError, ValueError, OverflowError):
            arms = np.empty(0)
        shaped = arms.ndim in (2, 3) and arms.size > 0
        if not shaped or not np.isfinite(arms).all() or not 0 < np.abs(arms).max() < LARGEST:
            raise ValueError(
                "arms must be a finite array of shape (N, d) or (T, N, d) with at least one arm "
                f"that is not 0, got {show(self.arms)}"
            )
        arms.flags.writeable = False
        self._set(arms=arms)

    def __repr__(self) -> str:
        return f"GivenArms(<array of shape {self.arms.shape}>)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenArms) and np.array_equal(self.arms, other.arms)

    def __hash__(self) -> int:
        return hash((self.arms.shape, self.arms.tobytes()))

    def norm(self) -> float:
        return float(np.linalg.norm(self.arms, axis=-1).max())

    def order(self, seed: int) -> NDArray[np.int64]:
        """The order in which a seed meets the arms of a single set."""
        return tape(seed, ARMS).permutation(self.arms.shape[-2])

    def stream(self, seed: int, dim: int) -> Draw:
        if self.arms.ndim == 2:
            arms = self.arms[self.order(seed)]
            return lambda rounds: np.broadcast_to(arms, (rounds, *arms.shape))
        played = 0

        def draw(rounds: int) -> Floats:
            nonlocal played
            played += rounds
            return np.asarray(self.arms[played - rounds : played])

        return draw


def _unit(x: Floats) -> Floats:
    x /= np.sqrt(np.einsum("...d,...d->...", x, x))[..., None]
    return x
