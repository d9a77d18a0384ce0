"""The n learners of AutoDOMD in one row: judge, train, renew, share, pool.

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

from driftbandit.core.compiled import atomic, inlined, kernel
from driftbandit.core.domd import add_outer, descend, disperse, learnable, row_sum
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
    LIMIT,
    MIXTURE,
    NUMBERS,
    POINTS,
    REVERTS,
    ROUNDS,
    SHARE,
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
from driftbandit.core.views import learners, pooled, usual_at, view

REFILL = 0.9  # part of a curvature that is left when lambda is refilled
REFRESH = 256  # rounds after which P is computed anew from H at the latest, against rounding
LEVEL_FLOOR = 8.0  # rewards at the steepest slope that say that a level is 0
LEVEL_LIMIT = 10.0  # a level is no larger than this, or than x'theta can be
USUAL = 500.0  # rounds over which the effective memory is averaged
STIFFEST = 1e100  # of a gain: the slope of a log link can overflow
TOO_LITTLE = 1e-3  # learners of less weight are left out of the pooled covariance


@atomic
def learn(q: Floats, row: Floats, x: Floats, r: float, steps: float, high_dim: Flag) -> bool:
    """The mixture sees that x gave r, `steps` after it last learnt. False, and nothing has
    changed, if x is no context or r no reward."""
    if not learnable(q, x, r):
        return False
    d, n, g = x.size, int(q[K]), row[G]
    V, u, w = np.empty((d, d)), np.empty(d), np.empty(n)
    x = x.copy()  # it may be a view of the row
    disperse(q, row, x, pooled(row, d)[0], r)
    numbers, thetas, Hs, Ps = learners(row, d, n)
    before = suspicion(q, numbers, row[T])
    lead = judge(q, g, numbers, thetas, x, r)
    suspect(row, usual_at(d) + 1, suspicion(q, numbers, row[T]) - before)
    forget(q, numbers, Hs, Ps, steps, row[T] % REFRESH, u)
    train(q, g, numbers, thetas, Hs, Ps, x, r, u, high_dim)
    renew(q, numbers, thetas, Hs, Ps, lead, u)
    share(q, numbers, row[T])
    weigh(q, numbers, lead, w)
    pool(row, numbers, thetas, Ps, w, V, u)
    row[T] += 1.0
    remember(row, usual_at(d), numbers, w)
    return True


@inlined
def judge(q: Floats, g: float, numbers: Floats, thetas: Floats, x: Floats, r: float) -> int:
    """weights <- weights times the likelihood of r under each learner's two predictions, over the
    largest of these products; returns whose it is, the first of equals.

    The gain makes a learner answer for the order of the arms rather than for the size of its
    predictions: when a signal fades but keeps its direction, a long memory still ranks best. The
    second track adds a level that follows the last rounds: days and users that raise all rewards
    alike are no reason to forget which arm is best.
    """
    lead, top, n = 0, -math.inf, len(thetas)
    fresh = (1.0 - q[GAIN_KEEP]) * q[GAIN_FLOOR]
    floor, norm = LEVEL_FLOOR * mean_slope(q, 0.0)[1] / g, math.sqrt(q[LIMIT])
    for k in range(n):
        z, pace = 0.0, q[GRID + 5 * n + k]
        for j in range(x.size):
            z += x[j] * thetas[k, j]
        for track in range(2):
            level, gain = track * numbers[LEVEL, k], numbers[GAIN + track, k]
            mean, slope = mean_slope(q, level + gain * z)
            now = math.log(max(numbers[WEIGHT + track, k], 1e-300))
            now += log_likelihood(q, r, level + gain * z) / g
            numbers[WEIGHT + track, k] = now
            if now > top:
                lead, top = k, now
            stiffness = q[GAIN_KEEP] * numbers[STIFFNESS + track, k] + fresh + slope * z * z / g
            stiffness = min(stiffness, STIFFEST)
            step = z * (r - mean) / g + fresh * (1.0 - gain)
            numbers[STIFFNESS + track, k] = stiffness
            numbers[GAIN + track, k] = max(0.0, gain + step / stiffness)
        firm = (1.0 - pace) * floor
        numbers[FIRMNESS, k] = min(pace * numbers[FIRMNESS, k] + firm + slope / g, STIFFEST)
        level += ((r - mean) / g - firm * level) / numbers[FIRMNESS, k]
        most = max(LEVEL_LIMIT, norm * q[GRID + 2 * n + k])
        numbers[LEVEL, k] = min(max(level, -most), most)
    weights = tracks(numbers)
    for i in range(2 * n):
        weights[i] = math.exp(weights[i] - top)
    return lead


@inlined
def tracks(numbers: Floats) -> Floats:
    """The weights of all learners in the first track, then in the second."""
    return view(numbers, WEIGHT, (2 * numbers.shape[1],))


@inlined
def suspicion(q: Floats, numbers: Floats, t: float) -> float:
    """Log odds that a learner whose memory is shorter than a third of its life is right."""
    short = long = 0.0
    for k in range(numbers.shape[1]):
        w = numbers[WEIGHT, k] + numbers[WEIGHT + 1, k]
        if (1.0 - q[GRID + k]) * t > 3.0:
            short += w
        else:
            long += w
    least = 1e-12 * (short + long)
    return math.log(max(short, least) / max(long, least))


@inlined
def suspect(row: Floats, drift: int, gain: float) -> None:
    """drift <- drift + log of how much better those who forget predicted r than the others.

    Were the world at rest and the others right, exp(drift) would be a fair bet: it exceeds 10 with
    probability 1/10 at most (Ville). What is long past fades.
    """
    row[drift] += gain - row[drift] / (row[T] + 300.0)


@inlined
def forget(
    q: Floats, numbers: Floats, Hs: Floats, Ps: Floats, steps: float, turn: float, u: Floats
) -> None:
    """Every learner ages at its own pace; `turn` is whose P is computed anew.

    Where no more than REFILL is kept, H <- kept H + (1 - kept) lambda I.
    """
    n = len(Hs)
    for k in range(n):
        gamma = q[GRID + k] if steps == 1.0 else q[GRID + k] ** steps
        kept = numbers[KEPT, k] * gamma
        numbers[ROUNDS, k] *= gamma
        if kept <= REFILL or turn == k % REFRESH:
            refill(kept, Hs[k], (1.0 - kept) * q[GRID + n + k], Hs[k], Ps[k], u)
            kept = 1.0
        numbers[KEPT, k] = kept


@kernel
def refill(kept: float, old: Floats, more: float, H: Floats, P: Floats, u: Floats) -> None:
    """H = kept times the old one, which may be H itself, + more I; and P, its inverse."""
    for i in range(u.size):
        for j in range(u.size):
            H[i, j] = kept * old[i, j]
        H[i, i] += more
    inverse(H, P, u)


@inlined
def train(
    q: Floats,
    g: float,
    numbers: Floats,
    thetas: Floats,
    Hs: Floats,
    Ps: Floats,
    x: Floats,
    r: float,
    u: Floats,
    high_dim: Flag,
) -> None:
    """One step of Algorithm 1 with eta = 1 for every learner, with its level where it is trained
    with one."""
    n, d = thetas.shape
    for k in range(n):
        theta, c, S = thetas[k], numbers[KEPT, k], q[GRID + 2 * n + k]
        level = q[GRID + 6 * n + k] * numbers[LEVEL, k]
        for j in range(d):
            u[j] = 0.0
        for i in range(d):  # u = A_t^-1 x, where A_t = c H
            for j in range(d):
                u[j] += Ps[k, i, j] * (x[i] / c)
        w = descend(q, 1.0, g, level + dot(x, theta), theta, x, r, u)
        if dot(theta, theta) > S * S:
            done = False
            if high_dim is not None:
                done = project_by_solves(Ps[k], c, True, w, x, u, theta, S)
            if not done:
                project(c, Hs[k], w, x, theta, S, high_dim)
        w = mean_slope(q, level + dot(x, theta))[1] / g
        add_outer(Hs[k], w / c, x)
        add_outer(Ps[k], -c * w / (1.0 + w * dot(x, u)), u)  # Sherman and Morrison
        numbers[ROUNDS, k] += 1.0


@inlined
def renew(
    q: Floats, numbers: Floats, thetas: Floats, Hs: Floats, Ps: Floats, lead: int, u: Floats
) -> None:
    """Learners with a longer memory than the leader's that lag far behind go on from its state.

    After a jump the long memories hold what is no longer true. Rather than wait until they have
    forgotten it, they start again from the learner that has adapted. Where that one has forgotten,
    its H has fallen to lambda, but its theta still says what was true long ago: of an arm that was
    bad before the jump and not played since. There theta goes back to the mean of the prior,
    theta <- (I - lambda H^-1) theta, and the arm is tried again.
    """
    n, d = thetas.shape
    for k in range(n):
        weight = max(numbers[WEIGHT, k], numbers[WEIGHT + 1, k])  # the leader's is 1
        if weight < math.exp(-q[LAPSE]) and q[GRID + k] > q[GRID + lead]:
            kept, lam = numbers[KEPT, lead], q[GRID + n + lead]
            more = (1.0 - kept) * lam + max(0.0, q[GRID + n + k] - lam)  # up to its own lambda
            refill(kept, Hs[lead], more, Hs[k], Ps[k], u)
            for j in range(d):
                thetas[k, j] = thetas[lead, j]
                if q[REVERTS] > q[GRID + 6 * n + k]:  # a level may explain it: those keep theta
                    thetas[k, j] -= q[GRID + n + k] * dot(Ps[k, j], thetas[lead])
            firmness = numbers[FIRMNESS, k]
            for number in range(NUMBERS):
                numbers[number, k] = numbers[number, lead]
            numbers[KEPT, k] = 1.0
            for track in range(2):
                numbers[WEIGHT + track, k] *= math.exp(-q[START])
            if q[GRID + 6 * n + k] > 0.0:  # nobody believes it without its level, which starts at 0
                numbers[WEIGHT, k], numbers[WEIGHT + 1, k] = 0.0, math.exp(-q[START])
                numbers[LEVEL, k], numbers[FIRMNESS, k] = 0.0, firmness


@inlined
def share(q: Floats, numbers: Floats, t: float) -> None:
    """Weights sum to 1 again; a share of all goes back to the prior every round.

    In a long life the share falls as 1/t. What a fixed share gives to memories of ten rounds would
    blur an estimate that rests on thousands.
    """
    n, weights, total = numbers.shape[1], tracks(numbers), 0.0
    part = min(q[SHARE], 1.0 / (1.0 + t))
    for i in range(2 * n):
        total += weights[i]
    for i in range(2 * n):
        weights[i] = (1.0 - part) * weights[i] / total + part * q[GRID + 3 * n + i]


@inlined
def weigh(q: Floats, numbers: Floats, lead: int, w: Floats) -> None:
    """w = weights of the learners, both tracks together; or the leader alone."""
    for k in range(w.size):
        w[k] = numbers[WEIGHT, k] + numbers[WEIGHT + 1, k]
        if q[MIXTURE] == 0.0:
            w[k] = 1.0 * (k == lead)


@inlined
def pool(
    row: Floats, numbers: Floats, thetas: Floats, Ps: Floats, w: Floats, V: Floats, u: Floats
) -> None:
    """theta and H of the normal distribution with the moments of the mixture."""
    n, d = thetas.shape
    theta, H = pooled(row, d)
    for j in range(d):
        theta[j] = 0.0
        for i in range(d):
            V[i, j] = 0.0
    for k in range(n):
        for j in range(d):
            theta[j] += w[k] * thetas[k, j]
    for k in range(n):
        if w[k] >= TOO_LITTLE:
            for j in range(d):
                u[j] = thetas[k, j] - theta[j]
            for i in range(d):  # what each does not know, and where they disagree
                for j in range(d):
                    V[i, j] += w[k] * (Ps[k, i, j] / numbers[KEPT, k] + u[i] * u[j])
    inverse(V, H, u)
    row[FLOOR] = 1.0 / row_sum(V)


@inlined
def remember(row: Floats, usual: int, numbers: Floats, w: Floats) -> None:
    """Note the effective memory: its slow average, and a history that thins itself out."""
    t, now, stride, history = row[T], 0.0, 1.0, row.size - POINTS
    for k in range(w.size):
        now += w[k] * numbers[ROUNDS, k]
    while t > POINTS * stride:
        stride *= 2.0
    row[usual] += (math.log(now) - row[usual]) / min(t, USUAL)
    if stride > 1.0 and t == POINTS * stride / 2.0 + 1.0:  # full one round ago: keep every second
        for j in range(POINTS // 2):
            row[history + j] = row[history + 2 * j + 1]
    if t % stride == 0.0:
        row[history + int(t / stride) - 1] = now


@atomic
def age(q: Floats, row: Floats, steps: float) -> None:
    """Steps without data."""
    d, n, lead = int(q[D]), int(q[K]), 0
    V, u, w = np.empty((d, d)), np.empty(d), np.empty(n)
    numbers, thetas, Hs, Ps = learners(row, d, n)
    forget(q, numbers, Hs, Ps, steps, -1.0, u)
    weights = tracks(numbers)
    for i in range(2 * n):
        if weights[i] > weights[lead]:
            lead = i
    weigh(q, numbers, lead % n, w)
    pool(row, numbers, thetas, Ps, w, V, u)
