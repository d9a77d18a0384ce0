"""GLOC: online Newton steps turned into a confidence set (Jun et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from driftbandit.compiled import direct, kernel
from driftbandit.linalg import add_outer, dot, factor, put, solve
from driftbandit.links import Link, mu
from driftbandit.policies.index import IndexPolicy
from driftbandit.policies.policy import Floats, Ints
from driftbandit.projection import project_ball
from driftbandit.theory import rivals


class Online(NamedTuple):
    """Everything n learners remember."""

    theta: Floats  # (n, d)     centre of the confidence set, H^-1 q
    H: Floats  # (n, d, d)  design matrix
    newton: Floats  # (n, d)     iterate of the online Newton step
    q: Floats  # (n, d)     sum of z_s x_s
    zz: Floats  # (n,)       sum of z_s^2
    B: Floats  # (n,)       regret of the online learner, bounded
    t: Ints  # (n,)       rounds seen


@kernel
def learn(link: Link, c: float, S: float, s: Online, i: int, x: Floats, r: float) -> None:
    """One online Newton step; z is predicted before it, norms are taken after x entered H."""
    V, newton = s.H[i], s.newton[i]
    z = dot(x, newton)
    slope = mu(link, z) - r
    add_outer(V, 1.0, x)
    F, u = np.empty(V.shape), np.empty(x.size)
    factor(V, F)
    solve(F, x, u)
    s.B[i] += slope * slope * dot(x, u) / (2.0 * c)
    s.q[i] += z * x
    s.zz[i] += z * z
    solve(F, s.q[i], s.theta[i])
    put(project_ball(V, newton - (slope / c) * u, S), newton)
    s.t[i] += 1


@kernel
def learn_all(link: Link, c: float, S: float, s: Online, x: Floats, r: Floats) -> None:
    for i in range(len(s.t)):
        learn(link, c, S, s, i, x[i], r[i])


_learn_all = direct(learn_all)


@dataclass(frozen=True, kw_only=True)
class GLOC(IndexPolicy):
    """GLOC with online Newton steps, for a world that stands still; constant cost a round."""

    linear: ClassVar[bool] = True

    def init(self, n: int = 1) -> Online:
        problem, lam = self.problem, self.regularization
        d = problem.dim
        return Online(
            theta=np.zeros((n, d)),
            H=np.tile(lam * problem.context_norm**2 * np.eye(d), (n, 1, 1)),
            newton=np.zeros((n, d)),
            q=np.zeros((n, d)),
            zz=np.zeros(n),
            B=np.full(n, 2.0 * problem.c_mu * problem.S**2 * lam),
            t=np.zeros(n, dtype=np.int64),
        )

    def width(self, memory: Online) -> Floats:
        spread = memory.zz - np.einsum("nd,nd->n", memory.theta, memory.q)
        lam, delta = self.regularization, self._delta
        width = rivals.gloc_width(self.problem, memory.B, spread, lam=lam, delta=delta)
        return np.asarray(self.scale * width)

    def update(self, memory: Online, x: Floats, r: Floats, noise: Floats | None = None) -> Online:
        x, r = self._played(memory, x, r)
        problem = self.problem
        _learn_all(problem.family.link, problem.c_mu, problem.ball, memory, x, r)
        return memory
