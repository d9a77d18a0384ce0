"""Algorithm 1 (DOMD-GLB) on one row.

q is a recipe as an array, row a learner, x a context that gave the reward r.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from driftbandit.core.compiled import atomic, inlined
from driftbandit.core.layout import (
    BASIS,
    CONSTANT,
    ETA,
    FLOOR,
    GAMMA,
    LAM,
    LIMIT,
    LOG_MASS,
    LOG_ROUND,
    MASS,
    OPEN,
    RARE,
    SCALE,
    WIDENING,
    D,
    Flag,
    Floats,
    G,
    Ints,
    S,
    T,
)
from driftbandit.core.linalg import EPS, dot, factor, inverse, inverse_norm, measure, solve
from driftbandit.core.links import mean_slope, possible
from driftbandit.core.projection import project, project_by_solves
from driftbandit.core.views import pooled, usual_at, view
from driftbandit.families import LEAST_G
from driftbandit.theory.radius import Radius, beta, discounted_count

LONG_MEMORY = 1e4  # rounds, from which on a bonus widens
LONGEST = 250.0  # sum of mu' after which g follows a dispersion that moves: 1,000 rounds or more

for formula in (beta, discounted_count):  # plain Python, and also for kernels
    register_jitable(formula)


@atomic
def learn(q: Floats, row: Floats, x: Floats, r: float, steps: float, high_dim: Flag) -> bool:
    """One discounted mirror-descent step (eq. 1) after `steps` of ageing, then the curvature at
    the new iterate. False, and nothing has changed, if x is no context or r no reward."""
    if not learnable(q, x, r):
        return False
    d, g = x.size, row[G]
    theta, H = pooled(row, d)
    disperse(q, row, x, theta, r)
    F, work = np.empty((d, d)), np.empty(2 * d)
    u, x = view(work, 0, (d,)), copied(x, view(work, d, (d,)))  # x may be a view of the row
    gamma = q[GAMMA] if steps == 1.0 else q[GAMMA] ** steps
    age(gamma, q[LAM], H)  # A_t = gamma H_t + (1 - gamma) lambda I, in place of H_t
    factor(H, F, high_dim)
    solve(F, x, u, high_dim)  # u = A_t^-1 x
    w = descend(q, q[ETA], g, dot(x, theta), theta, x, r, u)
    if dot(theta, theta) > q[S] * q[S]:  # in the norm of Atil = A_t + eta mu'/g x x'
        done = False
        if high_dim is not None:
            done = project_by_solves(F, 1.0, False, w, x, u, theta, q[S])
        if not done:
            project(1.0, H, w, x, theta, q[S], high_dim)
    w = mean_slope(q, dot(x, theta))[1] / g
    add_outer(H, w, x)  # H_{t+1} = A_t + mu'(x'theta_{t+1})/g x x'
    row[T] += 1.0
    row[FLOOR] = gamma * row[FLOOR] + (1.0 - gamma) * q[LAM]
    if int(row[T]) % max(16, d // 2) == 0:
        inverse(H, F, u)
        row[FLOOR] = max(row[FLOOR], 1.0 / row_sum(F))
    work[0] = 0.0  # numba frees an array after its last use by name, so views need this
    return True


@inlined
def disperse(q: Floats, row: Floats, x: Floats, theta: Floats, r: float) -> None:
    """g <- squared errors of what was predicted over mu', each summed up, where g is learnt: it is
    used from the next round on.

    A ratio of sums, not a mean of ratios: before the first click of a rare kind mu' is small, so
    rounds without one say little about g.
    """
    if q[OPEN] > 0.0:
        mean, slope = mean_slope(q, dot(x, theta))
        row[BASIS] = min(row[BASIS], LONGEST) + slope
        row[G] += ((r - mean) * (r - mean) - row[G] * slope) / row[BASIS]
        row[G] = min(max(row[G], LEAST_G * q[OPEN]), q[OPEN])


@inlined
def copied(x: Floats, y: Floats) -> Floats:
    """y = x."""
    for j in range(x.size):
        y[j] = x[j]
    return y


@inlined
def learnable(q: Floats, x: Floats, r: float) -> bool:
    """Whether x is a context and r a reward."""
    return x.size == q[D] and is_context(q, measure(x, 0, x)[1]) and possible(q, r)


@inlined
def is_context(q: Floats, square: float) -> bool:
    """Whether something of this ||x||^2, from `measure`, is one: finite and not too long."""
    return square <= q[LIMIT]  # NaN fails


@inlined
def age(gamma: float, lam: float, H: Floats) -> None:
    """H <- gamma H + (1 - gamma) lambda I.

    Rounding this and the rank-one term moves H by at most eps tr(H) in norm, and forgetting can
    pile that up 1/(1 - gamma) times in one direction. Adding it to the diagonal keeps
    H >= lambda I through any number of rounds, exactly.
    """
    trace = 0.0
    for j in range(len(H)):
        for k in range(len(H)):
            H[j, k] *= gamma
        H[j, j] += (1.0 - gamma) * lam
        trace += H[j, j]
    for j in range(len(H)):
        H[j, j] += EPS * trace


@atomic
def age_row(q: Floats, row: Floats, steps: float) -> None:
    """Steps without data."""
    gamma = q[GAMMA] ** steps
    age(gamma, q[LAM], pooled(row, int(q[D]))[1])
    row[FLOOR] = gamma * row[FLOOR] + (1.0 - gamma) * q[LAM]


@inlined
def descend(
    q: Floats, eta: float, g: float, z: float, theta: Floats, x: Floats, r: float, u: Floats
) -> float:
    """theta <- theta - eta Atil^-1 grad at z = x'theta, where Atil = A_t + w x x' and
    u = A_t^-1 x; returns w = eta mu'/g."""
    mean, slope = mean_slope(q, z)
    w = eta * slope / g
    step = eta * (mean - r) / g / (1.0 + w * dot(x, u))
    for j in range(x.size):
        theta[j] -= step * u[j]
    return w


@inlined
def add_outer(A: Floats, w: float, x: Floats) -> None:
    """A += w x x', entry by entry the same on both sides of the diagonal."""
    for j in range(x.size):
        for k in range(x.size):
            A[j, k] += w * (x[j] * x[k])


@atomic
def rank(q: Floats, row: Floats, arms: Floats, noise: Floats, best: Ints, high_dim: Flag) -> int:
    """best = the arms that maximise x'theta_t + beta_t ||x||_{H_t^-1} (eq. 3), best first, ties to
    the lowest index; or x'theta for one draw of theta, if there is noise. Returns the best, or -1
    if an arm is no context.

    H >= floor I bounds the value of an arm for the price of x'theta: only arms whose bound reaches
    what is already found need their norm. The winners are those of a plain scan, to the last bit.
    """
    (n, d), k = arms.shape, best.size
    if d != q[D] or n < k or k == 0:
        return -1
    theta, H = pooled(row, d)
    F, work, X = np.empty((d, d)), np.empty(2 * d + 2 * n + 1), view(arms, 0, (n * d,))
    y, drawn = view(work, 0, (d,)), view(work, d, (d,))
    bound, value = view(work, 2 * d, (n,)), view(work, 2 * d + n, (n + 1,))
    factor(H, F, high_dim)
    width = width_of_bonus(q, row, X, theta, n)
    reach = width * longest(row[FLOOR], H)
    if noise.size > 0:
        draw(theta, F, width, noise, drawn)
        theta, width, reach = drawn, 0.0, 0.0
    first = bounded(q, X, theta, reach, value, bound)
    value[n] = -math.inf  # nobody's
    for place in range(k):
        best[place] = n
    last = n
    for turn in range(-1, n if first >= 0 else -1):
        a = first if turn < 0 else turn  # the most promising first: few others then reach it
        if ahead(bound[a], a, value, last):
            value[a] += width * inverse_norm(F, view(X, a * d, (d,)), y, high_dim)
            bound[a] = math.nan  # it has had its turn
            enter(a, value, best)
            last = best[k - 1]
    work[0] = 0.0  # as in `learn`
    return int(best[0]) if first >= 0 else -1


@atomic
def afford(
    q: Floats, row: Floats, arms: Floats, penalty: Floats, optimism: float, high_dim: Flag
) -> int:
    """The arm that maximises mu(x'theta_t + optimism beta_t ||x||_{H_t^-1}) - penalty, ties to the
    lowest index; -1 if an arm is no context."""
    n, d = arms.shape
    if d != q[D] or n == 0 or penalty.size != n:
        return -1
    theta, H = pooled(row, d)
    F, work, X = np.empty((d, d)), np.empty(d + 2 * n), view(arms, 0, (n * d,))
    y, bound, value = view(work, 0, (d,)), view(work, d, (n,)), view(work, d + n, (n,))
    factor(H, F, high_dim)
    width = optimism * width_of_bonus(q, row, X, theta, n)
    best = bounded(q, X, theta, 0.0, value, bound)
    most = -math.inf
    for a in range(n if best >= 0 else 0):
        z = value[a] + width * inverse_norm(F, view(X, a * d, (d,)), y, high_dim)
        worth = mean_slope(q, z)[0] - penalty[a]
        if worth > most or a == 0:
            best, most = a, worth
    work[0] = 0.0  # as in `learn`
    return best


@inlined
def width_of_bonus(q: Floats, row: Floats, X: Floats, theta: Floats, n: int) -> float:
    """scale beta_t for n arms. AutoDOMD's grows with its effective memory: the longer an
    environment rests, the longer an arm that was left by mistake would stay so."""
    radius = Radius(q[CONSTANT], q[LOG_ROUND], q[LOG_MASS], q[MASS], q[GAMMA])
    width = q[SCALE] * beta(radius, row[T] + 1.0)
    if q[WIDENING] > 0.0:
        memory = math.exp(row[usual_at(theta.size)])
        width = math.sqrt(width * width + q[WIDENING] * math.log(1.0 + memory / LONG_MEMORY))
    if q[RARE] > 0.0:
        width *= rarity(q, X, theta, n)
    return width


@inlined
def rarity(q: Floats, X: Floats, theta: Floats, n: int) -> float:
    """(mu'(z)/mu'(0))^RARE, where z is the largest x'theta of n arms, but no more than 0."""
    top = -math.inf
    for a in range(n):
        top = max(top, measure(X, a * theta.size, theta)[0])
    return (mean_slope(q, min(top, 0.0))[1] / mean_slope(q, 0.0)[1]) ** q[RARE]


@inlined
def bounded(q: Floats, X: Floats, theta: Floats, reach: float, value: Floats, bound: Floats) -> int:
    """value = x'theta and bound = value + reach ||x|| of every arm in X, one after the other;
    returns the arm of the largest bound, or -1 if one is no context."""
    first, most, good = 0, -math.inf, True
    for a in range(bound.size):
        value[a], square = measure(X, a * theta.size, theta)
        good &= is_context(q, square)
        bound[a] = total = value[a] + reach * math.sqrt(square)
        if total > most:
            first, most = a, total
    return first if good else -1


@inlined
def ahead(reached: float, a: int, value: Floats, b: int) -> bool:
    """Whether arm a, if it reached this value, would come before arm b."""
    return reached > value[b] or (reached == value[b] and a < b)


@inlined
def enter(a: int, value: Floats, best: Ints) -> None:
    """Put arm a where it belongs among the best, if it does."""
    place = best.size - 1
    if ahead(value[a], a, value, best[place]):
        while place > 0 and ahead(value[a], a, value, best[place - 1]):
            best[place] = best[place - 1]
            place -= 1
        best[place] = a


@inlined
def row_sum(V: Floats) -> float:
    """The largest sum of a row of |V|: no eigenvalue is larger."""
    most = 0.0
    for i in range(len(V)):
        total = 0.0
        for j in range(len(V)):
            total += abs(V[i, j])
        most = max(most, total)
    return most


@inlined
def longest(floor: float, H: Floats) -> float:
    """Largest ||x||_{H^-1} of a unit vector, or a little more, from H >= floor I and rounding."""
    trace = 0.0
    for j in range(len(H)):
        trace += H[j, j]
    least = floor * (1.0 - 1e-6) - 8.0 * (len(H) + 1) * EPS * trace
    return (1.0 + 1e-9) / math.sqrt(least) if least > 0.0 else math.inf


@inlined
def draw(theta: Floats, F: Floats, width: float, noise: Floats, out: Floats) -> None:
    """out = theta + width L'^-1 D^-1/2 noise: a draw from N(theta, width^2 H^-1)."""
    d = theta.size
    for j in range(d - 1, -1, -1):
        total = noise[j] * F[j, j]
        for k in range(j + 1, d):
            total -= F[j, k] * out[k]
        out[j] = total
    for j in range(d):
        out[j] = theta[j] + width * out[j]
