"""Index rules on an estimate theta with a metric H: optimism, or Thompson sampling."""

from __future__ import annotations


import numpy as np

from driftbandit.compiled import direct, kernel
from driftbandit.linalg import dot, factor, inverse_norm, whiten
from driftbandit.links import Link, mu
from driftbandit.policies.policy import Floats, Ints, Scores

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
    arms = np.ascontiguousarray(arms, dtype=float)
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
