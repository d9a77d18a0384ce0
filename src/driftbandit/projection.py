"""Projections on the ball ||v|| <= S in the norm of a positive definite A, exact.

Outside the ball the minimiser of (v - zeta)' A (v - zeta) is v(nu) = (A + nu I)^-1 A zeta with the
nu at which ||v(nu)|| = S. Newton's method on 1/S - 1/||v(nu)|| climbs to it from nu = 0 without
overshooting (More and Sorensen 1983).
"""

from __future__ import annotations

import math

import numpy as np

from driftbandit.compiled import borrow, inlined, kernel
from driftbandit.linalg import (
    LOOPS_BELOW,
    Floats,
    add,
    add_outer,
    dot,
    factor,
    inverse_norm,
    put,
    put_all,
    solve,
)

STEPS = 64  # of Lanczos' method, at most; a handful is usual
CLOSE = 1.0 + 1e-14  # rounding leaves no more of S to gain


@kernel
def project_ball(A: Floats, zeta: Floats, S: float) -> Floats:
    """argmin (v - zeta)' A (v - zeta) over ||v|| <= S."""
    v = zeta.copy()
    if dot(v, v) > S * S:
        pull(A.copy(), v, S, np.empty_like(A), np.empty_like(v), np.empty_like(v))
    return v


@kernel
def pull(A: Floats, v: Floats, S: float, F: Floats, b: Floats, y: Floats) -> None:
    """v <- its projection, a factorisation of A + nu I a step; A becomes that, the rest is
    scratch."""
    for j in range(v.size):
        b[j] = dot(A[j], v)
    nu = size = 0.0
    for _ in range(100):
        factor(A, F)
        if nu > 0.0:
            solve(F, b, v)
        size = math.sqrt(dot(v, v))
        if size <= S * CLOSE:
            break
        step = (size / inverse_norm(F, v, y)) ** 2 * (size - S) / S
        if nu + step <= nu:
            break
        nu += step
        for j in range(v.size):
            A[j, j] += step
    inside(v, size, S)


@inlined
def inside(v: Floats, size: float, S: float) -> None:
    """Rounding never leaves the ball."""
    for j in range(v.size):
        v[j] *= min(1.0, S / size * (1.0 - 2.0**-50))


@inlined
def project_step(
    A: Floats,
    F: Floats,
    w: float,
    x: Floats,
    u: Floats,
    v: Floats,
    S: float,
    W: Floats,
    y: Floats,
) -> None:
    """v <- its projection in the norm of A + w x x', v outside the ball, u = A^-1 x.

    F is the factor of A, and stays it where LAPACK makes it; W (d, d) and y are scratch.
    """
    d = v.size
    if d >= LOOPS_BELOW and pull_along(F, w, x, u, v, S, W):
        return
    put_all(A, W)
    add_outer(W, w, x)
    if d < LOOPS_BELOW:
        pull(W, v, S, F, y[:d], y[d : 2 * d])
    else:
        put(project_ball(W, v, S), v)


@kernel
def pull_along(F: Floats, w: float, x: Floats, u: Floats, v: Floats, S: float, V: Floats) -> bool:
    """`pull` for A + w x x', given the factor F of A and u = A^-1 x: solves instead of
    factorisations. Whether it got there; V (d, d) is scratch.

    v(nu) = (I + nu M)^-1 zeta with M = (A + w x x')^-1. Lanczos' method makes an orthonormal basis
    of zeta, M zeta, M^2 zeta, ... in which M is tridiagonal, and v(nu) is in its span to 14 digits
    after about 8 steps, because nu is seldom large next to A.
    """
    u, v, V, q = borrow(u), borrow(v), borrow(V), np.empty_like(v)
    start, most = math.sqrt(np.dot(v, v)), min(v.size, STEPS)
    a, b, y = np.zeros(most), np.zeros(most), np.zeros((3, most))
    share, nu = w / (1.0 + w * np.dot(x, u)), 0.0
    for j in range(v.size):
        V[0, j] = v[j] / start
    for k in range(most):
        solve(F, V[k], q)
        add(-share * np.dot(u, V[k]), u, q)  # M V[k], by Sherman and Morrison
        a[k] = np.dot(q, V[k])
        for _ in range(2):  # once leaves what rounding left
            for i in range(k + 1):
                add(-np.dot(q, V[i]), V[i], q)
        b[k] = math.sqrt(np.dot(q, q))
        nu = climb(a[: k + 1], b, start, S, nu, y)
        if nu * b[k] * abs(y[0, k]) <= 1e-14:  # what is not in the span yet
            for j in range(v.size):
                v[j] = 0.0
            for i in range(k + 1):
                add(start * y[0, i], V[i], v)
            inside(v, math.sqrt(np.dot(v, v)), S)
            return True
        if k + 1 < most:
            for j in range(v.size):
                V[k + 1, j] = q[j] / b[k]
    return False


@kernel
def climb(a: Floats, b: Floats, start: float, S: float, nu: float, y: Floats) -> float:
    """The nu at which start ||(I + nu T)^-1 e_1|| = S; y[0] becomes the vector. T is tridiagonal
    with a on its diagonal and b beside it."""
    k = a.size
    e, f, c = y[0, :k], y[1, :k], y[2, :k]
    for _ in range(100):
        for i in range(k):
            e[i] = 1.0 if i == 0 else 0.0
        solve_tridiagonal(a, b, nu, e, c)
        square = dot(e, e)
        size = start * math.sqrt(square)
        if abs(size - S) <= S * (CLOSE - 1.0):
            break
        for i in range(k):  # f = T e
            f[i] = a[i] * e[i]
            if i > 0:
                f[i] += b[i - 1] * e[i - 1]
            if i + 1 < k:
                f[i] += b[i] * e[i + 1]
        solve_tridiagonal(a, b, nu, f, c)
        before, nu = nu, max(0.0, nu + square / dot(e, f) * (size - S) / S)
        if nu == before:
            break
    return nu


@kernel
def solve_tridiagonal(a: Floats, b: Floats, nu: float, y: Floats, c: Floats) -> None:
    """y <- (I + nu T)^-1 y; c is scratch."""
    pivot = 1.0 + nu * a[0]
    y[0] /= pivot
    for i in range(1, a.size):
        c[i] = nu * b[i - 1] / pivot
        pivot = 1.0 + nu * a[i] - nu * b[i - 1] * c[i]
        y[i] = (y[i] - nu * b[i - 1] * y[i - 1]) / pivot
    for i in range(a.size - 2, -1, -1):
        y[i] -= c[i + 1] * y[i + 1]
