"""Why an arm was chosen: contributions of named columns, winner against runner-up."""

from __future__ import annotations

import numpy as np

from driftbandit.features import Features
from driftbandit.loop.deciding.slates import at_position, read_by
from driftbandit.loop.deciding.types import Answer, Request, Why
from driftbandit.policies.base import Floats


def reasons(
    features: Features, request: Request, answer: Answer, theta: Floats
) -> list[Why | None]:
    """For every position, among the arms that were left."""
    request = read_by(features, request)
    left, found = list(range(len(request.names))), []
    for j, choice in enumerate(answer.choices):
        position = None if request.k is None else j
        found.append(_why(features, request, choice, left, position, theta))
        left = [arm for arm in left if arm != choice]
    return found


def _why(
    features: Features,
    request: Request,
    choice: int | None,
    left: list[int],
    position: int | None,
    theta: Floats,
) -> Why | None:
    """Contributions of named columns to the difference between the arm and the runner-up."""
    if choice is None:
        return None
    context, arms = at_position(features, request.context, request.arms, position)
    z = features.encode(context, list(arms)) @ theta
    own = features.contributions(context, arms[choice], theta)
    others = [k for k in np.argsort(-z, kind="stable").tolist() if k != choice and k in left]
    if not others:
        return Why(request.names[choice], None, float(z[choice]), _largest(own))
    rival = features.contributions(context, arms[others[0]], theta)
    terms = {name: own[name] - rival[name] for name in own}
    lead = float(z[choice] - z[others[0]])
    return Why(request.names[choice], request.names[others[0]], lead, _largest(terms))


def _largest(terms: dict[str, float]) -> dict[str, float]:
    return dict(sorted(terms.items(), key=lambda term: -abs(term[1])))
