"""What the maximum-likelihood rivals share: a stored history, one estimator, one index rule.

Every round they revisit their history: fit, perhaps project, then play

    argmax  mu(x'theta_t) + coefficient_t ||x||_{V_t^-1}.

A rival is its weights (discount, window or restarts), its ridge, its projection and its
coefficient. `theory.rivals` has the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftbandit.compiled import direct, kernel
from driftbandit.linalg import add, add_outer, dot, factor, put, put_all, put_identity, solve
from driftbandit.links import Link
from driftbandit.mle import Data, bvd_goal, fit, fixed_goal, project, score_map, variable_goal
from driftbandit.policies.index import IndexPolicy
from driftbandit.policies.policy import Floats, Ints

NONE, FIXED_V, FIXED_VT, VARIABLE, BVD = range(5)


class History(NamedTuple):
    """Everything n learners remember; X and r grow with time unless a window or restarts end it."""

    X: Floats  # (n, capacity, d)  contexts played
    r: Floats  # (n, capacity)     their rewards
    size: Ints  # (n,)              how many of them count
    b: Floats  # (n, d)            sum of w_s r_s x_s
    V: Floats  # (n, d, d)         design with weights w_s
    Vt: Floats  # (n, d, d)         design with weights w_s^2
    mle: Floats  # (n, d)            the estimate
    theta: Floats  # (n, d)            the estimate in the ball, where the rival projects
    H: Floats  # (n, d, d)         metric of the bonus
    t: Ints  # (n,)              rounds seen


class Rule(NamedTuple):
    """The recipe as compiled code needs it; 0 stands for no window and no restarts."""

    link: Link
    gamma: float
    window: int
    period: int
    ridge: float
    reg: float
    projection: int
    local: bool  # the bonus metric is the curvature at theta, not V
    S: float


@kernel
def remember(p: Rule, s: History, i: int, x: Floats, r: float) -> None:
    """Append (x, r), age the designs, drop what falls out of the window."""
    V, Vt, b, gamma = s.V[i], s.Vt[i], s.b[i], p.gamma
    full = p.window > 0 and s.size[i] == p.window
    slot = s.t[i] % p.window if p.window > 0 else s.size[i]
    if full:
        add_outer(V, -1.0, s.X[i, slot])
        add(-s.r[i, slot], s.X[i, slot], b)
    for j in range(x.size):
        V[j] *= gamma
        Vt[j] *= gamma * gamma
        V[j, j] += (1.0 - gamma) * p.reg
        Vt[j, j] += (1.0 - gamma * gamma) * p.reg
        b[j] = gamma * b[j] + r * x[j]
    add_outer(V, 1.0, x)
    add_outer(Vt, 1.0, x)
    put(x, s.X[i, slot])
    s.r[i, slot] = r
    s.size[i] += 0 if full else 1
    s.t[i] += 1
    if full and slot == p.window - 1:
        recount(p, s, i)


@kernel
def recount(p: Rule, s: History, i: int) -> None:
    """V and b of the window from scratch, against the rounding of many subtractions."""
    V, b = s.V[i], s.b[i]
    put_identity(p.reg, V)
    b[:] = 0.0
    for k in range(p.window):
        add_outer(V, 1.0, s.X[i, k])
        add(s.r[i, k], s.X[i, k], b)


@kernel
def restart(p: Rule, s: History, i: int) -> None:
    """Forget everything but the number of rounds."""
    s.size[i] = 0
    s.b[i] = 0.0
    s.mle[i] = 0.0
    s.theta[i] = 0.0
    for matrix in (s.V[i], s.Vt[i], s.H[i]):
        put_identity(p.reg, matrix)


@kernel
def estimate(p: Rule, s: History, i: int, beta: float) -> None:
    """Fit, project where the rival does, and set the metric of the bonus."""
    data = Data(p.link, s.X[i], s.r[i], s.size[i], p.gamma, p.ridge)
    was = s.theta[i].copy()
    fit(data, s.b[i], s.mle[i])
    put(s.mle[i], s.theta[i])
    if p.projection != NONE and dot(s.mle[i], s.mle[i]) > p.S * p.S:
        if p.projection == VARIABLE:
            goal = variable_goal(s.b[i], s.V[i])
        else:
            goal = fixed_goal(s.b[i], s.V[i] if p.projection == FIXED_V else s.Vt[i])
        warm = dot(was, was) > 0.99 * p.S * p.S and dot(was, s.mle[i]) > 0.0
        put(project(data, goal, was if warm else s.mle[i], p.S), s.theta[i])
        if p.projection == BVD and unexplained(data, s.b[i], s.Vt[i], s.theta[i]) > beta * beta:
            goal = bvd_goal(s.b[i], s.V[i], s.Vt[i], beta)
            put(project(data, goal, s.theta[i], p.S), s.theta[i])
    put_all(s.V[i], s.H[i])
    if p.local:
        score_map(data, s.theta[i], np.empty(s.b.shape[1]), s.H[i])
        s.H[i] /= p.link.g


@kernel
def unexplained(data: Data, b: Floats, Q: Floats, v: Floats) -> float:
    """||g(v) - b||^2_{Q^-1}."""
    u, J = np.empty(v.size), np.empty(Q.shape)
    score_map(data, v, u, J)
    u -= b
    F, y = np.empty(Q.shape), np.empty(v.size)
    factor(Q, F)
    solve(F, u, y)
    return dot(u, y)


@kernel
def learn_all(p: Rule, s: History, x: Floats, r: Floats, beta: Floats) -> None:
    for i in range(len(s.t)):
        remember(p, s, i, x[i], r[i])
        if p.period > 0 and s.size[i] >= p.period:
            restart(p, s, i)
        else:
            estimate(p, s, i, beta[i])


_learn_all = direct(learn_all)


@dataclass(frozen=True, kw_only=True)
class Likelihood(IndexPolicy):
    """Base of the maximum-likelihood rivals."""

    projection: ClassVar[int] = NONE

    def coefficient(self, t: Any) -> Any:
        """The published factor of ||x||_{V^-1} at round t, unscaled."""
        raise NotImplementedError

    @property
    def ridge(self) -> float:
        """Factor of theta in the score equation."""
        raise NotImplementedError

    @property
    def reg(self) -> float:
        """Multiple of I in the design matrix: ridge / c_mu."""
        return self.ridge / self.problem.c_mu

    @cached_property
    def _rule(self) -> Rule:
        problem, L = self.problem, self.problem.context_norm
        return Rule(
            link=problem.family.link,
            gamma=float(getattr(self, "discount", 1.0)),
            window=int(getattr(self, "window", 0)),
            period=int(getattr(self, "period", 0)),
            ridge=self.ridge * L**2,
            reg=self.reg * L**2,
            projection=self.projection,
            local=self.local,
            S=problem.ball,
        )

    @property
    def local(self) -> bool:
        return False

    @property
    def growing(self) -> dict[str, tuple[int, ...]]:
        return {} if getattr(self, "window", 0) else {"X": (1,), "r": (1,)}

    def init(self, n: int = 1) -> History:
        d, start = self.problem.dim, int(getattr(self, "window", 0)) or 16
        V = np.tile(self._rule.reg * np.eye(d), (n, 1, 1))
        bare = self._rule.ridge / self.problem.family.g  # curvature before any data
        return History(
            X=np.zeros((n, start, d)),
            r=np.zeros((n, start)),
            size=np.zeros(n, dtype=np.int64),
            b=np.zeros((n, d)),
            V=V,
            Vt=V.copy(),
            mle=np.zeros((n, d)),
            theta=np.zeros((n, d)),
            H=np.tile(bare * np.eye(d), (n, 1, 1)) if self.local else V.copy(),
            t=np.zeros(n, dtype=np.int64),
        )

    def _clock(self, memory: History) -> Any:
        """The round about to be played, as the radius counts it."""
        return (memory.size if getattr(self, "period", 0) else memory.t) + 1.0

    def width(self, memory: History) -> Floats:
        return np.broadcast_to(self.scale * self.coefficient(self._clock(memory)), len(memory.t))

    def _set_radius(self, t: Floats) -> Floats:
        """Radius of the confidence set that the estimator itself uses for round t, (n,)."""
        return t  # only BVD-GLM-UCB looks at it

    def update(self, memory: History, x: Floats, r: Floats, noise: Floats | None = None) -> History:
        x, r = self._played(memory, x, r)
        if self.growing and memory.size.max() == memory.r.shape[1]:
            memory = memory._replace(X=_doubled(memory.X), r=_doubled(memory.r))
        _learn_all(
            self._rule, memory, x, r, self._set_radius(np.asarray(memory.t + 2.0, dtype=float))
        )
        return memory


def _doubled(array: Floats) -> Floats:
    """The same rows with as much room again."""
    return np.concatenate([array, np.zeros_like(array)], axis=1)
