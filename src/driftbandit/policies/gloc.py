"""GLOC: online Newton steps turned into a confidence set (Jun et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from driftbandit.families import finite
from driftbandit.mle import project_ball
from driftbandit.policies.base import Floats, Ints
from driftbandit.policies.index import IndexPolicy
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
        """One online Newton step; z is predicted before it, norms are taken after x entered H."""
        x, r = self._played(memory, x, r)
        s, c, S = memory, self.problem.c_mu, self._S
        z = np.einsum("nd,nd->n", x, s.newton)
        slope = finite(self.problem.family, "mu", z) - r
        s.H[:] += x[:, :, None] * x[:, None, :]
        s.q[:] += z[:, None] * x
        s.zz[:] += z * z
        solved = np.linalg.solve(s.H, np.stack([x, s.q], axis=2))
        u, s.theta[:] = solved[:, :, 0], solved[:, :, 1]
        s.B[:] += slope * slope * np.einsum("nd,nd->n", x, u) / (2.0 * c)
        free = s.newton - (slope / c)[:, None] * u
        s.newton[:] = [project_ball(H, zeta, S) for H, zeta in zip(s.H, free)]
        s.t[:] += 1
        return s
