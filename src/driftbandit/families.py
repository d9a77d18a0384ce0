"""Reward families: exponential-family rewards whose natural parameter is z = x'theta.

p(r | z) = exp((r z - m(z)) / g + h(r)),   mu = m',   Var(r) = g mu'(z)        (section 3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftbandit import validate
from driftbandit.recipe import Recipe

Floats = NDArray[np.float64]

LOGIT, IDENTITY, LOG = range(3)  # codes by which kernels know a link
LARGEST_EXPONENT = 709.0  # exp overflows beyond; the log link saturates there instead


class Link(NamedTuple):
    """What kernels need to know of a family."""

    code: int
    trials: float
    g: float
    low: float  # smallest and largest reward, and whether rewards are whole numbers
    high: float
    whole: bool


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
        """The smallest known M with |mu''| <= M mu'; Proposition 1 gives R, rewards in [0, R]."""
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
        """Cumulant m(z), finite and accurate for every float, as all that follows."""
        raise NotImplementedError

    def mu(self, z: ArrayLike) -> Any:
        """Mean reward mu(z)."""
        raise NotImplementedError

    def dmu(self, z: ArrayLike) -> Any:
        """Slope mu'(z)."""
        raise NotImplementedError

    def d2mu(self, z: ArrayLike) -> Any:
        """Second derivative mu''(z)."""
        raise NotImplementedError

    def mu_dmu(self, z: Floats) -> tuple[Floats, Floats]:
        """mu(z) and mu'(z), which maximum likelihood needs together."""
        return self.mu(z), self.dmu(z)

    def k_mu(self, S: float) -> float:
        """Largest slope on [-S, S]."""
        raise NotImplementedError

    def c_mu(self, S: float) -> float:
        """Smallest slope on [-S, S]."""
        raise NotImplementedError

    def contains(self, r: ArrayLike) -> Any:
        """Whether r is a possible reward, for each r."""
        r, link = np.asarray(r, dtype=float), self.link
        inside = (link.low <= r) & (r <= link.high)
        return inside & (r == np.floor(r)) if link.whole else inside

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        """Rewards at natural parameters z: the quantile of the uniform numbers u in [0, 1).

        One u per round couples all policies: they meet the same luck (common random numbers).
        """
        raise NotImplementedError


class _Logistic:
    """mu(z) = trials/(1 + e^-z), written with e^-|z|, which never overflows."""

    code: ClassVar[int] = LOGIT
    trials: Any

    @property
    def self_concordance(self) -> float:
        return 1.0  # mu'' = -tanh(z/2) mu', whatever the trials

    def m(self, z: ArrayLike) -> Any:
        z = np.asarray(z, dtype=float)
        return self.trials * (np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))))

    def mu(self, z: ArrayLike) -> Any:
        z = np.asarray(z, dtype=float)
        return self.trials * (np.exp(np.minimum(z, 0.0)) / (1.0 + np.exp(-np.abs(z))))

    def dmu(self, z: ArrayLike) -> Any:
        e = np.exp(-np.abs(np.asarray(z, dtype=float)))
        return self.trials * (e / ((1.0 + e) * (1.0 + e)))

    def d2mu(self, z: ArrayLike) -> Any:
        return -self.dmu(z) * np.tanh(0.5 * np.asarray(z, dtype=float))

    def mu_dmu(self, z: Floats) -> tuple[Floats, Floats]:
        e = np.exp(-np.abs(z))
        share = 1.0 / (1.0 + e)
        return self.trials * (np.exp(np.minimum(z, 0.0)) * share), self.trials * (e * share * share)

    def k_mu(self, S: float) -> float:
        return float(self.dmu(0.0))

    def c_mu(self, S: float) -> float:
        return float(self.dmu(S))


@dataclass(frozen=True)
class Bernoulli(_Logistic, Family):
    """Rewards 0 or 1, mu(z) = 1/(1 + e^-z).

    >>> Bernoulli().mu(0.0)
    np.float64(0.5)
    """

    @property
    def R(self) -> float:
        return 1.0

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        return (np.asarray(u) > 1.0 - self.mu(z)).astype(float)


@dataclass(frozen=True)
class Binomial(_Logistic, Family):
    """Counts 0..trials, mu(z) = trials/(1 + e^-z)."""

    trials: int = 1

    def __post_init__(self) -> None:
        self._set(trials=validate.count("trials", self.trials, "tries behind one reward"))

    @property
    def R(self) -> float:
        return float(self.trials)

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

    @property
    def self_concordance(self) -> float:
        return 0.0

    def m(self, z: ArrayLike) -> Any:
        z = np.asarray(z, dtype=float)
        return 0.5 * z * z

    def mu(self, z: ArrayLike) -> Any:
        return np.array(z, dtype=float)[()]

    def dmu(self, z: ArrayLike) -> Any:
        return np.ones(np.shape(z))[()]

    def d2mu(self, z: ArrayLike) -> Any:
        return np.zeros(np.shape(z))[()]

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

    bound: int = None  # type: ignore[assignment]  # there is no default: see __post_init__

    code = LOG

    def __post_init__(self) -> None:
        meaning = "the largest count a reward can be"
        if self.bound is None:
            raise ValueError(f"Poisson needs bound, {meaning}: Poisson(bound=50)")
        self._set(bound=validate.count("bound", self.bound, meaning))

    @property
    def R(self) -> float:
        return float(self.bound)

    @property
    def self_concordance(self) -> float:
        return 1.0

    def mu(self, z: ArrayLike) -> Any:
        return np.exp(np.minimum(np.asarray(z, dtype=float), LARGEST_EXPONENT))

    m = dmu = d2mu = mu

    def mu_dmu(self, z: Floats) -> tuple[Floats, Floats]:
        e = self.mu(z)
        return e, e

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
