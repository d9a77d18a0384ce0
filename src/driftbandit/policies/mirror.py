"""Algorithm 1 (DOMD-GLB) as compiled functions: memory, choose, learn, and loops over learners."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftbandit.compiled import borrow, inlined, kernel
from driftbandit.linalg import (
    LOOPS_BELOW,
    add_outer,
    dot,
    factor,
    inverse_norm,
    solve,
    whiten,
)
from driftbandit.links import Link, dmu, mu
from driftbandit.policies.policy import Floats, Ints
from driftbandit.projection import project_step
from driftbandit.ranking import BLOCK, EPS, Index, Size, best_row, reach_of
from driftbandit.theory import Radius, beta


class Memory(NamedTuple):
    """Everything n learners remember."""

    theta: Floats  # (n, d)     estimate
    H: Floats  # (n, d, d)  discounted curvature
    t: Ints  # (n,)       rounds seen


class Params(NamedTuple):
    """The recipe in the paper's letters; it travels as one array, which is cheaper to pass."""

    link: Link
    S: float
    gamma: float
    lam: float
    eta: float
    scale: float
    radius: Radius


class Work(NamedTuple):
    """Scratch that learners share while they take turns."""

    F: Floats  # (d, d)  a factorisation
    W: Floats  # (d, d)  its inverse, where loops beat LAPACK
    u: Floats  # (d,)
    v: Floats  # (BLOCK,)  values of arms, or two vectors while a step is projected


def work_for(d: int) -> Work:
    return Work(np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(BLOCK))


@kernel
def borrowed_work(work: Work) -> Work:
    return Work(borrow(work.F), borrow(work.W), borrow(work.u), borrow(work.v))


def pack(p: Params) -> Floats:
    """Params as an array."""
    return np.array([*p.link, *p[1:-1], *p.radius], dtype=float)


@inlined
def unpack(q: Floats) -> Params:
    """The Params that `pack` packed."""
    link = Link(int(q[0]), q[1], q[2], q[3], q[4], q[5] != 0.0)
    radius = Radius(q[11], q[12], q[13], q[14], q[15])
    return Params(link, q[6], q[7], q[8], q[9], q[10], radius)


@inlined
def index_of(p: Params, s: Memory, i: int, work: Work) -> Index:
    """x'theta_t + beta_t ||x||_{H_t^-1} (eq. 2), where work.F holds the factor of H_t."""
    width, reach = p.scale * beta(p.radius, s.t[i] + 1.0), math.inf
    if len(work.F) < LOOPS_BELOW:
        whiten(work.F, work.W)
    else:
        reach = reach_of(width, s.H[i], p.lam, s.t[i])
    return Index(s.theta[i], work.F, work.W, width, reach)


@inlined
def choose(size: Size, p: Params, s: Memory, i: int, arms: Floats, limit: float, work: Work) -> int:
    """argmax over arms of the index (eq. 2); -1 if one is too long."""
    factor(s.H[i], work.F)
    return best_row(size, index_of(p, s, i, work), arms, limit, work.u, work.v)


@inlined
def learn(p: Params, s: Memory, i: int, x: Floats, r: float, work: Work) -> float:
    """One discounted mirror-descent step (eq. 1), then the curvature at the new iterate.

    Returns the w of H_{t+1} = A_t + w x x', and from LOOPS_BELOW dimensions on leaves the factor
    of A_t in work.F.
    """
    theta, A, g = s.theta[i], s.H[i], p.link.g  # views: writing them writes the memory
    u = work.u
    age(p.gamma, p.lam, A)  # A_t = gamma H_t + (1 - gamma) lambda I
    factor(A, work.F)
    solve(work.F, x, u)  # u = A_t^-1 x
    z = dot(x, theta)
    w = p.eta * dmu(p.link, z) / g
    step = p.eta * (mu(p.link, z) - r) / g / (1.0 + w * dot(x, u))
    for j in range(x.size):  # the minimiser over R^d, theta - eta Atil^-1 grad
        theta[j] -= step * u[j]
    if dot(theta, theta) > p.S * p.S:  # in the norm of Atil = A_t + eta mu'/g x x'
        project_step(A, work.F, w, x, u, theta, p.S, work.W, work.v)
    w = dmu(p.link, dot(x, theta)) / g
    add_outer(A, w, x)  # H_{t+1} = A_t + mu'(x'theta_{t+1})/g x x'
    s.t[i] += 1
    return w


@inlined
def age(gamma: float, lam: float, H: Floats) -> None:
    """H <- gamma H + (1 - gamma) lambda I.

    Rounding this and the rank-one term moves H by at most eps tr(H) in norm, and forgetting can
    pile that up 1/(1 - gamma) times in one direction. Adding it to the diagonal keeps
    H >= lambda I through any number of rounds, exactly.
    """
    if gamma == 1.0:
        return
    H, trace = borrow(H), 0.0
    for j in range(len(H)):
        trace += H[j, j]
    for j in range(len(H)):
        row = H[j]
        for k in range(len(row)):
            row[k] *= gamma
        row[j] += (1.0 - gamma) * lam + EPS * trace


@kernel
def score(p: Params, s: Memory, i: int, arms: Floats, mean: Floats, bonus: Floats) -> None:
    """Estimate and bonus of every arm: what `choose` maximises the sum of."""
    F, y = np.empty_like(s.H[i]), np.empty_like(s.theta[i])
    factor(s.H[i], F)
    width = p.scale * beta(p.radius, s.t[i] + 1.0)
    for a in range(len(arms)):
        mean[a] = dot(arms[a], s.theta[i])
        bonus[a] = width * inverse_norm(F, arms[a], y)


@kernel
def borrowed(s: Memory) -> Memory:
    return Memory(borrow(s.theta), borrow(s.H), borrow(s.t))


@kernel
def score_all(q: Floats, s: Memory, arms: Floats, mean: Floats, bonus: Floats) -> None:
    p = unpack(q)
    for i in range(len(s.t)):
        score(p, s, i, arms[i], mean[i], bonus[i])


@kernel
def choose_all(size: Size, q: Floats, s: Memory, arms: Floats, work: Work, out: Ints) -> None:
    p, s, arms, work = unpack(q), borrowed(s), borrow(arms), borrowed_work(work)
    for i in range(len(s.t)):
        out[i] = choose(size, p, s, i, arms[i], math.inf, work)


@kernel
def learn_all(q: Floats, s: Memory, x: Floats, r: Floats, work: Work) -> None:
    p, s, x, work = unpack(q), borrowed(s), borrow(x), borrowed_work(work)
    for i in range(len(s.t)):
        learn(p, s, i, x[i], r[i], work)
