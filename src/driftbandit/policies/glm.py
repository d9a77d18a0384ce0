"""Rivals that fit a generalized linear model to stored data, each its weights and its radius."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftbandit import validate
from driftbandit.policies.base import Floats
from driftbandit.policies.index import index_scores
from driftbandit.policies.likelihood import (
    BVD,
    FIXED_V,
    FIXED_VT,
    NONE,
    VARIABLE,
    History,
    Likelihood,
)
from driftbandit.problem import Problem
from driftbandit.theory import rivals

# How RestartGLB.from_theory names the periods that theory has for it.
PERIODS = {"original": rivals.restart_period, "corrected": rivals.corrected_restart_period}


@dataclass(frozen=True, kw_only=True)
class _Forgetting(Likelihood):
    """Weights gamma^(t-1-s)."""

    discount: float

    def __post_init__(self) -> None:
        super().__post_init__()
        value = validate.interval("discount", self.discount, "gamma", low=0.0, high=1.0)
        self._set(discount=value)


@dataclass(frozen=True, kw_only=True)
class _Discounted(_Forgetting):
    """Weights gamma^(t-1-s) in the design matrices, too.

    The papers' design matrices keep their multiple of I. With `refill=False` it is discounted like
    a round, which is what the recursion V <- gamma V + x x' does.
    """

    refill: bool = True


@dataclass(frozen=True, kw_only=True)
class _SubGaussian(Likelihood):
    """A radius for sub-Gaussian noise: `sub_gaussian` is its sigma, half the range of the rewards
    unless given, the smallest that bounded rewards allow."""

    sub_gaussian: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sub_gaussian is not None:
            sigma = validate.positive("sub_gaussian", self.sub_gaussian, "sigma of the noise")
            self._set(sub_gaussian=sigma)


class _QuotedTuning(_Discounted):
    """from_theory(problem, reading=...): the discount of its own theorem ("original"), or the one
    that the DOMD paper quotes for it ("quoted")."""

    also_takes: ClassVar[tuple[str, ...]] = ("reading",)

    @staticmethod
    def tuned_discount(problem: Problem, reading: str) -> float:
        raise NotImplementedError

    @classmethod
    def from_theory(cls, problem: Problem, *, reading: str | None = None, **overrides: Any) -> Any:
        """The published tuning with delta = 0.01; keywords replace single values."""
        cls._check_problem(problem)
        if "discount" not in overrides:
            overrides["discount"] = cls.tuned_discount(problem, reading or "original")
        elif reading is not None:
            raise ValueError("reading sets the discount: pass one of them")
        return super().from_theory(problem, **overrides)


@dataclass(frozen=True, kw_only=True)
class _Windowed(Likelihood):
    """Weight 1 for the last `window` rounds, 0 before."""

    window: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(window=validate.count("window", self.window, "rounds remembered"))
        self._horizon()


class _FauryConvention:
    """lambda is the design's multiple of I; the ridge on theta is lambda c_mu."""

    regularization: float
    problem: Problem

    @property
    def ridge(self) -> float:
        return self.regularization * self.problem.c_mu


class _RussacConvention:
    """lambda is the ridge on theta; the design's multiple of I is lambda / c_mu."""

    regularization: float

    @property
    def ridge(self) -> float:
        return self.regularization


@dataclass(frozen=True, kw_only=True)
class GLMUCB(_FauryConvention, _SubGaussian):
    """GLM-UCB (Filippi, Cappe, Garivier, Szepesvari 2010), regularised: all data count forever.

    `reading` says whose radius it has: "restart", that of RestartGLB with one epoch, or "master",
    the constant 2 beta of MASTER's base, which knows no sigma.
    """

    reading: str = "restart"

    projection: ClassVar[int] = FIXED_V
    former: ClassVar[Mapping[str, str]] = {"rule": "reading"}

    def __post_init__(self) -> None:
        super().__post_init__()
        rivals.check_reading(self.reading, rivals.RADIUS_READINGS)
        if self.reading == "master":
            self._horizon()
            if self.sub_gaussian is not None:
                raise ValueError("the radius of MASTER's base has no sigma: omit sub_gaussian")

    @property
    def name(self) -> str:
        return "GLM-UCB"

    def coefficient(self, t: Any) -> Any:
        lam = self.regularization
        if self.reading == "master":
            T = self._horizon()
            return 2.0 * rivals.master_beta(self.problem, lam=lam, delta=self.delta, horizon=T)
        sigma = self.sub_gaussian
        return rivals.glm_ucb(self.problem, t, lam=lam, delta=self._delta, sigma=sigma)


@dataclass(frozen=True, kw_only=True)
class RestartGLB(GLMUCB):
    """RestartGLB (Zhao, Zhang, Jiang, Zhou 2020): GLM-UCB that starts afresh every `period` rounds.

    Its paper has no projection; `project=True` adds Filippi's. `from_theory` takes the period of
    its paper ("original"), the one that repairs its proof ("corrected"), or a number of rounds.
    """

    period: int
    project: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(period=validate.count("period", self.period, "rounds between restarts"))

    @property
    def projection(self) -> int:  # type: ignore[override]
        return FIXED_V if self.project else NONE

    @property
    def name(self) -> str:
        return "RestartGLB"

    @classmethod
    def from_theory(
        cls, problem: Problem, *, period: int | str = "original", **overrides: Any
    ) -> Any:
        """The published tuning with delta = 0.01; keywords replace single values."""
        cls._check_problem(problem)
        if isinstance(period, str):
            if period not in PERIODS:
                raise ValueError(
                    f"period must be a number of rounds or one of {tuple(PERIODS)}, got {period!r}"
                )
            period = PERIODS[period](problem)
        return super().from_theory(problem, period=period, **overrides)


@dataclass(frozen=True, kw_only=True)
class DGLUCB(_RussacConvention, _Discounted, _SubGaussian):
    """D-GLUCB (Russac, Cappe, Garivier 2020)."""

    projection: ClassVar[int] = FIXED_VT

    @property
    def name(self) -> str:
        return "D-GLUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"discount": rivals.d_glucb_discount}

    def coefficient(self, t: Any) -> Any:
        numbers = {"lam": self.regularization, "gamma": self.discount, "delta": self._delta}
        return rivals.d_glucb(self.problem, t, sigma=self.sub_gaussian, **numbers)


@dataclass(frozen=True, kw_only=True)
class SWGLUCB(_RussacConvention, _Windowed, _SubGaussian):
    """SW-GLUCB (Russac, Cappe, Garivier 2020)."""

    projection: ClassVar[int] = FIXED_V

    @property
    def name(self) -> str:
        return "SW-GLUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"window": rivals.sw_glucb_window}

    def coefficient(self, t: Any) -> Any:
        return rivals.sw_glucb(
            self.problem,
            t,
            lam=self.regularization,
            window=self.window,
            delta=self.delta,
            horizon=self._horizon(),
            sigma=self.sub_gaussian,
        )


class _SelfConcordant(_RussacConvention):
    """No projection: a wide radius when the estimate is outside the ball, Remark 1's inside."""

    problem: Problem
    _S: float

    @property
    def ridge(self) -> float:
        """lambda for the score per unit of dispersion; ours is not divided by g."""
        return self.regularization * self.problem.family.g

    @staticmethod
    def lam(problem: Problem) -> float:
        """lambda as its paper tunes it."""
        T = problem.known("horizon", "lambda = d log T")
        return problem.dim * math.log(max(T, 2.0))

    def inside(self, memory: History) -> Any:
        return np.linalg.norm(memory.mle, axis=1) <= self._S


@dataclass(frozen=True, kw_only=True)
class SCDGLUCB(_SelfConcordant, _QuotedTuning):
    """SC-D-GLUCB (Russac, Faury, Cappe, Garivier 2021)."""

    tuned_discount = staticmethod(rivals.sc_d_glucb_discount)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._horizon()

    @property
    def name(self) -> str:
        return "SC-D-GLUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"regularization": cls.lam}

    @cached_property
    def rho(self) -> float:
        """rho, the radius of its paper's confidence set."""
        T, gamma = self._horizon(), self.discount
        mass = (1.0 - T**-2.0) / max(1.0 - gamma**2, 1.0 / T)
        numbers = {"lam": self.regularization, "delta": self.delta, "horizon": T}
        return float(rivals.sc_rho(self.problem, mass=mass, **numbers))

    @cached_property
    def _coefficients(self) -> tuple[float, float]:
        """Inside the ball (Remark 1) and outside (eq. 4)."""
        lam, T = self.regularization, self._horizon()
        S = rivals.sc_d_widened(self.problem, lam=lam, gamma=self.discount, horizon=T)
        inside = rivals.sc_inside(self.problem, self.rho, lam=lam)
        return inside, rivals.sc_outside(self.problem, self.rho, lam=lam, S=S)

    def coefficient(self, t: Any, inside: Any = False) -> Any:
        return np.where(inside, *self._coefficients)

    def width(self, memory: History) -> Floats:
        return self.scale * self.coefficient(memory.t, self.inside(memory))


@dataclass(frozen=True, kw_only=True)
class SCSWGLUCB(_SelfConcordant, _Windowed):
    """SC-SW-GLUCB (Russac, Faury, Cappe, Garivier 2021)."""

    @property
    def name(self) -> str:
        return "SC-SW-GLUCB"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"regularization": cls.lam, "window": rivals.sc_sw_glucb_window}

    def coefficient(self, t: Any, inside: Any = False) -> Any:
        lam, T = self.regularization, self._horizon()
        mass = np.minimum(t, self.window)
        rho = rivals.sc_rho(self.problem, lam=lam, mass=mass, delta=self.delta, horizon=T)
        wide = rivals.sc_outside(self.problem, rho, lam=lam, S=self.problem.S)
        return np.where(inside, rivals.sc_inside(self.problem, rho, lam=lam), wide)

    def width(self, memory: History) -> Floats:
        return self.scale * self.coefficient(self._clock(memory), self.inside(memory))


@dataclass(frozen=True, kw_only=True)
class BVDGLMUCB(_FauryConvention, _QuotedTuning, _SubGaussian):
    """BVD-GLM-UCB (Faury, Russac, Abeille, Calauzenes 2021)."""

    projection: ClassVar[int] = BVD
    tuned_discount = staticmethod(rivals.bvd_discount)

    @property
    def name(self) -> str:
        return "BVD-GLM-UCB"

    def _numbers(self) -> dict[str, Any]:
        numbers = {"lam": self.regularization, "gamma": self.discount, "delta": self._delta}
        return numbers | {"sigma": self.sub_gaussian}

    def coefficient(self, t: Any) -> Any:
        return rivals.bvd_glm_ucb(self.problem, t, **self._numbers())

    def _set_radius(self, t: Floats) -> Floats:
        return np.asarray(rivals.bvd_beta(self.problem, t, **self._numbers()))


@dataclass(frozen=True, kw_only=True)
class GLBWeightUCB(_FauryConvention, _Discounted, _SubGaussian):
    """GLB-WeightUCB (Wang, Zhao, Zhou 2023)."""

    projection: ClassVar[int] = FIXED_V

    @property
    def name(self) -> str:
        return "GLB-WeightUCB"

    @staticmethod
    def lam(problem: Problem) -> float:
        """lambda as its paper tunes it."""
        return problem.dim / problem.c_mu**2

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {
            "regularization": cls.lam,
            "discount": rivals.glb_weight_discount,
        }

    def coefficient(self, t: Any) -> Any:
        numbers = {"lam": self.regularization, "gamma": self.discount, "delta": self._delta}
        return rivals.glb_weight_ucb(self.problem, t, sigma=self.sub_gaussian, **numbers)


@dataclass(frozen=True, kw_only=True)
class SCBWeightUCB(_FauryConvention, _Discounted):
    """SCB-WeightUCB (Wang, Zhao, Zhou 2023), for drifting worlds."""

    projection: ClassVar[int] = VARIABLE

    @property
    def name(self) -> str:
        return "SCB-WeightUCB"

    @staticmethod
    def lam(problem: Problem) -> float:
        """lambda as its paper tunes it."""
        T = problem.known("horizon", "lambda = d log T / c")
        c = problem.c_mu / problem.family.g
        return problem.dim * math.log(max(T, 2.0)) / c

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {
            "regularization": cls.lam,
            "discount": rivals.scb_weight_discount,
        }

    def coefficient(self, t: Any) -> Any:
        numbers = {"lam": self.regularization, "gamma": self.discount, "delta": self._delta}
        return rivals.scb_weight_ucb(self.problem, t, **numbers)


@dataclass(frozen=True, kw_only=True)
class SCBPWWeightUCB(SCBWeightUCB):
    """SCB-PW-WeightUCB (Wang, Zhao, Zhou 2023), for piecewise-stationary worlds.

    Its rule is a joint maximisation without an algorithm. `variant` "A" bounds it with the design
    matrix, a factor 1/sqrt(c_mu) (what the paper most likely ran); "B" with the local curvature,
    on the linear scale, without c_mu.
    """

    variant: str = "A"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._horizon()
        if self.variant not in ("A", "B"):
            raise ValueError(f"variant must be 'A' or 'B', got {validate.show(self.variant)}")

    @property
    def name(self) -> str:
        return "SCB-PW-WeightUCB"

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return self.variant == "B"

    @property
    def local(self) -> bool:
        """Whether bonuses use the local curvature."""
        return self.variant == "B"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return super().tuning() | {"discount": rivals.d_glucb_discount}

    @cached_property
    def rho(self) -> float:
        """rho, the radius of its paper's confidence set."""
        return rivals.scb_pw_rho(
            self.problem,
            lam=self.regularization,
            gamma=self.discount,
            delta=self._delta,
            horizon=self._horizon(),
        )

    def coefficient(self, t: Any) -> Any:
        if self.variant == "B":
            return 2.0 * (1.0 + 2.0 * self.problem.S) * self.rho
        return rivals.scb_factor(self.problem) * self.rho


class _Laplace:
    """The posterior N(theta, H^-1) of weighted rewards under the prior N(0, I / lambda), by
    Laplace's approximation at the fit; H is the curvature there."""

    regularization: float
    problem: Problem
    linear: ClassVar[bool] = True  # draws are of theta: no link is in the way

    @property
    def ridge(self) -> float:
        """lambda for the score per unit of dispersion; ours is not divided by g."""
        return self.regularization * self.problem.family.g

    @property
    def local(self) -> bool:
        return True

    def coefficient(self, t: Any) -> Any:
        """1: deviations are the posterior's."""
        return np.ones_like(t)

    def deviation(self, memory: History, arms: Floats) -> Floats:
        """Standard deviation of x'theta in the posterior, whatever `scale` is."""
        one, family = np.ones(len(memory.t)), self.problem.family
        return index_scores(family, True, memory.theta, memory.H, one, arms).bonus


@dataclass(frozen=True, kw_only=True)
class DGLMTS(_Laplace, _Forgetting):
    """D-GLM-TS, our reading: GLM-TSL (Kveton et al. 2020) whose rewards count gamma^(t-1-s) each.

    theta is drawn from the posterior, widened `scale` times. There is no paper on it with a
    theorem that we know of: lambda and gamma are our choices.
    """

    exploration: str = "thompson"

    @property
    def name(self) -> str:
        return "D-GLM-TS"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return {"regularization": rivals.glm_ts_prior, "discount": rivals.glm_ts_discount}


@dataclass(frozen=True, kw_only=True)
class SWGLMTS(_Laplace, _Windowed):
    """SW-GLM-TS, our reading: GLM-TSL (Kveton et al. 2020) on the last `window` rounds."""

    exploration: str = "thompson"

    @property
    def name(self) -> str:
        return "SW-GLM-TS"

    @classmethod
    def tuning(cls) -> dict[str, Callable[[Problem], Any]]:
        return {"regularization": rivals.glm_ts_prior, "window": rivals.glm_ts_window}
