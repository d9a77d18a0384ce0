"""What a row holds: the one place that knows.

A learner is one row of float64. DOMD's row is

    t, g, basis, floor, theta (d), H (d, d)

and AutoDOMD's goes on with its K learners. Tables of fields say so in Python (`views`, `packed`);
`learners_at` says the same to kernels (see `views`). The recipe is no part of a row: it travels
beside it as another array.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Fields = dict[str, tuple[int, ...]]
Flag = int | None  # of a kernel: where it is None, numba leaves its branch out

T, G, BASIS, FLOOR, THETA = range(5)  # places in a row; H follows theta
POINTS = 128  # of AutoDOMD's history of its effective memory


class Memory(NamedTuple):
    """Everything n learners of DOMD remember."""

    t: Floats  # (n,)       rounds seen
    g: Floats  # (n,)       dispersion g(tau)
    basis: Floats  # (n,)       what a g that is learnt rests on: a sum of mu'
    floor: Floats  # (n,)       H >= floor I
    theta: Floats  # (n, d)     estimate
    H: Floats  # (n, d, d)  discounted curvature


class AutoMemory(NamedTuple):
    """Everything n mixtures of K learners remember; the first six are what decisions need.

    What K learners know since they were last refreshed is weighted by `kept`: the curvature of
    learner k is kept[k] Hs[k], and its inverse Ps[k] / kept[k].
    """

    t: Floats
    g: Floats
    basis: Floats
    floor: Floats
    theta: Floats  # (n, d)        pooled estimate
    H: Floats  # (n, d, d)     inverse of the pooled covariance
    usual: Floats  # (n,)          slow average of the logarithm of the effective memory
    drift: Floats  # (n,)          nats by which learners that forget predicted better than the rest
    weights: Floats  # (n, 2, K)     by track, steady and with a level; they sum to 1
    gains: Floats  # (n, 2, K)     factor on a learner's predictions, by track
    stiffness: Floats  # (n, 2, K)     curvature behind that factor
    levels: Floats  # (n, K)        what the second track adds to a learner's predictions
    firmness: Floats  # (n, K)        curvature behind that level
    rounds: Floats  # (n, K)        discounted number of rounds that a learner rests on
    kept: Floats  # (n, K)
    thetas: Floats  # (n, K, d)
    Hs: Floats  # (n, K, d, d)
    Ps: Floats  # (n, K, d, d)
    history: Floats  # (n, POINTS)   effective memory so far, evenly spaced


def domd_fields(d: int) -> Fields:
    """Names and shapes of DOMD's row, in order."""
    return {"t": (), "g": (), "basis": (), "floor": (), "theta": (d,), "H": (d, d)}


def auto_fields(d: int, k: int) -> Fields:
    """The same for AutoDOMD."""
    tracks = dict.fromkeys(("weights", "gains", "stiffness"), (2, k))
    numbers = dict.fromkeys(("levels", "firmness", "rounds", "kept"), (k,))
    learners = {"thetas": (k, d), "Hs": (k, d, d), "Ps": (k, d, d)}
    return (
        domd_fields(d)
        | {"usual": (), "drift": ()}
        | tracks
        | numbers
        | learners
        | {"history": (POINTS,)}
    )


def size(fields: Fields) -> int:
    """Numbers in a row."""
    return sum(math.prod(shape) for shape in fields.values())


def views(rows: Any, fields: Fields) -> dict[str, Any]:
    """The fields of rows (n, size), without a copy."""
    out, at = {}, 0
    for name, shape in fields.items():
        end = at + math.prod(shape)
        out[name] = rows[:, at:end].reshape(len(rows), *shape)
        at = end
    return out


def packed(arrays: dict[str, Any], fields: Fields, n: int) -> Floats:
    """Rows (n, size) from fields."""
    rows = np.empty((n, size(fields)))
    for name, view in views(rows, fields).items():
        view[...] = arrays[name]
    return rows


# Numbers of AutoDOMD's learners. There are two of the first three, one for each track.
WEIGHT, GAIN, STIFFNESS, LEVEL, FIRMNESS, ROUNDS, KEPT, NUMBERS = 0, 2, 4, 6, 7, 8, 9, 10


def usual_at(d: int) -> int:
    """Where a row of AutoDOMD holds `usual`; `drift` follows it."""
    return THETA + d + d * d


def learners_at(d: int, n: int) -> tuple[int, int, int, int]:
    """Where a row of AutoDOMD holds the numbers, thetas, Hs and Ps of its n learners."""
    numbers = THETA + d + d * d + 2  # right after `usual` and `drift`
    thetas = numbers + NUMBERS * n
    Hs = thetas + n * d
    return numbers, thetas, Hs, Hs + n * d * d


# A recipe is an array too. These are the places of what kernels read, in the paper's letters.
(
    D,
    LIMIT,  # largest ||x||^2 of a context
    LINK,  # code of the family
    TRIALS,
    LOW,  # smallest and largest reward, and whether rewards are whole numbers
    HIGH,
    WHOLE,
    OPEN,  # the largest g where it is learnt, else 0
    S,
    GAMMA,
    LAM,
    ETA,
    SCALE,
    WIDENING,  # of AutoDOMD's bonus with its effective memory, or 0
    RARE,  # power of mu'(z)/mu'(0) by which the bonus shrinks where rewards are rare
    CONSTANT,  # of `theory.Radius`
    LOG_ROUND,
    LOG_MASS,
    MASS,
) = range(19)
# AutoDOMD's grid follows: numbers, then K of each of gamma, lambda, S, the prior of the first
# track, that of the second, the pace of the level, and whether theta is taught with it.
(
    K,
    SHARE,  # part of the weight that goes back to the prior
    LAPSE,  # nats behind the leader at which a learner is renewed
    START,  # nats behind the leader at which it starts again
    GAIN_KEEP,  # discount and floor of the curvature of the gains
    GAIN_FLOOR,
    MIXTURE,  # pool all learners, or follow the leader
    REVERTS,  # where a renewed learner's H holds the prior alone, theta goes back to 0
    GRID,
) = range(19, 28)
