"""A single learner of DOMD in one flat array, with the index of the next round ready in it.

`learn` factors A_t; the factor of H_{t+1}, a matrix of rank one away, follows from it and waits
for `choose`: one factorisation a round. Compiled calls hold Python's lock, so each is atomic.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from driftbandit.compiled import direct, entry_point, kernel, piece
from driftbandit.handles import floats, handle, is_floats, length, number, passport, real
from driftbandit.linalg import LOOPS_BELOW, dot, factor, put, put_all, update_factor
from driftbandit.links import possible
from driftbandit.policies.mirror import (
    Memory,
    Params,
    Work,
    age,
    index_of,
    learn,
    unpack,
)
from driftbandit.policies.policy import Floats, Ints, Single
from driftbandit.ranking import (
    BLOCK,
    MANY,
    Index,
    Size,
    best_row,
    best_rows,
    reach_of,
    size_of_rows,
)

# d, limit, a passport, the packed recipe, width and reach of the index, theta, H, t, and room for
# `Work`.
PASSPORT, RECIPE, WIDTH, THETA = 2, 4, 20, 22


def cell_of(q: Floats, s: Memory, limit: float) -> Floats:
    """The cell of a memory of one learner; its index is yet to be made."""
    d = s.theta.shape[1]
    room = np.zeros(2 * d * d + d + BLOCK)
    head = [d, limit], passport(), q, [0.0, 0.0]
    return np.concatenate([*head, s.theta.ravel(), s.H.ravel(), s.t.view(float), room])


@kernel
def head_in(cell: int) -> tuple[int, float]:
    """d, and the largest norm of a context."""
    head = piece(cell, 0, (2,), np.float64)
    return int(head[0]), head[1]


@kernel
def memory_in(cell: int, d: int) -> Memory:
    H, t = THETA + d, THETA + d + d * d
    theta = piece(cell, THETA, (1, d), np.float64)
    return Memory(theta, piece(cell, H, (1, d, d), np.float64), piece(cell, t, (1,), np.int64))


@kernel
def work_in(cell: int, d: int) -> Work:
    F = THETA + d + d * d + 1
    W, u, v = F + d * d, F + 2 * d * d, F + 2 * d * d + d
    square = (d, d)
    return Work(
        piece(cell, F, square, np.float64),
        piece(cell, W, square, np.float64),
        piece(cell, u, (d,), np.float64),
        piece(cell, v, (BLOCK,), np.float64),
    )


@kernel
def params_in(cell: int) -> Params:
    return unpack(piece(cell, RECIPE, (WIDTH - RECIPE,), np.float64))


@kernel
def index_in(cell: int, d: int) -> Index:
    """The index that `keep_index` kept."""
    s, work, kept = memory_in(cell, d), work_in(cell, d), piece(cell, WIDTH, (2,), np.float64)
    return Index(s.theta[0], work.F, work.W, kept[0], kept[1])


@kernel
def keep_index(cell: int, p: Params, s: Memory, work: Work) -> None:
    """Make the index of the next round, where work.F holds the factor of H."""
    index, kept = index_of(p, s, 0, work), piece(cell, WIDTH, (2,), np.float64)
    kept[0], kept[1] = index.width, index.reach


@kernel
def renew_in(cell: int, d: int) -> None:
    """The index from the memory alone."""
    s, work = memory_in(cell, d), work_in(cell, d)
    factor(s.H[0], work.F)
    keep_index(cell, params_in(cell), s, work)


@kernel
def choose_in(cell: int, size: Size, arms: Any) -> int:
    """The choice of a single learner, or -1 if `arms` is no matrix of float64 in one piece, has no
    rows, one that is no context, or so many that `best_in` is faster."""
    d, limit = head_in(cell)
    if not is_floats(arms, 2, cell + 8 * PASSPORT) or length(arms, 1) != d:
        return -1
    n = length(arms, 0)
    if not 0 < n < MANY:
        return -1
    work = work_in(cell, d)
    return best_row(size, index_in(cell, d), floats(arms, (n, d)), limit, work.u, work.v)


@kernel
def learnable(cell: int, x: Any, r: float) -> bool:
    """Whether x is a context, a vector of float64 in one piece, and r a reward."""
    d, limit = head_in(cell)
    if not is_floats(x, 1, cell + 8 * PASSPORT) or length(x, 0) != d:
        return False
    context = floats(x, (d,))
    return dot(context, context) <= limit * limit and possible(params_in(cell).link, r)


@kernel
def learn_in(cell: int, x: Any, r: Any) -> bool:
    """Teach a single learner, unless x is no context or r no reward."""
    if not learnable(cell, x, number(r)):
        return False
    d, p = head_in(cell)[0], params_in(cell)
    s, work, context = memory_in(cell, d), work_in(cell, d), floats(x, (d,))
    w = learn(p, s, 0, context, number(r), work)
    if d < LOOPS_BELOW:
        factor(s.H[0], work.F)
    else:
        update_factor(work.F, w, context, work.u)
    keep_index(cell, p, s, work)
    return True


@kernel
def best_in(cell: int, arms: Floats, norm: Floats, k: int) -> Ints:
    """The k best arms, of which `norm` holds the norms."""
    d = arms.shape[1]
    s, work, p, ready = memory_in(cell, d), work_in(cell, d), params_in(cell), index_in(cell, d)
    reach = reach_of(ready.width, s.H[0], p.lam, s.t[0])
    index = Index(ready.theta, ready.F, ready.W, ready.width, reach)
    return best_rows(index, s.H[0], arms, norm, k, work.u)


@kernel
def forget_in(cell: int, d: int, steps: float) -> None:
    """Age the memory by so many rounds."""
    p = params_in(cell)
    age(p.gamma**steps, p.lam, memory_in(cell, d).H[0])
    renew_in(cell, d)


@kernel
def copy_in(cell: int, theta: Floats, H: Floats, t: Ints) -> None:
    """Copy the memory out, and make the index as those will who go on from the copy."""
    d = theta.shape[1]
    s = memory_in(cell, d)
    put(s.theta[0], theta[0])
    put_all(s.H[0], H[0])
    t[0] = s.t[0]
    renew_in(cell, d)


_renew_in, _best_in, _forget_in = direct(renew_in), direct(best_in), direct(forget_in)
_copy_in = direct(copy_in)


def single_cell(array: Floats, teach: Any = learn_in) -> Single:
    """The learner that lives in an array that starts as `cell_of` makes it; `teach` is the kernel
    that it learns by."""
    d = int(array[0])
    H, t = THETA + d, THETA + d + d * d
    inside = Memory(  # its views keep the array alive, and so do the functions below
        theta=array[THETA:H].reshape(1, d),
        H=array[H:t].reshape(1, d, d),
        t=array[t : t + 1].view(np.int64),
    )
    cell = array.ctypes.data

    def copy() -> Memory:
        theta, H, t = inside
        out = Memory(np.empty_like(theta), np.empty_like(H), np.empty_like(t))
        _copy_in(cell, *out)
        return out

    def forget(steps: float) -> None:
        _forget_in(cell, d, float(steps))

    _renew_in(cell, d)
    size = size_of_rows(d)
    choose = partial(entry_point(choose_in, cell, size, handle), cell, size)
    learn = partial(entry_point(teach, cell, handle, real), cell)
    return Single(inside, choose, learn, partial(_best_in, cell), forget, copy)
