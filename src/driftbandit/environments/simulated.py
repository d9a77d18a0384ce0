"""Simulated worlds: a path of true parameters, a source of arms, a reward family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.environments.arms import Arms, FreshArms, GivenArms
from driftbandit.environments.environment import Block, Environment, Floats, Ints
from driftbandit.environments.poison import Poison
from driftbandit.environments.random_streams import ATTACKS, PATH, REWARDS, tape
from driftbandit.families import Bernoulli, Family, finite
from driftbandit.problem import Problem


@dataclass(frozen=True, eq=False)
class SimulatedBlock(Block):
    """Rewards follow from x'theta and from noise."""

    luck: Floats  # (rounds, n)       uniform numbers that decide the rewards
    family: Family
    poison: Poison | None = None
    attacks: Floats | None = None  # (rounds, n)  uniform numbers that decide what is poisoned

    @cached_property
    def _natural(self) -> Floats:
        """x'theta of every arm, (rounds, n, N)."""
        return np.asarray(np.matmul(self.arms, self.theta[..., None])[..., 0])

    @cached_property
    def _best(self) -> Floats:
        return np.asarray(finite(self.family, "mu", self._natural.max(axis=2)))

    def play(self, t: int, choice: Ints) -> tuple[Floats, Floats]:
        z = self._natural[t][np.arange(len(choice)), choice]
        rewards, regret = self.family.draw(z, self.luck[t]), self._best[t] - self.family.mu(z)
        if self.poison is not None and self.attacks is not None:
            rewards = self.poison.seen(self.family, rewards, regret, self.attacks[t])
        return rewards, regret


@dataclass(frozen=True, kw_only=True)
class Simulated(Environment):
    """Base: a subclass says where theta goes (`_path`) and how restless it can be at most.

    `path_length` and `change_points` are bounds known beforehand; they are what theory gets
    through `problem`. `measure(seed)` gives P_T and Gamma_T of the path a seed really took.
    `poison=Poison(...)` lets an adversary replace some of the rewards that learners see.
    """

    dim: int = 5
    radius: float = 1.0
    family: Family = field(default_factory=Bernoulli)
    arms: Arms = field(default_factory=FreshArms)
    poison: Poison | None = None

    absent: ClassVar[Mapping[str, Any]] = {"poison": None}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(
            dim=validate.count("dim", self.dim, "length of a context vector"),
            radius=validate.positive("radius", self.radius, "S, the norm of theta"),
        )
        if not isinstance(self.family, Family):
            raise ValueError(
                f"family must be one such as Bernoulli(), got {validate.show(self.family)}"
            )
        if not isinstance(self.arms, Arms):
            raise ValueError(
                f"arms must be FreshArms, FixedArms or GivenArms, got {validate.show(self.arms)}"
            )
        if self.poison is not None and not isinstance(self.poison, Poison):
            raise ValueError(
                f"poison must be one such as Poison(share=0.1), got {validate.show(self.poison)}"
            )
        if isinstance(self.arms, GivenArms):
            self._check_given(self.arms.arms)

    def _check_given(self, arms: Floats) -> None:
        if arms.shape[-1] != self.dim:
            raise ValueError(
                f"the given arms have {arms.shape[-1]} features, but dim is {self.dim}"
            )
        if arms.ndim == 3 and len(arms) < self.horizon:
            raise ValueError(
                f"arms are given for {len(arms)} rounds, but horizon is {self.horizon}"
            )

    @property
    def n_arms(self) -> int:
        return self.arms.stream(0, self.dim)(1).shape[1]

    @property
    def path_length(self) -> float:
        """Largest possible P_T."""
        raise NotImplementedError(f"{type(self).__name__} must say its largest path_length")

    @property
    def change_points(self) -> int | None:
        """Largest possible Gamma_T, or None where theta moves all the time."""
        return None

    @property
    def problem(self) -> Problem:
        return Problem(
            dim=self.dim,
            family=self.family,
            radius=self.radius,
            context_norm=self.arms.norm(),
            horizon=self.horizon,
            path_length=self.path_length,
            change_points=self.change_points,
        )

    def _path(self, rng: np.random.Generator) -> Floats:
        raise NotImplementedError

    def path(self, seed: int) -> Floats:
        """True parameters theta_1, ..., theta_T of a seed, (T, d)."""
        return self._path(tape(seed, PATH))

    def measure(self, seed: int) -> tuple[float, int]:
        """P_T and Gamma_T of the path of a seed."""
        moves = np.linalg.norm(np.diff(self.path(seed), axis=0), axis=1)
        return float(moves.sum()), int(np.count_nonzero(moves))

    def blocks(self, seeds: Sequence[int], size: int) -> Iterator[SimulatedBlock]:
        paths = np.stack([self.path(seed) for seed in seeds], axis=1)
        if paths.shape != (self.horizon, len(seeds), self.dim):
            raise ValueError(
                f"{self.name}._path must give ({self.horizon}, {self.dim}) parameters, got "
                f"{(len(paths), *paths.shape[2:])}"
            )
        streams = [self.arms.stream(seed, self.dim) for seed in seeds]
        lucks = [tape(seed, REWARDS) for seed in seeds]
        attacks = [tape(seed, ATTACKS) for seed in seeds] if self.poison is not None else []
        for start in range(0, self.horizon, size):
            theta = paths[start : start + size]
            rounds = len(theta)
            arms = np.stack([stream(rounds) for stream in streams], axis=1)
            luck = np.stack([rng.random(rounds) for rng in lucks], axis=1)
            drawn = [rng.random(rounds) for rng in attacks]
            poisoned = np.stack(drawn, axis=1) if drawn else None
            yield SimulatedBlock(arms, theta, luck, self.family, self.poison, poisoned)
