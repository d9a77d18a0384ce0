"""Trained policies: learners that are trained by a log, and asked before they are told."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.bandit import Bandit
from driftbandit.estimators.increments import LoggedArms
from driftbandit.evidence.log import Examples
from driftbandit.evidence.reading.chunk import Budgets, Chunk, Floats
from driftbandit.loop import time_discount
from driftbandit.loop.deciding import pricing
from driftbandit.loop.exploration import BudgetTerms, Floor, Rule
from driftbandit.loop.learning.learner import digest
from driftbandit.policies.base import Policy
from driftbandit.policies.rows import RowPolicy
from driftbandit.problem import Problem


class TrainedPolicy:
    """A policy's learner, and the rule by which it decides.

    A reward trains `wait` seconds after its decision, as it did when the log was written; with
    wait = 0 it trains before the next row. With a half-life, memory ages in time.
    """

    absent = 0

    def __init__(
        self,
        policy: Any,
        problem: Problem,
        *,
        rule: Rule | None = None,
        half_life: Any = None,
        wait: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.policy = made(policy, problem, half_life)
        self.rule, self.timed = Floor() if rule is None else rule, half_life is not None
        self.wait, self.seed = wait, seed
        self.bandit = _bandit(self.policy)
        self.rows, self._last = 0, -math.inf
        self._due: deque[tuple[Floats, float, float]] = deque()
        self.z = np.empty(0)  # x'theta of all arms of the latest chunk, before its rewards

    @property
    def predicts(self) -> bool:
        """Whether it has an estimate to predict rewards from."""
        return hasattr(self.bandit, "theta")

    def play(self, examples: Examples, arms: LoggedArms) -> Floats:
        """Decide on every row, then learn from it."""
        chunk, X = examples.chunk, examples.X
        pi, self.z = np.zeros(len(X)), np.zeros(len(X))
        start, end = chunk.start.tolist(), (chunk.start + chunk.sizes).tolist()
        chosen, at, r = arms.chosen.tolist(), chunk.at.tolist(), examples.r.tolist()
        greedy = self.rule == Floor()
        for k, (first, last) in enumerate(zip(start, end)):
            self._catch_up(at[k])
            menu = X[first:last]
            if self.predicts:
                np.dot(self.bandit.placed(menu), self.bandit.theta, out=self.z[first:last])
            if greedy and not self.policy.noise_size and not chunk.spend[k]:
                pi[first + self.bandit.choose(menu)] = 1.0
            else:
                pi[first:last] = self.rule.probabilities(
                    self.bandit, menu, self._words(chunk, k), terms_of(chunk.spend[k])
                )
            self._due.append((X[chosen[k]], r[k], at[k]))
        return pi

    def train(self, examples: Examples) -> None:
        """Learn from every row without being asked."""
        chunk = examples.chunk
        for row in zip(
            examples.X[chunk.start + chunk.action], examples.r.tolist(), chunk.at.tolist()
        ):
            self._learn(*row)

    def _words(self, chunk: Chunk, k: int) -> tuple[int | str, ...]:
        id = chunk.id[k]
        return self.seed, str(int(chunk.number[k])) if id is None else id, self.policy.name

    def _catch_up(self, now: float) -> None:
        """Learn what is known by now."""
        while self._due and not self._due[0][2] + self.wait > (now if self.wait else math.inf):
            self._learn(*self._due.popleft())

    def _learn(self, x: Floats, r: float, at: float) -> None:
        steps = 1.0
        if self.timed:
            steps = time_discount.steps(at - self._last) if self._last > -math.inf else 0.0
            self._last = at
        self.bandit.update(x, r, steps=steps)
        self.rows += 1

    @property
    def digest(self) -> str | None:
        """A fingerprint of its numbers, as `Loop.digest`; None for policies that are no row."""
        if not isinstance(self.policy, RowPolicy):
            return None
        rows = self.policy.rows(self.bandit._memory)
        return digest(rows[0].astype("<f8").tobytes())


def terms_of(budgets: Budgets) -> BudgetTerms | None:
    """Return what budgets asked of a logged decision: a candidate decides at the same price."""
    return pricing.terms([each.logged() for each in budgets.values()]) if budgets else None


def made(policy: Any, problem: Problem, half_life: Any) -> Policy:
    """A policy for a problem, from a class or a recipe that fits."""
    if isinstance(policy, type) and issubclass(policy, Policy):
        policy = _of_class(policy, problem)
    if not isinstance(policy, Policy):
        raise ValueError(f"policy must be one such as AutoDOMD, got {validate.show(policy)}")
    ours = policy.problem
    if (ours.dim, ours.family) != (problem.dim, problem.family):
        raise ValueError(
            f"{policy.name} was made for {ours.dim} coordinates and {ours.family!r}, the log has "
            f"{problem.dim} and {problem.family!r}: pass the class, or use problem=log.problem"
        )
    return policy if half_life is None else time_discount.timed(policy, half_life)


def _of_class(kind: type[Policy], problem: Problem) -> Policy:
    try:
        return kind(problem=problem)
    except TypeError as error:  # options without a default
        raise ValueError(
            f"{kind.__name__} cannot be made from the problem alone ({error}): make it with "
            "problem=log.problem"
        ) from None


def _bandit(policy: Policy) -> Bandit:
    if isinstance(policy, RowPolicy):
        return Bandit.from_row(policy, policy.fresh.copy())
    return Bandit(policy)
