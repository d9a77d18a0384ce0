"""Every constant of the paper's confidence set and tuning, one function per symbol; no state.

Symbols follow the paper: S bounds |x'theta| (for contexts of norm L it is radius * L), R the
rewards, c_mu <= mu' <= k_mu on [-S, S], g = g(tau).

`sharp=True` takes M, the family's own bound on |mu''|/mu', for R where R stands for that. The
lambda and beta_t of the sharper theorem are in `theory.sharp` (docs/theory.md says why).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftbandit.problem import Problem
from driftbandit.theory.radius import Radius, discounted_count

Floats = NDArray[np.float64]


def concordance(problem: Problem, *, sharp: bool = False) -> float:
    """M with |mu''| <= M mu': the paper's R (Proposition 1), or the family's own."""
    return problem.family.self_concordance if sharp else problem.family.R


def eta(problem: Problem, *, sharp: bool = False) -> float:
    """Step size eta = 1 + R S (eq. 1)."""
    return 1.0 + concordance(problem, sharp=sharp) * problem.S


def alpha(problem: Problem, *, sharp: bool = False) -> float:
    """alpha = 3 eta / 2 (Theorem 1)."""
    return 1.5 * eta(problem, sharp=sharp)


def iota(problem: Problem, *, sharp: bool = False) -> float:
    """iota = sqrt(2 eta k_mu / g), the price of drift (Theorem 1)."""
    return math.sqrt(2.0 * eta(problem, sharp=sharp) * problem.k_mu / problem.family.g)


def lam(problem: Problem) -> float:
    """lambda = max{6 eta R k_mu S / g, 32 alpha d R^2 / 7, c_mu / g} (Theorem 2)."""
    R, g = concordance(problem), problem.family.g
    return max(
        6.0 * eta(problem) * R * problem.k_mu * problem.S / g,
        32.0 * alpha(problem) * problem.dim * R**2 / 7.0,
        problem.c_mu / g,
    )


def domd_radius(problem: Problem, *, gamma: float, lam: float, eta: float, delta: float) -> Radius:
    """beta_t^2 = 4 lam S^2 + 2 eta (1 + R^2/(g k)) log(pi^2 t^2 / (3 delta))
    + 2 eta (3 eta + 1/2) d log(1 + k n_t / (lam d g))   (Theorem 1)."""
    g, k, d = problem.family.g, problem.k_mu, problem.dim
    logs = 2.0 * eta * (1.0 + problem.family.R**2 / (g * k))
    return Radius(
        constant=4.0 * lam * problem.S**2 + logs * math.log(math.pi**2 / (3.0 * delta)),
        log_round=2.0 * logs,
        log_mass=2.0 * eta * (3.0 * eta + 0.5) * d,
        mass=k / (lam * d * g),
        gamma=gamma,
    )


def drift_kernel(path: Floats, gamma: float) -> Floats:
    """V_t = sum_{p<t} gamma^{(t-1-p)/2} sqrt((1 - gamma^p)/(1 - gamma)) ||theta_{p+1} - theta_p||.

    `path` is (T, d), the true parameters; the result is V_1, ..., V_T with V_1 = 0.
    """
    return drift_of_moves(np.linalg.norm(np.diff(path, axis=0), axis=1), gamma)


def drift_of_moves(moves: Floats, gamma: float) -> Floats:
    """V_1, ..., V_T from the lengths of the T - 1 moves, or from bounds on them."""
    V = np.zeros(len(moves) + 1)
    for p, move in enumerate(moves, start=1):
        V[p] = math.sqrt(gamma) * V[p - 1] + math.sqrt(discounted_count(gamma, p + 1.0)) * move
    return V


def path_length(problem: Problem, why: str) -> float:
    """P_T of the problem with contexts of norm at most 1."""
    return problem.known("path_length", why) * problem.context_norm


def forgetting_drifting(problem: Problem) -> float:
    """Unclipped 1 - gamma = sqrt(sqrt(k_mu) P_T / (d T)) (Theorem 2)."""
    why = "the discount for a drifting world"
    P, T = path_length(problem, why), problem.known("horizon", why)
    return math.sqrt(math.sqrt(problem.k_mu) * P / (problem.dim * T))


def forgetting_piecewise(problem: Problem) -> float:
    """Unclipped 1 - gamma = (Gamma_T sqrt(c_mu) / (k_mu d T))^{2/3} (Theorem 3)."""
    why = "the discount for a piecewise-stationary world"
    G, T = problem.known("change_points", why), problem.known("horizon", why)
    return (G * math.sqrt(problem.c_mu) / (problem.k_mu * problem.dim * T)) ** (2.0 / 3.0)


def clip_discount(forgetting: float, T: float) -> float:
    """gamma = 1 - min{1 - 1/T, max{1/T, forgetting}}, which lies in [1/T, 1)."""
    if T < 2:
        raise ValueError(f"the tuned discount needs a horizon of at least 2 rounds, got {T:g}")
    return 1.0 - min(1.0 - 1.0 / T, max(1.0 / T, forgetting))


def forgetting(problem: Problem) -> float:
    """Theorem 3's where the number of change points is known, else Theorem 2's."""
    if problem.change_points is not None:
        return forgetting_piecewise(problem)
    if problem.path_length is None:
        raise ValueError(
            "the theory's discount needs path_length (a drifting world) or change_points (a "
            "piecewise-stationary one): pass Problem(..., path_length=...), 0 if theta never moves"
        )
    return forgetting_drifting(problem)


def discount(problem: Problem) -> float:
    """The tuned gamma of the theorem that fits what is known of the problem."""
    return clip_discount(forgetting(problem), problem.known("horizon", "the theory's discount"))


def regime(problem: Problem) -> str:
    """Which case of the three-case bounds applies: 'calm', 'interior' or 'restless'.

    calm: 1 - gamma is clipped up to 1/T; restless: it is clipped down to 1 - 1/T.
    """
    return case(forgetting(problem), problem.known("horizon", "the regime"))


def case(forgetting: float, T: float) -> str:
    """The regime of an unclipped 1 - gamma."""
    if forgetting < 1.0 / T:
        return "calm"
    return "restless" if forgetting > 1.0 - 1.0 / T else "interior"


def glb_omd_lam(problem: Problem, *, sharp: bool = False) -> float:
    """lambda = max{14 d eta R^2, 6 eta R S k_mu / g} of GLB-OMD (Zhang et al. 2025)."""
    M, step = concordance(problem, sharp=sharp), eta(problem, sharp=sharp)
    return max(
        14.0 * problem.dim * step * M**2,
        6.0 * step * M * problem.S * problem.k_mu / problem.family.g,
    )


def glb_omd_radius(problem: Problem, *, lam: float, eta: float, delta: float) -> Radius:
    """beta_t^2 = 4 lam S^2 + 2 eta log(1/delta) + d (6 eta^2 + eta) log(1 + k (t-1)/(lam d g))."""
    return Radius(
        constant=4.0 * lam * problem.S**2 + 2.0 * eta * math.log(1.0 / delta),
        log_round=0.0,
        log_mass=problem.dim * (6.0 * eta**2 + eta),
        mass=problem.k_mu / (lam * problem.dim * problem.family.g),
        gamma=1.0,
    )
