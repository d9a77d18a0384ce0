"""Rivals for linear rewards: closed forms, so constant cost except for the window's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.compiled import direct, kernel
from driftbandit.linalg import add, add_outer, factor, put, put_all, put_identity, solve
from driftbandit.policies.index import IndexPolicy
from driftbandit.policies.policy import Floats, Ints
from driftbandit.problem import Problem
from driftbandit.theory import rivals


class Moments(NamedTuple):
    """Everything n learners remember; X and r have no rows unless there is a window."""

    theta: Floats  # (n, d)         estimate V^-1 b
    H: Floats  # (n, d, d)      metric of the bonus
    V: Floats  # (n, d, d)      design with weights w_s
    Vt: Floats  # (n, d, d)      design with weights w_s^2
    b: Floats  # (n, d)         sum of w_s r_s x_s
    X: Floats  # (n, window, d)
    r: Floats  # (n, window)
    t: Ints  # (n,)           rounds seen


@kernel
def learn(
    s: Moments, i: int, x: Floats, r: float, gamma: float, lam: float, sandwich: bool
) -> None:
    """Age the moments, add (x, r), drop what leaves the window, solve."""
    V, Vt, b, window = s.V[i], s.Vt[i], s.b[i], s.X.shape[1]
    for j in range(x.size):
        V[j] *= gamma
        Vt[j] *= gamma * gamma
        V[j, j] += (1.0 - gamma) * lam
        Vt[j, j] += (1.0 - gamma * gamma) * lam
        b[j] = gamma * b[j] + r * x[j]
    add_outer(V, 1.0, x)
    add_outer(Vt, 1.0, x)
    if window > 0:
        slot = s.t[i] % window
        if s.t[i] >= window:
            add_outer(V, -1.0, s.X[i, slot])
            add(-s.r[i, slot], s.X[i, slot], b)
        put(x, s.X[i, slot])
        s.r[i, slot] = r
        if slot == window - 1:  # from scratch once a window, against the rounding of subtractions
            put_identity(lam, V)
            b[:] = 0.0
            for k in range(window):
                add_outer(V, 1.0, s.X[i, k])
                add(s.r[i, k], s.X[i, k], b)
    F = np.empty(V.shape)
    factor(V, F)
    solve(F, b, s.theta[i])
    put_all(V @ np.linalg.solve(Vt, V) if sandwich else V, s.H[i])
    s.t[i] += 1


@kernel
def learn_all(s: Moments, x: Floats, r: Floats, gamma: float, lam: float, sandwich: bool) -> None:
    for i in range(len(s.t)):
        learn(s, i, x[i], r[i], gamma, lam, sandwich)


_learn_all = direct(learn_all)


@dataclass(frozen=True, kw_only=True)
class LinUCB(IndexPolicy):
    """LinUCB, or OFUL (Abbasi-Yadkori, Pal, Szepesvari 2011): ridge regression on all data.

    The linear rivals take x'theta for the mean reward, whatever the family is.
    """

    linear: ClassVar[bool] = True
    sandwich: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return "LinUCB"

    @property
    def on_reward_scale(self) -> bool:
        return True

    @property
    def _gamma(self) -> float:
        return float(getattr(self, "discount", 1.0))

    @property
    def _lam(self) -> float:
        return self.regularization * self.problem.context_norm**2

    def init(self, n: int = 1) -> Moments:
        d, window = self.problem.dim, int(getattr(self, "window", 0))
        V = np.tile(self._lam * np.eye(d), (n, 1, 1))
        return Moments(
            theta=np.zeros((n, d)),
            H=V,
            V=V.copy(),
            Vt=V.copy(),
            b=np.zeros((n, d)),
            X=np.zeros((n, window, d)),
            r=np.zeros((n, window)),
            t=np.zeros(n, dtype=np.int64),
        )

    def coefficient(self, t: Any) -> Any:
        """beta of the round t, unscaled."""
        lam, gamma = self.regularization, self._gamma
        return rivals.lin_ucb(self.problem, t - 1.0, lam=lam, gamma=gamma, delta=self._delta)

    def width(self, memory: Moments) -> Floats:
        return np.broadcast_to(self.scale * self.coefficient(memory.t + 1.0), len(memory.t))

    def update(self, memory: Moments, x: Floats, r: Floats, noise: Floats | None = None) -> Moments:
        x, r = self._played(memory, x, r)
        _learn_all(memory, x, r, self._gamma, self._lam, self.sandwich)
        return memory


@dataclass(frozen=True, kw_only=True)
class LBWeightUCB(LinUCB):
    """LB-WeightUCB (Wang, Zhao, Zhou 2023): discounted ridge regression, one design matrix."""

    discount: float

    def __post_init__(self) -> None:
        super().__post_init__()
        value = validate.interval("discount", self.discount, "gamma", low=0.0, high=1.0)
        self._set(discount=value)

    @property
    def name(self) -> str:
        return "LB-WeightUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"discount": rivals.linear_discount}


@dataclass(frozen=True, kw_only=True)
class DLinUCB(LBWeightUCB):
    """D-LinUCB (Russac, Vernade, Cappe 2019): the bonus norm is that of V^-1 Vt V^-1."""

    sandwich: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "D-LinUCB"

    def coefficient(self, t: Any) -> Any:
        lam, gamma = self.regularization, self._gamma
        return rivals.lin_ucb(self.problem, t, lam=lam, gamma=gamma, delta=self._delta)


@dataclass(frozen=True, kw_only=True)
class SWLinUCB(LinUCB):
    """SW-LinUCB (Cheung, Simchi-Levi, Zhu 2019): ridge regression on the last `window` rounds."""

    window: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(window=validate.count("window", self.window, "rounds remembered"))

    @property
    def name(self) -> str:
        return "SW-LinUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"window": rivals.linear_window}

    def coefficient(self, t: Any) -> Any:
        lam, window = self.regularization, self.window
        return rivals.sw_lin_ucb(self.problem, lam=lam, window=window, delta=self._delta)
