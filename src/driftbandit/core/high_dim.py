"""What only many dimensions need: LAPACK, solves four rows at a time, projections by Lanczos.

Kernels take an argument `high_dim`. It is None below `LOOPS_BELOW` dimensions: numba then leaves
the other branch of `if high_dim is None` out, so nothing here is compiled before it is asked for.
From there on results depend on LAPACK and on the processor in their last digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from driftbandit.core.compiled import COMPILED, kernel
from driftbandit.core.layout import Floats

LOOPS_BELOW = 32  # dimensions, measured: below, loops factor faster than LAPACK
HIGH_DIM = 1

# LAPACK's dpotrf as numba links it; np.linalg.cholesky allocates and clears, which at d = 256
# takes twice as long as the factorisation.
_matrix: Any = types.CPointer(types.float64)  # type: ignore[attr-defined]
_potrf: Any = types.ExternalFunction(
    "numba_xxpotrf", types.intc(types.char, types.char, types.intp, _matrix, types.intp)
)


@kernel
def _cholesky(A: Any) -> bool:
    return _potrf(ord("d"), ord("L"), len(A), A.ctypes, len(A)) == 0  # rows are LAPACK's columns


def _cholesky_plain(A: Any) -> bool:
    try:
        A[:] = np.linalg.cholesky(A.T).T
    except np.linalg.LinAlgError:
        return False
    return True


# Overwrite the upper half of A, which alone is read, with the C' of A = C C'; whether it worked.
cholesky = _cholesky if COMPILED else _cholesky_plain


@kernel
def factor(A: Floats, F: Floats) -> bool:
    """`linalg.factor` by LAPACK; False if rounding has left a pivot without a digit."""
    for k in range(len(F)):
        for j in range(k, len(F)):
            F[k, j] = A[k, j]
    if not cholesky(F):
        return False
    for k in range(len(F)):
        row, root = F[k, k + 1 :], 1.0 / F[k, k]
        F[k, k] = root
        for j in range(row.size):
            row[j] *= root
    return True


@kernel
def forward(F: Floats, u: Floats) -> None:
    """u <- L^-1 u, four rows of L' at a time."""
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
        for j in range(k + 1, u.size):
            u[j] -= u[k] * F[k, j]


@kernel
def backward(F: Floats, u: Floats) -> None:
    """u <- L'^-1 u, four rows of L' at a time."""
    even = u.size - u.size % 4
    for k in range(u.size - 1, even - 1, -1):
        for j in range(k + 1, u.size):
            u[k] -= F[k, j] * u[j]
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
