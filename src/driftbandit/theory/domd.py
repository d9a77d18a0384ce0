"""Every constant of the paper's theorems, one function per symbol; no state, no data.

Symbols follow the paper: S bounds |x'theta| (for contexts of norm L it is radius * L), R the
rewards, c_mu <= mu' <= k_mu on [-S, S], g = g(tau). Where the proofs use R as the constant of
|mu''| <= R mu', the family's `self_concordance` M stands here; M = R except for Poisson rewards.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftbandit.problem import Problem
from driftbandit.theory.radius import Radius, beta, discounted_count

Floats = NDArray[np.float64]


def eta(problem: Problem) -> float:
    """Step size eta = 1 + R S (eq. 1)."""
    return 1.0 + problem.family.self_concordance * problem.S


def alpha(problem: Problem) -> float:
    """alpha = 3 eta / 2 (Theorem 1)."""
    return 1.5 * eta(problem)


def iota(problem: Problem) -> float:
    """iota = sqrt(2 eta k_mu / g), the price of drift (Theorem 1)."""
    return math.sqrt(2.0 * eta(problem) * problem.k_mu / problem.family.g)


def lam(problem: Problem) -> float:
    """lambda = max{6 eta R k_mu S / g, 32 alpha d R^2 / 7, c_mu / g} (Theorem 2)."""
    M, g = problem.family.self_concordance, problem.family.g
    return max(
        6.0 * eta(problem) * M * problem.k_mu * problem.S / g,
        32.0 * alpha(problem) * problem.dim * M**2 / 7.0,
        problem.c_mu / g,
    )


def domd_radius(problem: Problem, *, gamma: float, lam: float, eta: float, delta: float) -> Radius:
    """beta_t^2 = 4 lam S^2 + 2 eta (1 + R^2/(g k)) log(pi^2 t^2 / (3 delta))
    + 2 eta (3 eta + 1/2) d log(1 + k n_t / (lam d g))   (Theorem 1)."""
    R, g, k, d = problem.family.R, problem.family.g, problem.k_mu, problem.dim
    logs = 2.0 * eta * (1.0 + R**2 / (g * k))
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
    moves = np.linalg.norm(np.diff(path, axis=0), axis=1)
    V = np.zeros(len(path))
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
    u, T = forgetting(problem), problem.known("horizon", "the regime")
    return "calm" if u < 1.0 / T else "restless" if u > 1.0 - 1.0 / T else "interior"


def elliptical_potential(problem: Problem, gamma: float, lam: float) -> float:
    """(2g/c) [d log(1 + k/(lam d g (1-gamma))) + T d log(1/gamma)], a bound on sum_t ||x_t||^2
    in the norms H_t^-1 (Lemma: discounted elliptical potential)."""
    g, d = problem.family.g, problem.dim
    T = problem.known("horizon", "the regret bound")
    mass = problem.k_mu / (lam * d * g * (1.0 - gamma))
    return (2.0 * g / problem.c_mu) * d * (math.log1p(mass) - T * math.log(gamma))


def _exploration(problem: Problem, gamma: float, delta: float) -> float:
    """2 k beta_T sqrt(T * potential), the term both bounds share; it needs gamma < 1."""
    if not 0.0 < gamma < 1.0 or not 0.0 < delta <= 1.0:
        raise ValueError(f"the bound needs 0 < gamma < 1 and 0 < delta <= 1, got {gamma}, {delta}")
    T, regularization = problem.known("horizon", "the regret bound"), lam(problem)
    radius = domd_radius(problem, gamma=gamma, lam=regularization, eta=eta(problem), delta=delta)
    potential = elliptical_potential(problem, gamma, regularization)
    return 2.0 * problem.k_mu * beta(radius, T) * math.sqrt(T * potential)


def regret_bound_drifting(problem: Problem, *, gamma: float | None = None, delta: float) -> float:
    """2 k S + 2 k beta_T sqrt(T potential) + 4 k iota lam^{-1/2} P_T (1-gamma)^{-3/2}.

    The last display of the proof of Theorem 2; holds with probability 1 - delta at scale 1.
    """
    T = problem.known("horizon", "the regret bound")
    gamma = clip_discount(forgetting_drifting(problem), T) if gamma is None else gamma
    k, P = problem.k_mu, path_length(problem, "the regret bound")
    exploration = _exploration(problem, gamma, delta)
    drift = 4.0 * k * iota(problem) * P / math.sqrt(lam(problem)) / (1.0 - gamma) ** 1.5
    return 2.0 * k * problem.S + exploration + drift


def regret_bound_piecewise(problem: Problem, *, gamma: float | None = None, delta: float) -> float:
    """min over whole D >= 1 of R (Gamma D + 1) + 2 k beta_T sqrt(T potential)
    + 8 S k iota lam^{-1/2} Gamma gamma^{D/2} (1-gamma)^{-3/2}.

    The decomposition in the proof of Theorem 3. The sum of the two terms in D is convex, so its
    whole-number minimum is next to the root of its derivative.
    """
    T, G = problem.known("horizon", "the regret bound"), problem.known("change_points", "the bound")
    gamma = clip_discount(forgetting_piecewise(problem), T) if gamma is None else gamma
    k, R = problem.k_mu, problem.family.R
    exploration = _exploration(problem, gamma, delta)
    tail = 8.0 * problem.S * k * iota(problem) / math.sqrt(lam(problem)) / (1.0 - gamma) ** 1.5
    rate = -0.5 * math.log(gamma)
    root = max(1.0, math.log(max(tail * rate / R, 1e-300)) / rate)
    change = min(R * D + tail * math.exp(-rate * D) for D in (math.floor(root), math.ceil(root)))
    return R + exploration + G * change


def glb_omd_lam(problem: Problem) -> float:
    """lambda = max{14 d eta R^2, 6 eta R S k_mu / g} of GLB-OMD (Zhang et al. 2025)."""
    M, step = problem.family.self_concordance, eta(problem)
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
