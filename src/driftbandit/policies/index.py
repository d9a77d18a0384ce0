"""Playing an index of an estimate theta and a metric H: optimism, or Thompson sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.compiled import direct, kernel
from driftbandit.linalg import dot, factor, inverse_norm, whiten
from driftbandit.links import Link, mu
from driftbandit.policies.policy import Floats, Ints, Policy, Scores
from driftbandit.problem import Problem

EXPLORATIONS = ("ucb", "thompson")


def check_exploration(exploration: str) -> None:
    """Raise ValueError unless it is a rule we have."""
    if exploration not in EXPLORATIONS:
        raise ValueError(f"exploration must be one of {EXPLORATIONS}, got {exploration!r}")


@kernel
def score_all(
    link: Link,
    linear: bool,
    theta: Floats,
    H: Floats,
    width: Floats,
    arms: Floats,
    mean: Floats,
    bonus: Floats,
) -> None:
    F, y = np.empty(H.shape[1:]), np.empty(H.shape[1])
    for i in range(len(theta)):
        factor(H[i], F)
        for a in range(arms.shape[1]):
            z = dot(arms[i, a], theta[i])
            mean[i, a] = z if linear else mu(link, z)
            bonus[i, a] = width[i] * inverse_norm(F, arms[i, a], y)


@kernel
def sample_all(theta: Floats, H: Floats, width: Floats, noise: Floats, out: Floats) -> None:
    """out = theta + width W'noise with W'W = H^-1: a draw from N(theta, width^2 H^-1)."""
    d = theta.shape[1]
    F, W = np.empty((d, d)), np.zeros((d, d))
    for i in range(len(theta)):
        factor(H[i], F)
        whiten(F, W)
        for k in range(d):
            total = 0.0
            for j in range(k, d):
                total += W[j, k] * noise[i, j]
            out[i, k] = theta[i, k] + width[i] * total


_score_all, _sample_all = direct(score_all), direct(sample_all)


def index_scores(
    link: Link, linear: bool, theta: Floats, H: Floats, width: Floats, arms: Floats
) -> Scores:
    """mu(x'theta), or x'theta if `linear`, and width ||x||_{H^-1}, for arms (n, N, d)."""
    mean, bonus = np.empty(arms.shape[:2]), np.empty(arms.shape[:2])
    _score_all(link, linear, theta, H, np.array(width, dtype=float), arms, mean, bonus)
    return Scores(mean, bonus, mean + bonus)


def thompson(theta: Floats, H: Floats, width: Floats, arms: Floats, noise: Floats | None) -> Ints:
    """The best arm of one draw from N(theta, width^2 H^-1) per learner."""
    if noise is None:
        raise ValueError(
            "Thompson sampling draws from noise: pass standard normals of shape (n, d)"
        )
    draw = np.empty_like(theta)
    _sample_all(theta, H, np.array(width, dtype=float), np.ascontiguousarray(noise), draw)
    return np.asarray(np.argmax(np.einsum("nad,nd->na", arms, draw), axis=1))


@dataclass(frozen=True, kw_only=True)
class IndexPolicy(Policy):
    """Base of the rivals; their memory holds `theta` (n, d) and the metric `H` (n, d, d).

    | here | papers | |
    |---|---|---|
    | `regularization` | lambda | in the convention of the rival's own paper |
    | `delta`, `scale` | delta | the bonus is `scale` times the published radius |
    | `time_uniform` | | delta/T instead of delta: valid for all rounds at once |
    | `exploration` | | "ucb", or "thompson" to sample theta instead of adding a bonus |
    """

    regularization: float
    delta: float = 0.01
    scale: float = 1.0
    time_uniform: bool = False
    exploration: str = "ucb"

    linear: ClassVar[bool] = False  # the index is on the linear scale, not on that of rewards

    def __post_init__(self) -> None:
        super().__post_init__()
        check_exploration(self.exploration)
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
    def _delta(self) -> float:
        return self.delta / self._horizon() if self.time_uniform else self.delta

    @property
    def noise_size(self) -> int:
        return self.problem.dim if self.exploration == "thompson" else 0

    @property
    def on_reward_scale(self) -> bool:
        return not self.linear

    def width(self, memory: Any) -> Floats:
        """`scale` times the published factor of ||x||_{H^-1} in the coming round, (n,)."""
        raise NotImplementedError

    def scores(self, memory: Any, arms: Floats) -> Scores:
        arms = self._arms(memory, arms)
        link, width = self.problem.family.link, self.width(memory)
        return index_scores(link, self.linear, memory.theta, memory.H, width, arms)

    def choose(self, memory: Any, arms: Floats, noise: Floats | None = None) -> Ints:
        if self.exploration == "thompson":
            arms = self._arms(memory, arms)
            slope = 1.0 if self.linear else self.problem.k_mu
            return thompson(memory.theta, memory.H, self.width(memory) / slope, arms, noise)
        return super().choose(memory, arms)
