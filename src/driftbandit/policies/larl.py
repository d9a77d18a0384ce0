"""LARL: rewards that follow a hidden autoregressive state, predicted from the latest rounds.

Trella, Dempsey, Gazi, Xu, Doshi-Velez, Murphy 2025. The steady-state Kalman filter of such a state
is linear in the latest rewards and arms, so that LinUCB on these learns the filter itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Ints, Policy, Scores
from driftbandit.policies.index import index_scores


class Lags(NamedTuple):
    """Everything n learners remember; D = d (2 s d + 1) for order s."""

    weights: Floats  # (n, D)      estimate V^-1 b
    V: Floats  # (n, D, D)
    b: Floats  # (n, D)
    X: Floats  # (n, s, d)   the latest contexts, newest first
    r: Floats  # (n, s)      their rewards
    t: Ints  # (n,)        rounds seen


@dataclass(frozen=True, kw_only=True)
class LARL(Policy):
    """LARL (Trella et al. 2025): LinUCB on x times (r_{t-j} x_{t-j}, x_{t-j}, 1), j = 1, ..., s.

    | here | paper | |
    |---|---|---|
    | `order` | s | rounds that the state is predicted from |
    | `regularization` | lambda | of the ridge regression |
    | `bonus` | alpha | width of the bonus |

    Its arms have no features: with unit vectors for arms this is its algorithm. A round costs
    O(D^3), D = d (2 s d + 1).
    """

    order: int = 1
    regularization: float = 1.0
    bonus: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        lam = self.regularization
        self._set(
            order=validate.count("order", self.order, "rounds that predict the next"),
            regularization=validate.positive("regularization", lam, "lambda"),
            bonus=validate.nonnegative("bonus", self.bonus, "width of the bonus"),
        )

    @property
    def name(self) -> str:
        return "LARL"

    @property
    def on_reward_scale(self) -> bool:
        return True

    @property
    def size(self) -> int:
        """D, the number of weights."""
        d = self.problem.dim
        return d * (2 * self.order * d + 1)

    @property
    def least_bytes(self) -> int:
        return 8 * self.size**2

    def init(self, n: int = 1) -> Lags:
        d, D, s = self.problem.dim, self.size, self.order
        return Lags(
            weights=np.zeros((n, D)),
            V=np.tile(self.regularization * np.eye(D), (n, 1, 1)),
            b=np.zeros((n, D)),
            X=np.zeros((n, s, d)),
            r=np.zeros((n, s)),
            t=np.zeros(n, dtype=np.int64),
        )

    def lifted(self, memory: Lags, arms: Floats) -> Floats:
        """Arms (n, N, d), scaled to norm 1, times what the latest rounds were, (n, N, D)."""
        n, past = len(memory.t), memory.X
        parts = (memory.r[:, :, None] * past, past, np.ones((n, 1, 1)))
        state = np.concatenate([part.reshape(n, -1) for part in parts], axis=1)
        scaled = arms / self.problem.context_norm
        return (scaled[:, :, :, None] * state[:, None, None, :]).reshape(n, arms.shape[1], -1)

    def scores(self, memory: Lags, arms: Floats) -> Scores:
        width, X = np.full(len(memory.t), self.bonus), self.lifted(memory, self._arms(memory, arms))
        return index_scores(self.problem.family, True, memory.weights, memory.V, width, X)

    def update(self, memory: Lags, x: Floats, r: Floats, noise: Floats | None = None) -> Lags:
        x, r = self._played(memory, x, r)
        s, y = memory, self.lifted(memory, x[:, None, :])[:, 0]
        s.V[:] += y[:, :, None] * y[:, None, :]
        s.b[:] += r[:, None] * y
        s.weights[:] = np.linalg.solve(s.V, s.b[:, :, None])[:, :, 0]
        s.X[:, 1:], s.r[:, 1:] = s.X[:, :-1].copy(), s.r[:, :-1].copy()
        s.X[:, 0], s.r[:, 0] = x / self.problem.context_norm, r
        s.t[:] += 1
        return s
