"""How a key's learner and the population's make one learner, with which a decision is made.

`Pooled` is the rule of new loops, `Former` that of ledgers of version 0.2. A loop has one of them
for life: which one follows from its declaration.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.core.layout import FLOOR
from driftbandit.features import Features
from driftbandit.loop import time_discount
from driftbandit.loop.config import AUTO
from driftbandit.loop.state.definition import Version
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.base import Floats
from driftbandit.policies.domd import DOMD
from driftbandit.policies.growth import grown_policy
from driftbandit.policies.rows import RowPolicy
from driftbandit.reward import Reward

TRUST = 30.0  # rewards of which `basis` tells at most
FORMER_WEIGHT = 30.0  # rewards that the population was worth in version 0.2


class Population(NamedTuple):
    """What a key can know of all others: their learner, the variance of theta between keys, if it
    is learnt, and the steps by which the learner ages before it is asked."""

    policy: RowPolicy
    row: Floats
    variance: float | None = None
    steps: float = 0.0

    @property
    def memory(self) -> Any:
        """What the learner remembers, aged."""
        if self.steps <= 0.0:
            return self.policy.view(self.row[None])
        row = self.row.copy()
        Bandit.from_row(self.policy, row).forget(self.steps)
        return self.policy.view(row[None])


class Pooled:
    """A key's theta is the population's of now plus a deviation of variance tau^2.

    The row of a key is a learner that knows nothing of the others: from its prior N(0, I/lambda),
    its own rewards have made N(theta, H^-1). A decision puts the population's prior in the place of
    that prior. With theta_p and H_p of the population,

        Q = (H_p^-1 + tau^2 I)^-1,    H' = Q + H - lambda I,    H' theta' = Q theta_p + H theta.

    If keys are alike, tau = 0 and a key knows what the population knows; if they differ very much,
    Q vanishes and it knows what its own rewards say. `weight` rewards instead of a variance give
    Q = s H_p + (1 - s) lambda I, with s = weight over the population's rewards, at most 1.
    """

    def __init__(self, weight: float | str) -> None:
        self.weight = weight
        self._latest: tuple[Version, RowPolicy] | None = None

    @property
    def learns_spread(self) -> bool:
        return self.weight == AUTO

    def population_policy(self, version: Version, reward: Reward) -> RowPolicy:
        """Return the policy of the population: an AutoDOMD, which finds its memory, because rounds
        of all keys are far more than those of one."""
        if self._latest is None or self._latest[0] is not version:
            self._latest = version, _finding(version.features, reward, version.timed)
        return self._latest[1]

    def newborn(self, policy: DOMD, population: Population) -> Floats:
        """Return the row with which a key begins: nothing but the population's dispersion."""
        row = policy.fresh.copy()
        new, old = policy.view(row[None]), population.policy.view(population.row[None])
        new.g[:] = old.g
        new.basis[:] = np.maximum(new.basis, min(1.0, TRUST / _rewards(old)) * old.basis)
        return row

    def learn(self, own: Bandit, row: Floats, x: Floats, r: float, steps: float) -> None:
        self.age(own, row, steps)
        own.update(x, r, steps=0.0)

    def age(self, own: Bandit, row: Floats, steps: float) -> None:
        """Forget rewards of a key, but not its prior: H theta, what rewards say, ages with H."""
        policy: Any = own.policy
        if policy.discount == 1.0 or steps == 0.0:
            return
        memory = policy.view(row[None])
        says = policy.discount**steps * (memory.H[0] @ memory.theta[0])
        own.forget(steps)
        memory.theta[0] = np.linalg.solve(memory.H[0], says)

    def decider(
        self, policy: DOMD, own: Floats | None, steps: float, population: Population
    ) -> Floats:
        """Return the row that decides for a key, whose own row ages by `steps` before; `own` is
        None if it has no rewards yet."""
        shared, lam = population.memory, float(policy.fresh[FLOOR])
        Q, floor = self._prior(lam, shared, population.variance)
        row = self.newborn(policy, population) if own is None else own.copy()
        memory = policy.view(row[None])
        if own is None:
            memory.theta[:], memory.H[0] = shared.theta, Q
        else:
            self.age(Bandit.from_row(policy, row), row, steps)
            says = Q @ shared.theta[0] + memory.H[0] @ memory.theta[0]
            memory.H[0] += Q - lam * np.eye(len(Q))
            memory.theta[0] = np.linalg.solve(memory.H[0], says)
        memory.floor[:] = floor
        return row

    def _prior(self, lam: float, memory: Any, variance: float | None) -> tuple[Floats, float]:
        """Return Q, and a number that none of its eigenvalues is below."""
        H, floor = memory.H[0], float(memory.floor[0])
        eye = np.eye(len(H))
        if variance is None:
            s = min(1.0, float(self.weight) / _rewards(memory))
            return s * H + (1.0 - s) * lam * eye, s * floor + (1.0 - s) * lam
        Q = np.linalg.solve(eye + variance * H, H)
        return 0.5 * (Q + Q.T), floor / (1.0 + variance * floor)


class Former:
    """A key begins with the population's theta of the moment of its first reward, and with its
    curvature as far as it is worth 30 rewards. Then it goes its own way."""

    learns_spread = False

    def population_policy(self, version: Version, reward: Reward) -> RowPolicy:
        return version.policy

    def newborn(self, policy: DOMD, population: Population) -> Floats:
        """Return the population's theta, and its curvature above lambda times s, so that it weighs
        no more than 30 rewards."""
        old, new = policy.view(population.row[None]), policy.init(1)
        t, gamma, lam = float(old.t[0]), float(policy.discount or 1.0), float(new.floor[0])
        rounds = t if gamma == 1.0 else (1.0 - gamma**t) / (1.0 - gamma)
        s = min(1.0, FORMER_WEIGHT / max(rounds, 1.0))
        new.theta[:], new.g[:] = old.theta, old.g
        new.basis[:] = np.maximum(new.basis, s * old.basis)
        new.H[:] += s * (old.H - lam * np.eye(policy.problem.dim))
        return np.array(policy.rows(new)[0])

    def learn(self, own: Bandit, row: Floats, x: Floats, r: float, steps: float) -> None:
        own.update(x, r, steps=steps)

    def decider(
        self, policy: DOMD, own: Floats | None, steps: float, population: Population
    ) -> Floats:
        row = self.newborn(policy, population) if own is None else own.copy()
        if steps > 0.0:
            Bandit.from_row(policy, row).forget(steps)
        return row


def rule_of(population: float | str | None) -> Pooled | Former:
    """Return the rule of a declared weight of the population; version 0.2 declared none."""
    return Former() if population is None else Pooled(population)


def _finding(features: Features, reward: Reward, timed: bool) -> RowPolicy:
    """Return AutoDOMD for these features, grown as they have grown."""
    problem = features.problem(reward)
    if features.base is not None:
        grown: RowPolicy = grown_policy(_finding(features.base, reward, timed), problem)
        return grown
    made = AutoDOMD(problem=problem)
    return cast(RowPolicy, time_discount.timed(made, "auto")) if timed else made


def _rewards(memory: Any) -> float:
    """Return the rewards that AutoDOMD's estimate rests on, in effect; 1 at least."""
    return max(1.0, float(memory.weights[0].sum(axis=0) @ memory.rounds[0]))
