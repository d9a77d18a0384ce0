"""Reward families: exponential-family rewards whose natural parameter is z = x'theta.

p(r | z) = exp((r z - m(z)) / g + h(r)),   mu = m',   Var(r) = g mu'(z)        (section 3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from driftbandit import validate
from driftbandit.links import IDENTITY, LOG, LOGIT, Floats, Link, possible, tabulate
from driftbandit.recipe import Recipe


class Family(Recipe):
    """What every family offers; `R` bounds the rewards and `g` is the dispersion g(tau)."""

    code: ClassVar[int]

    @property
    def R(self) -> float:
        raise NotImplementedError

    @property
    def range(self) -> float:
        """Largest less smallest reward: R for rewards in [0, R], twice the bound for Gaussian."""
        return self.link.high - self.link.low

    @property
    def self_concordance(self) -> float:
        """M with |mu''| <= M mu'; Proposition 1 gives M = R for rewards in [0, R]."""
        return self.R

    @property
    def g(self) -> float:
        return 1.0

    @property
    def trials(self) -> int:
        return 1

    @property
    def link(self) -> Link:
        """The family as compiled code knows it; rewards are whole numbers from 0 to R."""
        return Link(self.code, float(self.trials), self.g, 0.0, self.R, True)

    @property
    def support(self) -> str:
        """The possible rewards, in words."""
        low, high = self.link.low, self.link.high
        return f"a {'whole number' if self.link.whole else 'number'} from {low:g} to {high:g}"

    def m(self, z: ArrayLike) -> Any:
        """Cumulant m(z)."""
        return self._values(0, z)

    def mu(self, z: ArrayLike) -> Any:
        """Mean reward mu(z)."""
        return self._values(1, z)

    def dmu(self, z: ArrayLike) -> Any:
        """Slope mu'(z)."""
        return self._values(2, z)

    def d2mu(self, z: ArrayLike) -> Any:
        """Second derivative mu''(z)."""
        return self._values(3, z)

    def _values(self, order: int, z: ArrayLike) -> Any:
        flat = np.asarray(z, dtype=float)
        out = np.empty(flat.size)
        tabulate(order, self.link, flat.ravel(), out)
        return out.reshape(flat.shape)[()]

    def k_mu(self, S: float) -> float:
        """Largest slope on [-S, S]."""
        raise NotImplementedError

    def c_mu(self, S: float) -> float:
        """Smallest slope on [-S, S]."""
        raise NotImplementedError

    def contains(self, r: float) -> bool:
        """Whether r is a possible reward."""
        return bool(possible(self.link, float(r)))

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        """Rewards at natural parameters z: the quantile of the uniform numbers u in [0, 1).

        One u per round couples all policies: they meet the same luck (common random numbers).
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Bernoulli(Family):
    """Rewards 0 or 1, mu(z) = 1/(1 + e^-z).

    >>> Bernoulli().mu(0.0)
    np.float64(0.5)
    """

    code = LOGIT

    @property
    def R(self) -> float:
        return 1.0

    def k_mu(self, S: float) -> float:
        return float(self.dmu(0.0))

    def c_mu(self, S: float) -> float:
        return float(self.dmu(S))

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        return (np.asarray(u) > 1.0 - self.mu(z)).astype(float)


@dataclass(frozen=True)
class Binomial(Family):
    """Counts 0..trials, mu(z) = trials/(1 + e^-z)."""

    trials: int = 1

    code = LOGIT

    def __post_init__(self) -> None:
        self._set(trials=validate.count("trials", self.trials, "tries behind one reward"))

    @property
    def R(self) -> float:
        return float(self.trials)

    def k_mu(self, S: float) -> float:
        return float(self.dmu(0.0))

    def c_mu(self, S: float) -> float:
        return float(self.dmu(S))

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        from scipy import special  # a quarter of a second that deciding and learning never need

        p, n = self.mu(z) / self.trials, self.trials
        return _quantile(
            u, lambda q: special.bdtrik(q, n, p), lambda k: special.bdtr(k, n, p), self.R
        )


@dataclass(frozen=True)
class Gaussian(Family):
    """Real rewards in [-bound, bound], mu(z) = z; draws beyond the bound are clipped to it.

    The clipping moves the mean by less than 1e-4 standard deviations once the bound is
    S + 3.5 sqrt(variance) or more.
    """

    variance: float = 1.0
    bound: float = 5.0

    code = IDENTITY

    def __post_init__(self) -> None:
        self._set(
            variance=validate.positive("variance", self.variance, "noise variance"),
            bound=validate.positive("bound", self.bound, "largest absolute reward"),
        )

    @property
    def R(self) -> float:
        return self.bound

    @property
    def g(self) -> float:
        return self.variance

    @property
    def link(self) -> Link:
        return Link(self.code, 1.0, self.g, -self.bound, self.bound, False)

    def k_mu(self, S: float) -> float:
        return 1.0

    def c_mu(self, S: float) -> float:
        return 1.0

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        from scipy import special

        r = np.asarray(z) + math.sqrt(self.variance) * special.ndtri(u)
        return np.clip(r, -self.bound, self.bound)


@dataclass(frozen=True)
class Poisson(Family):
    """Counts 0..bound, mu(z) = e^z; draws beyond the bound are clipped to it.

    |mu''| = mu', so the self-concordance constant is 1 and the bound enters only the noise terms.
    """

    bound: int

    code = LOG

    def __post_init__(self) -> None:
        self._set(bound=validate.count("bound", self.bound, "largest count a reward can be"))

    @property
    def R(self) -> float:
        return float(self.bound)

    @property
    def range(self) -> float:
        """Largest less smallest reward: R for rewards in [0, R], twice the bound for Gaussian."""
        return self.link.high - self.link.low

    @property
    def self_concordance(self) -> float:
        return 1.0

    def k_mu(self, S: float) -> float:
        return float(self.dmu(S))

    def c_mu(self, S: float) -> float:
        return float(self.dmu(-S))

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        from scipy import special

        mean = self.mu(z)
        return _quantile(
            u, lambda q: special.pdtrik(q, mean), lambda k: special.pdtr(k, mean), self.R
        )


def _quantile(u: ArrayLike, inverse: Any, cdf: Any, largest: float) -> Floats:
    """Smallest k with cdf(k) >= u: SciPy's continuous inverse, then one exact step down."""
    q = np.clip(u, 2.0**-60, 1.0 - 2.0**-53)
    k = np.clip(np.nan_to_num(np.ceil(inverse(q)), nan=0.0), 0.0, largest)
    below = np.maximum(k - 1.0, 0.0)
    return np.asarray(np.where(cdf(below) >= q, below, k), dtype=float)
