"""A run played again from its choices and rewards: the quantities of the proofs, round by round.

Everything is in the paper's scale, contexts of norm at most 1. Nothing of the layers above is
imported: a run brings its policy and its environment along.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from driftbandit.theory.domd import Floats

ROUNDS = 64  # drawn at once


class Round(NamedTuple):
    """One round of n learners: before, and after learning from x and r."""

    arms: Floats  # (n, N, d)
    x: Floats  # (n, d)
    r: Floats  # (n,)
    star: Floats  # (n, d)     theta*_t
    theta: Floats  # (n, d)     theta_t
    new: Floats  # (n, d)     theta_{t+1}
    H: Floats  # (n, d, d)  H_t
    A: Floats  # (n, d, d)  A_t
    H_new: Floats  # (n, d, d)  H_{t+1}


class Trace(NamedTuple):
    """What the proofs speak of, (n, T) each, but (n, T, d) in the first two and the last."""

    x: Floats
    star: Floats
    r: Floats
    at: Floats  # x_t'theta_t
    at_new: Floats  # x_t'theta_{t+1}
    at_star: Floats  # x_t'theta*_t
    A_square: Floats  # ||x_t||^2 in the norms of A_t^-1, H_t^-1 and H_{t+1}^-1
    H_square: Floats
    new_square: Floats
    move: Floats  # ||theta_{t+1} - theta_t||^2_{A_t}
    A_error: Floats  # ||theta_t - theta*_t||^2 in the norms of A_t and H_t
    H_error: Floats
    new_error: Floats  # ||theta_{t+1} - theta*_t||^2_{H_{t+1}}
    growth: Floats  # log det H_t - d log lambda
    log_gain: Floats  # log det H_{t+1} - log det A_t
    miss: Floats  # |x'(theta_t - theta*_t)| and ||x||_{H_t^-1} of the arm that leaves the least
    width: Floats  # slack in Lemma B.1
    spectrum: Floats  # (n, T, d)  eigenvalues of H_{t+1}


def rounds(run: Any) -> Iterator[Round]:
    """Play the run again, or raise ValueError if it comes out otherwise."""
    policy, world, L = run.policy, run.environment, run.policy.problem.context_norm
    gamma, lam = policy.discount, policy.regularization
    n, d, t = len(run.seeds), policy.problem.dim, 0
    memory, rows, fill = policy.init(n), np.arange(n), (1.0 - gamma) * lam * np.eye(d)
    for block in world.blocks(run.seeds, ROUNDS):
        for arms, star in zip(block.arms, block.theta):
            x, r = arms[rows, run.choices[:, t]], np.ascontiguousarray(run.rewards[:, t])
            _check_regret(run, t, np.einsum("nad,nd->na", arms, star))
            theta, H = memory.theta * L, memory.H / L**2
            memory = policy.update(memory, x, r)
            new, H_new = memory.theta * L, memory.H / L**2
            yield Round(arms / L, x / L, r, star * L, theta, new, H, gamma * H + fill, H_new)
            t += 1


def _check_regret(run: Any, t: int, natural: Floats) -> None:
    mu, played = run.environment.family.mu, natural[np.arange(len(natural)), run.choices[:, t]]
    found = mu(natural.max(axis=1)) - mu(played)
    if not np.allclose(found, run.regret[:, t], rtol=1e-6, atol=1e-9):
        raise ValueError(
            f"the run does not replay: round {t + 1} has another regret; simulate it again with "
            "this version of driftbandit"
        )


def replay(run: Any, beta: Floats) -> Trace:
    """All quantities of a run; `beta` is (T,)."""
    log_lam = run.policy.problem.dim * np.log(run.policy.regularization)
    columns = [_measure(one, b, log_lam) for one, b in zip(rounds(run), beta)]
    return Trace(*(np.stack(column, axis=1) for column in zip(*columns)))


def _measure(one: Round, beta: float, log_lam: float) -> tuple[Floats, ...]:
    x, error = one.x, one.theta - one.star
    inverse = np.linalg.inv(one.H)
    widths = np.sqrt(np.einsum("nad,nde,nae->na", one.arms, inverse, one.arms))
    misses = np.abs(np.einsum("nad,nd->na", one.arms, error))
    worst = np.arange(len(x)), np.argmax(misses - beta * widths, axis=1)
    return (
        *(x, one.star, one.r),
        *((x * v).sum(axis=1) for v in (one.theta, one.new, one.star)),
        _square(np.linalg.inv(one.A), x),
        _square(inverse, x),
        _square(np.linalg.inv(one.H_new), x),
        _square(one.A, one.new - one.theta),
        *(_square(one.A, error), _square(one.H, error)),
        _square(one.H_new, one.new - one.star),
        np.linalg.slogdet(one.H)[1] - log_lam,
        np.linalg.slogdet(one.H_new)[1] - np.linalg.slogdet(one.A)[1],
        *(misses[worst], widths[worst], np.linalg.eigvalsh(one.H_new)),
    )


def _square(M: Any, v: Floats) -> Floats:
    """v'Mv for each of n."""
    return np.asarray(np.einsum("nd,nde,ne->n", v, M, v))
