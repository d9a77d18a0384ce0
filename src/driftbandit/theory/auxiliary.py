"""The auxiliary lemmas of Appendix A on a replayed run, and the repair of Lemma A.4's proof.

These are the steps behind the lemmas that `proof` checks; docs/theory.md says what each is for.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from driftbandit.families import Family
from driftbandit.theory.domd import Floats
from driftbandit.theory.losses import PAIRS
from driftbandit.theory.replay import Trace


@cache
def interval() -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return 0.5 * (nodes + 1.0), 0.5 * weights


class Control(NamedTuple):
    """Lemma A.5's integral and the two sides that it lies between, (n, T) each."""

    below: Floats
    integral: Floats
    above: Floats


def self_concordance_control(family: Family, v: Floats, z: Floats) -> Control:
    """mu'(v)/(2 + R |z|) <= int_0^1 (1-s) mu'(v + s z) ds <= exp(R^2 z^2/4) mu'(v)."""
    nodes, weights = interval()
    slopes = family.dmu(v[..., None] + nodes * z[..., None])
    R, here = family.R, np.asarray(family.dmu(v))
    return Control(
        here / (2.0 + R * np.abs(z)),
        np.asarray(slopes @ (weights * (1.0 - nodes))),
        np.exp(0.25 * (R * z) ** 2) * here,
    )


def gauss_exp(spectrum: Floats, alpha: float, c: float) -> Floats:
    """E exp(c ||Z||^2) for Z ~ N(0, alpha H^-1), by the eigenvalues of H, (..., d): the product of
    (1 - 2 alpha c / h)^(-1/2), infinite where an eigenvalue is 2 alpha c or less."""
    left = 1.0 - 2.0 * alpha * c / spectrum
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((left > 0.0).all(axis=-1), np.prod(left, axis=-1) ** -0.5, np.inf)


def gauss_exp_applies(lam: float, alpha: float, d: int, c: float) -> bool:
    """lambda >= 32 alpha d c / 7, half of what Lemma A.6 asks for: E exp(c ||Z||^2) is then at most
    (1 - 7/(16 d))^(-d/2), which falls with d and is 4/3 at d = 1."""
    return lam >= (1.0 - 1e-12) * 32.0 * alpha * d * c / 7.0


def divergence_of_normals(family: Family, trace: Trace, alpha: float) -> Floats:
    """KL(Q_s || Pi_s) = 1/2 [log det H_{s+1}/A_s + tr(A_s H_{s+1}^-1) - d + move/alpha].

    H_{s+1} = A_s + omega x x', so the trace is d - omega ||x||^2 in the norm H_{s+1}^-1.
    """
    omega = family.dmu(trace.at_new) / family.g
    return 0.5 * (trace.log_gain - omega * trace.new_square + trace.move / alpha)


def wandered(trace: Trace, gamma: float) -> tuple[Floats, Floats]:
    """For every t the sums over s < t of gamma^{2(t-1-s)} (x_s'(theta*_t - theta*_s))^2, and of
    gamma^{t-1-s} ||theta*_t - theta*_s||^2, which has no x in it."""
    n, T = trace.r.shape
    seen, moved, step = np.zeros((n, T)), np.zeros((n, T)), max(1, PAIRS // (n * T))
    for start in range(0, T, step):
        t = np.arange(start, min(start + step, T))
        ages: Any = t[:, None] - 1 - np.arange(T)
        weight = np.where(ages >= 0, float(gamma) ** np.maximum(ages, 0), 0.0)
        z = np.einsum("ntd,nsd->nts", trace.star[:, t], trace.x) - trace.at_star[:, None]
        seen[:, t] = np.einsum("ts,nts->nt", weight**2, z**2)
        moved[:, t] = np.einsum("ts,nts->nt", weight, _distances(trace.star, t))
    return seen, moved


def _distances(star: Floats, t: Any) -> Floats:
    """||theta*_t - theta*_s||^2 for the rounds t and all s, (n, t, s)."""
    return np.asarray(np.sum((star[:, t, None] - star[:, None]) ** 2, axis=3))
