"""AutoDOMD: a grid of DOMD learners that finds its own memory; nothing to tune."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.compiled import direct
from driftbandit.handles import AVAILABLE
from driftbandit.policies import mixture
from driftbandit.policies.auto_cell import single_auto
from driftbandit.policies.domd import DOMD
from driftbandit.policies.mirror import Memory, work_for
from driftbandit.policies.mixture import AutoMemory, AutoParams
from driftbandit.policies.policy import Floats, Ints, Policy, Scores, Single

DISCOUNTS = (0.9, 0.95, 0.98, 0.987, 0.993, 0.998, 1.0)
LONG = 0.998  # discounts that suit a stationary world,
MOSTLY = 0.4  # and their weight from which on it looks like one; a little less than the prior's
UNBOUNDED = 10.0  # |x'theta| stays below this where no radius is known
POOLS = ("mixture", "leader")

_learn_all, _age_all = direct(mixture.learn_all), direct(mixture.age_all)


class Explanation(NamedTuple):
    """What an AutoDOMD makes of its world."""

    memory: float  # rounds that the estimate rests on, in effect
    usual: float  # the same, averaged over the last few hundred rounds
    state: str  # "learning" (too early to say), "stationary", "drifting" or "just changed"
    discounts: dict[float, float]  # weight of each discount
    regularizations: dict[float, float]  # weight of each regularization


@dataclass(frozen=True, kw_only=True)
class AutoDOMD(Policy):
    """DOMD without knobs: needs `dim` and `family`, uses `radius`, never asks for the drift.

    K learners, one per pair of `discounts` and `regularizations`, all learn from every reward by
    Algorithm 1 with eta = 1. Their weights follow their one-step-ahead predictions (exponential
    weights with a fixed `share`), those that a change has left behind go on from the leader's
    state, and decisions use the mixture's mean plus `bonus` of its standard deviations. Cost and
    memory of a round are constant: about K times DOMD's update and once its choice.

    | option | |
    |---|---|
    | `discounts`, `regularizations` | the grid; regularizations for contexts scaled to norm 1 |
    | `share` | part of all weight that goes back to the prior in every round |
    | `renewal` | nats behind the leader at which a learner with a longer memory is renewed |
    | `rescaling` | whether learners answer for the order of arms rather than for sizes |
    | `bonus` | width of the bonus in standard deviations of the mixture |
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

    discounts: tuple[float, ...] = DISCOUNTS
    regularizations: tuple[float, ...] | None = None
    share: float = 1e-4
    renewal: float = 8.0
    bonus: float = 1.75
    rescaling: bool = True
    pool: str = "mixture"
    exploration: str = "ucb"

    def __post_init__(self) -> None:
        super().__post_init__()
        lams = self.regularizations
        if lams is None and self.problem.radius is None:
            lams = (0.1, 0.5, 2.0, 8.0, 32.0)
        elif lams is None:  # what is plausible for theta in a ball of radius S
            lams = tuple(k / self.problem.S**2 for k in (4.0, 8.0, 32.0))
        self._set(
            discounts=_grid("discounts", self.discounts, "gammas", 1.0),
            regularizations=_grid("regularizations", lams, "lambdas", validate.LARGEST),
            share=validate.nonnegative("share", self.share, "part of the weight"),
            renewal=validate.positive("renewal", self.renewal, "nats behind the leader"),
            bonus=validate.nonnegative("bonus", self.bonus, "in standard deviations"),
        )
        if self.share >= 1.0:
            raise ValueError(f"share must be below 1, such as 0.0001, got {self.share}")
        if not isinstance(self.rescaling, bool):
            raise ValueError(f"rescaling must be True or False, got {self.rescaling!r}")
        if self.pool not in POOLS:
            raise ValueError(f"pool must be one of {POOLS}, got {self.pool!r}")
        self._judge  # noqa: B018  (checks `exploration`)

    @property
    def name(self) -> str:
        return "AutoDOMD"

    @cached_property
    def _judge(self) -> DOMD:
        """What decides, once theta and H are given; no covariance is larger than its 1/lambda."""
        assert self.regularizations is not None
        reach = self._params.S * self.problem.context_norm
        return DOMD(
            problem=self.problem,
            regularization=1.0 / (1.0 / self.regularizations[0] + reach**2),
            bonus=self.bonus,
            exploration=self.exploration,
        )

    @cached_property
    def _params(self) -> AutoParams:
        """Longer memories weigh more at first: drift gives them away sooner than rest does."""
        assert self.regularizations is not None
        S = self.problem.radius
        gamma, lam = (a.ravel() for a in np.meshgrid(self.discounts, self.regularizations))
        prior = (1.001 - gamma) ** -0.3
        return AutoParams(
            link=self.problem.family.link,
            S=UNBOUNDED / self.problem.context_norm if S is None else S,
            gamma=gamma,
            lam=lam * self.problem.context_norm**2,
            prior=prior / prior.sum(),
            share=self.share,
            lapse=self.renewal,
            start=max(0.0, self.renewal - 3.0),
            gain_keep=0.998,
            gain_floor=4.0 if self.rescaling else validate.LARGEST,  # stays 1
            mixture=self.pool == "mixture",
        )

    @property
    def noise_size(self) -> int:
        return self._judge.noise_size

    def init(self, n: int = 1) -> AutoMemory:
        """K learners at theta = 0 and H = lambda I, each of n times."""
        p, d, K = self._params, self.problem.dim, self._params.gamma.size
        gains = np.empty((n, K, 2))
        gains[:] = 1.0, p.gain_floor
        memory = AutoMemory(
            theta=np.zeros((n, d)),
            H=np.zeros((n, d, d)),
            thetas=np.zeros((n, K, d)),
            Hs=np.tile(p.lam[:, None, None] * np.eye(d), (n, 1, 1, 1)),
            weights=np.tile(p.prior, (n, 1)),
            gains=gains,
            rounds=np.zeros((n, K)),
            usual=np.zeros(n),
            history=np.zeros((n, mixture.POINTS)),
            t=np.zeros(n, dtype=np.int64),
        )
        return self.forget(memory, 0.0)

    def scores(self, memory: AutoMemory, arms: Floats) -> Scores:
        return self._judge.scores(_pooled(memory), arms)

    def choose(self, memory: AutoMemory, arms: Floats, noise: Floats | None = None) -> Ints:
        return self._judge.choose(_pooled(memory), arms, noise)

    def update(
        self, memory: AutoMemory, x: Floats, r: Floats, noise: Floats | None = None
    ) -> AutoMemory:
        x, r = self._played(memory, x, r)
        _learn_all(self._params, memory, x, r, work_for(self.problem.dim))
        return memory

    def single(self, memory: AutoMemory, limit: float) -> Single | None:
        if not AVAILABLE or self.exploration != "ucb":
            return None
        return single_auto(self._judge._packed, self._params, memory, limit)

    def forget(self, memory: AutoMemory, steps: float) -> AutoMemory:
        _age_all(self._params, memory, float(steps), work_for(self.problem.dim))
        return memory

    def deviation(self, memory: AutoMemory, arms: Floats) -> Floats:
        """sqrt(x'Vx) with the mixture's covariance V."""
        arms = self._arms(memory, arms)
        V = np.linalg.inv(memory.H)
        return np.sqrt(np.einsum("nad,nde,nae->na", arms, V, arms))

    def sane(self, memory: AutoMemory) -> bool:
        if not super().sane(memory):
            return False
        weights = (memory.weights >= 0).all() and np.allclose(memory.weights.sum(axis=1), 1.0)
        inside = np.linalg.norm(memory.thetas, axis=2) <= self._params.S * (1.0 + 1e-9)
        floors = np.linalg.eigvalsh(memory.Hs)[..., 0] >= self._params.lam * (1.0 - 1e-6)
        return bool(weights and inside.all() and floors.all())

    def explain(self, memory: AutoMemory) -> list[Explanation]:
        """What each of the n learners makes of its world."""
        return [self._explain(memory, i) for i in range(len(memory.t))]

    def _explain(self, memory: AutoMemory, i: int) -> Explanation:
        assert self.regularizations is not None
        grid = memory.weights[i].reshape(len(self.regularizations), len(self.discounts))
        now, usual = float(memory.weights[i] @ memory.rounds[i]), math.exp(memory.usual[i])
        by_discount = dict(zip(self.discounts, grid.sum(axis=0).tolist()))
        if memory.t[i] < 50:
            state = "learning"
        elif now < usual / 2.0:
            state = "just changed"
        else:
            long = sum(w for gamma, w in by_discount.items() if gamma >= LONG)
            state = "stationary" if long >= MOSTLY else "drifting"
        lams = dict(zip(self.regularizations, grid.sum(axis=1).tolist()))
        return Explanation(now, usual, state, by_discount, lams)

    def memory_over_time(self, memory: AutoMemory) -> tuple[Ints, list[Floats]]:
        """Rounds and effective memory at them, for each of the n learners (of equal age)."""
        stride = mixture.stride_of(int(memory.t[0]))
        points = int(memory.t[0]) // stride
        return stride * np.arange(1, points + 1), [row[:points] for row in memory.history]


def _pooled(memory: AutoMemory) -> Memory:
    return Memory(memory.theta, memory.H, memory.t)


def _grid(name: str, values: Any, meaning: str, high: float) -> tuple[float, ...]:
    """Different numbers in (0, high], in order."""
    if isinstance(values, (str, bytes)) or not np.iterable(values):
        raise ValueError(f"{name} must be a list of {meaning}, got {validate.show(values)}")
    clean = [validate.interval(name, value, meaning, low=0.0, high=high) for value in values]
    if not clean or len(set(clean)) < len(clean):
        raise ValueError(f"{name} must be different {meaning}, at least one, got {clean}")
    return tuple(sorted(clean))
