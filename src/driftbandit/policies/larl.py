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


class Lags(NamedTuple):
    """Everything n learners remember; D = d (2 s d + 1) for order s."""

    weights: Floats  # (n, D)      ridge estimate
    P: Floats  # (n, D, D)   V^-1, the inverse of lambda I plus the products of what was played
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
    O(D^2), D = d (2 s d + 1), because V^-1 is kept and updated (Sherman and Morrison).
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
            P=np.tile(np.eye(D) / self.regularization, (n, 1, 1)),
            X=np.zeros((n, s, d)),
            r=np.zeros((n, s)),
            t=np.zeros(n, dtype=np.int64),
        )

    def state(self, memory: Lags) -> Floats:
        """What the latest rounds were, (n, 2 s d + 1)."""
        n, past = len(memory.t), memory.X
        parts = (memory.r[:, :, None] * past, past, np.ones((n, 1, 1)))
        return np.concatenate([part.reshape(n, -1) for part in parts], axis=1)

    def scores(self, memory: Lags, arms: Floats) -> Scores:
        arms, s = self._arms(memory, arms) / self.problem.context_norm, self.state(memory)
        n, d, m = len(s), self.problem.dim, s.shape[1]
        # All arms share the state, so that of V^-1 only its products with the state are needed.
        theta = memory.weights.reshape(n, d, m) @ s[:, :, None]
        half = (memory.P.reshape(n, -1, m) @ s[:, :, None]).reshape(n, d, m, d)
        inverse = (s[:, None, None, :] @ half)[:, :, 0, :]
        mean = (arms @ theta)[:, :, 0]
        norm = np.sqrt(np.sum((arms @ inverse) * arms, axis=2))
        return Scores(mean, self.bonus * norm, mean + self.bonus * norm)

    def update(self, memory: Lags, x: Floats, r: Floats, noise: Floats | None = None) -> Lags:
        x, r = self._played(memory, x, r)
        s, x = memory, x / self.problem.context_norm
        y = (x[:, :, None] * self.state(s)[:, None, :]).reshape(len(x), -1)
        error = r - np.sum(y * s.weights, axis=1)
        g = (s.P @ y[:, :, None])[:, :, 0]
        size = 1.0 + np.sum(y * g, axis=1)
        s.weights[:] += (error / size)[:, None] * g
        g /= np.sqrt(size)[:, None]
        s.P[:] -= g[:, :, None] * g[:, None, :]
        s.X[:, 1:], s.r[:, 1:] = s.X[:, :-1].copy(), s.r[:, :-1].copy()
        s.X[:, 0], s.r[:, 0] = x, r
        s.t[:] += 1
        return s
