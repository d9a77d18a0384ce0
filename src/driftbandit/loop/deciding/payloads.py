"""Decisions as they are logged, and as callers see them: the first time, and again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit.loop.deciding.explain import reasons
from driftbandit.loop.deciding.pricing import with_spend
from driftbandit.loop.deciding.types import (
    Answer,
    Decision,
    Explain,
    Request,
    Slate,
    SlatePosition,
    View,
    Vote,
    Votes,
)
from driftbandit.loop.errors import UsedIdError
from driftbandit.loop.state.accounts import PricedDecision
from driftbandit.loop.state.definition import Version
from driftbandit.loop.storage.events import SPENT, Decide, Event, encode, encode_spend, plain
from driftbandit.policies.base import Floats
from driftbandit.policies.items import PointEstimate


class Choice(NamedTuple):
    """An answer, and what it came from."""

    request: Request
    answer: Answer
    settings: int  # the seq of their event
    version: Version
    view: View
    X: Floats  # (k, K, size)
    estimate: PointEstimate
    votes: Votes  # of the trial, the live policy's among them
    pairs: bool = False  # whether people say which of two arms they prefer

    def logged(self) -> str:
        """Return the payload of the decision: all it takes to answer again."""
        asked, answer, view = self.request, self.answer, self.view
        trial = {}
        if self.votes:
            trial = {name: (vote.aged, vote.p.tolist()) for name, vote in self.votes.items()}
        text = encode(
            Decide(
                asked.context,  # type: ignore[arg-type]
                asked.names,
                asked.arms,
                *answer,
                self.version.name,
                self.settings,
                (view.seq, view.examples, view.aged),
                asked.default,
                asked.k,
                trial,
                priced=asked.priced,
            )
        )
        if asked.spend is None:
            return text
        return f"{SPENT}{encode_spend(asked.spend)},{text[1:]}"

    @property
    def priced(self) -> PricedDecision | None:
        """Return what budgets need to know of it; None if there are none."""
        asked = self.request
        if asked.spend is None:
            return None
        return PricedDecision(asked.spend, asked.names, asked.arms, self.answer.choices)

    def explained(self) -> Any:
        """Return why, for every position."""
        asked = self.version.features, self.request, self.answer
        return reasons(*asked, self.estimate, self.view.bandit, self.pairs)

    def first(self) -> Decision | Slate:
        """Return a new decision."""
        asked, answer = self.request, self.answer
        choice = answer.choices[0]
        if asked.k is not None or choice is None:
            return _seen(asked, answer, self.explained)
        p = answer.p[0]
        arms = dict(zip(asked.names, p))
        return Decision(asked.id, asked.names[choice], p[choice], arms, answer.role, self.explained)


def asked_for(event: Event, data: Decide) -> Request:
    """Return what a logged decision was asked."""
    found = Request(
        data.context, data.names, data.arms, data.default, data.k, str(event.id), event.key
    )
    return with_spend(found, data.spend, data.priced) if data.spend else found


def answered(data: Decide) -> Answer:
    """Return what a logged decision answered."""
    return Answer(data.choices, data.p, data.means, data.role)


def voted(data: Decide) -> dict[str, Vote]:
    """Return the votes of a trial."""
    return {name: Vote(np.array(p), aged) for name, (aged, p) in data.trial.items()}


class LoggedPosition(NamedTuple):
    """One position of a logged decision: None if it was not a slate. No `choice`, no arm."""

    position: int | None
    choice: int | None
    p: list[float]
    mean: float | None
    default: Any


def positions(data: Decide) -> list[LoggedPosition]:
    """Return all positions of a logged decision."""
    n = len(data.choices)
    numbers = [None] if data.k is None else range(n)
    defaults = data.default if isinstance(data.default, list) else [data.default] * n
    return [
        LoggedPosition(*each) for each in zip(numbers, data.choices, data.p, data.means, defaults)
    ]


def again(event: Event, asked: Request | None, explain: Explain) -> Decision | Slate:
    """Return the answer that an id has had; another question `asked` under it is an error."""
    data: Decide = event.read()
    before = asked_for(event, data)
    if asked is not None and not (_is_same(before, asked) and event.key == asked.key):
        raise UsedIdError(f"id {event.id!r} was used for another decision: use a new id for each")
    return _seen(before, answered(data), explain)


def _is_same(before: Request, asked: Request) -> bool:
    """Return whether a question is the one of before; arms of the catalogue may have changed."""
    if asked.selection is None:
        return [*before[:5]] == plain([*asked[:5]])
    same = before.context == plain(asked.context) and before.k == asked.k
    default = plain(asked.selection.default)
    fits = before.default in (None, default)  # an arm that was paused was no default
    return same and fits and asked.selection.is_same(before.names, before.arms)


def _seen(asked: Request, answer: Answer, explain: Explain) -> Decision | Slate:
    """Return both together, as callers see it."""
    if answer.role == "empty":
        places = [SlatePosition(name, 1.0, {}) for name in asked.defaults]
    else:
        chosen = [choice for choice in answer.choices if choice is not None]
        places = [
            SlatePosition(asked.names[choice], p[choice], dict(zip(asked.names, p)))
            for choice, p in zip(chosen, answer.p)
        ]
    if asked.k is None:
        return Decision(asked.id, *places[0], answer.role, explain)
    return Slate(asked.id, tuple(places), answer.role, explain)
