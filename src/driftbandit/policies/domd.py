"""DOMD-GLB: discounted online mirror descent for generalized linear bandits (Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftbandit import theory, validate
from driftbandit.core.custom_family import code_of
from driftbandit.core.layout import Fields, Memory, domd_fields
from driftbandit.policies.base import Floats, Scores
from driftbandit.policies.index import check_exploration, index_scores
from driftbandit.policies.rows import RowPolicy
from driftbandit.problem import Problem
from driftbandit.theory import Radius, beta

FAINTEST = 1e-9  # lambda over what one reward can add: below, rounding would eat it
BASIS_AT_FIRST = 1.0  # what the first g rests on, where it is learnt: 4 rounds at mean 1/2


@dataclass(frozen=True, kw_only=True)
class DOMD(RowPolicy):
    """Discounted online mirror descent with an optimistic rule, O(d^3) a round for ever.

    | here | paper | |
    |---|---|---|
    | `discount` | gamma | weight of a round after each further round |
    | `half_life` | | the same in words: rounds until a weight halves |
    | `regularization` | lambda | floor of the curvature (contexts scaled to norm 1) |
    | `step` | eta | mirror-descent step; larger follows faster |
    | `bonus` | | width of the bonus in posterior standard deviations |
    | `delta`, `scale` | delta | or: `scale` times the theorem's radius beta_t(delta) |
    | `exploration` | | "ucb", or "thompson": sample theta instead of adding a bonus |
    | `sharp` | | beta_t of the sharper theorem (docs/theory.md) instead of the paper's |

    The plain constructor is the practical preset: lambda = 1, half-life 200 rounds, one deviation,
    and eta = 2, whatever the radius; without a radius there is no ball to speak of.
    `DOMD.from_theory(problem)` has the theorem's eta, lambda, gamma and radius, which are proven
    and far more cautious; it needs to know the radius. `sharp=True` has those of a sharper theorem,
    and far less regret.

    >>> problem = Problem(dim=5, radius=1.0, horizon=5000, path_length=6.28)
    >>> DOMD(problem=problem, half_life=500).discount == 2 ** (-1 / 500)
    True
    >>> round(DOMD.from_theory(problem).regularization, 2)
    68.57
    >>> round(DOMD.from_theory(problem, sharp=True, objective="tracking").regularization, 1)
    18.3
    """

    discount: float | None = None
    regularization: float = 1.0
    step: float = 2.0
    bonus: float | None = None
    delta: float | None = None
    scale: float | None = None
    exploration: str = "ucb"
    sharp: bool = False
    half_life: InitVar[float | None] = None

    default_bonus: ClassVar[float] = 1.0
    also_takes: ClassVar[tuple[str, ...]] = ("half_life", "objective")

    def __post_init__(self, half_life: float | None) -> None:
        super().__post_init__()
        check_exploration(self.exploration)
        self._set(discount=self._resolve_discount(half_life))
        self._resolve_bonus()
        meaning = "lambda, floor of the curvature"
        self._set(
            step=validate.positive("step", self.step, "eta, the mirror-descent step"),
            regularization=validate.positive("regularization", self.regularization, meaning),
        )
        if self._lam < FAINTEST * self._most:
            raise ValueError(
                f"regularization {self.regularization:g} drowns in rounding, because one reward "
                f"can add {self._most / self.problem.context_norm**2:.3g} to the curvature: use "
                f"{FAINTEST * self._most / self.problem.context_norm**2:.2g} or more"
            )
        self._radius(self.step, self.regularization)  # the sharper theorem refuses a small lambda

    def _resolve_discount(self, half_life: float | None) -> float:
        if self.discount is not None and half_life is not None:
            raise ValueError(
                f"discount={self.discount!r} and half_life={half_life!r} say the same thing twice: "
                "pass one of them"
            )
        if self.discount is not None:
            meaning = "gamma; 1 never forgets"
            return validate.interval("discount", self.discount, meaning, low=0.0, high=1.0)
        if isinstance(half_life, float) and half_life == math.inf:
            return 1.0
        meaning = "rounds until a weight halves; inf never forgets"
        rounds = 200.0 if half_life is None else validate.number("half_life", half_life, meaning)
        if rounds < 0.01:
            raise ValueError(f"half_life must be 0.01 or more ({meaning}), got {half_life!r}")
        return float(2.0 ** (-1.0 / rounds))

    def _resolve_bonus(self) -> None:
        if self.bonus is not None and not (self.delta is None and self.scale is None):
            raise ValueError(
                "bonus replaces scale * beta_t(delta): pass bonus, or delta and scale, not both"
            )
        if self.bonus is None and self.delta is None and self.scale is None:
            self._set(bonus=self.default_bonus)
        if self.bonus is not None:
            self._set(bonus=validate.nonnegative("bonus", self.bonus, "in posterior deviations"))
            return
        delta, scale = self.delta, self.scale
        meaning = "probability that the confidence set fails"
        self._set(
            delta=validate.interval(
                "delta", 0.01 if delta is None else delta, meaning, low=0, high=1
            ),
            scale=validate.nonnegative(
                "scale", 1.0 if scale is None else scale, "factor on beta_t"
            ),
        )
        self.problem.known("radius", "the theorem's beta_t(delta)")

    @classmethod
    def from_theory(
        cls,
        problem: Problem,
        *,
        sharp: bool = False,
        objective: str | None = None,
        **overrides: Any,
    ) -> Any:
        """eta, lambda, gamma and beta_t(0.01) of Theorems 1 to 3; keywords replace any of them.

        `sharp=True` has those of the sharper theorem. `objective` then says which of the pairs of
        lambda and gamma that it allows: "bound", where its bound on the regret is least, or
        "tracking", where the noise and the lag of the estimate are, which plays better.
        """
        cls._check_problem(problem)
        if objective is not None and not sharp:
            raise ValueError(
                "objective chooses among what the sharper theorem allows: pass sharp=True"
            )
        theorem: dict[str, Any] = {"step": theory.eta(problem, sharp=sharp), "sharp": sharp}
        if "bonus" not in overrides:
            theorem |= {"delta": 0.01, "scale": 1.0}
        if sharp:
            theorem |= cls._tuned(problem, objective or "bound", overrides)
        else:
            theorem["regularization"] = theory.lam(problem)
            if not {"discount", "half_life"} & set(overrides):
                theorem["discount"] = theory.discount(problem)
        return cls(problem=problem, **(theorem | overrides))

    @staticmethod
    def _tuned(problem: Problem, objective: str, given: dict[str, Any]) -> dict[str, Any]:
        """lambda and gamma by this objective, where they are not given."""
        half_life, gamma = given.get("half_life"), given.get("discount")
        if half_life is not None and gamma is None:
            gamma = 2.0 ** (-1.0 / half_life)
        if gamma is not None and given.get("regularization") is not None:
            return {}
        known = {"lam": given.get("regularization"), "gamma": gamma}
        found = theory.tuned(problem, objective, delta=given.get("delta", 0.01), **known)
        return {"regularization": found.lam} | ({} if half_life else {"discount": found.gamma})

    @property
    def name(self) -> str:
        return "DOMD-GLB"

    def _radius(self, eta: float, lam: float) -> Radius:
        if self.bonus is not None:
            return Radius(self.bonus**2, 0.0, 0.0, 0.0, 1.0)
        assert self.discount is not None
        assert self.delta is not None
        make = theory.sharp_radius if self.sharp else theory.domd_radius
        return make(self.problem, gamma=self.discount, lam=lam, eta=eta, delta=self.delta)

    @cached_property
    def recipe(self) -> Floats:
        """Contexts of norm L are served by lambda L^2: the same as x/L, theta L and lambda."""
        problem, lam, link = self.problem, self.regularization, self.problem.family.link
        assert self.discount is not None
        radius = self._radius(self.step, lam)
        numbers = (
            problem.dim,
            problem.limit,
            code_of(problem.family),
            link.trials,
            link.low,
            link.high,
            link.whole,
            problem.family.g * problem.family.learns_g,
        )
        letters = problem.ball, self.discount, self._lam, self.step
        scale = 1.0 if self.scale is None else self.scale
        return np.array([*numbers, *letters, scale, 0.0, 0.0, *radius[:4]], dtype=float)

    @property
    def _lam(self) -> float:
        return self.regularization * self.problem.context_norm**2

    @property
    def fields(self) -> Fields:
        return domd_fields(self.problem.dim)

    @property
    def fresh(self) -> Floats:
        """theta_1 = 0 and H_1 = lambda I."""
        d, lam, g = self.problem.dim, self._lam, self.problem.family.g
        numbers = [0.0, g, BASIS_AT_FIRST, lam]
        return self._with_names(np.concatenate([numbers, np.zeros(d), (lam * np.eye(d)).ravel()]))

    @property
    def noise_size(self) -> int:
        return self.problem.dim if self.exploration == "thompson" else 0

    def width(self, memory: Memory) -> Floats:
        """scale * beta_t of the coming round, (n,)."""
        radius, scale = self._radius(self.step, self.regularization), self.scale
        return np.array(
            [(1.0 if scale is None else scale) * beta(radius, t + 1.0) for t in memory.t]
        )

    def scores(self, memory: Memory, arms: Floats) -> Scores:
        arms, family = self._arms(memory, arms), self.problem.family
        return index_scores(family, True, memory.theta, memory.H, self.width(memory), arms)

    def narrow(self, rows: Floats) -> Any:
        """In float32 `rows.keep` adds at most 2^-24 (sqrt(d) + 2) ||H|| to H in a round, and
        forgetting piles that up 1/(1 - gamma) times: safe while it is below a tenth of lambda."""
        problem, lam = self.problem, self._lam
        assert self.discount is not None
        rounds = 1.0 / max(1.0 - self.discount, 1e-100)
        largest = lam + self._most * rounds
        added = 2.0**-24 * (math.sqrt(problem.dim) + 2.0) * largest * rounds
        if added > 0.1 * lam:
            raise ValueError(
                f"in float32 rounding could add {added / lam:.2g} times lambda to the curvature "
                f"of {self.name}, more than a tenth: use float64, or forget faster (discount, "
                "half_life), or raise regularization"
            )
        small = rows.astype(np.float32)
        return np.where(small < rows, np.nextafter(small, np.float32(np.inf)), small)

    @property
    def _most(self) -> float:
        """What one reward can add to the curvature."""
        family, L = self.problem.family, self.problem.context_norm
        return family.k_mu(self.problem.ball * L) / family.least_g * L**2

    def sane(self, memory: Memory) -> bool:
        if not super().sane(memory):
            return False
        inside = np.linalg.norm(memory.theta, axis=1) <= self.problem.ball * (1.0 + 1e-6)
        symmetric = np.array_equal(memory.H, np.swapaxes(memory.H, 1, 2))
        least = np.linalg.eigvalsh(memory.H)[:, 0]
        rounding = 1e-14 * len(memory.H[0]) * np.trace(memory.H, axis1=1, axis2=2)
        floor = (least >= memory.floor * (1.0 - 1e-6) - rounding) & (
            memory.floor >= self._lam * (1.0 - 1e-6)
        )
        tests = inside, floor, dispersed(self.problem, memory)
        return bool(symmetric and all(test.all() for test in tests))

    def deviation(self, memory: Memory, arms: Floats) -> Floats:
        """||x||_{H^-1}, widened by sqrt(eta/2): a step of eta > 2 overreacts to every reward."""
        arms, family = self._arms(memory, arms), self.problem.family
        width = np.full(len(memory.t), math.sqrt(max(1.0, self.step / 2.0)))
        return index_scores(family, True, memory.theta, memory.H, width, arms).bonus


def dispersed(problem: Problem, memory: Any) -> Any:
    """Whether each g is one that a learner can have."""
    family = problem.family
    most, least = family.g * (1.0 + 1e-6), family.least_g * (1.0 - 1e-6)
    return (least <= memory.g) & (memory.g <= most) & (memory.basis > 0.0)


@dataclass(frozen=True, kw_only=True)
class GLBOMD(DOMD):
    """GLB-OMD (Zhang, Xu, Zhao, Sugiyama 2025): the same update with gamma = 1, for a world
    that stands still, with the lambda and the radius of its own paper."""

    discount: float | None = 1.0

    def __post_init__(self, half_life: float | None) -> None:
        super().__post_init__(half_life)
        if self.discount != 1.0:
            raise ValueError(f"GLB-OMD never forgets (discount 1), got {self.discount!r}: use DOMD")

    @classmethod
    def from_theory(cls, problem: Problem, *, sharp: bool = False, **overrides: Any) -> Any:
        """lambda = max{14 d eta R^2, 6 eta R S k / g}, its radius, and nothing about the drift."""
        cls._check_problem(problem)
        lam = theory.glb_omd_lam(problem, sharp=sharp)
        return super().from_theory(
            problem, sharp=sharp, **({"discount": 1.0, "regularization": lam} | overrides)
        )

    @property
    def name(self) -> str:
        return "GLB-OMD"

    def _radius(self, eta: float, lam: float) -> Radius:
        if self.bonus is not None:
            return super()._radius(eta, lam)
        assert self.delta is not None
        return theory.glb_omd_radius(self.problem, lam=lam, eta=eta, delta=self.delta)


@dataclass(frozen=True, kw_only=True)
class Greedy(DOMD):
    """DOMD's estimate without a bonus: exploitation only."""

    default_bonus: ClassVar[float] = 0.0

    def __post_init__(self, half_life: float | None) -> None:
        super().__post_init__(half_life)
        if self.bonus != 0.0:
            raise ValueError("Greedy adds no bonus: use DOMD(bonus=...) or DOMD(delta=, scale=)")

    @classmethod
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """lambda, eta and gamma of the theorem, and no bonus."""
        return super().from_theory(problem, **({"bonus": 0.0} | overrides))

    @property
    def name(self) -> str:
        return "Greedy"
