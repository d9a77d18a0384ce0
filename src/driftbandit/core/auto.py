"""The n learners of AutoDOMD in one row: judge, teach, renew, share, pool.

All learners learn from every observed reward, whoever would have chosen it, so their predictions
of it can be compared without any exploration of their own.

A learner keeps the inverse P of its curvature H beside it, so that a round costs O(d^2). What
Algorithm 1 refills in every round, (1 - gamma) lambda I, comes in portions: between them
H <- gamma H + w x x' is a change of rank one. `KEPT` is the product of the gammas since the last
refill; the true curvature is kept H, its inverse P / kept.
"""

from __future__ import annotations

import math

import numpy as np

from driftbandit.core.compiled import atomic, inlined
from driftbandit.core.domd import add_outer, descend, learnable, row_sum
from driftbandit.core.layout import (
    FIRMNESS,
    FLOOR,
    GAIN,
    GAIN_FLOOR,
    GAIN_KEEP,
    GRID,
    KEPT,
    LAPSE,
    LEVEL,
    MIXTURE,
    NUMBERS,
    POINTS,
    ROUNDS,
    SHARE,
    SHIFTED,
    START,
    STIFFNESS,
    WEIGHT,
    D,
    Flag,
    Floats,
    G,
    K,
    T,
)
from driftbandit.core.linalg import dot, inverse
from driftbandit.core.links import log_likelihood, mean_slope
from driftbandit.core.projection import project, project_by_solves
from driftbandit.core.windows import learners, pooled, usual_at

REFILL = 0.9  # part of a curvature that is left when lambda is refilled
REFRESH = 256  # rounds after which P is computed anew from H at the latest, against rounding
LEVEL_KEEP = 0.9  # discount of a level's curvature: it rests on about ten rounds,
LEVEL_FLOOR = 8.0  # and on as many rewards at the steepest slope that say 0
STIFFEST = 1e100  # of a gain: the slope of a log link can overflow
TOO_LITTLE = 1e-3  # learners of less weight are left out of the pooled covariance


@atomic
def learn(q: Floats, row: Floats, x: Floats, r: float, steps: float, large: Flag) -> bool:
    """The mixture sees that x gave r, `steps` after it last learnt. False, and nothing has
    changed, if x is no context or r no reward."""
    if not learnable(q, x, r):
        return False
    d, g = x.size, row[G]
    V, u = np.empty((d, d)), np.empty(d)
    x = x.copy()  # it may be a view of the row
    numbers, thetas, Hs, Ps = learners(row, d, int(q[K]))
    before = forgetful(q, numbers, row[T])
    judge(q, g, numbers, thetas, x, r)
    suspect(q, row, numbers, before)
    forget(q, numbers, Hs, Ps, steps, row[T] % REFRESH, u)
    teach(q, g, numbers, thetas, Hs, Ps, x, r, u, large)
    lead = renew(q, numbers, thetas, Hs, Ps, u)
    share(q, numbers, lead, row[T])
    pool(q, row, numbers, thetas, Ps, lead, V, u)
    row[T] += 1.0
    remember(row, usual_at(d), numbers)
    return True


@inlined
def judge(q: Floats, g: float, numbers: Floats, thetas: Floats, x: Floats, r: float) -> None:
    """weights <- log weights + log likelihood of r under each learner's two predictions.

    The gain makes a learner answer for the order of the arms rather than for the size of its
    predictions: when a signal fades but keeps its direction, a long memory still ranks best. The
    second track adds a level that follows the last ten rounds or so: days and users that raise
    all rewards alike are no reason to forget which arm is best.
    """
    fresh = (1.0 - q[GAIN_KEEP]) * q[GAIN_FLOOR]
    firm = (1.0 - LEVEL_KEEP) * LEVEL_FLOOR * mean_slope(q, 0.0)[1] / g
    for k in range(len(thetas)):
        z = 0.0
        for j in range(x.size):
            z += x[j] * thetas[k, j]
        for track in range(2):
            level, gain = track * numbers[LEVEL, k], numbers[GAIN + track, k]
            mean, slope = mean_slope(q, level + gain * z)
            before = math.log(max(numbers[WEIGHT + track, k], 1e-300))
            now = log_likelihood(q, r, level + gain * z) / g
            numbers[WEIGHT + track, k] = before + now
            stiffness = q[GAIN_KEEP] * numbers[STIFFNESS + track, k] + fresh + slope * z * z / g
            stiffness = min(stiffness, STIFFEST)
            step = z * (r - mean) / g + fresh * (1.0 - gain)
            numbers[STIFFNESS + track, k] = stiffness
            numbers[GAIN + track, k] = max(0.0, gain + step / stiffness)
        numbers[FIRMNESS, k] = min(LEVEL_KEEP * numbers[FIRMNESS, k] + firm + slope / g, STIFFEST)
        numbers[LEVEL, k] += ((r - mean) / g - firm * level) / numbers[FIRMNESS, k]


@inlined
def forgetful(q: Floats, numbers: Floats, t: float) -> float:
    """Weight of the learners that forget."""
    w = 0.0
    for k in range(numbers.shape[1]):
        if forgets(q, k, t):
            w += both(numbers, k)
    return w


@inlined
def forgets(q: Floats, k: int, t: float) -> bool:
    """Whether a learner's memory is shorter than a third of its life."""
    return (1.0 - q[GRID + k]) * t > 3.0


@inlined
def suspect(q: Floats, row: Floats, numbers: Floats, before: float) -> None:
    """drift <- drift + log of how much better those who forget predicted r than the others.

    Were the world at rest and the others right, exp(drift) would be a fair bet: it exceeds 10 with
    probability 1/10 at most (Ville). What is long past fades.
    """
    t, at = row[T], usual_at(int(q[D])) + 1
    if before < 1e-12 or before > 1.0 - 1e-12:
        return
    top, short, long = stronger(numbers, leader(numbers)), 0.0, 0.0
    for k in range(numbers.shape[1]):
        w = math.exp(numbers[WEIGHT, k] - top) + math.exp(numbers[WEIGHT + 1, k] - top)
        if forgets(q, k, t):
            short += w
        else:
            long += w
    gain = math.log(max(short, 1e-300) / before) - math.log(max(long, 1e-300) / (1.0 - before))
    row[at] += gain - row[at] / (t + 300.0)


@inlined
def forget(
    q: Floats, numbers: Floats, Hs: Floats, Ps: Floats, steps: float, turn: float, u: Floats
) -> None:
    """Every learner ages at its own pace; `turn` is whose P is computed anew.

    Where no more than REFILL is kept, H <- kept H + (1 - kept) lambda I.
    """
    n, d = len(Hs), u.size
    for k in range(n):
        gamma = q[GRID + k] if steps == 1.0 else q[GRID + k] ** steps
        kept = numbers[KEPT, k] * gamma
        numbers[ROUNDS, k] *= gamma
        if kept <= REFILL or turn == k % REFRESH:
            for i in range(d):
                for j in range(d):
                    Hs[k, i, j] *= kept
                Hs[k, i, i] += (1.0 - kept) * q[GRID + n + k]
            inverse(Hs[k], Ps[k], u)
            kept = 1.0
        numbers[KEPT, k] = kept


@inlined
def teach(
    q: Floats,
    g: float,
    numbers: Floats,
    thetas: Floats,
    Hs: Floats,
    Ps: Floats,
    x: Floats,
    r: float,
    u: Floats,
    large: Flag,
) -> None:
    """One step of Algorithm 1 with eta = 1 for every learner."""
    n, d = thetas.shape
    for k in range(n):
        theta, c, S = thetas[k], numbers[KEPT, k], q[GRID + 2 * n + k]
        for j in range(d):
            u[j] = 0.0
        for i in range(d):  # u = A_t^-1 x, where A_t = c H
            for j in range(d):
                u[j] += Ps[k, i, j] * (x[i] / c)
        w = descend(q, 1.0, g, theta, x, r, u)
        if dot(theta, theta) > S * S:
            done = False
            if large is not None:
                done = project_by_solves(Ps[k], c, True, w, x, u, theta, S)
            if not done:
                project(c, Hs[k], w, x, theta, S, large)
        w = mean_slope(q, dot(x, theta))[1] / g
        add_outer(Hs[k], w / c, x)
        add_outer(Ps[k], -c * w / (1.0 + w * dot(x, u)), u)  # Sherman and Morrison
        numbers[ROUNDS, k] += 1.0


@inlined
def renew(q: Floats, numbers: Floats, thetas: Floats, Hs: Floats, Ps: Floats, u: Floats) -> int:
    """Learners with a longer memory than the leader's that lag far behind go on from its state.
    Returns the leader.

    After a jump the long memories hold what is no longer true. Rather than wait until they have
    forgotten it, they start again from the learner that has adapted.
    """
    n, d = thetas.shape
    lead = leader(numbers)
    for k in range(n):
        behind = stronger(numbers, lead) - stronger(numbers, k)
        if behind > q[LAPSE] and q[GRID + k] > q[GRID + lead]:
            for i in range(d):
                thetas[k, i] = thetas[lead, i]
                for j in range(d):
                    Hs[k, i, j] = numbers[KEPT, lead] * Hs[lead, i, j]
                Hs[k, i, i] += (1.0 - numbers[KEPT, lead]) * q[GRID + n + lead]  # as in `forget`
                Hs[k, i, i] += max(0.0, q[GRID + n + k] - q[GRID + n + lead])  # its own floor
            inverse(Hs[k], Ps[k], u)
            for number in range(NUMBERS):
                numbers[number, k] = numbers[number, lead]
            numbers[KEPT, k] = 1.0
            for track in range(2):
                numbers[WEIGHT + track, k] -= q[START]
    return lead


@inlined
def stronger(numbers: Floats, k: int) -> float:
    """The (log) weight of a learner's better track."""
    return max(numbers[WEIGHT, k], numbers[WEIGHT + 1, k])


@inlined
def leader(numbers: Floats) -> int:
    """The learner with the strongest track; the first of equals."""
    lead = 0
    for k in range(numbers.shape[1]):
        if stronger(numbers, k) > stronger(numbers, lead):
            lead = k
    return lead


@inlined
def both(numbers: Floats, k: int) -> float:
    """A learner's weight, both tracks together."""
    return numbers[WEIGHT, k] + numbers[WEIGHT + 1, k]


@inlined
def share(q: Floats, numbers: Floats, lead: int, t: float) -> None:
    """From logarithms to weights; a share of all goes back to the prior every round.

    In a long life the share falls as 1/t. What a fixed share gives to memories of ten rounds would
    blur an estimate that rests on thousands.
    """
    n, top, total = numbers.shape[1], stronger(numbers, lead), 0.0
    part = min(q[SHARE], 1.0 / (1.0 + t))
    for track in range(2):
        for k in range(n):
            numbers[WEIGHT + track, k] = math.exp(numbers[WEIGHT + track, k] - top)
            total += numbers[WEIGHT + track, k]
    for track in range(2):
        back = part * (q[SHIFTED] if track else 1.0 - q[SHIFTED])
        for k in range(n):
            w = (1.0 - part) * numbers[WEIGHT + track, k] / total
            numbers[WEIGHT + track, k] = w + back * q[GRID + 3 * n + k]


@inlined
def weight(q: Floats, numbers: Floats, k: int, lead: int) -> float:
    """Weight of a learner in the pool."""
    if q[MIXTURE] == 0.0:
        return 1.0 * (k == lead)
    return both(numbers, k)


@inlined
def pool(
    q: Floats,
    row: Floats,
    numbers: Floats,
    thetas: Floats,
    Ps: Floats,
    lead: int,
    V: Floats,
    u: Floats,
) -> None:
    """theta and H of the normal distribution with the moments of the mixture, or the leader's."""
    n, d = thetas.shape
    theta, H = pooled(row, d)
    for j in range(d):
        theta[j] = 0.0
        for i in range(d):
            V[i, j] = 0.0
    for k in range(n):
        w = weight(q, numbers, k, lead)
        for j in range(d):
            theta[j] += w * thetas[k, j]
    for k in range(n):
        w = weight(q, numbers, k, lead)
        if w >= TOO_LITTLE:
            for j in range(d):
                u[j] = thetas[k, j] - theta[j]
            for i in range(d):  # what each does not know, and where they disagree
                for j in range(d):
                    V[i, j] += w * (Ps[k, i, j] / numbers[KEPT, k] + u[i] * u[j])
    inverse(V, H, u)
    row[FLOOR] = 1.0 / row_sum(V)


@inlined
def remember(row: Floats, usual: int, numbers: Floats) -> None:
    """Note the effective memory: its slow average, and a history that thins itself out."""
    t, now, stride, history = row[T], 0.0, 1.0, row.size - POINTS
    for k in range(numbers.shape[1]):
        now += both(numbers, k) * numbers[ROUNDS, k]
    while t > POINTS * stride:
        stride *= 2.0
    row[usual] += (math.log(now) - row[usual]) / min(t, 200.0)
    if stride > 1.0 and t == POINTS * stride / 2.0 + 1.0:  # full one round ago: keep every second
        for j in range(POINTS // 2):
            row[history + j] = row[history + 2 * j + 1]
    if t % stride == 0.0:
        row[history + int(t / stride) - 1] = now


@atomic
def age(q: Floats, row: Floats, steps: float) -> None:
    """Steps without data."""
    d = int(q[D])
    V, u = np.empty((d, d)), np.empty(d)
    numbers, thetas, Hs, Ps = learners(row, d, int(q[K]))
    forget(q, numbers, Hs, Ps, steps, -1.0, u)
    pool(q, row, numbers, thetas, Ps, leader(numbers), V, u)
