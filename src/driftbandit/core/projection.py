"""Projections on the ball ||v|| <= S in the norm of a positive definite M, exact.

Outside the ball the minimiser of (v - zeta)' M (v - zeta) is v(nu) = (M + nu I)^-1 M zeta with the
nu at which ||v(nu)|| = S. Newton's method on 1/S - 1/||v(nu)|| finds it from nu = 0 without
overshooting (More and Sorensen 1983).
"""

from __future__ import annotations

import math

import numpy as np

from driftbandit.core.compiled import inlined, kernel
from driftbandit.core.layout import Flag, Floats
from driftbandit.core.linalg import dot, factor, inverse_norm, solve

STEPS = 64  # of Lanczos' method, at most; a handful is usual
CLOSE = 1.0 + 1e-14  # rounding leaves no more of S to gain


@kernel
def project(c: float, A: Floats, w: float, x: Floats, v: Floats, S: float, high_dim: Flag) -> None:
    """v <- its projection for M = c A + w x x', v outside the ball: a factorisation of M + nu I a
    step."""
    d, nu, length = v.size, 0.0, 0.0
    M, F, b, y = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d)
    for j in range(d):
        b[j] = 0.0
        for k in range(d):
            M[j, k] = c * A[j, k] + w * (x[j] * x[k])
            b[j] += M[j, k] * v[k]
    for _ in range(100):
        factor(M, F, high_dim)
        if nu > 0.0:
            solve(F, b, v, high_dim)
        length = math.sqrt(dot(v, v))
        if length <= S * CLOSE:
            break
        step = (length / inverse_norm(F, v, y, high_dim)) ** 2 * (length - S) / S
        if nu + step <= nu:
            break
        nu += step
        for j in range(d):
            M[j, j] += step
    shrink(v, length, S)


@inlined
def add(w: float, x: Floats, y: Floats) -> None:
    """y += w x."""
    for j in range(x.size):
        y[j] += w * x[j]


@inlined
def shrink(v: Floats, length: float, S: float) -> None:
    """Rounding never leaves the ball."""
    for j in range(v.size):
        v[j] *= min(1.0, S / length * (1.0 - 2.0**-50))


@kernel
def project_by_solves(
    B: Floats, c: float, inverted: bool, w: float, x: Floats, u: Floats, v: Floats, S: float
) -> bool:
    """`project` for M = A + w x x', where u = A^-1 x and B gives A^-1: solves, no factorisations.
    Whether it got there.

    B is A^-1 c if `inverted`, else the factor of A. v(nu) = (I + nu M^-1)^-1 zeta. Lanczos' method
    makes an orthonormal basis of zeta, M^-1 zeta, M^-2 zeta, ... in which M^-1 is tridiagonal, and
    v(nu) is in its span to 14 digits after about 8 steps, because nu is seldom large next to M.
    """
    d, most = v.size, min(v.size, STEPS)
    V, q, y = np.empty((most, d)), np.empty(d), np.zeros((3, most))
    a, b, start, nu = np.zeros(most), np.zeros(most), math.sqrt(dot(v, v)), 0.0
    share = w / (1.0 + w * dot(x, u))
    for j in range(d):
        V[0, j] = v[j] / start
    for k in range(most):
        if inverted:
            for j in range(d):
                q[j] = 0.0
            for i in range(d):
                add(V[k, i] / c, B[i], q)
        else:
            solve(B, V[k], q, 1)
        add(-share * dot(u, V[k]), u, q)  # M^-1 V[k], by Sherman and Morrison
        a[k] = dot(q, V[k])
        for _ in range(2):  # once leaves what rounding left
            for i in range(k + 1):
                add(-dot(q, V[i]), V[i], q)
        b[k] = math.sqrt(dot(q, q))
        nu = multiplier(a[: k + 1], b, start, S, nu, y)
        if nu * b[k] * abs(y[0, k]) <= 1e-14:  # what is not in the span yet
            for j in range(d):
                v[j] = 0.0
            for i in range(k + 1):
                add(start * y[0, i], V[i], v)
            shrink(v, math.sqrt(dot(v, v)), S)
            return True
        if k + 1 < most:
            for j in range(d):
                V[k + 1, j] = q[j] / b[k]
    return False


@kernel
def multiplier(a: Floats, b: Floats, start: float, S: float, nu: float, y: Floats) -> float:
    """The nu at which start ||(I + nu T)^-1 e_1|| = S; y[0] becomes the vector. T is tridiagonal
    with a on its diagonal and b beside it."""
    k = a.size
    e, f, c = y[0, :k], y[1, :k], y[2, :k]
    for _ in range(100):
        for i in range(k):
            e[i] = 1.0 if i == 0 else 0.0
        solve_tridiagonal(a, b, nu, e, c)
        square = dot(e, e)
        length = start * math.sqrt(square)
        if abs(length - S) <= S * (CLOSE - 1.0):
            break
        for i in range(k):  # f = T e
            f[i] = a[i] * e[i]
            if i > 0:
                f[i] += b[i - 1] * e[i - 1]
            if i + 1 < k:
                f[i] += b[i] * e[i + 1]
        solve_tridiagonal(a, b, nu, f, c)
        before, nu = nu, max(0.0, nu + square / dot(e, f) * (length - S) / S)
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
