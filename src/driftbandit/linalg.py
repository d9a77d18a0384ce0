"""Small dense linear algebra: the one place that knows when loops beat LAPACK.

Every matrix here is symmetric positive definite. Functions write into arrays they are given:
at d = 5 an allocation costs as much as a solve. Measured: loops win below d of about 32 for
factoring, LAPACK above.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftbandit.compiled import borrow, cholesky, inlined, kernel

Floats = NDArray[np.float64]

LOOPS_BELOW = 32


@inlined
def dot(x: Floats, y: Floats) -> float:
    """x'y."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@inlined
def add(w: float, x: Floats, y: Floats) -> None:
    """y += w x; on borrowed arrays the processor does several entries at once."""
    for j in range(x.size):
        y[j] += w * x[j]


@inlined
def put(x: Floats, y: Floats) -> None:
    """y <- x. What numba makes of y[:] = x spells out its error message, and takes seconds to
    compile wherever it is used."""
    for j in range(x.size):
        y[j] = x[j]


@kernel
def put_all(A: Floats, B: Floats) -> None:
    """B <- A."""
    for j in range(len(A)):
        put(A[j], B[j])


@kernel
def put_identity(w: float, A: Floats) -> None:
    """A <- w I."""
    for j in range(len(A)):
        for k in range(len(A)):
            A[j, k] = w if j == k else 0.0


@inlined
def add_outer(A: Floats, w: float, x: Floats) -> None:
    """A += w x x', entry by entry the same on both sides of the diagonal."""
    A, x = borrow(A), borrow(x)
    for j in range(x.size):
        row, xj = A[j], x[j]
        for k in range(x.size):
            row[k] += w * (xj * x[k])


@kernel
def factor_large(A: Floats, F: Floats) -> None:
    """`factor` by LAPACK."""
    for k in range(len(F)):
        put(A[k, k:], F[k, k:])
    cholesky(F)
    for k in range(len(F)):
        row, root = F[k, k + 1 :], 1.0 / F[k, k]
        F[k, k] = root * root
        for j in range(row.size):
            row[j] *= root


@inlined
def factor(A: Floats, F: Floats) -> None:
    """A = L D L' with unit lower L: F holds L' above its diagonal and 1/D on it.

    L' and not L, so that the long loops of those who use F run along its rows.
    """
    d = A.shape[0]
    if d >= LOOPS_BELOW:
        factor_large(A, borrow(F))
        return
    for j in range(d):
        pivot = A[j, j]
        for k in range(j):
            total = A[j, k]  # becomes L[j, k] D[k]
            for q in range(k):
                total -= F[q, j] * F[q, k]
            F[k, j] = total
        for k in range(j):
            scaled = F[k, j] * F[k, k]
            pivot -= scaled * F[k, j]
            F[k, j] = scaled
        F[j, j] = 1.0 / pivot


@kernel
def update_factor(F: Floats, w: float, x: Floats, v: Floats) -> None:
    """The factor of A + w x x' from that of A, w >= 0; v is scratch.

    Method C1 of Gill, Golub, Murray and Saunders (1974), O(d^2).
    """
    F, v = borrow(F), borrow(v)
    put(x, v)
    for k in range(v.size):
        pivot, p = 1.0 / F[k, k], v[k]
        changed = pivot + w * p * p
        turn = w * p / changed
        w *= pivot / changed
        F[k, k] = 1.0 / changed
        row, rest = F[k, k + 1 :], v[k + 1 :]
        for j in range(rest.size):
            rest[j] -= p * row[j]
            row[j] += turn * rest[j]


@inlined
def solve(F: Floats, b: Floats, u: Floats) -> None:
    """u = A^-1 b."""
    d = b.size
    if d >= LOOPS_BELOW:
        solve_large(borrow(F), b, borrow(u))
        return
    for j in range(d):
        total = b[j]
        for k in range(j):
            total -= F[k, j] * u[k]
        u[j] = total
    for j in range(d - 1, -1, -1):
        total = u[j] * F[j, j]
        for k in range(j + 1, d):
            total -= F[j, k] * u[k]
        u[j] = total


@kernel
def solve_large(F: Floats, b: Floats, u: Floats) -> None:
    """`solve`, four rows of F at a time."""
    put(b, u)
    forth(F, u)
    for k in range(u.size):
        u[k] *= F[k, k]
    back(F, u)


@kernel
def forth(F: Floats, u: Floats) -> None:
    """u <- L^-1 u."""
    even = u.size - u.size % 4
    for k in range(0, even, 4):
        a = -u[k]
        b = -(u[k + 1] + a * F[k, k + 1])
        c = -(u[k + 2] + a * F[k, k + 2] + b * F[k + 1, k + 2])
        e = -(u[k + 3] + a * F[k, k + 3] + b * F[k + 1, k + 3] + c * F[k + 2, k + 3])
        u[k + 1], u[k + 2], u[k + 3] = -b, -c, -e
        rest = u[k + 4 :]
        p, q, r, s = F[k, k + 4 :], F[k + 1, k + 4 :], F[k + 2, k + 4 :], F[k + 3, k + 4 :]
        for j in range(rest.size):
            rest[j] += a * p[j] + b * q[j] + (c * r[j] + e * s[j])
    for k in range(even, u.size):
        add(-u[k], F[k, k + 1 :], u[k + 1 :])


@kernel
def back(F: Floats, u: Floats) -> None:
    """u <- L'^-1 u."""
    even = u.size - u.size % 4
    for k in range(u.size - 1, even - 1, -1):
        u[k] -= dot(F[k, k + 1 :], u[k + 1 :])
    for k in range(even - 4, -1, -4):
        a, b, c, e = u[k], u[k + 1], u[k + 2], u[k + 3]
        rest = u[k + 4 :]
        p, q, r, s = F[k, k + 4 :], F[k + 1, k + 4 :], F[k + 2, k + 4 :], F[k + 3, k + 4 :]
        for j in range(rest.size):
            x = rest[j]
            a, b, c, e = a - p[j] * x, b - q[j] * x, c - r[j] * x, e - s[j] * x
        c -= F[k + 2, k + 3] * e
        b -= F[k + 1, k + 2] * c + F[k + 1, k + 3] * e
        a -= F[k, k + 1] * b + F[k, k + 2] * c + F[k, k + 3] * e
        u[k], u[k + 1], u[k + 2], u[k + 3] = a, b, c, e


@inlined
def inverse_norm(F: Floats, x: Floats, y: Floats) -> float:
    """||x||_{A^-1} = sqrt(y' D^-1 y) with L y = x; y is scratch."""
    square = 0.0
    if x.size < LOOPS_BELOW:
        for j in range(x.size):
            total = x[j]
            for k in range(j):
                total -= F[k, j] * y[k]
            y[j] = total
            square += total * total * F[j, j]
        return math.sqrt(square)
    put(x, y)
    forth(borrow(F), borrow(y))
    for k in range(y.size):
        square += y[k] * y[k] * F[k, k]
    return math.sqrt(square)


@inlined
def whiten(F: Floats, W: Floats) -> None:
    """W = D^-1/2 L^-1 (its lower half), so that A^-1 = W'W and ||x||_{A^-1} = ||W x||."""
    d = F.shape[0]
    for j in range(d):
        W[j, j] = 1.0
        for k in range(j):
            total = F[k, j]
            for q in range(k + 1, j):
                total += F[q, j] * W[q, k]
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
