"""Why an arm was chosen: contributions of named columns, winner against runner-up."""

from __future__ import annotations

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.features import Features
from driftbandit.loop.deciding.pairs import relative
from driftbandit.loop.deciding.slates import at_position, read_by
from driftbandit.loop.deciding.types import Answer, Request, Why
from driftbandit.policies.base import Floats
from driftbandit.policies.items import PointEstimate


def reasons(
    features: Features,
    request: Request,
    answer: Answer,
    estimate: PointEstimate,
    bandit: Bandit,
    pairs: bool = False,
) -> list[Why | None]:
    """Explain the choice at every position, among the arms that were left. `bandit` has the bonus,
    and may have learnt since. With `pairs`, a bonus is that of a difference of rows."""
    request = read_by(features, request)
    left, found = list(range(len(request.names))), []
    first = answer.choices[0] if pairs and len(answer.choices) > 1 else None
    for j, choice in enumerate(answer.choices):
        position = None if request.k is None else j
        why = _why(features, request, choice, left, position, estimate, bandit)
        if pairs and why is not None and choice is not None and why.runner_up is not None:
            X = _compared(features, request, left, position, first if j else None)
            both = [left.index(choice), left.index(request.names.index(why.runner_up))]
            why = why._replace(bonus=_bonus(bandit, X[both]))
        found.append(why)
        left = [arm for arm in left if arm != choice]
    return found


def _why(
    features: Features,
    request: Request,
    choice: int | None,
    left: list[int],
    position: int | None,
    estimate: PointEstimate,
    bandit: Bandit,
) -> Why | None:
    """Return contributions of named columns to the difference between the arm and the runner-up."""
    if choice is None:
        return None
    context, arms = at_position(features, request.context, request.arms, position)
    X = features.encode(context, list(arms))
    z = estimate.values(X)
    own = features.contributions(context, arms[choice], estimate.of(X[choice]))
    others = [k for k in np.argsort(-z, kind="stable").tolist() if k != choice and k in left]
    if not others:
        return Why(request.names[choice], None, float(z[choice]), _largest(own))
    rival = features.contributions(context, arms[others[0]], estimate.of(X[others[0]]))
    terms = {name: own[name] - rival[name] for name in own}
    lead = float(z[choice] - z[others[0]])
    both = request.names[choice], request.names[others[0]]
    costs = _saved(request, choice, others[0])
    return Why(*both, lead, _largest(terms), _bonus(bandit, X[[choice, others[0]]]), costs)


def _compared(
    features: Features, request: Request, left: list[int], position: int | None, first: int | None
) -> Floats:
    """Return the rows by which the arms that are left were ranked for a place in a pair."""
    context, arms = at_position(features, request.context, request.arms, position)
    X = features.encode(context, [arms[k] for k in left])
    if first is None:
        return relative(X)
    context, arms = at_position(features, request.context, request.arms, 0)
    return relative(X, features.encode(context, [arms[first]])[0])


def _bonus(bandit: Bandit, pair: Floats) -> float | None:
    """Return how much larger the bonus of the first is; None if columns came since then."""
    same = bandit.policy.problem.dim == pair.shape[1]
    found = bandit.bonus(pair) if same else None
    return None if found is None else float(found[0] - found[1])


def _saved(request: Request, choice: int, other: int) -> dict[str, float]:
    """Return what an arm costs less than another at the logged price, by budget."""
    return {
        name: spend.price / spend.bound * (spend.costs[other] - spend.costs[choice])
        for name, spend in (request.spend or {}).items()
    }


def _largest(terms: dict[str, float]) -> dict[str, float]:
    return dict(sorted(terms.items(), key=lambda term: -abs(term[1])))
