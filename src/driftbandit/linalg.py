"""Small dense linear algebra: the one place that knows when loops beat LAPACK.

Every matrix here is symmetric positive definite. Functions write into arrays they are given:
at d = 5 an allocation costs as much as a solve. Measured: loops win below d of about 32 for
factoring, LAPACK above.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftbandit.compiled import kernel

Floats = NDArray[np.float64]

LOOPS_BELOW = 32


@kernel
def dot(x: Floats, y: Floats) -> float:
    """x'y."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@kernel
def add_outer(A: Floats, w: float, x: Floats) -> None:
    """A += w x x', entry by entry the same on both sides of the diagonal."""
    for j in range(x.size):
        for k in range(x.size):
            A[j, k] += w * (x[j] * x[k])


@kernel
def factor(A: Floats, F: Floats) -> None:
    """A = L D L' with unit lower L: F holds L below its diagonal and 1/D on it."""
    d = A.shape[0]
    if d >= LOOPS_BELOW:
        C = np.linalg.cholesky(A)
        for k in range(d):
            F[k, k] = 1.0 / (C[k, k] * C[k, k])
            for j in range(k + 1, d):
                F[j, k] = C[j, k] / C[k, k]
        return
    for j in range(d):
        pivot = A[j, j]
        for k in range(j):
            total = A[j, k]  # becomes L[j, k] D[k]
            for q in range(k):
                total -= F[j, q] * F[k, q]
            F[j, k] = total
        for k in range(j):
            scaled = F[j, k] * F[k, k]
            pivot -= scaled * F[j, k]
            F[j, k] = scaled
        F[j, j] = 1.0 / pivot


@kernel
def solve(F: Floats, b: Floats, u: Floats) -> None:
    """u = A^-1 b."""
    d = b.size
    for j in range(d):
        total = b[j]
        for k in range(j):
            total -= F[j, k] * u[k]
        u[j] = total
    for j in range(d - 1, -1, -1):
        total = u[j] * F[j, j]
        for k in range(j + 1, d):
            total -= F[k, j] * u[k]
        u[j] = total


@kernel
def inverse_norm(F: Floats, x: Floats, y: Floats) -> float:
    """||x||_{A^-1} = sqrt(y' D^-1 y) with L y = x; y is scratch."""
    square = 0.0
    for j in range(x.size):
        total = x[j]
        for k in range(j):
            total -= F[j, k] * y[k]
        y[j] = total
        square += total * total * F[j, j]
    return math.sqrt(square)


@kernel
def whiten(F: Floats, W: Floats) -> None:
    """W = D^-1/2 L^-1 (its lower half), so that A^-1 = W'W and ||x||_{A^-1} = ||W x||."""
    d = F.shape[0]
    for j in range(d):
        W[j, j] = 1.0
        for k in range(j):
            total = F[j, k]
            for q in range(k + 1, j):
                total += F[j, q] * W[q, k]
            W[j, k] = -total
    for j in range(d):
        root = math.sqrt(F[j, j])
        for k in range(j + 1):
            W[j, k] *= root


@kernel
def add_inverse(A: Floats, w: float, V: Floats, F: Floats, W: Floats) -> None:
    """V += w A^-1, entry by entry the same on both sides of the diagonal; F and W are scratch."""
    factor(A, F)
    whiten(F, W)
    for j in range(len(A)):
        for k in range(j + 1):
            total = 0.0
            for q in range(j, len(A)):
                total += W[q, j] * W[q, k]
            V[j, k] += w * total
            V[k, j] = V[j, k]


@kernel
def best_row(theta: Floats, W: Floats, width: float, X: Floats, limit: float) -> int:
    """The first row of X that maximises x'theta + width ||W x||; -1 if a row is longer than
    `limit` or not finite.

    Four rows at a time, the last one again where there are no more, keep the processor busy.
    """
    best, top, good, square, last = 0, -math.inf, True, limit * limit, len(X) - 1
    for a in range(0, len(X), 4):
        b, c, e = min(a + 1, last), min(a + 2, last), min(a + 3, last)
        ma = mb = mc = me = 0.0  # x'theta
        na = nb = nc = ne = 0.0  # ||W x||^2
        la = lb = lc = le = 0.0  # ||x||^2
        for j in range(theta.size):
            ya = yb = yc = ye = 0.0
            for k in range(j + 1):
                w = W[j, k]
                ya, yb = ya + w * X[a, k], yb + w * X[b, k]
                yc, ye = yc + w * X[c, k], ye + w * X[e, k]
            na, nb, nc, ne = na + ya * ya, nb + yb * yb, nc + yc * yc, ne + ye * ye
            th, xa, xb, xc, xe = theta[j], X[a, j], X[b, j], X[c, j], X[e, j]
            ma, mb, mc, me = ma + th * xa, mb + th * xb, mc + th * xc, me + th * xe
            la, lb, lc, le = la + xa * xa, lb + xb * xb, lc + xc * xc, le + xe * xe
        good &= (la <= square) & (lb <= square) & (lc <= square) & (le <= square)  # NaN fails
        va, vb = ma + width * math.sqrt(na), mb + width * math.sqrt(nb)
        vc, ve = mc + width * math.sqrt(nc), me + width * math.sqrt(ne)
        if va > top:
            best, top = a, va
        if vb > top:
            best, top = b, vb
        if vc > top:
            best, top = c, vc
        if ve > top:
            best, top = e, ve
    return best if good else -1


@kernel
def project_ball(A: Floats, zeta: Floats, S: float) -> Floats:
    """argmin (v - zeta)' A (v - zeta) over ||v|| <= S, exact.

    Outside the ball the minimiser is v(nu) = (A + nu I)^-1 A zeta with ||v(nu)|| = S. Newton's
    method on 1/S - 1/||v(nu)|| from nu = 0 climbs to the root without overshooting
    (More and Sorensen 1983), in a handful of factorisations.
    """
    v, size = zeta.copy(), math.sqrt(dot(zeta, zeta))
    b, shifted, F, y = A @ zeta, A.copy(), np.empty_like(A), np.empty_like(zeta)
    nu = 0.0
    for _ in range(100):
        if size <= S * (1.0 + 1e-14):
            break
        for j in range(b.size):
            shifted[j, j] = A[j, j] + nu
        factor(shifted, F)
        solve(F, b, v)
        size = math.sqrt(dot(v, v))
        slope = inverse_norm(F, v, y)
        step = (size / slope) ** 2 * (size - S) / S
        if nu + step <= nu:
            break
        nu += step
    return v * min(1.0, S / size * (1.0 - 2.0**-50))  # rounding never leaves the ball
