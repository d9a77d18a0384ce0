"""Slow references of the rivals that came later; the frame is that of `naive`."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from naive import Discounted, NaiveDLinUCB, NaiveLinUCB, geometric


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
