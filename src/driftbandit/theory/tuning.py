"""Which lambda and gamma to take of those that the sharper theorem allows (docs/theory.md).

`least_bound` minimises the theorem's own bound. `tracking_lam` balances what the estimate costs:
noise, which a large lambda averages out, and lag, which it causes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from driftbandit.problem import Problem
from driftbandit.theory.bounds import WHY, regret_bound_drifting, regret_bound_piecewise
from driftbandit.theory.domd import clip_discount, discount, eta, path_length
from driftbandit.theory.radius import beta
from driftbandit.theory.sharp import lam_floor, sharp_lam, sharp_radius

OBJECTIVES = ("bound", "tracking")
MARGIN = 1.01  # how far lambda stays above its floor in a search: at the floor beta is infinite
FURTHEST = 1e4  # times the least lambda: further a search does not look


class Tuned(NamedTuple):
    """A regularization and a discount that the theorem allows, and its bound on the regret."""

    lam: float
    gamma: float
    bound: float


def tuned(
    problem: Problem,
    objective: str = "bound",
    *,
    delta: float,
    lam: float | None = None,
    gamma: float | None = None,
) -> Tuned:
    """lambda and gamma at which an objective is least; what is given stays as it is."""
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}")
    if objective == "bound":
        return least_bound(problem, delta=delta, lam=lam, gamma=gamma)
    gamma = discount(problem) if gamma is None else gamma
    lam = tracking_lam(problem, gamma=gamma, delta=delta) if lam is None else lam
    return Tuned(lam, gamma, sharp_bound(problem, lam, gamma, delta))


def sharp_bound(problem: Problem, lam: float, gamma: float, delta: float) -> float:
    """Theorem 3's where the number of change points is known, else Theorem 2's."""
    known = problem.change_points is not None
    bound = regret_bound_piecewise if known else regret_bound_drifting
    return bound(problem, lam=lam, gamma=gamma, delta=delta, sharp=True)


def least_bound(
    problem: Problem, *, delta: float, lam: float | None = None, gamma: float | None = None
) -> Tuned:
    """The lambda and gamma at which `sharp_bound` is least: a search for gamma, with a search for
    lambda in each of its steps. What is given stays as it is."""
    T = problem.known("horizon", WHY)

    def best_lam(u: float) -> float:
        return (
            _least(lambda x: sharp_bound(problem, x, 1.0 - u, delta), *_allowed(problem))
            if lam is None
            else lam
        )

    def bound(u: float) -> float:
        return sharp_bound(problem, best_lam(u), 1.0 - u, delta)

    gamma = clip_discount(_least(bound, 1.0 / T, 1.0 - 1.0 / T), T) if gamma is None else gamma
    found = best_lam(1.0 - gamma)
    return Tuned(found, gamma, sharp_bound(problem, found, gamma, delta))


def narrowest_lam(problem: Problem, *, gamma: float, delta: float) -> float:
    """The lambda at which beta_T is least; below it the radius grows, and the noise with it."""
    T, step = problem.known("horizon", WHY), eta(problem, sharp=True)

    def width(lam: float) -> float:
        return beta(sharp_radius(problem, gamma=gamma, lam=lam, eta=step, delta=delta), T)

    return _least(width, *_allowed(problem))


def tracking_lam(problem: Problem, *, gamma: float, delta: float) -> float:
    """lambda for the curvature at which noise and lag of the estimate are least together,
    `tracking_curvature` minus what the rewards add, w / (d g (1-gamma)); at least
    `narrowest_lam`."""
    rewards = _slope(problem) / (problem.dim * problem.family.g * max(1.0 - gamma, 1e-12))
    least = narrowest_lam(problem, gamma=gamma, delta=delta)
    return max(least, tracking_curvature(problem) - rewards)


def tracking_curvature(problem: Problem) -> float:
    """The curvature h at which `tracking_error` is least."""
    return _least(lambda h: tracking_error(problem, h), 1e-6, 1e12)


def tracking_error(problem: Problem, h: float) -> float:
    """d eta / (2 h) + (v tau)^2 + n S^2 tau / (2 T): the mean ||theta_t - theta*_t||^2 of mirror
    descent with curvature h, linearised: noise, lag behind a drift, lag after a jump.

    w = sqrt(k c) is a slope in the middle, tau = d g h / (eta w) the rounds it takes to follow. A
    drift has speed v = P_T / T. n = 1 for the way from theta_1 = 0, and 4 for each change of sign.
    """
    T, step = problem.known("horizon", WHY), eta(problem, sharp=True)
    tau = problem.dim * problem.family.g * h / (step * _slope(problem))
    if problem.change_points is not None:
        lag, jumps = 0.0, 4.0 * problem.change_points + 1.0
    else:
        lag, jumps = (path_length(problem, WHY) / T * tau) ** 2, 1.0
    return problem.dim * step / (2.0 * h) + lag + jumps * problem.S**2 * tau / (2.0 * T)


def _slope(problem: Problem) -> float:
    return math.sqrt(problem.k_mu * problem.c_mu)


def _allowed(problem: Problem) -> tuple[float, float]:
    """Between which lambdas a search looks."""
    M, g = problem.family.self_concordance, problem.family.g
    tame = eta(problem, sharp=True) * M**2 / 100.0  # C(100) is 10^20: no minimum is below
    least = max(MARGIN * lam_floor(problem), problem.c_mu / g, tame)
    return least, FURTHEST * sharp_lam(problem)


def _least(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least, to six digits; an end counts too."""
    from scipy.optimize import minimize_scalar

    span, fine = (math.log(low), math.log(high)), {"xatol": 1e-7}
    found = minimize_scalar(
        lambda x: value(math.exp(x)), bounds=span, method="bounded", options=fine
    )
    return min((low, math.exp(found.x), high), key=value)
