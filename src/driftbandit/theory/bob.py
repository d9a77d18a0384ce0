"""Bandit over bandits: blocks, discounts and EXP3's rate, and the bound without knowing P_T.

docs/bob.md has the proof. N = ceil(T / D) blocks of D rounds, K discounts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from driftbandit import theory
from driftbandit.problem import Problem

WHY = "bandit over bandits"


def bob_block(problem: Problem) -> int:
    """D = d sqrt(T) rounded up, at most T: the rounds of a block, at least 2."""
    T = problem.known("horizon", WHY)
    if T < 2:
        raise ValueError(f"{WHY} needs a horizon of at least 2 rounds, got {T:g}")
    return int(min(T, math.ceil(problem.dim * math.sqrt(T))))


def bob_discounts(block: int) -> tuple[float, ...]:
    """gamma_j = 1 - 2^-j for j = 1, ..., floor(log2 D).

    Every 1 - gamma in [1/D, 1/2] is at most doubled by the next larger one on the grid.
    """
    return tuple(1.0 - 2.0**-j for j in range(1, block.bit_length()))


def bob_blocks(problem: Problem, block: int) -> int:
    """N = ceil(T / D); the last block may be shorter."""
    return math.ceil(problem.known("horizon", WHY) / block)


def bob_rate(blocks: int, arms: int) -> float:
    """rho = sqrt(2 log K / (N K)), the step of EXP3."""
    return math.sqrt(2.0 * math.log(arms) / (blocks * arms))


def bob_selection(problem: Problem, block: int) -> float:
    """range D sqrt(2 N K log K): what EXP3 loses in expectation to the best discount."""
    N, K = bob_blocks(problem, block), len(bob_discounts(block))
    return problem.family.range * block * math.sqrt(2.0 * N * K * math.log(K))


def bob_regret_bound(
    problem: Problem, *, delta: float | None = None, block: int | None = None
) -> float:
    """min_j sum over blocks of the theorem's bound with gamma_j
    + delta T (mu(S) - mu(-S)) + range D sqrt(2 N K log K), a bound on the expected regret.

    The theorem is 2 where path_length is known, 3 where change_points is, the better one where
    both are. delta is a block's, 1/T unless given. The policy itself knows neither number.
    """
    D = bob_block(problem) if block is None else block
    T, worst = problem.known("horizon", WHY), problem.family.mu([-problem.S, problem.S])
    delta = 1.0 / T if delta is None else delta
    learning = min(_learning(problem, gamma, delta, D) for gamma in bob_discounts(D))
    return learning + delta * T * float(worst[1] - worst[0]) + bob_selection(problem, D)


def _learning(problem: Problem, gamma: float, delta: float, block: int) -> float:
    """Regret of DOMD, restarted in every block, as the theorems bound it.

    A theorem's bound is affine in how much the world moves. So its sum over blocks needs only the
    sum of the moves: N blocks that stand still, and all moves in one of them.
    """
    theorems = {
        theory.regret_bound_drifting: problem.path_length,
        theory.regret_bound_piecewise: problem.change_points,
    }
    bounds = [bound for bound, moves in theorems.items() if moves is not None]
    if not bounds:
        raise ValueError(
            "the bound needs path_length or change_points, though the policy needs neither: pass "
            "Problem(..., path_length=...)"
        )
    moving = replace(problem, horizon=block)
    still, N = replace(moving, path_length=0.0, change_points=0), bob_blocks(problem, block)

    def total(bound: Callable[..., float]) -> float:
        calm = bound(still, gamma=gamma, delta=delta)
        return N * calm + bound(moving, gamma=gamma, delta=delta) - calm

    return min(map(total, bounds))
