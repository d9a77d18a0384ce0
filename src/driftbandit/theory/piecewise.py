"""The pieces of Theorem 3's proof: good rounds, what bad ones cost, and the window D."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from driftbandit.problem import Problem
from driftbandit.theory.domd import Floats, iota
from driftbandit.theory.sharp import least_lam


def good_rounds(path: Floats, D: int) -> NDArray[np.bool_]:
    """For t = 1, ..., T whether theta_s = theta_t in all of the D rounds s before t: G_D.

    A window with a change in it holds a theta other than theta_t, even if theta comes back.
    """
    _check(D)
    moved = np.any(np.diff(path, axis=0) != 0.0, axis=1)
    changes = np.concatenate([[0], np.cumsum(moved)])
    rounds = np.arange(len(path))
    return np.asarray(changes == changes[np.maximum(rounds - D, 0)])


def bad_round_bound(changes: int, D: int) -> int:
    """Gamma_T D, at least the number of rounds that are not good (Lemma C.1)."""
    _check(D)
    return changes * D


def worst_round(problem: Problem) -> float:
    """What a round can cost: the range of rewards or 2 k S, whichever is smaller.

    The paper has R, which is the range for rewards in [0, R], but half of it for [-R, R].
    """
    return min(problem.family.range, 2.0 * problem.k_mu * problem.S)


def price_of_drift(problem: Problem, lam: float | None, *, sharp: bool) -> float:
    """iota / sqrt(lam), with the theorem's least lambda unless another is given."""
    lam = least_lam(problem, sharp=sharp) if lam is None else lam
    return iota(problem, sharp=sharp) / math.sqrt(lam)


def C_pw(problem: Problem, *, lam: float | None = None, sharp: bool = False) -> float:
    """C_pw = max{e, 8 S k iota / sqrt(lam)} (proof of Theorem 3)."""
    price = price_of_drift(problem, lam, sharp=sharp)
    return max(math.e, 8.0 * problem.S * problem.k_mu * price)


def D_gamma(
    problem: Problem, gamma: float, *, lam: float | None = None, sharp: bool = False
) -> int:
    """D_gamma = ceil(2 log(C_pw T / (1-gamma)) / log(1/gamma)), the proof's choice of D."""
    T = problem.known("horizon", "the window D")
    logs = math.log(C_pw(problem, lam=lam, sharp=sharp) * T / (1.0 - gamma))
    return math.ceil(-2.0 * logs / math.log(gamma))


def tail(
    problem: Problem, gamma: float, D: float, *, lam: float | None = None, sharp: bool = False
) -> float:
    """8 S k iota lam^{-1/2} gamma^{D/2} (1-gamma)^{-3/2}: what is left of a change after D rounds,
    summed over all good rounds (Lemma C.2, times 2 k iota lam^{-1/2})."""
    price = price_of_drift(problem, lam, sharp=sharp)
    return 8.0 * problem.S * problem.k_mu * price * gamma ** (D / 2.0) / (1.0 - gamma) ** 1.5


def best_D(
    problem: Problem,
    gamma: float,
    *,
    lam: float | None = None,
    sharp: bool = False,
    worst: float | None = None,
) -> int:
    """The whole D >= 1 at which r D + tail(D) is least; r = `worst_round` unless given.

    The sum is convex in D, so its whole-number minimum is next to the root of its derivative.
    """
    r, rate = worst_round(problem) if worst is None else worst, -0.5 * math.log(gamma)
    steepest = max(tail(problem, gamma, 0.0, lam=lam, sharp=sharp) * rate / r, 1.0)
    root = max(1.0, math.log(steepest) / rate)
    return min(
        (math.floor(root), math.ceil(root)),
        key=lambda D: r * D + tail(problem, gamma, D, lam=lam, sharp=sharp),
    )


def _check(D: int) -> None:
    if D < 1:
        raise ValueError(f"the window D must be 1 round or more, got {D}")
