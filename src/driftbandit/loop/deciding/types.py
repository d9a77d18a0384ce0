"""Decisions and slates as callers see them, requests as they were asked, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from driftbandit.bandit import Bandit
from driftbandit.html_table import table
from driftbandit.loop.exploration import BudgetTerms
from driftbandit.loop.state.catalogue import Selection
from driftbandit.loop.storage.events import Spend
from driftbandit.policies.base import Floats

Name = str | int  # of an arm
NO_COSTS: Mapping[str, float] = MappingProxyType({})


class Why(NamedTuple):
    """What speaks for an arm and against the runner-up, the best of the others.

    `terms` are the differences between both in x'theta, by columns and pairs of columns, largest
    first. They add up to `lead`, which is negative if the arm was chosen to explore, or for its
    cost. `bonus` is how much larger the arm's exploration bonus is, by what the learner knows when
    you ask (in an audit: when it decided); None if the policy adds no bonus. `costs` by budget is
    what a lower cost adds to the arm's lead at the decision's price, as a part of the reward's
    range; negative if the arm costs more.
    """

    arm: Name
    runner_up: Name | None
    lead: float
    terms: dict[str, float]
    bonus: float | None = None
    costs: Mapping[str, float] = NO_COSTS


Explain = Callable[[], "list[Why | None]"]  # for every position


@dataclass(frozen=True)
class Decision:
    """What to do, and with which probability it was chosen.

    `role` is "active", or "apprentice", "holdout", "fallback", "empty" or "spent" if the default
    was to be played.
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

    def _repr_html_(self) -> str:
        """Return the probabilities of all arms as a table."""
        rows = [
            (arm, p, "chosen" if arm == self.arm else "") for arm, p in self.probabilities.items()
        ]
        return table(f"Decision {self.id}, {self.role}", ("arm", "probability", ""), rows)


class SlatePosition(NamedTuple):
    """A position of a slate: its arm, and probabilities given the arms before it."""

    arm: Name
    probability: float
    probabilities: Mapping[Name, float]


@dataclass(frozen=True)
class Slate:
    """Arms in order of position, the first is `places[0]`; `role` as in a `Decision`."""

    id: str
    places: tuple[SlatePosition, ...]
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
    """A question: `k` positions, or None for a decision that is not a slate, and a `default` for
    each. `id` names the decision, `key` whose it is."""

    context: Mapping[str, Any]
    names: list[Name]
    arms: list[Any]
    default: Any
    k: int | None
    id: str
    key: str | None
    new_id: bool = False  # whether the id was made for it, so that no other decision has it
    fallback: bool = False  # whether the default was played elsewhere: the loop was unreachable
    at: float | None = None  # None: now
    selection: Selection | None = None  # what was asked of the catalogue, if there is one
    spend: Mapping[str, Spend] | None = None  # budgets by name, if there are any
    priced: int = 0  # the seq of the event that their prices follow from
    terms: BudgetTerms | None = None  # what budgets ask together

    @property
    def defaults(self) -> list[Name]:
        """One for every position."""
        return self.default if isinstance(self.default, list) else [self.default]


class View(NamedTuple):
    """A bandit to decide with, and what it had learnt: that is stored with the decision."""

    bandit: Bandit
    policy: str  # its name
    seq: int  # the event that gave the latest example
    examples: int
    aged: float  # seconds by which its memory was aged


class Answer(NamedTuple):
    """What was chosen at every position: an index, None for a default that is no arm, the
    probabilities of all arms, and the mean reward that the learner expected, without a unit."""

    choices: list[int | None]
    p: list[list[float]]
    means: list[float | None]
    role: str


class Vote(NamedTuple):
    """Probabilities that a policy gives all arms, and seconds by which its memory was aged."""

    p: Floats  # (K,)
    aged: float


Votes = Mapping[str, Vote]  # by candidate
