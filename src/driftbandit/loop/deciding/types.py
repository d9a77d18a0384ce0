"""Decisions and slates, and why they were made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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


Explain = Callable[[], "list[Why | None]"]  # for every position


@dataclass(frozen=True)
class Decision:
    """What to do, and with which probability it was chosen.

    `role` is "live", or "apprentice", "holdout", "fallback" or "empty" where the default was to be
    played.
    """

    id: str
    arm: Name
    probability: float
    probabilities: Mapping[Name, float]
    role: str
    _explain: Explain = field(repr=False, compare=False)

    @property
    def why(self) -> Why | None:
        """Named features, winner against runner-up; None if there was no arm."""
        return self._explain()[0]


class Place(NamedTuple):
    """A position of a slate: its arm, and probabilities given the arms before it."""

    arm: Name
    probability: float
    probabilities: Mapping[Name, float]


@dataclass(frozen=True)
class Slate:
    """Arms in order of position, the first is `places[0]`; `role` as in a `Decision`."""

    id: str
    places: tuple[Place, ...]
    role: str
    _explain: Explain = field(repr=False, compare=False)

    @property
    def arms(self) -> list[Name]:
        """In order of position."""
        return [place.arm for place in self.places]

    @property
    def probability(self) -> float:
        """Of these arms in this order."""
        return math.prod(place.probability for place in self.places)

    @property
    def why(self) -> list[Why | None]:
        """For every position, against the best of the arms that were left."""
        return self._explain()


class Request(NamedTuple):
    """What was asked, by name; `k` positions, or None for a decision that is no slate, and a
    `default` for each."""

    context: Mapping[str, Any]
    names: list[Name]
    arms: list[Mapping[str, Any]]
    default: Any
    k: int | None = None

    @property
    def defaults(self) -> list[Name]:
        """One for every position, none if there is none."""
        return self.default if isinstance(self.default, list) else [self.default]


class Answer(NamedTuple):
    """What was chosen at every position: an index, None for a default that is no arm, the
    probabilities of all arms, and the mean reward that the learner expected, without a unit."""

    choices: list[int | None]
    p: list[list[float]]
    means: list[float | None]
    role: str


def decision(id: str, request: Request, answer: Answer, explain: Explain) -> Decision:
    """Both together, as callers see it."""
    (place,) = _places(request, answer)
    return Decision(id, *place, answer.role, explain)


def slate(id: str, request: Request, answer: Answer, explain: Explain) -> Slate:
    return Slate(id, tuple(_places(request, answer)), answer.role, explain)


def _places(request: Request, answer: Answer) -> list[Place]:
    if answer.role == "empty":
        return [Place(name, 1.0, {}) for name in request.defaults]
    chosen = [choice for choice in answer.choices if choice is not None]
    return [
        Place(request.names[choice], p[choice], dict(zip(request.names, p)))
        for choice, p in zip(chosen, answer.p)
    ]
