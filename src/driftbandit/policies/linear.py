"""Rivals for linear rewards: closed forms, so constant cost except for the window's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats, Ints, Scores
from driftbandit.policies.index import IndexPolicy
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


def absorb(s: Any, x: Floats, r: Floats, gamma: float, lam: float) -> None:
    """Age the moments and add the round x (n, d), r (n,):

    V <- gamma V + (1 - gamma) lam I + x x',     b <- gamma b + r x,     Vt as V with gamma^2.
    """
    outer, eye = x[:, :, None] * x[:, None, :], np.eye(x.shape[1])
    s.V[:] = gamma * s.V + (1.0 - gamma) * lam * eye + outer
    s.Vt[:] = gamma**2 * s.Vt + (1.0 - gamma**2) * lam * eye + outer
    s.b[:] = gamma * s.b + r[:, None] * x


def store(s: Any, x: Floats, r: Floats, slot: Ints) -> None:
    """Write the round into the slots (n,) of the history."""
    rows = np.arange(len(slot))
    s.X[rows, slot], s.r[rows, slot] = x, r


def slide(s: Any, x: Floats, r: Floats, lam: float) -> None:
    """Add the round to a window and drop the oldest; slots not used yet hold zeros.

    V and b come from scratch once a window, against the rounding of subtractions.
    """
    rows, window = np.arange(len(s.t)), s.X.shape[1]
    slot = s.t % window
    old = s.X[rows, slot]
    s.V[:] -= old[:, :, None] * old[:, None, :]
    s.b[:] -= s.r[rows, slot][:, None] * old
    absorb(s, x, r, 1.0, lam)
    store(s, x, r, slot)
    for i in np.flatnonzero(slot == window - 1):
        s.V[i] = lam * np.eye(x.shape[1]) + s.X[i].T @ s.X[i]
        s.b[i] = s.r[i] @ s.X[i]
    s.Vt[:] = s.V  # weights are 0 or 1


@dataclass(frozen=True, kw_only=True)
class LinUCB(IndexPolicy):
    """LinUCB, or OFUL (Abbasi-Yadkori, Pal, Szepesvari 2011): ridge regression on all data.

    The linear rivals take x'theta for the mean reward, whatever the family is. Their papers have
    no intercept. With `centre=True` they regress r - mu(0), so that x'theta = 0 stands for mu(0).
    """

    centre: bool = False

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

    @property
    def _zero(self) -> float:
        """The mean reward that x'theta = 0 stands for."""
        return float(self.problem.family.mu(0.0)) if self.centre else 0.0

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

    def radius(self, memory: Moments) -> Floats:
        """beta of the coming round, (n,), unscaled."""
        return np.full(len(memory.t), self.coefficient(memory.t + 1.0))

    def width(self, memory: Moments) -> Floats:
        return np.asarray(self.scale * self.radius(memory))

    def scores(self, memory: Any, arms: Floats) -> Scores:
        mean, bonus, upper = super().scores(memory, arms)
        return Scores(mean + self._zero, bonus, upper + self._zero)

    def update(self, memory: Moments, x: Floats, r: Floats, noise: Floats | None = None) -> Moments:
        x, r = self._played(memory, x, r)
        s, r = memory, r - self._zero
        if s.X.shape[1]:
            slide(s, x, r, self._lam)
        else:
            absorb(s, x, r, self._gamma, self._lam)
        s.theta[:] = np.linalg.solve(s.V, s.b[:, :, None])[:, :, 0]
        s.H[:] = s.V @ np.linalg.solve(s.Vt, s.V) if self.sandwich else s.V
        s.t[:] += 1
        return s


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


@dataclass(frozen=True, kw_only=True)
class WSBLinUCB(LBWeightUCB):
    """WSB-LinUCB (Werge, Wu, Akgul, Kandemir 2026), our reading: the posterior of discounted
    rewards under the prior N(0, I / lambda), which is never discounted.

    Its mean and precision are LB-WeightUCB's. Its radius is smaller: what the prior costs is
    measured in the posterior covariance, and shrinks as that does. It holds for all rounds at once.
    """

    time_uniform: bool = True

    @property
    def name(self) -> str:
        return "WSB-LinUCB"

    def radius(self, memory: Moments) -> Floats:
        lam, gamma, L = self.regularization, self._gamma, self.problem.context_norm
        least = np.linalg.eigvalsh(memory.V)[:, 0] / L**2
        mass = rivals.geometric(gamma**2, memory.t) / lam
        noise = rivals.noise_radius(self.problem, delta=self._delta, mass=mass)
        return np.asarray(rivals.wsb_prior(self.problem, least, lam=lam) + noise)


def _sampled(self: Any, memory: Moments) -> Floats:
    """`scale` times the deviation of a draw: the noise's, or, `inflated`, that of its theorem."""
    if self.inflated:
        return np.asarray(self.scale * rivals.lin_ts_inflation() * self.radius(memory))
    return np.full(len(memory.t), self.scale * rivals.reward_deviation(self.problem))


@dataclass(frozen=True, kw_only=True)
class DLinTS(DLinUCB):
    """D-LinTS (Kim, Tewari 2020): Thompson sampling from N(theta, a^2 V^-1 Vt V^-1).

    a is the deviation of a reward, the non-inflated version that its experiments prefer, or,
    `inflated`, its theorem's, which explores far more.
    """

    exploration: str = "thompson"
    inflated: bool = False

    width = _sampled

    @property
    def name(self) -> str:
        return "D-LinTS"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"regularization": rivals.random_lin_lam}


@dataclass(frozen=True, kw_only=True)
class DRandLinUCB(DLinUCB):
    """D-RandLinUCB (Kim, Tewari 2020): D-LinUCB whose bonuses share one random factor a round: |Z|,
    Z normal with deviation `scale`."""

    exploration: str = "randomized"

    @property
    def name(self) -> str:
        return "D-RandLinUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        lam, scale = rivals.random_lin_lam, rivals.rand_lin_ucb_deviation
        return super().tuning() | {"regularization": lam, "scale": scale}


@dataclass(frozen=True, kw_only=True)
class WSBLinTS(WSBLinUCB):
    """WSB-LinTS (Werge, Wu, Akgul, Kandemir 2026), our reading: a draw from the posterior."""

    exploration: str = "thompson"
    inflated: bool = False

    width = _sampled

    @property
    def name(self) -> str:
        return "WSB-LinTS"


@dataclass(frozen=True, kw_only=True)
class WSBRandLinUCB(WSBLinUCB):
    """WSB-RandLinUCB (Werge, Wu, Akgul, Kandemir 2026), our reading: WSB-LinUCB whose bonuses
    share one random factor a round: |Z|, Z normal with deviation `scale`."""

    exploration: str = "randomized"

    @property
    def name(self) -> str:
        return "WSB-RandLinUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"scale": rivals.rand_lin_ucb_deviation}
