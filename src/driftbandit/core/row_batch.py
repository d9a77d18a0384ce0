"""Batches: some rows of many, as simulations and fleets have them.

Rows may be in single precision; arithmetic is double: a row is widened, and written back by
`keep`. Of the flags `single`, `double` and `mixed` (AutoDOMD) one says what the rows are, and the
others are None.
"""

from __future__ import annotations

import numpy as np

from driftbandit.core import auto, domd
from driftbandit.core.compiled import kernel
from driftbandit.core.layout import THETA, D, Flag, Floats, Ints, S
from driftbandit.core.views import borrowed, pooled

ROUND_UP = 1.0 + 2.0**-23  # v times it, rounded to single precision, is v or more


@kernel
def rank_rows(
    q: Floats,
    rows: Floats,
    which: Ints,
    arms: Floats,
    noise: Floats,
    best: Ints,
    single: Flag,
    double: Flag,
    high_dim: Flag,
) -> int:
    """best[b] = the best arms[b] of the learner which[b], or of arms[0] for all; returns the first
    b at which an arm is no context, or -1."""
    shared, one, arm = len(arms) == 1, np.empty(rows.shape[1]), -1
    table, sets, draws, out = borrowed(rows), borrowed(arms), borrowed(noise), borrowed(best)
    for b in range(len(which)):
        X = sets[0 if shared else b]
        if double is not None:
            arm = domd.rank(q, table[which[b]], X, draws[b], out[b], high_dim)
        if single is not None:
            widen(table, which[b], one)
            arm = domd.rank(q, one, X, draws[b], out[b], high_dim)
        if arm < 0:
            return b
    return -1


@kernel
def learn_rows(
    q: Floats,
    rows: Floats,
    which: Ints,
    x: Floats,
    r: Floats,
    steps: Floats,
    part: int,
    of: int,
    single: Flag,
    double: Flag,
    mixed: Flag,
    high_dim: Flag,
) -> None:
    """Teach the learners which[b], in order, if they belong to this part of so many.

    Blocks of 64 neighbours belong to one part, which one thread does: nobody waits for another's
    cache lines, and a learner that comes twice is taught in order.
    """
    one = np.empty(rows.shape[1])
    table, played = borrowed(rows), borrowed(x)
    for b in range(len(which)):
        if (which[b] >> 6) % of != part:
            continue
        if mixed is not None:
            auto.learn(q, table[which[b]], played[b], r[b], steps[b], high_dim)
        if double is not None:
            domd.learn(q, table[which[b]], played[b], r[b], steps[b], high_dim)
        if single is not None:
            widen(table, which[b], one)
            domd.learn(q, one, played[b], r[b], steps[b], high_dim)
            keep(q, one, table[which[b]])


@kernel
def widen(rows: Floats, i: int, one: Floats) -> None:
    """one = row i, in double precision."""
    for j in range(one.size):
        one[j] = rows[i, j]


@kernel
def keep(q: Floats, one: Floats, row: Floats) -> None:
    """row = one in single precision; rounding breaks neither H >= floor I nor ||theta|| <= S.

    What rounding takes from the entries beside the diagonal goes on top of the diagonal, which
    is rounded up: the difference is diagonally dominant.
    """
    d, square = int(q[D]), 0.0
    theta, H = pooled(row, d)
    exact_theta, exact = pooled(one, d)
    for j in range(THETA):
        row[j] = one[j]
    for j in range(d):
        lost = 0.0
        for k in range(d):
            H[j, k] = exact[j, k]
            if k != j:
                lost += abs(H[j, k] - exact[j, k])
        least = exact[j, j] + lost
        H[j, j] = least
        if H[j, j] < least:
            H[j, j] = least * ROUND_UP
        theta[j] = exact_theta[j]
        square += np.float64(theta[j]) ** 2
    if square > q[S] * q[S]:  # so it was not before it was rounded
        for j in range(d):
            theta[j] = exact_theta[j] / ROUND_UP
