"""A single learner of DOMD in one flat array, with the index of the next round ready in it.

`learn` factors A_t; the factor of H_{t+1}, a matrix of rank one away, follows from it and waits
for `choose`: one factorisation a round. Compiled calls hold Python's lock, so each is atomic.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from driftbandit.compiled import direct, entry_point, kernel, piece
from driftbandit.linalg import LOOPS_BELOW, dot, factor, update_factor
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
from driftbandit.ranking import MANY, Index, best_row, best_rows, reach_of

# d, limit, the packed recipe, width and reach of the index, theta, H, t, and room for `Work`.
RECIPE, WIDTH, THETA = 2, 18, 20


def cell_of(q: Floats, s: Memory, limit: float) -> Floats:
    """The cell of a memory of one learner; its index is yet to be made."""
    d = s.theta.shape[1]
    room = np.zeros(2 * d * d + d)
    head = [d, limit], q, [0.0, 0.0]
    return np.concatenate([*head, s.theta.ravel(), s.H.ravel(), s.t.view(float), room])


@kernel
def memory_in(cell: int, d: int) -> Memory:
    H, t = THETA + d, THETA + d + d * d
    theta = piece(cell, THETA, (1, d), np.float64)
    return Memory(theta, piece(cell, H, (1, d, d), np.float64), piece(cell, t, (1,), np.int64))


@kernel
def work_in(cell: int, d: int) -> Work:
    F = THETA + d + d * d + 1
    W, u = F + d * d, F + 2 * d * d
    square = (d, d)
    return Work(
        piece(cell, F, square, np.float64),
        piece(cell, W, square, np.float64),
        piece(cell, u, (d,), np.float64),
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
def choose_in(cell: int, arms: Floats) -> int:
    """The choice of a single learner, or -1 if `arms` has no rows, one that is no context, gaps
    between them, or so many that `best_in` is faster."""
    n, d = arms.shape
    head = piece(cell, 0, (2,), np.float64)
    if d != head[0] or not 0 < n < MANY or not dense(arms):
        return -1
    arms = piece(arms.ctypes.data, 0, (n, d), np.float64)
    return best_row(index_in(cell, d), arms, head[1], work_in(cell, d).u)


@kernel
def dense(a: Floats) -> bool:
    """Whether an array that is called contiguous is; callers check no more than type and axes."""
    step = 8
    for axis in range(a.ndim - 1, -1, -1):
        if a.shape[axis] != 1 and a.strides[axis] != step:
            return False
        step *= a.shape[axis]
    return a.ctypes.data % 8 == 0


@kernel
def learnable(cell: int, x: Floats, r: float) -> bool:
    """Whether x is a context and r a reward."""
    d, head = x.size, piece(cell, 0, (2,), np.float64)
    if d != head[0] or not dense(x):
        return False
    x = piece(x.ctypes.data, 0, (d,), np.float64)
    return dot(x, x) <= head[1] * head[1] and possible(params_in(cell).link, r)


@kernel
def learn_in(cell: int, x: Floats, r: float) -> bool:
    """Teach a single learner, unless x is no context or r no reward."""
    if not learnable(cell, x, r):
        return False
    d, p = x.size, params_in(cell)
    x = piece(x.ctypes.data, 0, (d,), np.float64)
    s, work = memory_in(cell, d), work_in(cell, d)
    w = learn(p, s, 0, x, r, work)
    if d < LOOPS_BELOW:
        factor(s.H[0], work.F)
    else:
        update_factor(work.F, w, x, work.u)
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
    s = memory_in(cell, theta.shape[1])
    theta[:], H[:], t[:] = s.theta, s.H, s.t
    renew_in(cell, theta.shape[1])


_renew_in, _best_in, _forget_in = direct(renew_in), direct(best_in), direct(forget_in)
_copy_in = direct(copy_in)


def single_cell(array: Floats) -> Single:
    """The learner that lives in an array that starts as `cell_of` makes it."""
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
    choose = entry_point(choose_in, cell, np.empty((1, d)))
    learn = entry_point(learn_in, cell, np.empty(d), 1.0)
    best = partial(_best_in, cell)
    return Single(inside, partial(choose, cell), partial(learn, cell), best, forget, copy)
