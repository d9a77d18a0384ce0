"""A single AutoDOMD in one flat array: the cell of DOMD that decides, then the learners."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit.compiled import direct, kernel, piece
from driftbandit.handles import floats, number
from driftbandit.linalg import factor
from driftbandit.policies.cell import (
    THETA,
    cell_of,
    head_in,
    keep_index,
    learnable,
    memory_in,
    params_in,
    renew_in,
    single_cell,
    work_in,
)
from driftbandit.policies.mirror import Memory
from driftbandit.policies.mixture import POINTS, AutoMemory, AutoParams, age_one, learn_one
from driftbandit.policies.policy import Floats, Single
from driftbandit.ranking import BLOCK

HEAD = 8  # K and the numbers of AutoParams; gamma, lam and prior follow, then the memory


def tail_of(p: AutoParams, s: AutoMemory) -> Floats:
    """What comes behind DOMD's cell."""
    numbers = p.S, p.share, p.lapse, p.start, p.gain_keep, p.gain_floor, p.mixture
    memory = s.thetas, s.Hs, s.weights, s.gains, s.rounds, s.usual, s.history
    head = np.array([p.gamma.size, *numbers])
    return np.concatenate([head, p.gamma, p.lam, p.prior, *(a.ravel() for a in memory)])


@kernel
def tail_in(d: int) -> int:
    """Where the tail starts."""
    return THETA + 2 * d + 3 * d * d + 1 + BLOCK


@kernel
def auto_params_in(cell: int, d: int) -> AutoParams:
    h = piece(cell, tail_in(d), (HEAD,), np.float64)
    K, at = int(h[0]), tail_in(d) + HEAD
    gamma = piece(cell, at, (K,), np.float64)
    lam, prior = (
        piece(cell, at + K, (K,), np.float64),
        piece(cell, at + 2 * K, (K,), np.float64),
    )
    link = params_in(cell).link
    return AutoParams(link, h[1], gamma, lam, prior, h[2], h[3], h[4], h[5], h[6], h[7] != 0.0)


@kernel
def auto_memory_in(cell: int, d: int, K: int) -> AutoMemory:
    s, thetas = memory_in(cell, d), tail_in(d) + HEAD + 3 * K
    Hs = thetas + K * d
    weights = Hs + K * d * d
    gains, rounds, usual = weights + K, weights + 3 * K, weights + 4 * K
    return AutoMemory(
        s.theta,
        s.H,
        piece(cell, thetas, (1, K, d), np.float64),
        piece(cell, Hs, (1, K, d, d), np.float64),
        piece(cell, weights, (1, K), np.float64),
        piece(cell, gains, (1, K, 2), np.float64),
        piece(cell, rounds, (1, K), np.float64),
        piece(cell, usual, (1,), np.float64),
        piece(cell, usual + 1, (1, POINTS), np.float64),
        s.t,
    )


@kernel
def auto_learn_in(cell: int, x: Any, r: Any) -> bool:
    """Teach a single AutoDOMD, unless x is no context or r no reward."""
    if not learnable(cell, x, number(r)):
        return False
    d = head_in(cell)[0]
    p = auto_params_in(cell, d)
    s, work = auto_memory_in(cell, d, p.gamma.size), work_in(cell, d)
    learn_one(p, s, 0, floats(x, (d,)), number(r), work)
    factor(s.H[0], work.F)
    keep_index(cell, params_in(cell), memory_in(cell, d), work)
    return True


@kernel
def auto_forget_in(cell: int, d: int, steps: float) -> None:
    """Age the memory by so many rounds."""
    p = auto_params_in(cell, d)
    age_one(p, auto_memory_in(cell, d, p.gamma.size), 0, steps, work_in(cell, d))
    renew_in(cell, d)


_forget_in = direct(auto_forget_in)


def _views(array: Floats, like: AutoMemory) -> AutoMemory:
    """The memory that lies in a cell."""
    d, K = like.thetas.shape[2], like.weights.shape[1]
    found: dict[str, Any] = {"theta": array[THETA:][:d], "H": array[THETA + d :][: d * d]}
    found["t"] = array[THETA + d + d * d :][:1].view(np.int64)
    at = tail_in(d) + HEAD + 3 * K
    for name, shape in ((name, getattr(like, name)) for name in AutoMemory._fields[2:-1]):
        found[name] = array[at : at + shape.size]
        at += shape.size
    return AutoMemory(**{n: a.reshape(getattr(like, n).shape) for n, a in found.items()})


def single_auto(q: Floats, p: AutoParams, memory: AutoMemory, limit: float) -> Single:
    """An AutoDOMD that goes on from a copy of this memory; q is the recipe of its decisions."""
    d = memory.theta.shape[1]
    pooled = cell_of(q, Memory(memory.theta, memory.H, memory.t), limit)
    array = np.concatenate([pooled, tail_of(p, memory)])
    cell = array.ctypes.data
    return single_cell(array, auto_learn_in)._replace(
        memory=_views(array, memory),
        forget=lambda steps: _forget_in(cell, d, float(steps)),
        copy=lambda: _views(array.copy(), memory),  # one call of NumPy: no update in between
    )
