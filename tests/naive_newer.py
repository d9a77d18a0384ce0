"""Slow references of the rivals that came later; the frame is that of `naive`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from naive import Discounted, Likelihood, Naive, NaiveDLinUCB, NaiveLinUCB, Windowed, geometric


@dataclass(kw_only=True)
class Centred(NaiveLinUCB):
    """Ridge regression of r - zero, reported with zero added."""

    zero: float

    def update(self, x, r):
        super().update(x, r - self.zero)

    def mean(self, z):
        return z + self.zero


@dataclass(kw_only=True)
class NaiveCentredDLinUCB(Centred, NaiveDLinUCB):
    """D-LinUCB on centred rewards."""


@dataclass(kw_only=True)
class NaiveDLinTS(NaiveDLinUCB):
    """D-LinTS: deviations a ||x|| of x'theta under N(thhat, a^2 V^-1 Vt V^-1)."""

    inflated: bool = False

    def coefficient(self) -> float:
        return sqrt(14) * super().coefficient() if self.inflated else self.link.R / 2


@dataclass(kw_only=True)
class NaiveWSB(Discounted, NaiveLinUCB):
    """WSB-LinUCB: the prior costs the largest ||lam theta||_{V^-1}, ||theta|| = S."""

    horizon: int

    def total(self) -> float:
        return geometric(self.gamma**2, self.t - 1)

    def prior(self) -> float:
        worst = np.linalg.norm(np.linalg.inv(self.design()), 2)
        return self.lam * self.S * sqrt(worst)

    def coefficient(self) -> float:
        noise = self.subgaussian(ratio=self.total() / self.lam, delta=self.delta / self.horizon)
        return self.prior() + noise


@dataclass(kw_only=True)
class NaiveWSBLinTS(NaiveWSB):
    """WSB-LinTS: the same with the deviations of the posterior."""

    inflated: bool = False

    def coefficient(self) -> float:
        return sqrt(14) * super().coefficient() if self.inflated else self.link.R / 2


@dataclass(kw_only=True)
class Laplace(Likelihood):
    """The posterior of weighted rewards under N(0, I / lam), approximated at its mode."""

    def __post_init__(self):
        super().__post_init__()
        self.ridge = self.lam * self.link.g

    def mean(self, z):
        return z

    def estimate(self):
        return self.mle()

    def covariance(self):
        return np.linalg.inv(self.score().slope(self.estimate()) / self.link.g)

    def coefficient(self) -> float:
        return 1.0


@dataclass(kw_only=True)
class NaiveDGLMTS(Discounted, Laplace):
    """D-GLM-TS."""


@dataclass(kw_only=True)
class NaiveSWGLMTS(Windowed, Laplace):
    """SW-GLM-TS."""


def information_ratio(pi, values) -> float:
    """(sum pi_a Delta_a)^2 / sum pi_a v_a from joint draws `values` (N, m), arm by arm."""
    best = [int(np.argmax(column)) for column in values.T]
    top = np.mean([max(column) for column in values.T])
    regret = information = 0.0
    for share, row in zip(pi, values):
        regret += share * (top - row.mean())
        for b in set(best):
            given = row[[k for k, arm in enumerate(best) if arm == b]]
            information += share * len(given) / len(row) * (given.mean() - row.mean()) ** 2
    return regret**2 / information


@dataclass(kw_only=True)
class NaiveDAL(Naive):
    """DAL over fresh copies of `base()`: all streams are kept, every split of one is tried."""

    horizon: int
    base: Callable[[], Naive]

    def __post_init__(self):
        super().__post_init__()
        self.episode = 0
        self.begin()

    def begin(self):
        """Start an episode."""
        self.episode += 1
        self.rounds, self.streams = 0, [[] for _ in range(self.dim)]
        self.inner = self.base()

    def axis(self):
        """The axis of a forced round, None in a free one."""
        share = min(0.5, sqrt(self.episode * self.dim * log(self.horizon) / self.horizon))
        place = self.rounds % ceil(self.dim / share)
        return place if place < self.dim else None

    def index(self, arms):
        return self.inner.index(arms)

    def choose(self, arms) -> int:
        if self.axis() is None:
            return self.inner.choose(arms)
        return int(np.argmax(arms[:, self.axis()]))

    def changed(self, stream) -> bool:
        """Whether some split of a stream, sigma = R/2, is too unlikely."""
        n, mean = len(stream), np.mean(stream)
        splits = [(stream[:s], stream[s:]) for s in range(1, n)]
        gains = [sum(len(p) * (np.mean(p) - mean) ** 2 for p in split) for split in splits]
        worst = max(gains, default=0.0) / (2 * (self.link.R / 2) ** 2)
        return worst >= log(4 * n**1.5 / self.delta)

    def update(self, x, r):
        super().update(x, r)
        axis = self.axis()
        self.rounds += 1
        if axis is None:
            self.inner.update(x, r)
            return
        self.streams[axis].append(r)
        if self.changed(self.streams[axis]):
            self.begin()
