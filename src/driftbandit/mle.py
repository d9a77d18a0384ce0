"""Penalised maximum likelihood over a stored history, and projections of its estimate.

The history of a learner is X (capacity, d) and r (capacity,), of which the first `size` rows
count; row s has the weight gamma^(size-1-s), newest 1. Everything here revisits all of it:

    g(theta) = sum_s w_s mu(x_s'theta) x_s + ridge theta,     J = its derivative
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.compiled import borrow, kernel
from driftbandit.linalg import dot, factor, solve
from driftbandit.links import Link, d2mu, m, mu_dmu
from driftbandit.projection import project_ball

Floats = NDArray[np.float64]

TOLERANCE = 1e-10  # error of an estimate that counts as exact: the square of the last decrement


class Data(NamedTuple):
    """What one estimate is computed from."""

    link: Link
    X: Floats  # (capacity, d)
    r: Floats  # (capacity,)
    size: int
    gamma: float
    ridge: float


@kernel
def score_map(data: Data, theta: Floats, G: Floats, J: Floats) -> None:
    """G = g(theta) and J = dg/dtheta, in one pass over the history.

    Four rows at a time, newest first, so that G and J are written once for four; rows that do not
    exist have weight 0.
    """
    d, w, gamma, X = theta.size, 1.0, data.gamma, borrow(data.X)
    G[:] = 0.0
    J[:] = 0.0
    for a in range(data.size - 1, -1, -4):
        b, c, e = max(a - 1, 0), max(a - 2, 0), max(a - 3, 0)
        wb = w * gamma if a >= 1 else 0.0
        wc = wb * gamma if a >= 2 else 0.0
        we = wc * gamma if a >= 3 else 0.0
        za = zb = zc = ze = 0.0
        for j in range(d):
            th = theta[j]
            za, zb, zc, ze = (
                za + th * X[a, j],
                zb + th * X[b, j],
                zc + th * X[c, j],
                ze + th * X[e, j],
            )
        ma, sa = mu_dmu(data.link, za)
        mb, sb = mu_dmu(data.link, zb)
        mc, sc = mu_dmu(data.link, zc)
        me, se = mu_dmu(data.link, ze)
        ma, mb, mc, me = w * ma, wb * mb, wc * mc, we * me
        sa, sb, sc, se = w * sa, wb * sb, wc * sc, we * se
        for j in range(d):
            xa, xb, xc, xe = X[a, j], X[b, j], X[c, j], X[e, j]
            G[j] += (ma * xa + mb * xb) + (mc * xc + me * xe)
            xa, xb, xc, xe = sa * xa, sb * xb, sc * xc, se * xe
            for k in range(j + 1):
                J[j, k] += (xa * X[a, k] + xb * X[b, k]) + (xc * X[c, k] + xe * X[e, k])
        w = we * gamma
    for j in range(d):
        G[j] += data.ridge * theta[j]
        J[j, j] += data.ridge
        for k in range(j):
            J[k, j] = J[j, k]


@kernel
def loss(data: Data, theta: Floats) -> float:
    """sum_s w_s (m(z_s) - r_s z_s) + ridge/2 ||theta||^2, whose gradient is g(theta) - b."""
    total, w = 0.5 * data.ridge * dot(theta, theta), 1.0
    for s in range(data.size - 1, -1, -1):
        z = dot(data.X[s], theta)
        total += w * (m(data.link, z) - data.r[s] * z)
        w *= data.gamma
    return total


@kernel
def fit(data: Data, b: Floats, theta: Floats) -> None:
    """Solve g(theta) = b = sum_s w_s r_s x_s by damped Newton steps from the theta given.

    Near the solution the error after a step is the square of the decrement before it, so a step
    whose decrement is below 1e-5 is the last. Far from it a step is halved until the loss falls.
    """
    d = theta.size
    G, J, F, step = np.empty(d), np.empty((d, d)), np.empty((d, d)), np.empty(d)
    for _ in range(100):
        score_map(data, theta, G, J)
        for j in range(d):
            G[j] = b[j] - G[j]
        factor(J, F)
        solve(F, G, step)
        decrement = math.sqrt(max(0.0, dot(G, step)))
        if decrement > 0.3:
            before = loss(data, theta)
            while loss(data, theta + step) > before - 1e-4 * dot(G, step) and dot(G, step) > 1e-14:
                step *= 0.5
        theta += step
        if decrement < math.sqrt(TOLERANCE):
            return


class Goal(NamedTuple):
    """What a projection minimises over the ball: half the square of ||u|| in some metric, where
    u = g(v) - target, less the best correction e of norm ||e||_{Vt^-1} <= beta where beta > 0."""

    target: Floats  # (d,)
    variable: bool  # the metric is J(v)^-1, not `metric`
    metric: Floats  # (d, d)
    beta: float
    root: Floats  # (d, d) lower, root root' = Vt


@kernel
def fixed_goal(target: Floats, Q: Floats) -> Goal:
    """||g(v) - target||_{Q^-1} (Filippi et al. 2010)."""
    return Goal(target, False, np.ascontiguousarray(np.linalg.inv(Q)), 0.0, Q)


@kernel
def variable_goal(target: Floats, V: Floats) -> Goal:
    """||g(v) - target||_{J(v)^-1} (Wang, Zhao and Zhou 2023)."""
    return Goal(target, True, V, 0.0, V)


@kernel
def bvd_goal(target: Floats, V: Floats, Vt: Floats, beta: float) -> Goal:
    """||g(v) + e - target||_{V^-2} with ||e||_{Vt^-1} <= beta (Faury et al. 2021)."""
    inverse = np.linalg.inv(V)
    root = np.ascontiguousarray(np.linalg.cholesky(Vt))
    return Goal(target, False, np.ascontiguousarray(inverse @ inverse), beta, root)


@kernel
def assess(data: Data, goal: Goal, v: Floats) -> tuple[float, Floats, Floats]:
    """The goal at v, its gradient, and its Gauss-Newton matrix."""
    d = v.size
    u, J = np.empty(d), np.empty((d, d))
    score_map(data, v, u, J)
    u -= goal.target
    if goal.variable:
        q = solved(J, u)
        return 0.5 * dot(u, q), bent(data, v, q, u), J
    if goal.beta > 0.0:
        u = unabsorbed(goal, u)
    pull = goal.metric @ u
    return 0.5 * dot(u, pull), J @ pull, np.ascontiguousarray(J @ goal.metric @ J)


@kernel
def solved(A: Floats, b: Floats) -> Floats:
    """A^-1 b."""
    F, u = np.empty(A.shape), np.empty(b.size)
    factor(A, F)
    solve(F, b, u)
    return u


@kernel
def bent(data: Data, v: Floats, q: Floats, u: Floats) -> Floats:
    """u - 1/2 sum_s w_s mu''(x_s'v) (x_s'q)^2 x_s: the gradient where the metric moves with v."""
    slope, w = u.copy(), 1.0
    for s in range(data.size - 1, -1, -1):
        x = data.X[s]
        pull = 0.5 * w * d2mu(data.link, dot(x, v)) * dot(x, q) ** 2
        for j in range(v.size):
            slope[j] -= pull * x[j]
        w *= data.gamma
    return slope


@kernel
def unabsorbed(goal: Goal, u: Floats) -> Floats:
    """u + e with the best correction e = beta root eta, ||eta|| <= 1: one ball projection."""
    across = np.ascontiguousarray(goal.root.T)
    A = goal.beta * goal.beta * (across @ goal.metric @ goal.root)
    aim: Floats = np.linalg.solve(goal.root, u) / -goal.beta  # type: ignore[assignment]
    eta = project_ball(A, aim, 1.0)
    return u + goal.beta * (goal.root @ eta)


@kernel
def project(data: Data, goal: Goal, start: Floats, S: float) -> Floats:
    """argmin of the goal over ||v|| <= S by projected Gauss-Newton steps from `start`, made to
    have norm S.

    Where the goal is quadratic in v a step is exact: the ball projection of the free minimiser in
    the goal's own matrix. A step is halved until the goal falls. The end is reached when the step
    promises, or brings, less than rounding.
    """
    v: Floats = start * (S / math.sqrt(dot(start, start)))
    value, slope, matrix = assess(data, goal, v)
    for _ in range(300):
        free: Floats = v - solved(matrix, slope)
        aim = project_ball(matrix, free, S) - v
        if -dot(slope, aim) <= 1e-13 * value:
            return v
        share, before = 1.0, value
        trial, slope_there, matrix_there = v, slope, matrix
        while share > 1e-8:
            trial = v + share * aim
            value, slope_there, matrix_there = assess(data, goal, trial)
            if value < before:
                break
            share *= 0.5
        if not value < before:
            return v
        v, slope, matrix = trial, slope_there, matrix_there
        if before - value <= 1e-14 * before:
            return v
    return v
