"""Compiled pass over the K learners of AutoDOMD: judge, teach, renew, share, pool.

All learners learn from every observed reward, whoever would have chosen it, so their predictions
of it can be compared without any exploration of their own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftbandit.compiled import borrow, kernel
from driftbandit.linalg import add_inverse, add_outer, dot, put, put_all
from driftbandit.links import Link, m, mu_dmu
from driftbandit.policies.mirror import Memory, Params, Work, age, borrowed_work, learn
from driftbandit.policies.policy import Floats, Ints
from driftbandit.theory import Radius

POINTS = 128  # of the history of the effective memory
TOO_LITTLE = 1e-3  # learners of less weight are left out of the pooled covariance


class AutoMemory(NamedTuple):
    """Everything n mixtures of K learners remember; theta and H are what decisions need."""

    theta: Floats  # (n, d)        pooled estimate
    H: Floats  # (n, d, d)     inverse of the pooled covariance
    thetas: Floats  # (n, K, d)     the learners
    Hs: Floats  # (n, K, d, d)
    weights: Floats  # (n, K)        sum to 1
    gains: Floats  # (n, K, 2)     factor on a learner's predictions, and its curvature
    rounds: Floats  # (n, K)        discounted number of rounds that a learner rests on
    usual: Floats  # (n,)          slow average of the logarithm of the effective memory
    history: Floats  # (n, POINTS)   effective memory so far, evenly spaced
    t: Ints  # (n,)          rounds seen


class AutoParams(NamedTuple):
    """The recipe as arrays over the grid and a few numbers."""

    link: Link
    S: float
    gamma: Floats  # (K,)
    lam: Floats
    prior: Floats
    share: float
    lapse: float  # nats behind the leader at which a learner is renewed
    start: float  # nats behind the leader at which it starts again
    gain_keep: float  # discount and floor of the curvature of the gains
    gain_floor: float
    mixture: bool  # pool all learners, or follow the leader


@kernel
def judge(p: AutoParams, s: AutoMemory, i: int, x: Floats, r: float) -> None:
    """weights <- log weights + log likelihood of r under each learner's rescaled prediction.

    The gain makes a learner answer for the order of the arms rather than for the size of its
    predictions: when a signal fades but keeps its direction, a long memory still ranks best.
    """
    w, gains = s.weights[i], s.gains[i]
    for k in range(w.size):
        z, gain = dot(x, s.thetas[i, k]), gains[k, 0]
        mean, slope = mu_dmu(p.link, gain * z)
        w[k] = math.log(max(w[k], 1e-300)) + (r * gain * z - m(p.link, gain * z)) / p.link.g
        fresh = (1.0 - p.gain_keep) * p.gain_floor
        gains[k, 1] = p.gain_keep * gains[k, 1] + fresh + slope * z * z / p.link.g
        step = z * (r - mean) / p.link.g + fresh * (1.0 - gain)
        gains[k, 0] = max(0.0, gain + step / gains[k, 1])


@kernel
def teach(p: AutoParams, s: AutoMemory, i: int, x: Floats, r: float, work: Work) -> None:
    """One step of Algorithm 1 with eta = 1 for every learner."""
    learners = Memory(s.thetas[i], s.Hs[i], np.zeros(p.gamma.size, np.int64))
    nothing = Radius(0.0, 0.0, 0.0, 0.0, 1.0)
    for k in range(p.gamma.size):
        one = Params(p.link, p.S, p.gamma[k], p.lam[k], 1.0, 1.0, nothing)
        learn(one, learners, k, x, r, work)
        s.rounds[i, k] = p.gamma[k] * s.rounds[i, k] + 1.0


@kernel
def renew(p: AutoParams, s: AutoMemory, i: int) -> None:
    """Learners with a longer memory than the leader's that lag far behind go on from its state.

    After a jump the long memories hold what is no longer true. Rather than wait until they have
    forgotten it, they start again from the learner that has adapted.
    """
    w, lead = s.weights[i], np.argmax(s.weights[i])
    for k in range(w.size):
        if w[k] < w[lead] - p.lapse and p.gamma[k] > p.gamma[lead]:
            put(s.thetas[i, lead], s.thetas[i, k])
            put_all(s.Hs[i, lead], s.Hs[i, k])
            for j in range(s.thetas.shape[2]):  # its own floor still holds: H_k >= lambda_k I
                s.Hs[i, k, j, j] += max(0.0, p.lam[k] - p.lam[lead])
            put(s.gains[i, lead], s.gains[i, k])
            s.rounds[i, k] = s.rounds[i, lead]
            w[k] = w[lead] - p.start


@kernel
def share(p: AutoParams, w: Floats) -> None:
    """From logarithms to weights; a fixed share of all goes back to the prior every round."""
    top, total = w.max(), 0.0
    for k in range(w.size):
        w[k] = math.exp(w[k] - top)
        total += w[k]
    for k in range(w.size):
        w[k] = (1.0 - p.share) * w[k] / total + p.share * p.prior[k]


@kernel
def pool(p: AutoParams, s: AutoMemory, i: int, work: Work) -> None:
    """theta and H of the normal distribution with the moments of the mixture, or the leader's."""
    w, theta, H, V = s.weights[i], s.theta[i], s.H[i], np.zeros_like(s.H[i])
    if not p.mixture:
        lead = np.argmax(w)
        put(s.thetas[i, lead], theta)
        put_all(s.Hs[i, lead], H)
        return
    theta[:], H[:] = 0.0, 0.0
    for k in range(w.size):
        for j in range(theta.size):
            theta[j] += w[k] * s.thetas[i, k, j]
    for k in range(w.size):
        if w[k] >= TOO_LITTLE:
            add_inverse(s.Hs[i, k], w[k], V, work.F, work.W)  # what each does not know
            for j in range(theta.size):
                work.u[j] = s.thetas[i, k, j] - theta[j]
            add_outer(V, w[k], work.u)  # where they disagree
    add_inverse(V, 1.0, H, work.F, work.W)


@kernel
def stride_of(t: int) -> int:
    """Rounds between two points of the history at round t."""
    stride = 1
    while t > POINTS * stride:
        stride *= 2
    return stride


@kernel
def remember(s: AutoMemory, i: int) -> None:
    """Note the effective memory: its slow average, and a history that thins itself out."""
    now, t, stride = 0.0, s.t[i], stride_of(s.t[i])
    for k in range(s.weights.shape[1]):
        now += s.weights[i, k] * s.rounds[i, k]
    s.usual[i] += (math.log(now) - s.usual[i]) / min(t, 200.0)
    if stride > 1 and t == POINTS * stride // 2 + 1:  # full one round ago: keep every second
        for j in range(POINTS // 2):
            s.history[i, j] = s.history[i, 2 * j + 1]
    if t % stride == 0:
        s.history[i, t // stride - 1] = now


@kernel
def learn_one(p: AutoParams, s: AutoMemory, i: int, x: Floats, r: float, work: Work) -> None:
    """The i-th mixture sees that x gave r."""
    judge(p, s, i, x, r)
    teach(p, s, i, x, r, work)
    renew(p, s, i)
    share(p, s.weights[i])
    pool(p, s, i, work)
    s.t[i] += 1
    remember(s, i)


@kernel
def age_one(p: AutoParams, s: AutoMemory, i: int, steps: float, work: Work) -> None:
    """Rounds without data: every learner forgets at its own pace."""
    for k in range(p.gamma.size):
        age(p.gamma[k] ** steps, p.lam[k], s.Hs[i, k])
        s.rounds[i, k] *= p.gamma[k] ** steps
    pool(p, s, i, work)


@kernel
def learn_all(p: AutoParams, s: AutoMemory, x: Floats, r: Floats, work: Work) -> None:
    x, work = borrow(x), borrowed_work(work)
    s = AutoMemory(
        borrow(s.theta),
        borrow(s.H),
        borrow(s.thetas),
        borrow(s.Hs),
        borrow(s.weights),
        borrow(s.gains),
        borrow(s.rounds),
        borrow(s.usual),
        borrow(s.history),
        borrow(s.t),
    )
    for i in range(len(s.t)):
        learn_one(p, s, i, x[i], r[i], work)


@kernel
def age_all(p: AutoParams, s: AutoMemory, steps: float, work: Work) -> None:
    for i in range(len(s.t)):
        age_one(p, s, i, steps, work)
