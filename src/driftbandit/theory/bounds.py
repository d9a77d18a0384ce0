"""Theorems 2 and 3: regret bounds with every constant, and their orders in three cases.

`sharp=True` bounds `DOMD.from_theory(problem, sharp=True)`: lambda and beta_t are those of
`theory.sharp`. `lam` and `gamma` may be any that the theorem allows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from driftbandit.problem import Problem
from driftbandit.theory.domd import (
    case,
    clip_discount,
    eta,
    forgetting_drifting,
    forgetting_piecewise,
    path_length,
)
from driftbandit.theory.piecewise import best_D, price_of_drift, tail, worst_round
from driftbandit.theory.radius import beta
from driftbandit.theory.sharp import least_lam, radius_of

WHY = "the regret bound"


def elliptical_potential(problem: Problem, gamma: float, lam: float) -> float:
    """(2g/c) [d log(1 + k/(lam d g (1-gamma))) + T d log(1/gamma)], a bound on sum_t ||x_t||^2
    in the norms H_t^-1 (Lemma B.2)."""
    g, d = problem.family.g, problem.dim
    mass = problem.k_mu / (lam * d * g * (1.0 - gamma))
    rounds = problem.known("horizon", WHY)
    return (2.0 * g / problem.c_mu) * d * (math.log1p(mass) - rounds * math.log(gamma))


def _exploration(
    problem: Problem, gamma: float, lam: float | None, delta: float, sharp: bool
) -> float:
    """2 k beta_T sqrt(T * potential), the term both bounds share; it needs gamma < 1."""
    if not 0.0 < gamma < 1.0 or not 0.0 < delta <= 1.0:
        raise ValueError(f"the bound needs 0 < gamma < 1 and 0 < delta <= 1, got {gamma}, {delta}")
    T, lam = problem.known("horizon", WHY), least_lam(problem, sharp=sharp) if lam is None else lam
    step = eta(problem, sharp=sharp)
    radius = radius_of(problem, gamma=gamma, lam=lam, eta=step, delta=delta, sharp=sharp)
    potential = elliptical_potential(problem, gamma, lam)
    return 2.0 * problem.k_mu * beta(radius, T) * math.sqrt(T * potential)


def regret_bound_drifting(
    problem: Problem,
    *,
    gamma: float | None = None,
    lam: float | None = None,
    delta: float,
    sharp: bool = False,
) -> float:
    """2 k S + 2 k beta_T sqrt(T potential) + 4 k iota lam^{-1/2} P_T (1-gamma)^{-3/2}.

    The last display of the proof of Theorem 2; holds with probability 1 - delta at scale 1.
    """
    if gamma is None:
        gamma = clip_discount(forgetting_drifting(problem), problem.known("horizon", WHY))
    exploration = _exploration(problem, gamma, lam, delta, sharp)
    k, P = problem.k_mu, path_length(problem, WHY)
    price = price_of_drift(problem, lam, sharp=sharp)
    return 2.0 * k * problem.S + exploration + 4.0 * k * price * P / (1.0 - gamma) ** 1.5


def regret_bound_piecewise(
    problem: Problem,
    *,
    gamma: float | None = None,
    lam: float | None = None,
    delta: float,
    sharp: bool = False,
    D: int | None = None,
    worst: float | None = None,
) -> float:
    """min over whole D >= 1 of r (Gamma D + 1) + 2 k beta_T sqrt(T potential)
    + 8 S k iota lam^{-1/2} Gamma gamma^{D/2} (1-gamma)^{-3/2}.

    The decomposition in the proof of Theorem 3, eq. (C.1), where r is what a round can cost:
    `worst_round`, or `worst`. The paper has worst=family.R, and in eq. (C.2) D=D_gamma.
    """
    G = problem.known("change_points", WHY)
    if gamma is None:
        gamma = clip_discount(forgetting_piecewise(problem), problem.known("horizon", WHY))
    exploration = _exploration(problem, gamma, lam, delta, sharp)
    r = worst_round(problem) if worst is None else worst
    D = best_D(problem, gamma, lam=lam, sharp=sharp, worst=worst) if D is None else D
    return r * (G * D + 1.0) + exploration + G * tail(problem, gamma, D, lam=lam, sharp=sharp)


class Terms(NamedTuple):
    """The terms of a theorem's first display, without constants and logarithms."""

    exploration: float  # (k / sqrt(c)) d sqrt(T)
    forgetting: float  # (k / sqrt(c)) d T sqrt(1 - gamma)
    drift: float


def terms_drifting(problem: Problem, gamma: float) -> Terms:
    """Theorem 2 for any gamma; the last term is (k^{3/2} / sqrt(c)) P_T (1-gamma)^{-3/2}."""
    k, c, P = problem.k_mu, problem.c_mu, path_length(problem, WHY)
    return Terms(*_common(problem, gamma), k**1.5 / math.sqrt(c) * P / (1.0 - gamma) ** 1.5)


def terms_piecewise(problem: Problem, gamma: float) -> Terms:
    """Theorem 3 for any gamma; the last term is Gamma_T / (1-gamma)."""
    return Terms(*_common(problem, gamma), problem.known("change_points", WHY) / (1.0 - gamma))


def _common(problem: Problem, gamma: float) -> tuple[float, float]:
    T = problem.known("horizon", WHY)
    factor = problem.k_mu / math.sqrt(problem.c_mu) * problem.dim
    return factor * math.sqrt(T), factor * T * math.sqrt(1.0 - gamma)


def order_drifting(problem: Problem) -> float:
    """Theorem 2 with its gamma, by regime: (k/sqrt(c)) d sqrt(T), then
    (k^{9/8}/sqrt(c)) d^{3/4} P^{1/4} T^{3/4}, then (k^{3/2}/sqrt(c)) P."""
    k, c, d, P = problem.k_mu, problem.c_mu, problem.dim, path_length(problem, WHY)
    T = problem.known("horizon", WHY)
    return {
        "calm": k * d * math.sqrt(T),
        "interior": k**1.125 * d**0.75 * P**0.25 * T**0.75,
        "restless": k**1.5 * P,
    }[case(forgetting_drifting(problem), T)] / math.sqrt(c)


def order_piecewise(problem: Problem) -> float:
    """Theorem 3 with its gamma, by regime: (k/sqrt(c)) d sqrt(T), then
    (k^{2/3}/c^{1/3}) d^{2/3} Gamma^{1/3} T^{2/3}, then Gamma."""
    k, c, d, G = problem.k_mu, problem.c_mu, problem.dim, problem.known("change_points", WHY)
    T = problem.known("horizon", WHY)
    return {
        "calm": k / math.sqrt(c) * d * math.sqrt(T),
        "interior": ((k * d * T) ** 2 * G / c) ** (1.0 / 3.0),
        "restless": G,
    }[case(forgetting_piecewise(problem), T)]
