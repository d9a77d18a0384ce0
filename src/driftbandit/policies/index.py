"""Playing an index of an estimate theta and a metric H: optimism, sampling, or random optimism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.families import Family
from driftbandit.policies.base import Floats, Ints, Policy, Scores
from driftbandit.problem import Problem

EXPLORATIONS = ("ucb", "thompson")


def check_exploration(exploration: str, known: tuple[str, ...] = EXPLORATIONS) -> None:
    """Raise ValueError unless it is a rule we have."""
    if exploration not in known:
        raise ValueError(f"exploration must be one of {known}, got {exploration!r}")


def factor(H: Floats) -> tuple[Floats, Floats]:
    """L^-1 (n, d, d) and D (n, d) of H = L D L' with unit lower L.

    LAPACK's factor is C = L sqrt(D). D is taken from H instead, without a root: in a fresh metric,
    a multiple of I, arms of one length tie, and nothing but their own rounding may decide.
    """
    C = np.linalg.cholesky(H)
    roots = np.diagonal(C, axis1=1, axis2=2)
    D = np.diagonal(H, axis1=1, axis2=2) - (np.sum(C * C, axis=2) - roots * roots)
    unit: Any = np.linalg.inv(C / roots[:, None, :])
    return unit, D


def index_scores(
    family: Family, linear: bool, theta: Floats, H: Floats, width: Floats, arms: Floats
) -> Scores:
    """mu(x'theta), or x'theta if `linear`, and width ||x||_{H^-1}, for arms (n, N, d)."""
    z = (arms @ theta[:, :, None])[:, :, 0]
    mean = z if linear else family.mu(z)
    unit, D = factor(H)
    y = arms @ np.swapaxes(unit, 1, 2)
    norm = np.sqrt(np.sum(y * y * (1.0 / D)[:, None, :], axis=2))
    bonus = np.asarray(width)[:, None] * norm
    return Scores(mean, bonus, mean + bonus)


def draws(theta: Floats, H: Floats, width: Floats, normals: Floats) -> Floats:
    """Draws (n, m, d) from N(theta, width^2 H^-1), of standard normals (n or 1, m, d)."""
    unit, D = factor(H)
    spread = (normals / np.sqrt(D)[:, None, :]) @ unit  # covariance L'^-1 D^-1 L^-1 = H^-1
    return np.asarray(theta[:, None, :] + np.asarray(width)[:, None, None] * spread)


def thompson(theta: Floats, H: Floats, width: Floats, arms: Floats, noise: Floats | None) -> Ints:
    """The best arm of one draw from N(theta, width^2 H^-1) per learner."""
    if noise is None:
        raise ValueError(
            "Thompson sampling draws from noise: pass standard normals of shape (n, d)"
        )
    draw = draws(theta, H, width, noise[:, None, :])
    return np.asarray(np.argmax((arms @ np.swapaxes(draw, 1, 2))[:, :, 0], axis=1))


def randomized(scores: Scores, noise: Floats | None) -> Ints:
    """The best arm once all bonuses of a learner are multiplied by one |N(0, 1)|: the coupled,
    optimistic rule of RandLinUCB (Vaswani et al. 2020)."""
    if noise is None:
        raise ValueError(
            "randomized optimism draws from noise: pass standard normals of shape (n, 1)"
        )
    return np.asarray(np.argmax(scores.mean + np.abs(noise[:, :1]) * scores.bonus, axis=1))


@dataclass(frozen=True, kw_only=True)
class IndexPolicy(Policy):
    """Base of the rivals; their memory holds `theta` (n, d) and the metric `H` (n, d, d).

    | here | papers | |
    |---|---|---|
    | `regularization` | lambda | in the convention of the rival's own paper |
    | `delta`, `scale` | delta | the bonus is `scale` times the published radius |
    | `time_uniform` | | delta/T instead of delta: valid for all rounds at once |
    | `exploration` | | "ucb", "thompson" to sample theta instead of adding a bonus, or \
    "randomized" to multiply all bonuses of a round by the size of one standard normal number |
    """

    regularization: float
    delta: float = 0.01
    scale: float = 1.0
    time_uniform: bool = False
    exploration: str = "ucb"

    explorations: ClassVar[tuple[str, ...]] = (*EXPLORATIONS, "randomized")
    linear: ClassVar[bool] = False  # the index is on the linear scale, not on that of rewards

    @classmethod
    def _check_problem(cls, problem: Any) -> None:
        """Also that the radius is known: every formula of a rival contains S."""
        super()._check_problem(problem)
        problem.known("radius", cls.__name__)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_exploration(self.exploration, self.explorations)
        lam, meaning = self.regularization, "probability that the radius fails"
        self._set(
            regularization=validate.positive("regularization", lam, "lambda"),
            delta=validate.interval("delta", self.delta, meaning, low=0.0, high=1.0),
            scale=validate.nonnegative("scale", self.scale, "factor on the published radius"),
        )
        if self.time_uniform:
            self._horizon()

    @classmethod
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """The published tuning with delta = 0.01; keywords replace single values."""
        cls._check_problem(problem)
        published = cls.tuning().items()
        tuned = {name: value(problem) for name, value in published if name not in overrides}
        return cls(problem=problem, **(tuned | overrides))

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        """How the paper sets each field from what is known; lambda = d unless it says more."""
        return {"regularization": lambda problem: float(problem.dim)}

    def _horizon(self) -> float:
        return self.problem.known("horizon", self.name)

    @property
    def _S(self) -> float:
        """Radius of the ball that theta is in."""
        return self.problem.known("radius", self.name)

    @property
    def _delta(self) -> float:
        return self.delta / self._horizon() if self.time_uniform else self.delta

    @property
    def least_bytes(self) -> int:
        return 8 * self.problem.dim**2

    @property
    def noise_size(self) -> int:
        return {"ucb": 0, "thompson": self.problem.dim, "randomized": 1}[self.exploration]

    @property
    def on_reward_scale(self) -> bool:
        return not self.linear

    def width(self, memory: Any) -> Floats:
        """`scale` times the published factor of ||x||_{H^-1} in the coming round, (n,)."""
        raise NotImplementedError

    def scores(self, memory: Any, arms: Floats) -> Scores:
        arms = self._arms(memory, arms)
        family, width = self.problem.family, self.width(memory)
        return index_scores(family, self.linear, memory.theta, memory.H, width, arms)

    def choose(self, memory: Any, arms: Floats, noise: Floats | None = None) -> Ints:
        if self.exploration == "thompson":
            arms = self._arms(memory, arms)
            slope = 1.0 if self.linear else self.problem.k_mu
            return thompson(memory.theta, memory.H, self.width(memory) / slope, arms, noise)
        if self.exploration == "randomized":
            return randomized(self.scores(memory, arms), noise)
        return super().choose(memory, arms)
