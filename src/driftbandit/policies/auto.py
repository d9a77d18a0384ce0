"""AutoDOMD: a grid of DOMD learners that finds its own memory; nothing to tune."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.core.auto import LEVEL_FLOOR, TOO_LITTLE
from driftbandit.core.domd import LONG_MEMORY
from driftbandit.core.layout import POINTS, RARE, WIDENING, AutoMemory, Fields, auto_fields, packed
from driftbandit.html_table import table
from driftbandit.policies.base import Floats, Ints, Scores
from driftbandit.policies.domd import BASIS_AT_FIRST, DOMD, dispersed
from driftbandit.policies.index import index_scores
from driftbandit.policies.rows import AutoRows, RowPolicy
from driftbandit.problem import Problem

DISCOUNTS = (0.9, 0.95, 0.98, 0.987, 0.993, 0.998, 1.0)
LIVES = (2e3, 8e3, 3.2e4, 1.28e5, 5.12e5)  # memories of a long life, in rounds
ALL_PAIRS = 1e3  # up to this memory a discount is paired with every regularization
FORGETFUL = 0.9  # part of lambda that learners have who forget: theta stays, the world may not
FAST = 0.9  # pace of the level that every learner is judged with
TAUGHT = 0.003  # prior weight of a learner that is taught with its level
SURE = math.log(10.0)  # nats for drift, which a world at rest gives once in 10 times at most
POOLS = ("mixture", "leader")


class Explanation(NamedTuple):
    """What an AutoDOMD makes of its world."""

    memory: float  # rounds that the estimate rests on, in effect
    usual: float  # the same, averaged over the last few hundred rounds
    state: str  # "learning" (too early to say), "stationary", "drifting" or "just changed"
    discounts: dict[float, float]  # weight of each discount
    regularizations: dict[float, float]  # weight of each regularization
    intercept_shift: float  # added to every x'theta; far from 0 for long: add an intercept

    def _repr_html_(self) -> str:
        """Return the findings as a table."""
        rows: list[tuple[str, object]] = [("state", self.state), ("memory, rounds", self.memory)]
        rows += [("usual memory, rounds", self.usual), ("intercept shift", self.intercept_shift)]
        rows += [(f"weight of discount {one:g}", w) for one, w in self.discounts.items()]
        rows += [(f"weight of regularization {x:g}", w) for x, w in self.regularizations.items()]
        return table("AutoDOMD", ("", "value"), rows)


@dataclass(frozen=True, kw_only=True)
class AutoDOMD(RowPolicy):
    """DOMD without knobs: needs `dim` and `family`, uses `radius`, never asks for the drift.

    K learners, one for each pair of `discounts` and `regularizations` and one for each of `paces`,
    all learn from every reward by Algorithm 1 with eta = 1. Each predicts every reward beforehand,
    and its weight follows how well it did (exponential weights with a fixed `share`). Learners that
    a change has left behind go on from the leader's state. Decisions use the mixture's mean plus
    `bonus` of its standard deviations. Cost and memory of a round are constant: about K times
    DOMD's update and once its choice.

    | option | |
    |---|---|
    | `discounts`, `regularizations` | the grid; regularizations for contexts scaled to norm 1 |
    | `share` | part of all weight that goes back to the prior in every round |
    | `levels` | part of a learner's weight that is judged with a level that moves (docs/auto.md) |
    | `paces` | discounts of levels: a learner each that never forgets and is taught with a level |
    | `reach` | without a radius: bound on x'theta of short memories, a tenth of that of long ones |
    | `renewal` | nats behind the leader at which a learner with a longer memory is renewed |
    | `reverts` | whether a renewed learner forgets what the leader has forgotten |
    | `rescaling` | whether learners answer for the order of arms rather than for sizes |
    | `bonus` | width of the bonus in standard deviations of the mixture, for a short memory |
    | `widening` | times log(1 + effective memory / 10,000), added to the square of it |
    | `rare` | power of mu'(z)/mu'(0) on the bonus, where even the best z = x'theta is below 0 |
    | `pool` | "mixture", or "leader": the learner with the largest weight alone decides |
    | `exploration` | "ucb", or "thompson": sample theta instead of adding a bonus |

    The defaults were chosen by measurement on seeds other than those they are judged on
    (docs/auto.md). There is no regret theorem; docs/theory.md says what is known.

    >>> from driftbandit import Bandit, Problem
    >>> bandit = Bandit(AutoDOMD(problem=Problem(dim=2)))
    >>> for _ in range(100):
    ...     bandit.update([1.0, 0.0], 1)
    >>> bandit.explain().state
    'stationary'
    """

    discounts: tuple[float, ...] | None = None
    regularizations: tuple[float, ...] | None = None
    share: float = 1e-4
    levels: float = 1e-3
    paces: tuple[float, ...] = (0.9, 0.97, 0.99)
    reach: float = 10.0
    renewal: float = 8.0
    bonus: float = 1.75
    widening: float = 1.4
    rare: float = 0.75
    rescaling: bool = True
    reverts: bool = True
    pool: str = "mixture"
    exploration: str = "ucb"

    memory_type: ClassVar[type[Any]] = AutoRows
    absent: ClassVar[Mapping[str, Any]] = {"reverts": False, "widening": 0.0}  # as in 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        lams, gammas = self.regularizations, self.discounts
        if gammas is None:
            gammas = _standard(self.problem)
        if lams is None and self.problem.radius is None:
            lams = (0.1, 0.5, 2.0, 8.0, 32.0)
        elif lams is None:  # what is plausible for theta in a ball of radius S
            lams = tuple(k / self.problem.S**2 for k in (4.0, 8.0, 32.0))
        self._set(
            discounts=_clean("discounts", gammas, "gammas", 1.0),
            regularizations=_clean("regularizations", lams, "lambdas", validate.LARGEST),
            paces=_clean("paces", self.paces, "discounts of levels", 1.0, least=0),
            share=validate.nonnegative("share", self.share, "part of the weight"),
            levels=validate.nonnegative("levels", self.levels, "part of the weight"),
            reach=validate.positive("reach", self.reach, "bound on |x'theta|"),
            renewal=validate.positive("renewal", self.renewal, "nats behind the leader"),
            bonus=validate.nonnegative("bonus", self.bonus, "in standard deviations"),
            widening=validate.nonnegative("widening", self.widening, "growth of the bonus"),
            rare=validate.nonnegative("rare", self.rare, "power of mu'(z)/mu'(0) on the bonus"),
        )
        for name in ("share", "levels"):
            if getattr(self, name) >= 1.0:
                raise ValueError(
                    f"{name} must be below 1, such as 0.001, got {getattr(self, name)}"
                )
        if len(self.paces) * TAUGHT >= 1.0:
            raise ValueError(
                f"paces must be {int(1.0 / TAUGHT)} at most, because each takes a part of the "
                f"weight, got {len(self.paces)}"
            )
        for name in ("rescaling", "reverts"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.pool not in POOLS:
            raise ValueError(f"pool must be one of {POOLS}, got {self.pool!r}")
        self._judge  # noqa: B018  (checks `exploration`)

    @property
    def name(self) -> str:
        return "AutoDOMD"

    @cached_property
    def _judge(self) -> DOMD:
        """What decides, once theta and H are given."""
        assert self.regularizations is not None
        return DOMD(
            problem=self.problem,
            regularization=self.regularizations[0],
            bonus=self.bonus,
            exploration=self.exploration,
        )

    @cached_property
    def _pairs(self) -> tuple[Floats, Floats]:
        """Discount and regularization of every learner: all pairs, but the longest memories have
        the middle regularization only. Which one hardly matters once they differ from gamma = 1.
        So do those that are taught with their level, which never forget anything else."""
        discounts, lams = self.discounts, self.regularizations
        assert discounts is not None
        assert lams is not None
        long = [gamma for gamma in discounts if _is_long(gamma)]
        pairs = [(gamma, lam) for lam in lams for gamma in discounts if gamma not in long]
        pairs += [(gamma, lams[len(lams) // 2]) for gamma in long + [1.0] * len(self.paces)]
        gamma, lam = np.array(pairs).T
        return gamma, lam

    @cached_property
    def _grid(self) -> tuple[Floats, Floats]:
        """gamma and lambda of every learner; lambda L^2 serves contexts of norm L.

        Those who forget have less of it, so that they doubt more what they have not seen for long.
        """
        gamma, lam = self._pairs[0], self._pairs[1] * self.problem.context_norm**2
        return gamma, np.where(gamma < 1.0, FORGETFUL * lam, lam)

    @cached_property
    def _taught(self) -> Floats:
        """1 for learners that are taught with their level, 0 for all others."""
        return np.asarray(np.arange(-self._pairs[0].size, 0) >= -len(self.paces), dtype=float)

    @cached_property
    def prior(self) -> Floats:
        """Weights of the first track and of the second, (2, K). Longer memories weigh more at
        first: drift gives them away sooner than rest does.

        The longest share what gamma = 1 has at their regularization: they begin as its copies.
        """
        gamma, lam = self._pairs
        prior = np.where(self._taught, 0.0, (1.001 - gamma) ** -0.3)
        long = np.array([_is_long(g) for g in gamma])
        alike = long | (gamma == 1.0) & (lam == lam[-1]) & (self._taught == 0.0)
        if long.any():
            prior[alike] = 0.001**-0.3 / alike.sum()
        prior *= (1.0 - TAUGHT * self._taught.sum()) / prior.sum()
        with_level = self.levels * prior + TAUGHT * self._taught
        return np.stack([(1.0 - self.levels) * prior, with_level])

    @property
    def _gain_floor(self) -> float:
        return 4.0 if self.rescaling else validate.LARGEST  # so stiff that gains stay 1

    @cached_property
    def recipe(self) -> Floats:
        (gamma, lam), start = self._grid, max(0.0, self.renewal - 3.0)
        judging = 0.998, self._gain_floor
        judge = self._judge.recipe.copy()
        judge[WIDENING], judge[RARE] = self.widening, self.rare
        rules = self.pool == "mixture", self.reverts
        numbers = gamma.size, self.share, self.renewal, start, *judging, *rules
        paces = np.concatenate([np.full(gamma.size - len(self.paces), FAST), self.paces])
        grid = gamma, lam, self._balls, self.prior.ravel(), paces, self._taught
        return np.concatenate([judge, numbers, *grid])

    @cached_property
    def _balls(self) -> Floats:
        """Radius of the ball that each theta is kept in: the problem's, if it has one.

        Otherwise a long memory may have a large theta. A short one may not: in a streak of equal
        rewards mu' vanishes, H falls to lambda, and nothing else would hold theta back. Nor may
        any where the slope grows with z, as e^z does.
        """
        gamma, radius = self._grid[0], self.problem.radius
        if radius is not None:
            return np.full(gamma.size, radius)
        ball, slope = self.reach / self.problem.context_norm, self.problem.family.dmu
        least = 0.1 if slope(10.0 * self.reach) <= slope(0.0) else 1.0
        return ball / np.clip(100.0 * (1.0 - gamma), least, 1.0)

    @property
    def fields(self) -> Fields:
        assert self.discounts is not None
        assert self.regularizations is not None
        long = sum(map(_is_long, self.discounts))  # counted: a file can promise a huge grid
        learners = (len(self.discounts) - long) * len(self.regularizations) + long + len(self.paces)
        return auto_fields(self.problem.dim, learners)

    @cached_property
    def fresh(self) -> Floats:
        """K learners at theta = 0 and H = lambda I, pooled."""
        d, (_, lam), prior = self.problem.dim, self._grid, self.prior.sum(axis=0)
        w = prior if self.pool == "mixture" else np.arange(lam.size) == np.argmax(prior)
        precision = 1.0 / np.sum(w / lam, where=w >= TOO_LITTLE)
        begin = {
            "g": self.problem.family.g,
            "basis": BASIS_AT_FIRST,
            "floor": precision,
            "H": precision * np.eye(d),
            "weights": self.prior,
            "gains": 1.0,
            "stiffness": self._gain_floor,
            "firmness": LEVEL_FLOOR * self.problem.family.dmu(0.0) / self.problem.family.g,
            "kept": 1.0,
            "Hs": lam[:, None, None] * np.eye(d),
            "Ps": np.eye(d) / lam[:, None, None],
        }
        row = packed(dict.fromkeys(self.fields, 0.0) | begin, self.fields, 1)[0]
        return self._with_names(row)

    @property
    def noise_size(self) -> int:
        return self._judge.noise_size

    def scores(self, memory: AutoMemory, arms: Floats) -> Scores:
        """The index, whose bonus shrinks where rewards are rare: an arm without a click has log
        odds with a long tail downwards, and a deviation of them is no reason to hope."""
        arms, family = self._arms(memory, arms), self.problem.family
        top = np.minimum((arms @ memory.theta[:, :, None]).max(axis=(1, 2)), 0.0)
        growth = self.widening * np.log(1.0 + np.exp(memory.usual) / LONG_MEMORY)
        width = np.sqrt(self.bonus**2 + growth) * (family.dmu(top) / family.dmu(0.0)) ** self.rare
        return index_scores(family, True, memory.theta, memory.H, width, arms)

    def deviation(self, memory: AutoMemory, arms: Floats) -> Floats:
        """sqrt(x'Vx) with the mixture's covariance V."""
        arms = self._arms(memory, arms)
        V = np.linalg.inv(memory.H)
        return np.sqrt(np.einsum("nad,nde,nae->na", arms, V, arms))

    def sane(self, memory: AutoMemory) -> bool:
        if not super().sane(memory):
            return False
        weights = (memory.weights >= 0).all() and np.allclose(memory.weights.sum(axis=(1, 2)), 1.0)
        inside = np.linalg.norm(memory.thetas, axis=2) <= self._balls * (1.0 + 1e-6)
        kept = (memory.kept > 0.0) & (memory.kept <= 1.0)
        firm = (memory.stiffness > 0.0).all() and (memory.firmness > 0.0).all()
        gains = (memory.gains >= 0.0).all()
        rounding = 1e-14 * self.problem.dim * np.trace(memory.Hs, axis1=2, axis2=3)
        least = memory.kept * self._grid[1] * (1.0 - 1e-6) - rounding
        floors = np.linalg.eigvalsh(memory.Hs)[..., 0] >= least
        inverse = np.allclose(memory.Hs @ memory.Ps, np.eye(self.problem.dim), atol=1e-3)
        spread = np.linalg.eigvalsh(memory.H)
        floor = memory.floor * (1.0 - 1e-6) - 1e-14 * self.problem.dim * spread.sum(axis=1)
        positive = (memory.floor > 0.0) & (spread[:, 0] > 0.0) & (spread[:, 0] >= floor)
        counts = (memory.rounds >= 0.0) & (memory.rounds <= validate.MOST)
        scale = dispersed(self.problem, memory) & (np.abs(memory.usual) <= 100.0)
        tests = inside, kept, floors, positive, counts, scale
        return bool(weights and inverse and firm and gains and all(test.all() for test in tests))

    def explain(self, memory: AutoMemory) -> list[Explanation]:
        """What each of the n learners makes of its world."""
        return [self._explain(memory, i) for i in range(len(memory.t))]

    def _explain(self, memory: AutoMemory, i: int) -> Explanation:
        weights, (gamma, lam) = memory.weights[i].sum(axis=0), self._pairs
        now, usual = float(weights @ memory.rounds[i]), math.exp(memory.usual[i])
        by_discount = {g: float(weights[gamma == g].sum()) for g in np.unique(gamma).tolist()}
        if memory.t[i] < 50:
            state = "learning"
        elif now < usual / 2.0:
            state = "just changed"
        else:
            state = "drifting" if memory.drift[i] > SURE else "stationary"
        lams = {v: float(weights[lam == v].sum()) for v in np.unique(lam).tolist()}
        level = float(memory.weights[i, 1] @ memory.levels[i])
        return Explanation(now, usual, state, by_discount, lams, level)

    def memory_over_time(self, memory: AutoMemory) -> tuple[Ints, list[Floats]]:
        """Rounds and effective memory at them, for each of the n learners (of equal age)."""
        t, stride = int(memory.t[0]), 1
        while t > POINTS * stride:
            stride *= 2
        points = t // stride
        return stride * np.arange(1, points + 1), [row[:points] for row in memory.history]


def _standard(problem: Problem) -> tuple[float, ...]:
    """The grid's discounts: a memory of 10 rounds is of no use in 50 dimensions."""
    short = (g for g in DISCOUNTS if _memory(g) >= problem.dim / 3.0)
    return (*short, *(1.0 - 1.0 / n for n in LIVES if n < (problem.horizon or math.inf)))


def _memory(gamma: float) -> float:
    """Rounds that a discount keeps in mind."""
    return math.inf if gamma == 1.0 else 1.0 / (1.0 - gamma)


def _is_long(gamma: float) -> bool:
    """Whether it is one of the longest memories, which have one regularization."""
    return ALL_PAIRS < _memory(gamma) < math.inf


def _clean(name: str, values: Any, meaning: str, high: float, least: int = 1) -> tuple[float, ...]:
    """Different numbers in (0, high], in order."""
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ValueError(f"{name} must be a list of {meaning}, got {validate.show(values)}")
    clean = [validate.interval(name, value, meaning, low=0.0, high=high) for value in values]
    if len(clean) < least or len(set(clean)) < len(clean):
        raise ValueError(f"{name} must be different {meaning}, at least {least}, got {clean}")
    return tuple(sorted(clean))
