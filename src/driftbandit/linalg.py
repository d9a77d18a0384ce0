"""Small dense linear algebra: the one place that knows when loops beat LAPACK.

Measured: hand-written loops win below d of about 32, LAPACK and BLAS above.
Every matrix here is symmetric positive definite.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LOOPS_BELOW = 32


@njit(cache=True)
def dot(x: Floats, y: Floats) -> float:
    """x'y."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@njit(cache=True)
def add_outer(A: Floats, w: float, x: Floats) -> None:
    """A += w x x', entry by entry the same on both sides of the diagonal."""
    for j in range(x.size):
        for k in range(x.size):
            A[j, k] += w * (x[j] * x[k])


@njit(cache=True)
def cholesky(A: Floats) -> Floats:
    """Lower L with A = L L'; what stands above its diagonal has no meaning."""
    d = A.shape[0]
    if d >= LOOPS_BELOW:
        return np.ascontiguousarray(np.linalg.cholesky(A))  # one layout: fast indexing below
    L = np.empty((d, d))
    for j in range(d):
        for k in range(j):
            total = A[j, k]
            for q in range(k):
                total -= L[j, q] * L[k, q]
            L[j, k] = total / L[k, k]
        total = A[j, j]
        for q in range(j):
            total -= L[j, q] * L[j, q]
        L[j, j] = math.sqrt(total)
    return L


@njit(cache=True)
def solve_lower(L: Floats, b: Floats) -> Floats:
    """y with L y = b."""
    y = np.empty(b.size)
    for j in range(b.size):
        total = b[j]
        for k in range(j):
            total -= L[j, k] * y[k]
        y[j] = total / L[j, j]
    return y


@njit(cache=True)
def solve(L: Floats, b: Floats) -> Floats:
    """u with L L' u = b."""
    u = solve_lower(L, b)
    for j in range(b.size - 1, -1, -1):
        u[j] /= L[j, j]
        for k in range(j):
            u[k] -= L[j, k] * u[j]
    return u


@njit(cache=True)
def invert_lower(L: Floats) -> Floats:
    """L^-1, lower triangular with zeros above the diagonal."""
    d = L.shape[0]
    if d >= LOOPS_BELOW:
        return np.ascontiguousarray(np.linalg.inv(L))
    W = np.zeros((d, d))
    for k in range(d):
        W[k, k] = 1.0 / L[k, k]
        for j in range(k + 1, d):
            total = 0.0
            for q in range(k, j):
                total += L[j, q] * W[q, k]
            W[j, k] = -total / L[j, j]
    return W


@njit(cache=True)
def norms(H: Floats, X: Floats, out: Floats) -> None:
    """out[a] = sqrt(x_a' H^-1 x_a) for every row x_a of X."""
    W = invert_lower(cholesky(H))
    d = H.shape[0]
    if d >= LOOPS_BELOW:
        Y = X @ np.ascontiguousarray(W.T)
        for a in range(X.shape[0]):
            out[a] = math.sqrt(dot(Y[a], Y[a]))
        return
    for a in range(X.shape[0]):
        squares = 0.0
        for j in range(d):
            y = 0.0
            for k in range(j + 1):
                y += W[j, k] * X[a, k]
            squares += y * y
        out[a] = math.sqrt(squares)


@njit(cache=True)
def project_ball(A: Floats, zeta: Floats, S: float) -> Floats:
    """argmin (v - zeta)' A (v - zeta) over ||v|| <= S, exact.

    Outside the ball the minimiser is v(nu) = (A + nu I)^-1 A zeta with ||v(nu)|| = S. Newton's
    method on 1/S - 1/||v(nu)|| from nu = 0 climbs to the root without overshooting
    (More and Sorensen 1983), in a handful of factorisations.
    """
    if dot(zeta, zeta) <= S * S:
        return zeta.copy()
    b = A @ zeta
    shifted = A.copy()
    nu, v, size = 0.0, zeta.copy(), math.sqrt(dot(zeta, zeta))
    for _ in range(100):
        for j in range(b.size):
            shifted[j, j] = A[j, j] + nu
        L = cholesky(shifted)
        v = solve(L, b)
        size = math.sqrt(dot(v, v))
        if size <= S * (1.0 + 1e-14):
            break
        q = solve_lower(L, v)
        step = (size * size / dot(q, q)) * (size - S) / S
        if nu + step == nu:
            break
        nu += step
    return v * min(1.0, S / size)
