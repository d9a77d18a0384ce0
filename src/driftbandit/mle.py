"""Penalised maximum likelihood over a stored history, and projections of its estimate.

    g(theta) = sum_s w_s mu(x_s'theta) x_s + ridge theta,     J = dg/dtheta,

with w_s = gamma^(size-1-s) over the rounds s of one learner, newest 1. Everything here revisits all
of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.families import Family, finite

Floats = NDArray[np.float64]

TOLERANCE = 1e-10  # error of an estimate that counts as exact: the square of the last decrement


class Data(NamedTuple):
    """What one estimate is computed from."""

    family: Family
    X: Floats  # (d, size)  contexts as columns, so that every operation runs along memory
    r: Floats  # (size,)
    w: Floats  # (size,)
    ridge: float


def weights(gamma: float, size: int, capacity: int) -> Floats:
    """gamma^(size-1), ..., gamma, 1; computed once for as many rounds as there is room for."""
    return _powers(gamma, capacity)[capacity - size :]


@lru_cache(maxsize=32)
def _powers(gamma: float, n: int) -> Floats:
    factors = np.full(n, gamma)
    factors[0] = 1.0
    return np.ascontiguousarray(np.cumprod(factors)[::-1])  # a product gives all n the same bits


def score_map(data: Data, theta: Floats) -> tuple[Floats, Floats]:
    """g(theta) (d,) and its derivative J = sum_s w_s mu'(x_s'theta) x_s x_s' + ridge I (d, d)."""
    X, w = data.X, data.w
    mean, slope = data.family.mu_dmu(theta @ X)
    J = (X * (w * slope)) @ X.T
    J.flat[:: len(J) + 1] += data.ridge
    return X @ (w * mean) + data.ridge * theta, J


def solve(A: Floats, b: Floats) -> Any:
    """A^-1 b, positive definite A; a hair on its diagonal keeps it so where the ridge is below the
    rounding of A. Newton's method arrives at the same solution with it."""
    A = A.copy()
    A.flat[:: len(A) + 1] += 1e-15 * A.trace()
    return np.linalg.solve(A, b)


def loss(data: Data, theta: Floats) -> float:
    """sum_s w_s (m(z_s) - r_s z_s) + ridge/2 ||theta||^2, whose gradient is g(theta) - b."""
    z = theta @ data.X
    with np.errstate(over="ignore"):  # of e^z, after too long a step
        misfit = data.w @ (finite(data.family, "m", z) - data.r * z)
    return float(misfit + 0.5 * data.ridge * (theta @ theta))


def fit(data: Data, b: Floats, theta: Floats) -> Floats:
    """Solve g(theta) = b = sum_s w_s r_s x_s by damped Newton steps from the theta given.

    Near the solution the error after a step is the square of the decrement before it, so a step
    whose decrement is below 1e-5 is the last.
    """
    for _ in range(100):
        G, J = score_map(data, theta)
        step = solve(J, b - G)
        gain = float((b - G) @ step)  # the decrement's square
        if gain > 0.3**2:
            step = damped(data, theta, step, gain)
        theta = theta + step
        if gain < TOLERANCE:
            break
    return theta


def damped(data: Data, theta: Floats, step: Floats, gain: float) -> Floats:
    """The step halved until the loss falls by 1e-4 of what its slope promises."""
    before = loss(data, theta)
    while gain > 1e-14 and loss(data, theta + step) > before - 1e-4 * gain:
        step, gain = 0.5 * step, 0.5 * gain
    return step


def project_ball(A: Floats, zeta: Floats, S: float) -> Floats:
    """argmin (v - zeta)' A (v - zeta) over ||v|| <= S; zeta (d,), A (d, d) positive definite.

    Outside the ball it is v(nu) = (A + nu I)^-1 A zeta with the nu at which ||v(nu)|| = S. In the
    eigenvectors of A that is a division. Newton's method on 1/S - 1/||v(nu)|| climbs to it from
    nu = 0 without overshooting (More and Sorensen 1983).
    """
    if zeta @ zeta <= S * S:
        return zeta
    a, U = np.linalg.eigh(A)
    a = np.maximum(a, 1e-16 * a[-1])  # none is negative but for rounding
    nu, free = 0.0, zeta @ U
    v, size = free, math.sqrt(free @ free)
    for _ in range(100):
        step = size**2 / (v @ (v / (a + nu))) * (size - S) / S
        if size <= S * (1.0 + 1e-14) or nu + step <= nu:  # rounding leaves no more to gain
            break
        nu += step
        v = free * (a / (a + nu))
        size = math.sqrt(v @ v)
    inside = U @ v
    return inside * min(1.0, S / math.sqrt(inside @ inside) * (1.0 - 2.0**-50))


class Local(NamedTuple):
    """A goal at some v: half the square of a norm of u = g(v) - target, which a projection
    minimises over the ball."""

    value: float
    slope: Floats  # (d,)
    matrix: Floats  # (d, d)  Gauss-Newton's
    step: Floats  # (d,)    matrix^-1 slope


Goal = Callable[[Floats], Local]


def fixed_goal(data: Data, target: Floats, Q: Floats) -> Goal:
    """||g(v) - target||_{Q^-1} (Filippi et al. 2010)."""
    metric: Any = np.linalg.inv(Q)

    def goal(v: Floats) -> Local:
        G, J = score_map(data, v)
        return _in_metric(metric, G - target, J)

    return goal


def variable_goal(data: Data, target: Floats) -> Goal:
    """||g(v) - target||_{J(v)^-1} (Wang, Zhao and Zhou 2023); as the metric moves with v, the
    gradient is u - 1/2 sum_s w_s mu''(x_s'v) (x_s'q)^2 x_s, q = J^-1 u."""

    def goal(v: Floats) -> Local:
        G, J = score_map(data, v)
        u = G - target
        q = solve(J, u)
        bend = data.w * data.family.d2mu(v @ data.X) * (q @ data.X) ** 2
        slope = u - 0.5 * (data.X @ bend)
        return Local(0.5 * float(u @ q), slope, J, solve(J, slope))

    return goal


def bvd_goal(data: Data, target: Floats, V: Floats, Vt: Floats, beta: float) -> Goal:
    """||g(v) + e - target||_{V^-2} with the best e of norm ||e||_{Vt^-1} <= beta, which is
    beta root eta, Vt = root root', ||eta|| <= 1: one ball projection (Faury et al. 2021)."""
    inverse, root = np.linalg.inv(V), np.linalg.cholesky(Vt)
    metric = inverse @ inverse
    A = beta**2 * (root.T @ metric @ root)

    def goal(v: Floats) -> Local:
        G, J = score_map(data, v)
        u = G - target
        eta = project_ball(A, np.linalg.solve(root, u) / -beta, 1.0)
        return _in_metric(metric, u + beta * (root @ eta), J)

    return goal


def _in_metric(metric: Floats, u: Floats, J: Floats) -> Local:
    """||u||_metric; (J metric J)^-1 J metric u is J^-1 u."""
    pull = metric @ u
    return Local(0.5 * float(u @ pull), J @ pull, J @ metric @ J, solve(J, u))


def project(goal: Goal, start: Floats, S: float) -> Floats:
    """argmin of the goal over ||v|| <= S by projected Gauss-Newton steps from `start`, made to
    have norm S.

    Where the goal is quadratic in v a step is exact: the ball projection of the free minimiser in
    the goal's own matrix. A step is halved until the goal falls. The end is reached when the step
    promises, or brings, less than rounding.
    """
    v = start * (S / math.sqrt(start @ start))
    here = goal(v)
    for _ in range(300):
        aim = project_ball(here.matrix, v - here.step, S) - v
        if -(here.slope @ aim) <= 1e-13 * here.value:
            break
        share, there = 1.0, goal(v + aim)
        while not there.value < here.value and share > 2e-8:
            share *= 0.5
            there = goal(v + share * aim)
        fall = here.value - there.value
        if not fall > 0.0:
            break
        v, here = v + share * aim, there
        if fall <= 1e-14 * (here.value + fall):
            break
    return v
