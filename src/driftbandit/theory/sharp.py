"""Theorem 1 for every lambda above 2 eta M k S / g, free of d; docs/theory.md has the proof.

The paper bounds the Gaussian x'W of Lemma A.7 by ||W|| and needs lambda >= 32 alpha d R^2 / 7. But
x'W is one number with variance at most alpha / lambda, and its moments are known.
"""

from __future__ import annotations

import math

from driftbandit.problem import Problem
from driftbandit.theory.domd import alpha, concordance, domd_radius, eta, lam
from driftbandit.theory.radius import Radius

SMALL, LARGE = 1e-6, 700.0  # where C is taken from its series, and where it leaves float64


def divergence_factor(v: float) -> float:
    """C(v) = (2 e^{v/2} Phi(sqrt(v)) - 1 - sqrt(2 v / pi)) / v, which is 1/2 at 0 and grows.

    E D_ell <= C(M^2 alpha / lambda) omega s^2 for x'W ~ N(0, s^2), s^2 <= alpha / lambda: at most
    the paper's 2 where v <= 2.9, and less than 1 where lambda >= alpha M^2.
    """
    if v > LARGE:
        return math.inf
    root, unit = math.sqrt(v), math.sqrt(2.0 / math.pi)
    if v < SMALL:
        return 0.5 + unit * root / 3.0 + v / 8.0
    both_tails = math.exp(v / 2.0) * (1.0 + math.erf(root / math.sqrt(2.0)))
    return (both_tails - 1.0 - unit * root) / v


def lam_floor(problem: Problem, *, step: float | None = None) -> float:
    """2 eta M k S / g, which lambda has to exceed (Lemma A.1)."""
    M, step = problem.family.self_concordance, step or eta(problem, sharp=True)
    return 2.0 * step * M * problem.k_mu * problem.S / problem.family.g


def sharp_lam(problem: Problem) -> float:
    """max{6 eta M k S / g, alpha M^2, c / g}: the paper's lambda (Theorem 2) without its d.

    From here on alpha = 3 eta / 2 and the paper's beta_t do; `sharp_radius` takes smaller ones.
    """
    M, g = concordance(problem, sharp=True), problem.family.g
    return max(3.0 * lam_floor(problem), alpha(problem, sharp=True) * M**2, problem.c_mu / g)


def least_lam(problem: Problem, *, sharp: bool) -> float:
    """The lambda of the paper's theorems, or `sharp_lam`."""
    return sharp_lam(problem) if sharp else lam(problem)


def sharp_alpha(problem: Problem, lam: float, *, step: float | None = None) -> float:
    """alpha = eta / (1 - 2 eta M k S / (g lambda)): 3 eta / 2 at the paper's first lambda, and
    near eta for a large one."""
    step = step or eta(problem, sharp=True)
    share = lam_floor(problem, step=step) / lam
    if share >= 1.0:
        raise ValueError(
            f"the sharper theorem needs a regularization above 2 eta M k S / g = "
            f"{lam_floor(problem, step=step):.4g}, got {lam:g}: raise it, or take sharp=False"
        )
    return step / (1.0 - share)


def mix_factor(problem: Problem, lam: float, *, step: float | None = None) -> float:
    """alpha C(M^2 alpha / lambda), where the paper's Lemma A.7 has 2 alpha = 3 eta."""
    wide = sharp_alpha(problem, lam, step=step)
    return wide * divergence_factor(problem.family.self_concordance**2 * wide / lam)


def sharp_radius(problem: Problem, *, gamma: float, lam: float, eta: float, delta: float) -> Radius:
    """beta_t^2 = 4 lam S^2 + 2 eta (1 + range^2/(4 g k)) log(pi^2 t^2 / (3 delta))
    + 2 eta (alpha C + 1/2) d log(1 + k n_t / (lam d g))."""
    g, k, d = problem.family.g, problem.k_mu, problem.dim
    logs = 2.0 * eta * (1.0 + problem.family.range**2 / (4.0 * g * k))
    factor = mix_factor(problem, lam, step=eta)
    if factor == math.inf:
        raise ValueError(f"no radius fits a regularization as small as {lam:g}: raise it")
    return Radius(
        constant=4.0 * lam * problem.S**2 + logs * math.log(math.pi**2 / (3.0 * delta)),
        log_round=2.0 * logs,
        log_mass=2.0 * eta * (factor + 0.5) * d,
        mass=k / (lam * d * g),
        gamma=gamma,
    )


def radius_of(
    problem: Problem, *, gamma: float, lam: float, eta: float, delta: float, sharp: bool
) -> Radius:
    """The paper's beta_t, or `sharp_radius`."""
    make = sharp_radius if sharp else domd_radius
    return make(problem, gamma=gamma, lam=lam, eta=eta, delta=delta)
