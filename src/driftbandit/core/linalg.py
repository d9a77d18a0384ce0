"""Small dense linear algebra for symmetric positive definite matrices.

Loops below `high_dim.LOOPS_BELOW` dimensions, where `high_dim` is None; see there. Functions write
into arrays they are given: at d = 5 an allocation costs as much as a solve.
"""

from __future__ import annotations

import math

from driftbandit.core import high_dim as lapack
from driftbandit.core.compiled import inlined, kernel
from driftbandit.core.layout import Flag, Floats

EPS = 2.0**-52


@inlined
def dot(x: Floats, y: Floats) -> float:
    """x'y."""
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@inlined
def measure(X: Floats, at: int, y: Floats) -> tuple[float, float]:
    """x'y and x'x of the numbers x from this place on, as many as y has."""
    along = square = 0.0
    for j in range(y.size):
        along += X[at + j] * y[j]
        square += X[at + j] * X[at + j]
    return along, square


@kernel
def factor(A: Floats, F: Floats, high_dim: Flag) -> None:
    """A = L D L' with unit lower L: F holds L' above its diagonal and 1/sqrt(D) on it.

    A pivot that rounding has left without a digit counts as eps of its diagonal entry.
    """
    if high_dim is not None and lapack.factor(A, F):
        return
    for j in range(len(A)):
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
        F[j, j] = 1.0 / max(pivot, EPS * A[j, j])
    for j in range(len(A)):  # at the end: each pivot waits for the one before
        F[j, j] = math.sqrt(F[j, j])


@kernel
def solve(F: Floats, b: Floats, u: Floats, high_dim: Flag) -> None:
    """u = A^-1 b."""
    if high_dim is not None:
        for j in range(b.size):
            u[j] = b[j]
        lapack.forward(F, u)
        for k in range(u.size):
            u[k] *= F[k, k] * F[k, k]
        lapack.backward(F, u)
        return
    for j in range(b.size):
        total = b[j]
        for k in range(j):
            total -= F[k, j] * u[k]
        u[j] = total
    for j in range(b.size - 1, -1, -1):
        total = u[j] * (F[j, j] * F[j, j])
        for k in range(j + 1, b.size):
            total -= F[j, k] * u[k]
        u[j] = total


@kernel
def inverse_norm(F: Floats, x: Floats, y: Floats, high_dim: Flag) -> float:
    """||x||_{A^-1} = sqrt(y' D^-1 y) with L y = x; y is scratch."""
    total = 0.0
    if high_dim is not None:
        for j in range(y.size):
            y[j] = x[j]
        lapack.forward(F, y)
        for k in range(y.size):
            total += (y[k] * F[k, k]) ** 2
        return math.sqrt(total)
    for j in range(y.size):
        rest = x[j]
        for k in range(j):
            rest -= F[k, j] * y[k]
        y[j] = rest
        rest *= F[j, j]
        total += rest * rest
    return math.sqrt(total)


@kernel
def inverse(A: Floats, P: Floats, v: Floats) -> None:
    """P = A^-1, symmetric to the last bit; v is scratch.

    Sweeps: after step k the leading block of P is minus the inverse of that of A.
    """
    d = len(A)
    for i in range(d):
        for j in range(i + 1):
            P[i, j] = A[i, j]
    for k in range(d):
        pivot = 1.0 / max(P[k, k], EPS * A[k, k])
        for j in range(k):
            v[j] = P[k, j]
        for j in range(k, d):
            v[j] = P[j, k]
        for i in range(d):
            w = v[i] * pivot
            for j in range(i + 1):
                P[i, j] -= w * v[j]
        for j in range(k):
            P[k, j] = v[j] * pivot
        for j in range(k + 1, d):
            P[j, k] = v[j] * pivot
        P[k, k] = -pivot
    for i in range(d):
        for j in range(i + 1):
            P[i, j] = -P[i, j]
            P[j, i] = P[i, j]
