"""Exploration: rules that turn a learner into decisions whose probabilities are known exactly.

Randomness comes from a hash of words, such as (the loop's seed, its name, the decision's id, the
policy's name), and never from a clock or a stream: the same words and learner give the same
decision.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from driftbandit import validate
from driftbandit.bandit import Bandit
from driftbandit.features.encoders import stable
from driftbandit.policies.base import Floats
from driftbandit.policies.rows import RowPolicy
from driftbandit.recipe import Recipe

Words = tuple[int | str, ...]
EXPLORED = 0.03  # part of a budget that uniform exploration may spend


def draw(*words: int | str) -> float:
    """A number in [0, 1) that only depends on these words; the last one says what it is for.

    >>> draw(7, "decision 1", "pick") == draw(7, "decision 1", "pick")
    True
    """
    # The text of json.dumps(words), which keeps 1 and "1" apart, in a third of its time.
    text = ", ".join([quoted(word) if isinstance(word, str) else str(word) for word in words])
    return math.ldexp(stable(f"[{text}]") >> 11, -53)


def pick(p: Floats, words: Words) -> int:
    """An arm, k with probability p[k]; never one of probability 0."""
    edges = p.cumsum()
    return int(edges.searchsorted(draw(*words, "pick") * edges[-1], "right"))


class Priced(Protocol):
    """A budget in a decision: what arms cost, the bound on the mean, and the rest of a total."""

    costs: list[float]
    bound: float
    left: float | None


class BudgetTerms(NamedTuple):
    """What budgets ask of a decision: `penalty` (K,) is what an arm's cost takes from its reward, a
    part of the reward's range, infinite if the rest does not pay for it; `optimism` is the part of
    a policy's own exploration bonus that counts."""

    penalty: Floats
    budgets: Sequence[Priced] = ()
    optimism: float = 1.0

    def explored(self, even: float) -> Floats:
        """Return probabilities (K,) with which arms may be explored, `even` at most: all of it
        together spends a small part of each budget, and nothing that the rest of a total does not
        pay for."""
        found = np.full(len(self.penalty), even)
        for one in self.budgets:
            costs, small = np.array(one.costs), EXPLORED * one.bound
            most = small / (len(costs) * np.maximum(costs, small))
            if one.left is not None:
                most[costs > one.left] = 0.0
            found = np.minimum(found, most)
        return found


@dataclass(frozen=True)
class Rule(Recipe):
    """Base of rules: what `weights` says, and a share `uniform` of all decisions among K arms.

    So no probability is below uniform/K, and every logged decision can later be evaluated for any
    other policy. A rule reads the bandit and leaves it as it is.
    """

    uniform: float = 0.0
    former: ClassVar[Mapping[str, str]] = {"share": "uniform"}

    def __post_init__(self) -> None:
        meaning = "part of all decisions to explore with"
        uniform = validate.nonnegative("uniform", self.uniform, meaning)
        if uniform > 1.0:
            raise ValueError(f"uniform must be at most 1, such as 0.02, got {uniform:g}")
        self._set(uniform=uniform)

    def weights(
        self, bandit: Bandit, X: Floats, words: Words, terms: BudgetTerms | None = None
    ) -> Floats:
        """Probabilities of arms X (K, dim) before the uniform share is mixed in. With a budget, the
        penalty of its `terms` is taken from rewards, as parts of their range."""
        raise NotImplementedError

    def probabilities(
        self, bandit: Bandit, X: Floats, words: Words, terms: BudgetTerms | None = None
    ) -> Floats:
        """Exact probabilities of arms X (K, dim): math.fsum of them is 1.0. With a budget, on its
        `terms`."""
        if terms is None:
            p = (1.0 - self.uniform) * self.weights(bandit, X, words) + self.uniform / len(X)
        else:
            p = self.weights(bandit, X, words, terms)
            if self.uniform:
                share = terms.explored(self.uniform / len(X))
                p = (1.0 - share.sum()) * p + share
        return completed(p, int(p.argmax()))

    def explored(self, terms: BudgetTerms | None, n: int) -> Any:
        """Return the uniform part of the probabilities of n arms."""
        even = self.uniform / n
        return np.full(n, even) if terms is None else terms.explored(even)


def completed(p: Floats, k: int) -> Floats:
    """p with p[k] made 1 minus the others, rounded once."""
    p[k] = -1.0
    p[k] = -math.fsum(p.tolist())
    return p


@dataclass(frozen=True)
class Floor(Rule):
    """The policy's own choice, and uniform exploration: p = (1 - uniform) 1[best] + uniform/K.

    >>> from driftbandit import DOMD, Problem
    >>> bandit = Bandit(DOMD(problem=Problem(dim=1)))
    >>> Floor(0.5).probabilities(bandit, np.array([[0.0], [1.0]]), (7, "decision 1", "DOMD"))
    array([0.25, 0.75])
    """

    def weights(
        self, bandit: Bandit, X: Floats, words: Words, terms: BudgetTerms | None = None
    ) -> Floats:
        if bandit.draws:
            raise ValueError(
                f"{bandit.policy.name} draws its arms, so their probabilities are not known: use "
                "exploration='ucb', or exploration=Thompson()"
            )
        p = np.zeros(len(X))
        p[bandit.choose(X) if terms is None else best_value(bandit, X, terms)] = 1.0
        return p


@dataclass(frozen=True)
class Thompson(Rule):
    """Thompson sampling: theta is drawn `draws` times, and the decision from the winners.

    p is the histogram of the winners, so it is exact however few the draws. They come from the
    normal distribution of the estimate with `width` times its standard deviations.
    """

    draws: int = field(default=100, kw_only=True)
    width: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set(
            draws=validate.count("draws", self.draws, "draws of theta for a decision"),
            width=validate.nonnegative("width", self.width, "in standard deviations"),
        )

    def weights(
        self, bandit: Bandit, X: Floats, words: Words, terms: BudgetTerms | None = None
    ) -> Floats:
        if not isinstance(bandit.policy, RowPolicy):
            raise ValueError(f"{bandit.policy.name} has no distribution to draw from: use DOMD")
        bandit.policy.problem.check_contexts(X)
        X = bandit.placed(X)
        rng = np.random.default_rng(stable(json.dumps((*words, "draw"))))
        noise = rng.standard_normal((X.shape[1], self.draws))
        C = np.linalg.cholesky(bandit.curvature)
        drawn = bandit.theta[:, None] + self.width * np.linalg.solve(C.T, noise)  # C C' = H
        values = X @ drawn
        if terms is not None:
            family = bandit.policy.problem.family
            values = family.mu(values) / family.range - terms.penalty[:, None]
        winners = np.argmax(values, axis=0)
        return np.bincount(winners, minlength=len(X)) / self.draws


@dataclass(frozen=True)
class InverseGap(Rule):
    """Inverse-gap weighting (SquareCB, Foster and Rakhlin 2020) on the policy's mean rewards.

    p = 1 / (K + gamma gap) for every arm but the best, whose gap is 0 and which gets the rest. A
    gap is a part of the reward's range, so gamma has no unit. gamma = strength sqrt(1 + rounds).
    """

    strength: float = field(default=10.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        meaning = "larger explores less"
        self._set(strength=validate.nonnegative("strength", self.strength, meaning))

    def weights(
        self, bandit: Bandit, X: Floats, words: Words, terms: BudgetTerms | None = None
    ) -> Floats:
        mean, span = means(bandit, X), bandit.policy.problem.family.range
        if terms is not None:
            mean = mean - terms.penalty * span
        best = int(np.argmax(mean))
        gamma = self.strength * math.sqrt(1.0 + bandit.rounds)
        gap = (mean[best] - mean) / span
        p = 1.0 / (len(X) + gamma * gap)
        p[best] = 0.0
        p[best] = 1.0 - p.sum()
        return p


def best_value(bandit: Bandit, X: Floats, terms: BudgetTerms) -> int:
    """Return the arm with the largest upper bound of its mean reward, less the penalty."""
    span = bandit.policy.problem.family.range
    penalty = terms.penalty if span == 1.0 else terms.penalty * span
    return bandit.afford(X, penalty, optimism=terms.optimism)


def means(bandit: Bandit, X: Floats) -> Floats:
    """Mean reward of every arm, as the policy estimates it; `predict` adds intervals, which take
    a hundred times as long."""
    problem, theta = bandit.policy.problem, getattr(bandit, "theta", None)
    if theta is None:
        raise ValueError(f"{bandit.policy.name} keeps no estimate to compare arms by: use DOMD")
    problem.check_contexts(X)
    return np.clip(
        problem.family.mu(bandit.placed(X) @ theta), problem.family.low, problem.family.high
    )
