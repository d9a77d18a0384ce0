"""The losses of Theorem 1's proof on a replayed run: inverse regret, mix loss, drift loss."""

from __future__ import annotations

from functools import cache

import numpy as np

from driftbandit.families import Family
from driftbandit.theory.domd import Floats
from driftbandit.theory.replay import Trace

PAIRS = 2_000_000  # of rounds s < t in memory at once


@cache
def normal() -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss and Hermite for the standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    return nodes, weights / weights.sum()


def loss(family: Family, r: Floats, z: Floats) -> Floats:
    """ell(theta) = (m(z) - r z) / g at z = x'theta."""
    return np.asarray((family.m(z) - r * z) / family.g)


def mix_loss(family: Family, r: Floats, centre: Floats, variance: Floats) -> Floats:
    """-log E exp(-ell) for x'theta ~ N(centre, variance), by Gauss-Hermite quadrature.

    theta ~ N(theta_s, alpha A_s^-1) enters the loss only through x'theta.
    """
    nodes, weights = normal()
    z = centre[..., None] + np.sqrt(variance)[..., None] * nodes
    losses = loss(family, r[..., None], z)
    least = losses.min(axis=-1)
    return np.asarray(least - np.log(np.exp(least[..., None] - losses) @ weights))


def bregman(family: Family, centre: Floats, variance: Floats) -> Floats:
    """E D_ell(theta, centre) for x'theta ~ N(centre, variance): the slope has mean zero."""
    nodes, weights = normal()
    z = centre[..., None] + np.sqrt(variance)[..., None] * nodes
    return np.asarray((family.m(z) @ weights - family.m(centre)) / family.g)


def discounted(values: Floats, gamma: float) -> Floats:
    """sum_{s<t} gamma^{t-1-s} values_s for t = 1, ..., T; the time is the last axis."""
    sums = np.zeros_like(values)
    for t in range(1, values.shape[-1]):
        sums[..., t] = gamma * sums[..., t - 1] + values[..., t - 1]
    return sums


def drifted(family: Family, trace: Trace, gamma: float) -> tuple[Floats, Floats]:
    """For every t the discounted sums over s < t of ell_s(theta*_t), and of
    (x_s'(theta*_t - theta*_s))^2; the comparator moves, so each t needs all s."""
    n, T = trace.r.shape
    losses, squares, step = np.zeros((n, T)), np.zeros((n, T)), max(1, PAIRS // (n * T))
    ages = np.arange(T)[:, None] - 1 - np.arange(T)
    for start in range(0, T, step):
        t = slice(start, min(start + step, T))
        weight = np.where(ages[t] >= 0, float(gamma) ** np.maximum(ages[t], 0), 0.0)
        z = np.einsum("ntd,nsd->nts", trace.star[:, t], trace.x)
        at_t = loss(family, trace.r[:, None], z)
        losses[:, t] = np.einsum("ts,nts->nt", weight, at_t)
        squares[:, t] = np.einsum("ts,nts->nt", weight, (z - trace.at_star[:, None]) ** 2)
    return losses, squares
