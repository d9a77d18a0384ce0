"""Decisions as they are logged, and as callers see them again."""

from __future__ import annotations

from typing import Any, NamedTuple

from driftbandit.loop.deciding.choose import Choice
from driftbandit.loop.deciding.explain import reasons
from driftbandit.loop.deciding.types import (
    Answer,
    Decision,
    Explain,
    Request,
    Slate,
    decision,
    slate,
)
from driftbandit.loop.storage.events import SLATE, Event, plain, write


class UsedIdError(ValueError):
    """An id that belongs to another decision."""


def logged(asked: Request, made: Choice, settings: int) -> str:
    """The data of a decide: what was asked and answered, and all it takes to answer again."""
    view, answer = made.view, made.answer
    alone, trial = asked.k is None, {n: [v.aged, v.p.tolist()] for n, v in made.votes.items()}
    return write(
        ({} if alone else {SLATE: asked.k})
        | {
            "context": asked.context,
            "names": asked.names,
            "arms": asked.arms,
            "default": asked.default,
            "choice": answer.choices[0] if alone else answer.choices,
            "p": answer.p[0] if alone else answer.p,
            "mean": answer.means[0] if alone else answer.means,
            "role": answer.role,
            "version": made.version.name,
            "settings": settings,
            "learner": [view.seq, view.examples, view.aged],
        }
        | ({"trial": trial} if trial else {})
    )


def asked_for(data: dict[str, Any]) -> Request:
    """What a decision was asked, as it was logged."""
    return Request(*(data.get(name) for name in Request._fields))  # type: ignore[arg-type]


def answered(data: dict[str, Any]) -> Answer:
    """What a decision answered, as it was logged."""
    alone = SLATE not in data
    choices, p, means = ([data[name]] if alone else data[name] for name in ("choice", "p", "mean"))
    return Answer(choices, p, means, data["role"])


class Placed(NamedTuple):
    """One position of a logged decision: None if it was no slate. No `choice`, no arm."""

    position: int | None
    choice: int | None
    p: list[float]
    mean: float | None
    default: Any


def positions(data: dict[str, Any]) -> list[Placed]:
    """All positions of a decision, as it was logged."""
    request, answer = asked_for(data), answered(data)
    numbers = [None] if request.k is None else range(len(answer.choices))
    defaults = request.defaults if request.default is not None else [None] * len(answer.choices)
    return [Placed(*each) for each in zip(numbers, *answer[:3], defaults)]


def first(id: str, asked: Request, made: Choice) -> Decision | Slate:
    """A new decision."""

    def explain() -> Any:
        return reasons(made.version.features, asked, made.answer, made.theta)

    return _seen(id, asked, made.answer, explain)


def again(event: Event, asked: Request, key: str | None, explain: Explain) -> Decision | Slate:
    """The answer that an id has had; another question under it is an error."""
    data = event.read()
    if Request(**plain(asked._asdict())) != asked_for(data) or event.key != key:
        raise UsedIdError(f"id {event.id!r} was used for another decision: use a new id for each")
    return _seen(str(event.id), asked_for(data), answered(data), explain)


def _seen(id: str, asked: Request, answer: Answer, explain: Explain) -> Decision | Slate:
    if asked.k is None:
        return decision(id, asked, answer, explain)
    return slate(id, asked, answer, explain)
