"""Spending: how much error each comparison may make, so that all of a loop together err rarely.

Comparisons are numbered in the order in which they begin: with a candidate, and again for all that
are there when another policy acts. The one with number j may err with probability

    (1 - level) (1 + promotions before it began) / (j (j + 1)).

These add up to 1 - level as long as nothing was promoted. Each promotion by proof makes room for
one more mistake among as many, so the expected part of wrong promotions stays below 1 - level (Xu
and Ramdas 2024, e-LOND). A candidate that is retired keeps its number: trying many finds no winner
by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from driftbandit.loop.storage.events import LIVE, Event
from driftbandit.recipe import Recipe

SHADOW, TRIAL = 0.2, 0.7  # parts of a candidate's error: before its trial, and in the first one


class Turn(NamedTuple):
    """A comparison's number, and how many policies were promoted by proof before it began."""

    number: int
    promotions: int

    def error(self, level: float) -> float:
        """Return the probability with which it may err."""
        return (1.0 - level) * (1 + self.promotions) / (self.number * (self.number + 1))


@dataclass(frozen=True)
class Spending:
    """The comparisons that are under way, by the name of who wants to act."""

    begun: int = 0
    promotions: int = 0
    apprentice: bool = False
    turns: Mapping[str, Turn] = field(default_factory=dict)

    def error(self, name: str, level: float, stretch: int) -> float:
        """Return how much a comparison may err in its present stretch of rows."""
        turn = self.turns.get(name)
        if turn is None:  # the live policy acts, and wants nothing
            return 1.0 - level
        return turn.error(level) * (1.0 if name == LIVE else part(stretch))

    def after(self, event: Event) -> Spending:
        """Return the comparisons after one more lasting event."""
        kind = event.kind
        if kind == "shadow":
            return self._begin([event.read()["name"]])
        if kind == "demote":
            return self._begin([LIVE, *self.turns])
        if kind == "configure":
            return self._configured(event.read())
        if kind == "retire":
            return self._without(event.read().name)._configured(event.read().settings)
        if kind == "promote":
            said = event.read()
            left = self._without(said.name)._without(LIVE)
            left = replace(left, promotions=self.promotions + (not said.forced), apprentice=False)
            return left._begin([*left.turns])
        return self

    def _configured(self, settings: Any) -> Spending:
        chosen: Any = Recipe.from_dict(settings)
        now, before = chosen.mode == "apprentice", self.apprentice
        changed = replace(self, apprentice=now)
        return changed._begin([LIVE, *self.turns]) if now and not before else changed

    def _begin(self, names: list[str]) -> Spending:
        names = list(dict.fromkeys(names))
        new = {
            name: Turn(number, self.promotions)
            for number, name in enumerate(names, start=self.begun + 1)
        }
        return replace(self, begun=self.begun + len(names), turns={**self.turns, **new})

    def _without(self, name: str) -> Spending:
        return replace(self, turns={k: v for k, v in self.turns.items() if k != name})


def part(stretch: int) -> float:
    """Return the part of a candidate's error that a stretch has: they add up to 1."""
    return SHADOW if stretch == 0 else TRIAL if stretch == 1 else 0.1 * 0.5 ** (stretch - 1)
