"""Where the arms of a round come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit import validate
from driftbandit.environments.tapes import ARMS, tape
from driftbandit.recipe import Recipe
from driftbandit.validate import LARGEST, show

Floats = NDArray[np.float64]
Draw = Callable[[int], Floats]  # the next so many rounds: (rounds, N, d)


class Arms(Recipe):
    """Base: `stream(seed, dim)` gives a function that draws the next rounds, (rounds, N, d)."""

    def stream(self, seed: int, dim: int) -> Draw:
        raise NotImplementedError

    def norm(self) -> float:
        """Largest norm an arm can have."""
        return 1.0


@dataclass(frozen=True)
class FreshArms(Arms):
    """`count` Gaussian directions of unit length, new in every round (the paper's choice)."""

    count: int = 30

    def __post_init__(self) -> None:
        self._set(count=validate.count("count", self.count, "arms in a round"))

    def stream(self, seed: int, dim: int) -> Draw:
        rng = tape(seed, ARMS)
        return lambda rounds: _unit(rng.standard_normal((rounds, self.count, dim)))


@dataclass(frozen=True)
class FixedArms(Arms):
    """`count` Gaussian directions of unit length, drawn once per seed and kept."""

    count: int = 30

    def __post_init__(self) -> None:
        self._set(count=validate.count("count", self.count, "arms in a round"))

    def stream(self, seed: int, dim: int) -> Draw:
        arms = _unit(tape(seed, ARMS).standard_normal((self.count, dim)))
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
