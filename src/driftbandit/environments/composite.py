"""Environments drawn at random: theta rests, drifts, jumps and follows a season, all at once.

A list of environments can be learnt by heart. `random_environment(draw)` is a distribution instead:
every number `draw` is another environment, whose smoothness, jumps, seasons, sparsity of change,
shifts of the level, arms and noise are drawn from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.environments.arms import FixedArms, FreshArms
from driftbandit.environments.environment import Floats
from driftbandit.environments.paths import direction
from driftbandit.environments.random_streams import PATH, tape
from driftbandit.environments.simulated import Simulated
from driftbandit.families import Bernoulli, Binomial, Family, Gaussian
from driftbandit.problem import Problem

GENERATOR = 77  # the stream that a draw's nature comes from
INTERCEPT = 0.5
NOISY = 0.25  # variance of Gaussian rewards from which on an environment counts as noisy


@dataclass(frozen=True, kw_only=True)
class Composite(Simulated):
    """theta_t is proportional to rest + drift u_t + jump v_t + season w_t, within the ball of S.

    `rest` is a fixed point of the unit sphere. u_t is a sum of `harmonics` sines of 1, 2, ... times
    `turns` turns, v_t is constant between `jumps` moments, w_t swings `periods` times. Only the
    share `moving` of the coordinates takes part in u, v and w. Arms with an intercept can have a
    level, which takes a new value, with deviation `level`, at `shifts` moments.

    The shape of the path follows from `shape` alone, so its length is known. A seed permutes the
    coordinates and their signs, and has its own arms and noise.

    >>> Composite(horizon=100, drift=1.0, jumps=2, jump=1.0).axes
    ('smooth drift', 'jumps', 'fresh arms')
    """

    shape: int = 0
    drift: float = 0.0
    turns: float = 1.0
    harmonics: int = 1
    jump: float = 0.0
    jumps: int = 0
    season: float = 0.0
    periods: int = 4
    moving: float = 1.0
    level: float = 0.0
    shifts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = {"drift": self.drift, "jump": self.jump, "season": self.season}
        counts = {"shape": self.shape, "jumps": self.jumps, "shifts": self.shifts}
        self._set(
            **{k: validate.nonnegative(k, v, "weight next to rest") for k, v in weights.items()},
            **{k: validate.count(k, v, "a whole number", least=0) for k, v in counts.items()},
            turns=validate.nonnegative("turns", self.turns, "turns in T rounds"),
            harmonics=validate.count("harmonics", self.harmonics, "sines of the drift"),
            periods=validate.count("periods", self.periods, "seasons in T rounds"),
            moving=validate.interval(
                "moving", self.moving, "share of coordinates", low=0.0, high=1.0
            ),
            level=validate.nonnegative("level", self.level, "deviation of the level"),
        )
        if max(self.jumps, self.shifts) >= self.horizon:
            raise ValueError(f"jumps and shifts must be fewer than horizon={self.horizon}")
        if self._levelled and not self._intercept:
            raise ValueError("a level needs arms with an intercept: FreshArms(intercept=0.5)")

    @property
    def _intercept(self) -> float:
        return float(getattr(self.arms, "intercept", 0.0))

    @property
    def _levelled(self) -> bool:
        return self.level > 0.0 and self.shifts > 0

    @property
    def axes(self) -> tuple[str, ...]:
        """Return what kind of environment this is, for scores by kind."""
        smooth = self.drift > 0.0 and self.turns > 0.0
        moves = smooth or self.season > 0.0 or (self.jump > 0.0 and self.jumps > 0)
        found = {
            "at rest": not moves and not self._levelled,
            "smooth drift": smooth and self.harmonics == 1,
            "rough drift": smooth and self.harmonics > 1,
            "jumps": self.jump > 0.0 and self.jumps > 0,
            "seasons": self.season > 0.0,
            "sparse change": moves and self.moving < 1.0,
            "level shifts": self._levelled,
            "fixed arms": isinstance(self.arms, FixedArms),
            "fresh arms": isinstance(self.arms, FreshArms),
            "noisy": isinstance(self.family, Gaussian) and self.family.variance >= NOISY,
        }
        return tuple(name for name, holds in found.items() if holds)

    @property
    def path_length(self) -> float:
        return float(self._moves.sum())

    @property
    def change_points(self) -> int | None:
        if (self.drift > 0.0 and self.turns > 0.0) or self.season > 0.0:
            return None
        return int(np.count_nonzero(self._moves))

    @property
    def problem(self) -> Problem:
        norms = np.linalg.norm(self._shape, axis=1)
        return replace(super().problem, radius=max(self.radius, float(norms.max())))

    @cached_property
    def _moves(self) -> Floats:
        return np.asarray(np.linalg.norm(np.diff(self._shape, axis=0), axis=1))

    @cached_property
    def _shape(self) -> Floats:
        """The path before a seed permutes it, (T, d); the first coordinate is the intercept's."""
        rng = np.random.default_rng(np.random.SeedSequence([self.shape, PATH, GENERATOR]))
        free = self.dim - (self._intercept > 0.0)
        moving = np.zeros(free)
        moving[: max(1, round(self.moving * free))] = 1.0
        path = direction(rng, free) + moving * (
            self.drift * self._waves(rng, free, self.turns, self.harmonics)
            + self.jump * self._steps(rng, free)
            + self.season * self._waves(rng, free, self.periods, 1)
        )
        path *= self.radius / np.linalg.norm(path, axis=1).max()
        if not self._intercept:
            return path
        level = self.level * np.clip(rng.standard_normal(self.shifts + 1), -2.0, 2.0)
        return np.column_stack([level[self._segments(rng, self.shifts)] / self._intercept, path])

    def _waves(self, rng: np.random.Generator, free: int, turns: float, harmonics: int) -> Floats:
        """Sines with amplitudes 1/k, scaled to a root mean square norm of 1, (T, free)."""
        share = np.arange(self.horizon) / self.horizon
        path = np.zeros((self.horizon, free))
        for k in range(1, harmonics + 1):
            amplitude, phase = rng.standard_normal(free) / k, rng.random(free)
            path += amplitude * np.sin(2.0 * math.pi * (k * turns * share[:, None] + phase))
        return path / math.sqrt(float((path**2).sum(axis=1).mean()) or 1.0)

    def _steps(self, rng: np.random.Generator, free: int) -> Floats:
        points = np.array([direction(rng, free) for _ in range(self.jumps + 1)])
        return np.asarray(points[self._segments(rng, self.jumps)])

    def _segments(self, rng: np.random.Generator, changes: int) -> Any:
        moments = np.sort(rng.choice(np.arange(1, self.horizon), size=changes, replace=False))
        return np.searchsorted(moments, np.arange(self.horizon), side="right")

    def _path(self, rng: np.random.Generator) -> Floats:
        first = int(self._intercept > 0.0)
        order = np.concatenate([np.arange(first), first + rng.permutation(self.dim - first)])
        signs = np.concatenate([np.ones(first), rng.choice([-1.0, 1.0], size=self.dim - first)])
        return signs * self._shape[:, order]


def random_environment(draw: int, *, horizon: int = 3000) -> Composite:
    """Return environment number `draw` of the distribution: the same number, the same environment.

    Drift, jumps, seasons and shifts of the level are present with probability 0.4 each; about a
    fifth of the environments rests. Rates are drawn on a logarithmic scale, everything else from
    short lists.

    >>> random_environment(3) == random_environment(3)
    True
    """
    rng = tape(draw, GENERATOR)
    radius = float(rng.choice([1.0, 2.0, 3.0, 4.0]))
    family = _family(rng, radius)
    dim = int(rng.choice([3, 5, 8, 12, 20]))
    drifts, jumps, seasons, levels = (rng.random(4) < 0.4) & (rng.random() > 0.1)
    weight = np.round(rng.uniform(0.5, 2.0, size=3), 2).tolist()
    motion: dict[str, Any] = {}
    if drifts:
        harmonics = int(rng.choice([1, 3, 10]))
        motion |= {"drift": weight[0], "turns": _rate(rng, 0.25, 6.0), "harmonics": harmonics}
    if jumps:
        motion |= {"jump": weight[1], "jumps": round(_rate(rng, 1.0, 12.0))}
    if seasons:
        motion |= {"season": weight[2], "periods": round(_rate(rng, 1.0, 10.0))}
    if levels:
        motion |= {"level": 0.5, "shifts": round(_rate(rng, 2.0, 30.0))}
    if motion:
        motion["moving"] = float(rng.choice([1.0, 0.5, 0.1]))
    kind = FixedArms if rng.random() < 0.5 else FreshArms
    arms = kind(
        count=int(rng.choice([4, 8, 16, 30, 60])),
        shortest=float(rng.choice([0.5, 1.0])),
        intercept=INTERCEPT if levels else float(rng.choice([0.0, INTERCEPT])),
    )
    return Composite(
        horizon=horizon, dim=dim, radius=radius, family=family, arms=arms, shape=draw, **motion
    )


def _rate(rng: np.random.Generator, low: float, high: float) -> float:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))), 2)


def _family(rng: np.random.Generator, radius: float) -> Family:
    """Clicks mostly; Gaussian rewards have a bound that they hardly reach: the radius, a level of
    at most 2, and the noise."""
    kind, variance = rng.random(), float(rng.choice([0.05, NOISY, 1.0]))
    if kind < 0.6:
        return Bernoulli()
    if kind < 0.75:
        return Binomial(trials=5)
    return Gaussian(variance=variance, bound=radius + 2.0 + 4.0 * math.sqrt(variance))
