"""Reward families: exponential-family rewards whose natural parameter is z = x'theta.

p(r | z) = exp((r z - m(z)) / g + h(r)),   mu = m',   Var(r) = g mu'(z)        (section 3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from driftbandit import validate
from driftbandit.recipe import Recipe

Floats = NDArray[np.float64]

LOGIT, IDENTITY, LOG, CUSTOM = range(4)  # codes of links; kernels are compiled for the first 3
LEAST_G = 1e-3  # part of the largest g below which none is learnt
LARGEST_EXPONENT = 709.0  # exp overflows beyond; the log link saturates there instead


class Link(NamedTuple):
    """What kernels need to know of a family."""

    code: int
    trials: float
    low: float
    high: float
    whole: bool


class Family(Recipe):
    """What every family offers, ours and yours: docs/families.md writes two, `check_family` checks.

    A family of one's own is a frozen dataclass. It must give `R`, `mu`, `dmu` and `draw`, and `m`
    for AutoDOMD and for rivals that maximise a likelihood; the rest has defaults.
    """

    @property
    def R(self) -> float:
        """Bound on the rewards."""
        raise self._lacks("R")

    @property
    def low(self) -> float:
        """Smallest reward."""
        return 0.0

    @property
    def high(self) -> float:
        """Largest reward."""
        return self.R

    @property
    def whole(self) -> bool:
        """Whether rewards are whole numbers."""
        return True

    @property
    def range(self) -> float:
        """Largest less smallest reward: R for rewards in [0, R], twice the bound for Gaussian."""
        return self.high - self.low

    @property
    def self_concordance(self) -> float:
        """The smallest known M with |mu''| <= M mu'; Proposition 1 gives R, rewards in [0, R]."""
        return self.R

    @property
    def g(self) -> float:
        """Dispersion g(tau): Var(r) = g mu'(z)."""
        return 1.0

    @property
    def learns_g(self) -> bool:
        """Whether DOMD and AutoDOMD learn g from their errors; `g` is then where they begin, and
        the most it can be."""
        return False

    @property
    def least_g(self) -> float:
        """The smallest g that a learner can have."""
        return self.g * (LEAST_G if self.learns_g else 1.0)

    @property
    def quasi(self) -> bool:
        """Whether m, mu and g are a quasi-likelihood, where g mu' only bounds the variance."""
        return False

    @property
    def trials(self) -> int:
        """Tries that one reward counts; 1 but for `Binomial`."""
        return 1

    @property
    def link(self) -> Link:
        """The family as compiled code knows it; whoever has another m, mu or dmu is not shipped."""
        kind = type(self)
        code = _CODES.get((kind.m, kind.mu, kind.dmu), CUSTOM)
        return Link(code, float(self.trials), self.low, self.high, self.whole)

    @property
    def support(self) -> str:
        """The possible rewards, in words."""
        kind = "whole number" if self.whole else "number"
        return f"a {kind} from {self.low:g} to {self.high:g}"

    def m(self, z: ArrayLike) -> Any:
        """Cumulant m(z), finite and accurate for every float, as all that follows."""
        raise self._lacks("m")

    def mu(self, z: ArrayLike) -> Any:
        """Mean reward mu(z)."""
        raise self._lacks("mu")

    def dmu(self, z: ArrayLike) -> Any:
        """Slope mu'(z)."""
        raise self._lacks("dmu")

    def d2mu(self, z: ArrayLike) -> Any:
        """Second derivative mu''(z); by differences, unless a family knows better."""
        z, h = np.asarray(z, dtype=float), 1e-5
        return (np.asarray(self.dmu(z + h)) - self.dmu(z - h)) / (2.0 * h)

    def compiled(self) -> tuple[Any, Any, Any] | None:
        """m, mu and dmu of one float as functions of numba's njit: kernels call them without
        Python. They are compiled once in every process."""
        return None

    def mu_dmu(self, z: Floats) -> tuple[Floats, Floats]:
        """mu(z) and mu'(z), which maximum likelihood needs together."""
        return finite(self, "mu", z), finite(self, "dmu", z)

    def k_mu(self, S: float) -> float:
        """Largest slope on [-S, S], or a little more."""
        slopes, margin = self._slopes(S)
        return float(slopes.max() * margin)

    def c_mu(self, S: float) -> float:
        """Smallest slope on [-S, S], or a little less."""
        slopes, margin = self._slopes(S)
        return float(slopes.min() / margin)

    def _slopes(self, S: float) -> tuple[Floats, float]:
        """Slopes on a grid, and how much they can change up to the nearest of its points: by
        self-concordance at most e^(M h) over a distance h."""
        z = np.linspace(-S, S, 2001)
        return finite(self, "dmu", z), math.exp(self.self_concordance * S / 2000.0)

    def contains(self, r: ArrayLike) -> Any:
        """Whether r is a possible reward, for each r."""
        r = np.asarray(r, dtype=float)
        inside = (self.low <= r) & (r <= self.high)
        return inside & (r == np.floor(r)) if self.whole else inside

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        """Rewards at natural parameters z: the quantile of the uniform numbers u in [0, 1).

        One u per round couples all policies: they meet the same luck (common random numbers).
        """
        raise self._lacks("draw")

    def _lacks(self, name: str) -> Exception:
        return NotImplementedError(f"{type(self).__name__} has no {name}: see docs/families.md")


def finite(family: Family, name: str, z: ArrayLike) -> Any:
    """m, mu or dmu at z, or an error that says where it is no number."""
    values = getattr(family, name)(z)
    good = np.isfinite(values)
    if not good.all():
        place = np.asarray(z)[~good].flat[0] if np.ndim(z) else z
        raise ValueError(
            f"{name}({place:g}) of {family!r} is {np.asarray(values)[~good].flat[0]}: methods of a "
            "family take any float; driftbandit.checks.check_family finds what is wrong"
        )
    return values


class _Logistic:
    """mu(z) = trials/(1 + e^-z), written with e^-|z|, which never overflows."""

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
class Bounded(_Logistic, Family):
    """Real rewards from 0 to 1, mu(z) = 1/(1 + e^-z): revenue, latency, ratings, brought to [0, 1].

    A quasi-likelihood: whatever their distribution, their variance is taken to be g mu'. No
    variable in [0, 1] has a g above 1. DOMD and AutoDOMD begin there and learn it from their
    errors; `dispersion` is that of simulated rewards only, drawn from Beta distributions.

    >>> Bounded().contains([0.3, 1.2])
    array([ True, False])
    """

    dispersion: float = 0.1

    def __post_init__(self) -> None:
        self._set(
            dispersion=validate.interval(
                "dispersion",
                self.dispersion,
                "variance over mu' of simulated rewards",
                low=0.0,
                high=0.99,
            )
        )

    @property
    def R(self) -> float:
        return 1.0

    @property
    def whole(self) -> bool:
        return False

    @property
    def quasi(self) -> bool:
        return True

    @property
    def learns_g(self) -> bool:
        return True

    def draw(self, z: ArrayLike, u: ArrayLike) -> Floats:
        from scipy import special

        mean, rest = self.mu(z), 1.0 / self.dispersion - 1.0
        a, b = np.maximum(mean * rest, 1e-300), np.maximum((1.0 - mean) * rest, 1e-300)
        return np.clip(special.betaincinv(a, b, u), 0.0, 1.0)


@dataclass(frozen=True)
class Gaussian(Family):
    """Real rewards in [-bound, bound], mu(z) = z; draws beyond the bound are clipped to it.

    The clipping moves the mean by less than 1e-4 standard deviations once the bound is
    S + 3.5 sqrt(variance) or more.
    """

    variance: float = 1.0
    bound: float = 5.0

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
    def low(self) -> float:
        return -self.bound

    @property
    def whole(self) -> bool:
        return False

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


_CODES = {
    (kind.m, kind.mu, kind.dmu): code
    for kind, code in ((Bernoulli, LOGIT), (Gaussian, IDENTITY), (Poisson, LOG))
}
