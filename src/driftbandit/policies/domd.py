"""DOMD-GLB: discounted online mirror descent for generalized linear bandits (Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from driftbandit import theory, validate
from driftbandit.compiled import direct
from driftbandit.handles import AVAILABLE
from driftbandit.policies.cell import cell_of, single_cell
from driftbandit.policies.index import check_exploration, index_scores, thompson
from driftbandit.policies.mirror import (
    Memory,
    Params,
    age,
    choose_all,
    learn_all,
    pack,
    score_all,
    work_for,
)
from driftbandit.policies.policy import Floats, Ints, Policy, Scores, Single
from driftbandit.problem import Problem
from driftbandit.ranking import size_of_rows
from driftbandit.theory import Radius, beta

_score_all, _learn_all = direct(score_all), direct(learn_all)
_choose_all = direct(choose_all, sized=True)


@dataclass(frozen=True, kw_only=True)
class DOMD(Policy):
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

    The plain constructor is the practical preset: lambda = 1, half-life 200 rounds, one deviation,
    and eta = 1 + S, the theorem's with self-concordance constant 1, which is valid for all
    families here and does not depend on how large a reward may be. `DOMD.from_theory(problem)` has
    the theorem's eta, lambda, gamma and radius, which are proven and far more cautious.

    >>> problem = Problem(dim=5, radius=1.0, horizon=5000, path_length=6.28)
    >>> DOMD(problem=problem, half_life=500).discount == 2 ** (-1 / 500)
    True
    >>> round(DOMD.from_theory(problem).regularization, 2)
    68.57
    """

    discount: float | None = None
    regularization: float = 1.0
    step: float | None = None
    bonus: float | None = None
    delta: float | None = None
    scale: float | None = None
    exploration: str = "ucb"
    half_life: InitVar[float | None] = None

    default_bonus: ClassVar[float] = 1.0
    also_takes: ClassVar[tuple[str, ...]] = ("half_life",)

    def __post_init__(self, half_life: float | None) -> None:
        super().__post_init__()
        check_exploration(self.exploration)
        self._set(discount=self._resolve_discount(half_life))
        self._resolve_bonus()
        step = 1.0 + self.problem.S if self.step is None else self.step
        lam = self.regularization
        self._set(
            step=validate.positive("step", step, "eta, the mirror-descent step"),
            regularization=validate.positive(
                "regularization", lam, "lambda, floor of the curvature"
            ),
        )

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

    @classmethod
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """eta, lambda, gamma and beta_t(0.01) of Theorems 1 to 3; keywords replace any of them."""
        cls._check_problem(problem)
        theorem: dict[str, Any] = {
            "regularization": theory.lam(problem),
            "step": theory.eta(problem),
        }
        if "bonus" not in overrides:
            theorem |= {"delta": 0.01, "scale": 1.0}
        if not {"discount", "half_life"} & set(overrides):
            theorem["discount"] = theory.discount(problem)
        return cls(problem=problem, **(theorem | overrides))

    @property
    def name(self) -> str:
        return "DOMD-GLB"

    def _radius(self, eta: float, lam: float) -> Radius:
        if self.bonus is not None:
            return Radius(self.bonus**2, 0.0, 0.0, 0.0, 1.0)
        assert self.discount is not None
        assert self.delta is not None
        return theory.domd_radius(
            self.problem, gamma=self.discount, lam=lam, eta=eta, delta=self.delta
        )

    @cached_property
    def _params(self) -> Params:
        """Contexts of norm L are served by lambda L^2: the same as x/L, theta L and lambda."""
        problem, lam = self.problem, self.regularization
        assert self.discount is not None
        assert self.step is not None
        return Params(
            link=problem.family.link,
            S=problem.ball,
            gamma=self.discount,
            lam=lam * problem.context_norm**2,
            eta=self.step,
            scale=1.0 if self.scale is None else self.scale,
            radius=self._radius(self.step, lam),
        )

    @cached_property
    def _packed(self) -> Floats:
        return pack(self._params)

    @property
    def noise_size(self) -> int:
        return self.problem.dim if self.exploration == "thompson" else 0

    def width(self, memory: Memory) -> Floats:
        """scale * beta_t of the coming round, (n,)."""
        p = self._params
        return np.array([p.scale * beta(p.radius, t + 1.0) for t in memory.t])

    def init(self, n: int = 1) -> Memory:
        """theta_1 = 0 and H_1 = lambda I for n learners."""
        d = self.problem.dim
        H = np.tile(self._params.lam * np.eye(d), (n, 1, 1))
        return Memory(theta=np.zeros((n, d)), H=H, t=np.zeros(n, dtype=np.int64))

    def scores(self, memory: Memory, arms: Floats) -> Scores:
        arms = self._arms(memory, arms)
        mean, bonus = np.empty(arms.shape[:2]), np.empty(arms.shape[:2])
        _score_all(self._packed, memory, arms, mean, bonus)
        return Scores(mean, bonus, mean + bonus)

    def choose(self, memory: Memory, arms: Floats, noise: Floats | None = None) -> Ints:
        arms = self._arms(memory, arms)
        if self.exploration == "thompson":
            return thompson(memory.theta, memory.H, self.width(memory), arms, noise)
        out = np.empty(len(arms), dtype=np.int64)
        d = self.problem.dim
        _choose_all(size_of_rows(d), self._packed, memory, arms, work_for(d), out)
        return out

    def update(self, memory: Memory, x: Floats, r: Floats, noise: Floats | None = None) -> Memory:
        x, r = self._played(memory, x, r)
        _learn_all(self._packed, memory, x, r, work_for(self.problem.dim))
        return memory

    def single(self, memory: Memory, limit: float) -> Single | None:
        if not AVAILABLE or self.exploration != "ucb":
            return None
        return single_cell(cell_of(self._packed, memory, limit))

    def choose_rows(
        self, memory: Memory, rows: Ints, arms: Floats, limit: float, noise: Floats | None = None
    ) -> Ints:
        if self.exploration != "ucb":
            return super().choose_rows(memory, rows, arms, limit, noise)
        from driftbandit.policies import many  # for fleets

        return many.choose(self._packed, memory, rows, arms, limit)

    def update_rows(
        self, memory: Memory, rows: Ints, x: Floats, r: Floats, noise: Floats | None = None
    ) -> None:
        from driftbandit.policies import many

        many.learn(self._packed, memory, rows, x, r)

    def narrow(self, memory: Memory) -> Memory:
        """In float32 `many.keep` adds at most 2^-24 (sqrt(d) + 2) ||H|| to H in a round, and
        forgetting piles that up 1/(1 - gamma) times: safe while it is below a tenth of lambda."""
        p, problem = self._params, self.problem
        rounds = 1.0 / max(1.0 - p.gamma, 1e-100)
        largest = p.lam + problem.k_mu / p.link.g * problem.context_norm**2 * rounds
        added = 2.0**-24 * (math.sqrt(problem.dim) + 2.0) * largest * rounds
        if added > 0.1 * p.lam:
            raise ValueError(
                f"in float32 rounding could add {added / p.lam:.2g} times lambda to the curvature "
                f"of {self.name}, more than a tenth: use float64, or forget faster (discount, "
                "half_life), or raise regularization"
            )
        from driftbandit.policies import many

        return many.narrow(p.S, memory)

    def sane(self, memory: Memory) -> bool:
        if not super().sane(memory):
            return False
        inside = np.linalg.norm(memory.theta, axis=1) <= self._params.S * (1.0 + 1e-9)
        symmetric = np.array_equal(memory.H, np.swapaxes(memory.H, 1, 2))
        floor = np.linalg.eigvalsh(memory.H)[:, 0] >= self._params.lam * (1.0 - 1e-6)
        return bool(inside.all() and symmetric and floor.all())

    def deviation(self, memory: Memory, arms: Floats) -> Floats:
        """||x||_{H^-1}, widened by sqrt(eta/2): a step of eta > 2 overreacts to every reward."""
        arms = self._arms(memory, arms)
        family, step = self.problem.family, self._params.eta
        width = np.full(len(memory.t), math.sqrt(max(1.0, step / 2.0)))
        return index_scores(family, True, memory.theta, memory.H, width, arms).bonus

    def forget(self, memory: Memory, steps: float) -> Memory:
        for H in memory.H:
            age(self._params.gamma**steps, self._params.lam, H)
        return memory


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
    def from_theory(cls, problem: Problem, **overrides: Any) -> Any:
        """lambda = max{14 d eta R^2, 6 eta R S k / g}, its radius, and nothing about the drift."""
        cls._check_problem(problem)
        lam = theory.glb_omd_lam(problem)
        return super().from_theory(
            problem, **({"discount": 1.0, "regularization": lam} | overrides)
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
