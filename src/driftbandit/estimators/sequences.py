"""Confidence sequences: lower bounds that hold at every moment at once, for means that drift.

Payoffs phi_i are at least -k with means nu_i in [0, top] given the past, m_i is a forecast in
[0, top], and b = top + k. For y >= -1 and 0 <= l < 1 (Fan, Grama and Liu 2015)

    exp(l y - psi(l) y^2) <= 1 + l y,   psi(l) = -log(1 - l) - l,

so with S = sum (phi_i - nu_i)/b and V = sum ((phi_i - m_i)/b)^2 the process exp(l S - psi(l) V) is
a supermartingale that starts at 1, and so is its mixture over l with density proportional to
(1 - l)^(rho - 1) e^(rho l), which is a gamma integral (Howard, Ramdas, McAuliffe and Sekhon 2021):

    M = rho^rho / gamma(rho, rho) e^(S + V) (S + V + rho)^-(V + rho) gamma(V + rho, S + V + rho).

With probability 1 - alpha it never reaches 1/alpha (Ville). All means for which it has not are the
confidence set. Nothing is assumed of how the means move or what comes next, and S and V are sums,
so a stretch of rows has its own sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit.estimators.increments import DEPTHS, Floats, scales

RHO = 10.0  # the mixture is tightest at V of about ten times that
STEPS = 60  # bisections: to the last digit


def log_mixture(S: Any, V: Any) -> Floats:
    """log M of S and V, of any shape; -inf below S = 0, where no bet is won."""
    from scipy.special import gammainc, gammaln

    S, V = np.broadcast_arrays(np.asarray(S, dtype=float), np.asarray(V, dtype=float))
    s = np.maximum(S, 0.0)
    a, x = V + RHO, s + V + RHO
    constant = RHO * np.log(RHO) - gammaln(RHO) - np.log(gammainc(RHO, RHO))
    log_m = constant + s + V - a * np.log(x) + gammaln(a) + np.log(gammainc(a, x))
    return np.where(S < 0.0, -np.inf, log_m)


def lower(n: Any, phi: Floats, V: Floats, alpha: float, top: float) -> Floats:
    """Lower bounds on the mean of nu over stretches of n rows: the sums `phi` and `V` of a `Bettor`
    are (..., k). The capital is spread evenly over the depths k."""
    n = np.asarray(n, dtype=float)
    low, high = np.zeros(phi.shape[:-1]), np.full(phi.shape[:-1], top)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        capital = _log_capital(n, phi, V, middle, top)
        refuted = capital >= -np.log(alpha)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def _log_capital(n: Floats, phi: Floats, V: Floats, mean: Floats, top: float) -> Floats:
    """Log of what all bets against this mean have made of 1."""
    S = (phi - (n * mean)[..., None]) / scales(top)
    return np.logaddexp.reduce(log_mixture(S, V), axis=-1) - np.log(len(DEPTHS))
