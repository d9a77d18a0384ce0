"""The rows x that maximise x'theta + width ||x||_{H^-1}, exactly, without every norm.

H >= c I bounds the value of a row by x'theta + width ||x|| / sqrt(c), for the price of x'theta.
Only rows whose bound reaches the best value found so far need their own norm. Bounds never decide:
the winner is the first row with the largest value, to the last bit the one a plain scan finds.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush, heapreplace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.compiled import borrow, inlined, kernel, shaped, size_of, upto
from driftbandit.linalg import LOOPS_BELOW, Floats, add, dot, inverse_norm, put

Ints = NDArray[np.int64]
Size = tuple[None, ...]

EPS = 2.0**-52
MANY = 1000  # rows from which on BLAS and sharper bounds pay
HEADS = 64  # rows valued first, to know early what a winner must reach
WORTH = 20  # rows per dimension whose norms cost as much as the eigenvectors of H
LEADING = 8  # eigenvectors in the sharpest bound
FUSED = 13  # dimensions below which the compiler can do without loops over them
BLOCK = 2 * LOOPS_BELOW  # rows valued at a time


def size_of_rows(d: int) -> Size:
    """What `best_row` wants to know of d beforehand: all below FUSED, nothing from there on."""
    return size_of(d) if d < FUSED else ()


class Index(NamedTuple):
    """v(x) = x'theta + width ||x||_{H^-1}, ready to be maximised; v(x) <= x'theta + reach ||x||."""

    theta: Floats
    F: Floats  # H factored
    W: Floats  # and whitened, where loops beat LAPACK
    width: float
    reach: float


@kernel
def rounding(H: Floats) -> float:
    """How far H is from a matrix that it factors, solves or decomposes into exactly."""
    trace = 0.0
    for j in range(H.shape[0]):
        trace += H[j, j]
    return 8.0 * (len(H) + 1) * EPS * trace


@kernel
def reach_of(width: float, H: Floats, lam: float, t: float) -> float:
    """width / sqrt(smallest eigenvalue of H) or more, from H >= lambda I after t rounded rounds.

    Files are trusted to 1e-6 lambda; each round of gamma = 1 may round H down by eps tr(H).
    """
    floor = lam * (1.0 - 1e-6) - rounding(H) * (1.0 + t / 8.0)
    return width * (1.0 + 1e-9) / math.sqrt(floor) if floor > 0.0 else 1e300


@kernel
def value(index: Index, x: Floats, y: Floats) -> float:
    """v(x), rounded as everywhere in this file; y is scratch."""
    mean, W = dot(x, index.theta), index.W
    if x.size >= LOOPS_BELOW:
        return mean + index.width * inverse_norm(index.F, x, y)
    square = 0.0
    for j in range(x.size):
        total = 0.0
        for k in range(j + 1):
            total += W[j, k] * x[k]
        square += total * total
    return mean + index.width * math.sqrt(square)


@kernel
def best_long(index: Index, X: Floats, limit: float, y: Floats) -> int:
    """`best_row` of long rows: a norm costs d times a bound."""
    best, top, good = 0, -math.inf, True
    for a in range(len(X)):
        length = math.sqrt(dot(X[a], X[a]))
        good &= length <= limit  # NaN fails
        if dot(X[a], index.theta) + index.reach * length > top:
            v = value(index, X[a], y)
            if v > top:
                best, top = a, v
    return best if good else -1


@inlined
def values(size: Size, index: Index, X: Floats, limit: float, v: Floats) -> bool:
    """v = those of the rows of X; whether no row is longer than `limit` or not finite.

    With d known beforehand nothing is left of the inner loops, and the outer one takes four rows
    at a time.
    """
    d, good = len(size), True
    theta, W = shaped(index.theta, (d,)), shaped(index.W, (d, d))
    X, v, width, square = shaped(X, (len(X), d)), borrow(v), index.width, limit * limit
    for a in upto(len(X)):
        mean = norm = length = 0.0
        for j in upto(d):
            total = 0.0
            for k in upto(d):
                if k <= j:
                    total += W[j, k] * X[a, k]
            norm += total * total
            mean += X[a, j] * theta[j]
            length += X[a, j] * X[a, j]
        good &= length <= square  # NaN fails
        v[a] = mean + width * math.sqrt(norm)
    return good


@kernel
def best_middling(index: Index, X: Floats, limit: float) -> int:
    """`best_row` where d is too large to do without its loops and too small for bounds to pay.

    Four rows at a time, the last one again where there are no more, keep the processor busy.
    """
    theta, W, width = index.theta, index.W, index.width
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


@inlined
def best_row(size: Size, index: Index, X: Floats, limit: float, y: Floats, v: Floats) -> int:
    """The first row of X that maximises v; -1 if a row is longer than `limit` or not finite.

    `size` is that of a row, or empty from FUSED dimensions on; y and v are scratch.
    """
    if len(size) == 0:
        if index.theta.size < LOOPS_BELOW:
            return best_middling(index, X, limit)
        return best_long(index, X, limit, y)
    best, top, good = 0, -math.inf, True
    for start in range(0, len(X), BLOCK):
        part = X[start : start + BLOCK]
        good &= values(size, index, part, limit, v)
        for a in range(len(part)):
            if v[a] > top:
                best, top = start + a, v[a]
    return best if good else -1


@kernel
def row_norms(X: Floats) -> Floats:
    """||x|| of every row."""
    norm = np.empty(len(X))
    for a in range(len(X)):
        norm[a] = math.sqrt(dot(X[a], X[a]))
    return norm


@kernel
def best_rows(index: Index, H: Floats, X: Floats, norm: Floats, k: int, y: Floats) -> Ints:
    """The k rows with the largest v, best first, ties to the lowest index; `norm` holds ||x||.

    Bounds from cheap to sharp: H >= lambda I, the smallest eigenvalue of H, leading eigenvectors.
    """
    d, theta, width = index.theta.size, index.theta, index.width
    mean, rows = np.dot(X, theta), np.arange(len(X))
    add(4.0 * d * EPS * math.sqrt(dot(theta, theta)), norm, mean)  # BLAS rounds in its own order
    upper = mean.copy()
    add(index.reach, norm, upper)
    least = promised(index, X, rows, upper, k, y)
    rows = above(rows, upper, least)
    upper = upper[rows]
    if len(rows) > WORTH * d:
        w, V = np.linalg.eigh(H)
        w -= rounding(H)
        if w[0] > 0.0:
            upper = mean[rows] + width * (1.0 + 1e-9) / math.sqrt(w[0]) * norm[rows]
            least = max(least, promised(index, X, rows, upper, k, y))
            rows, upper = above(rows, upper, least), above(upper, upper, least)
        if w[0] > 0.0 and len(rows) > WORTH * d:
            lead = max(0, d - LEADING)
            V = np.ascontiguousarray(V[:, lead:])
            upper = mean[rows] + sharp(width, X, norm, rows, w[lead:], V, w[0])
            least = max(least, promised(index, X, rows, upper, k, y))
    return exact_rows(index, X, rows, upper, least, k, y)


@kernel
def above(a: Any, upper: Floats, least: float) -> Any:
    """The entries of `a` whose bound reaches `least`."""
    count = 0
    for i in range(len(upper)):
        count += upper[i] >= least
    out, count = np.empty(count, dtype=a.dtype), 0
    for i in range(len(upper)):
        if upper[i] >= least:
            out[count] = a[i]
            count += 1
    return out


@kernel
def promised(index: Index, X: Floats, rows: Ints, upper: Floats, k: int, y: Floats) -> float:
    """A value that k rows reach: the k-th best among the most promising rows of many stretches."""
    stretch = max(1, len(rows) // (HEADS + 2 * k))
    heads = np.empty((len(rows) + stretch - 1) // stretch)
    for i in range(len(heads)):
        start = i * stretch
        head = start + np.argmax(upper[start : start + stretch])
        heads[i] = value(index, X[rows[head]], y)
    return float(np.sort(heads)[len(heads) - k])


@kernel
def sharp(
    width: float, X: Floats, norm: Floats, rows: Ints, w: Floats, V: Floats, least: float
) -> Floats:
    """width ||x||_{G^-1} of these rows and a little more: G <= H has the eigenpairs w, V and
    nothing but its smallest eigenvalue `least` elsewhere."""
    out, block, gain = np.empty(len(rows)), np.empty((256, X.shape[1])), 1.0 / least - 1.0 / w
    for start in range(0, len(rows), 256):
        size = min(256, len(rows) - start)
        for i in range(size):
            put(X[rows[start + i]], block[i])
        P = np.dot(block, V)
        for i in range(size):
            square = (1.0 + 1e-9) * norm[rows[start + i]] ** 2 / least  # covers what P rounds
            for j in range(len(w)):
                square -= gain[j] * P[i, j] * P[i, j]
            out[start + i] = width * math.sqrt(square)
    return out


@kernel
def exact_rows(
    index: Index, X: Floats, rows: Ints, upper: Floats, least: float, k: int, y: Floats
) -> Ints:
    """The k best of these rows, given upper bounds of v and a value that k of them reach."""
    heap = [(0.0, 0) for _ in range(0)]  # the k best so far, the worst of them first
    for i in range(len(rows)):
        if upper[i] < least:
            continue
        entry = (value(index, X[rows[i]], y), -rows[i])
        if len(heap) < k:
            heappush(heap, entry)
        elif entry > heap[0]:
            heapreplace(heap, entry)
        if len(heap) == k:
            least = max(least, heap[0][0])
    out = np.empty(k, dtype=np.int64)
    for place in range(k - 1, -1, -1):
        out[place] = -heappop(heap)[1]
    return out
