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

from driftbandit.mle import (
    Data,
    bvd_goal,
    fit,
    fixed_goal,
    project,
    score_map,
    variable_goal,
    weights,
)
from driftbandit.policies.base import Floats, Ints
from driftbandit.policies.index import IndexPolicy
from driftbandit.policies.linear import absorb, slide, store

NONE, FIXED_V, FIXED_VT, VARIABLE, BVD = range(5)
TRACE = 1e-9  # of the multiple of I that stays without a refill, so that designs are invertible


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
    def _gamma(self) -> float:
        return float(getattr(self, "discount", 1.0))

    @cached_property
    def _window(self) -> int:
        """Rounds remembered, 0 for all."""
        return int(getattr(self, "window", 0))

    @cached_property
    def _period(self) -> int:
        """Rounds between restarts, 0 for none."""
        return int(getattr(self, "period", 0))

    @cached_property
    def _ridge(self) -> float:
        """Contexts of norm L are served by lambda L^2: the same as x/L, theta L and lambda."""
        return self.ridge * self.problem.context_norm**2

    @cached_property
    def _reg(self) -> float:
        return self.reg * self.problem.context_norm**2

    @cached_property
    def _refilled(self) -> float:
        """The multiple of I that the design keeps while data are forgotten."""
        return self._reg * (1.0 if getattr(self, "refill", True) else TRACE)

    @property
    def local(self) -> bool:
        return False

    @property
    def growing(self) -> dict[str, tuple[int, ...]]:
        return {} if self._window else {"X": (1,), "r": (1,)}

    def init(self, n: int = 1) -> History:
        d, start = self.problem.dim, self._window or 16
        V = np.tile(self._reg * np.eye(d), (n, 1, 1))
        bare = self._ridge / self.problem.family.g  # curvature before any data
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
        return (memory.size if self._period else memory.t) + 1.0

    def width(self, memory: History) -> Floats:
        return np.full(len(memory.t), self.scale * self.coefficient(self._clock(memory)))

    def _set_radius(self, t: Floats) -> Floats:
        """Radius of the confidence set that the estimator itself uses for round t, (n,)."""
        return t  # only BVD-GLM-UCB looks at it

    def update(self, memory: History, x: Floats, r: Floats, noise: Floats | None = None) -> History:
        x, r = self._played(memory, x, r)
        memory = self._remember(memory, x, r)
        beta = self._set_radius(np.asarray(memory.t + 1.0, dtype=float))
        for i in range(len(memory.t)):
            if self._period and memory.size[i] >= self._period:
                self._restart(memory, i)
            else:
                self._estimate(memory, i, float(beta[i]))
        return memory

    def _remember(self, s: History, x: Floats, r: Floats) -> History:
        """Add the round to the history and to its moments."""
        if self._window:
            slide(s, x, r, self._reg)
            s.size[:] = np.minimum(s.size + 1, self._window)
        else:
            if s.size.max() == s.r.shape[1]:
                s = s._replace(X=_doubled(s.X), r=_doubled(s.r))
            absorb(s, x, r, self._gamma, self._refilled)
            store(s, x, r, s.size)
            s.size[:] += 1
        s.t[:] += 1
        return s

    def _restart(self, s: History, i: int) -> None:
        """Forget everything but the number of rounds."""
        s.size[i] = 0
        s.b[i] = s.mle[i] = s.theta[i] = 0.0
        s.V[i] = s.Vt[i] = s.H[i] = self._reg * np.eye(self.problem.dim)

    def _estimate(self, s: History, i: int, beta: float) -> None:
        """Fit, project where the rival does, and set the metric of the bonus."""
        data, S = self._data(s, i), self._S
        theta = s.mle[i] = fit(data, s.b[i], s.mle[i])
        if self.projection != NONE and theta @ theta > S * S:
            was = s.theta[i]
            warm = was @ was > 0.99 * S * S and was @ theta > 0.0
            theta = self._projected(data, s, i, was if warm else theta, beta)
        s.theta[i] = theta
        s.H[i] = score_map(data, theta)[1] / self.problem.family.g if self.local else s.V[i]

    def _data(self, s: History, i: int) -> Data:
        size, capacity = s.size[i], s.r.shape[1]
        X = np.ascontiguousarray(s.X[i, :size].T)
        w = weights(self._gamma, size, capacity)
        return Data(self.problem.family, X, s.r[i, :size], w, self._ridge)

    def _projected(self, data: Data, s: History, i: int, start: Floats, beta: float) -> Floats:
        """The rival's projection of the estimate on the ball."""
        b, V, Vt, S = s.b[i], s.V[i], s.Vt[i], self._S
        if self.projection == VARIABLE:
            return project(variable_goal(data, b), start, S)
        Q = V if self.projection == FIXED_V else Vt
        theta = project(fixed_goal(data, b, Q), start, S)
        if self.projection == BVD and unexplained(data, b, Vt, theta) > beta * beta:
            return project(bvd_goal(data, b, V, Vt, beta), theta, S)
        return theta


def unexplained(data: Data, b: Floats, Q: Floats, v: Floats) -> float:
    """||g(v) - b||^2_{Q^-1}."""
    u = score_map(data, v)[0] - b
    return float(u @ np.linalg.solve(Q, u))


def _doubled(array: Floats) -> Floats:
    """The same rows with as much room again."""
    return np.concatenate([array, np.zeros_like(array)], axis=1)
