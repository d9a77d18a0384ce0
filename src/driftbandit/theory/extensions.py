"""Beyond the paper, from its own lemmas; docs/theory.md has the proofs. Nothing here is claimed by
the paper, and nothing here is used unless asked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftbandit.problem import Problem
from driftbandit.theory.bounds import regret_bound_drifting
from driftbandit.theory.domd import (
    Floats,
    case,
    clip_discount,
    drift_of_moves,
    iota,
    path_length,
)
from driftbandit.theory.radius import Radius


def forgetting_rebalanced(problem: Problem) -> float:
    """Unclipped 1 - gamma = sqrt(sqrt(k c) P_T / (d^{3/2} T)).

    lambda is at least 32 alpha d R^2 / 7, so iota / sqrt(lambda) <= sqrt(7 k / (24 g d R^2)), which
    has no c_mu. The paper bounds it by sqrt(2 eta k / c) and forgets too fast.
    """
    why = "the rebalanced discount"
    k, c, d = problem.k_mu, problem.c_mu, problem.dim
    drift = path_length(problem, why) / (d**1.5 * problem.known("horizon", why))
    return math.sqrt(math.sqrt(k * c) * drift)


def order_rebalanced(problem: Problem) -> float:
    """k^{9/8} c^{-3/8} d^{5/8} P^{1/4} T^{3/4} between the calm (k/sqrt(c)) d sqrt(T) and the
    restless k^{3/2} d^{-1/2} P."""
    why = "the regret bound"
    k, c, d, P = problem.k_mu, problem.c_mu, problem.dim, path_length(problem, why)
    T = problem.known("horizon", why)
    return {
        "calm": k / math.sqrt(c) * d * math.sqrt(T),
        "interior": k**1.125 * c**-0.375 * d**0.625 * P**0.25 * T**0.75,
        "restless": k**1.5 * P / math.sqrt(d),
    }[case(forgetting_rebalanced(problem), T)]


def observed_beta(radius: Radius, t: ArrayLike, H: ArrayLike, lam: float) -> Any:
    """beta_t with (log det H_t - d log lam) / d for its bound log(1 + k n_t / (lam d g)): never
    larger, and known to the learner. H is (..., d, d), in the scale of lam."""
    H = np.asarray(H, dtype=float)
    d = H.shape[-1]
    growth = np.linalg.slogdet(H)[1] / d - math.log(lam)
    square = radius.constant + radius.log_round * np.log(t) + radius.log_mass * growth
    return np.sqrt(square)


def drift_budget(
    problem: Problem, moves: ArrayLike, *, gamma: float, sharp: bool = False
) -> Floats:
    """iota V_t for t = 1, ..., T, from bounds on ||theta_{t+1} - theta_t||, t < T.

    With beta_t + iota V_t for beta_t the rule (eq. 3) is optimistic exactly: a round costs at most
    2 k (beta_t + iota V_t) ||x_t||, where the paper has 2 k iota V_t / sqrt(lambda) beside it.
    """
    lengths = np.asarray(moves, dtype=float) * problem.context_norm
    if lengths.ndim != 1 or not (lengths >= 0.0).all():
        raise ValueError("moves must be the lengths of the moves of theta, one for each round")
    return iota(problem, sharp=sharp) * drift_of_moves(lengths, gamma)


def least_discount(problem: Problem, *, delta: float, sharp: bool = False) -> float:
    """The gamma in [1/T, 1 - 1/T] at which `regret_bound_drifting` is least: the rebalanced order
    with its constants, found by search."""
    from scipy.optimize import minimize_scalar

    T = problem.known("horizon", "the rebalanced discount")

    def bound(log_forgetting: float) -> float:
        gamma = clip_discount(math.exp(log_forgetting), T)
        return regret_bound_drifting(problem, gamma=gamma, delta=delta, sharp=sharp)

    span = math.log(1.0 / T), math.log1p(-1.0 / T)
    found = minimize_scalar(bound, bounds=span, method="bounded", options={"xatol": 1e-6})
    return clip_discount(math.exp(found.x), T)
