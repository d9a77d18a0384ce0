"""How a loop decides: exploration, mode, holdout and trials give a probability to every arm.

In a trial, candidates take a share of decisions, and what is logged is the mixture of all:

    p = (1 - s_1 - ... - s_n) p_live + s_1 p_1 + ... + s_n p_n

The arm is drawn from p with the decision's own random number, so every candidate, in the trial or
not, is evaluated from the same probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.loop.config import Settings
from driftbandit.loop.deciding.pairs import relative
from driftbandit.loop.deciding.pricing import SPENT_ROLE
from driftbandit.loop.deciding.shares import ANY_SHARE, within_shares
from driftbandit.loop.deciding.types import Request, View, Votes
from driftbandit.loop.exploration import BudgetTerms, Rule, Words, completed, draw, means, pick
from driftbandit.policies.base import Floats, Ints

NO_VOTES: Votes = {}


def role(settings: Settings, request: Request, seed: Words, demoted: bool) -> str:
    """Return whether exploration decides ("active"), or why the default is played."""
    if settings.needs_default and request.default is None:
        raise ValueError(
            f"with {settings.needs_default} every decision needs a default: pass default=, the arm "
            "that is played today"
        )
    if not request.names:
        return "empty"
    if request.fallback:
        return "fallback"
    if settings.holdout and held_out(settings, request, seed):
        return "holdout"
    return "apprentice" if demoted else settings.mode


def held_out(settings: Settings, request: Request, seed: Words) -> bool:
    """Return whether a key is in the share that always gets the default; without a key each
    decision is drawn on its own."""
    own = request.id if request.key is None else request.key
    return draw(*seed, own, "holdout") < settings.holdout


def decided(
    settings: Settings,
    request: Request,
    role: str,
    seed: Words,
    X: Floats,
    view: View,
    votes: Votes = NO_VOTES,
    chosen: Sequence[int | None] | None = None,
    pairs: bool = False,
) -> tuple[list[int], Floats]:
    """Return the arm at every position, and probabilities (k, K), from rows X (k, K, size) and the
    `votes` of candidates in a trial. With what was `chosen` already, the probabilities it had. With
    `pairs`, arms are ranked by differences of rows."""
    k, n_arms = X.shape[:2]
    left, arms, p = np.arange(n_arms), list[int](), np.zeros((k, n_arms))
    for position in range(k):
        named = _words(seed, request, view.policy, position)
        rows = X[0] if request.k is None else X[position, left]
        if pairs:
            rows = relative(rows, X[0, arms[0]] if arms else None)
        if role == "active":
            own = chances(settings.exploration, settings, request, view, rows, named, left)
        else:
            own = _by_default(settings, request, role, left)
        p[position, left] = mixed(own, settings.trials, votes) if votes else own
        before = None if chosen is None else chosen[position]
        arms.append(pick(p[position], named) if before is None else before)
        if request.k is not None:
            left = left[left != arms[-1]]
    return arms, p


def _words(seed: Words, request: Request, policy: str, position: int) -> Words:
    """Return the words of a draw: each position of a slate has its own."""
    words = (*seed, request.id, policy)
    return words if request.k is None else (*words, position)


def drawn(request: Request, seed: Words, policy: str, p: Sequence[Sequence[float]]) -> list[int]:
    """Return the arms that logged probabilities give again. A draw from what was logged is the same
    on every machine, also where the probabilities themselves agree to rounding only."""
    named = (_words(seed, request, policy, position) for position in range(len(p)))
    return [pick(np.array(each), words) for each, words in zip(p, named)]


def possible_roles(settings: Settings, request: Request, seed: Words) -> set[str]:
    """Return the roles that a logged decision may have had. Which client has played its default
    alone, and when the guard let the default take over, is not known from the decision."""
    if not request.names:
        return {"empty"}
    if settings.holdout and held_out(settings, request, seed):
        return {"holdout", "fallback"}
    return {settings.mode, "apprentice", "fallback", *([SPENT_ROLE] if settings.budget else [])}


def _by_default(settings: Settings, request: Request, role: str, left: Ints) -> Floats:
    """Return probabilities of the arms that are left: the first default among them, but for a
    share of exploration."""
    places = (request.names.index(name) for name in request.defaults)
    default = next(k for place in places for k in np.flatnonzero(left == place))
    share = np.zeros(len(left))
    if role == "apprentice":
        share = settings.exploration.explored(request.terms, len(left))
    return completed(share, int(default))


def chances(
    rule: Rule,
    settings: Settings,
    request: Request,
    view: View,
    X: Floats,
    words: Words,
    left: Ints | None = None,
) -> Floats:
    """Return the probabilities that a policy with this rule gives arms X (K, dim): those that are
    `left`, or all. They keep the shares that the settings ask for, and the terms of budgets."""
    terms = request.terms
    p = (
        rule.probabilities(view.bandit, X, words)
        if terms is None
        else (rule.probabilities(view.bandit, X, words, terms))
    )
    if not settings.shares:
        return p
    names = request.names if left is None else [request.names[k] for k in left]
    bounds = [settings.shares.get(name, ANY_SHARE) for name in names]
    if all(low <= each <= high for (low, high), each in zip(bounds, p.tolist())):
        return p
    scores = means(view.bandit, X) / view.bandit.policy.problem.family.range
    if terms is not None:
        scores = scores - terms.penalty
    return within_shares(p, np.array(bounds).T, scores)


def mixed(acting: Floats, shares: Mapping[str, float], votes: Votes) -> Floats:
    """Return the mixture; `acting` is what is played otherwise. A candidate that cannot vote has no
    share."""
    p = (1.0 - math.fsum(shares[name] for name in votes)) * acting
    for name, vote in votes.items():
        p = p + shares[name] * vote.p
    return completed(p, int(np.argmax(p)))


def probe(rule: Rule, bandit: Bandit, budget: bool = False) -> None:
    """Raise if a rule cannot tell the probabilities of this bandit's arms."""
    X = np.zeros((1, bandit.policy.problem.dim))
    if not budget:
        rule.probabilities(bandit, X, ("probe",))
        return
    try:
        rule.probabilities(bandit, X, ("probe",), BudgetTerms(np.zeros(1)))
    except TypeError:
        raise ValueError(
            f"{type(rule).__name__} knows no budget: give its weights() an argument terms=None"
        ) from None
