"""A decision, and why it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from driftbandit.features import Features
from driftbandit.policies.base import Floats

Name = str | int  # of an arm


class Why(NamedTuple):
    """What speaks for an arm and against the runner-up, the best of the others.

    `terms` are the differences between both in x'theta, by columns and pairs of columns, largest
    first. They add up to `lead`, which is negative where the arm was chosen to explore.
    """

    arm: Name
    runner_up: Name | None
    lead: float
    terms: dict[str, float]


@dataclass(frozen=True)
class Decision:
    """What to do, and with which probability it was chosen.

    `role` is "live", or "apprentice", "holdout" or "empty" where the default was to be played.
    """

    id: str
    arm: Name
    probability: float
    probabilities: Mapping[Name, float]
    role: str
    _explain: Callable[[], Why | None] = field(repr=False, compare=False)

    @property
    def why(self) -> Why | None:
        """Named features, winner against runner-up; None if there was no arm."""
        return self._explain()


class Request(NamedTuple):
    """What was asked, by name."""

    context: Mapping[str, Any]
    names: list[Name]
    arms: list[Mapping[str, Any]]
    default: Name | None


class Answer(NamedTuple):
    """What was chosen: an index, None for a default that is no arm."""

    choice: int | None
    p: list[float]
    role: str


def decision(id: str, request: Request, answer: Answer, explain: Any) -> Decision:
    """Both together, as callers see it."""
    if answer.choice is None:
        assert request.default is not None
        return Decision(id, request.default, 1.0, {}, answer.role, explain)
    arm, p = request.names[answer.choice], answer.p[answer.choice]
    return Decision(id, arm, p, dict(zip(request.names, answer.p)), answer.role, explain)


def reasons(features: Features, request: Request, choice: int | None, theta: Floats) -> Why | None:
    """Contributions of named columns to the difference between the arm and the runner-up."""
    if choice is None:
        return None
    context, arms = request.context, request.arms
    z = features.encode(context, arms) @ theta
    own = features.contributions(context, arms[choice], theta)
    others = [k for k in np.argsort(-z, kind="stable").tolist() if k != choice]
    if not others:
        return Why(request.names[choice], None, float(z[choice]), _largest(own))
    rival = features.contributions(context, arms[others[0]], theta)
    terms = {name: own[name] - rival[name] for name in own}
    lead = float(z[choice] - z[others[0]])
    return Why(request.names[choice], request.names[others[0]], lead, _largest(terms))


def _largest(terms: dict[str, float]) -> dict[str, float]:
    return dict(sorted(terms.items(), key=lambda term: -abs(term[1])))
