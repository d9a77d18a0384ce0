"""Decisions as they are logged, and as callers see them again."""

from __future__ import annotations

from typing import Any

from driftbandit.loop.choose import Choice
from driftbandit.loop.decision import Answer, Decision, Request, decision, reasons
from driftbandit.loop.events import Event, plain, write


class UsedIdError(ValueError):
    """An id that belongs to another decision."""


def logged(asked: Request, made: Choice, settings: int) -> str:
    """The data of a decide: what was asked and answered, and all it takes to answer again."""
    view, answer = made.view, made.answer
    return write(
        {
            "context": asked.context,
            "names": asked.names,
            "arms": asked.arms,
            "default": asked.default,
            "choice": answer.choice,
            "p": answer.p,
            "role": answer.role,
            "version": made.features.version,
            "settings": settings,
            "learner": [view.seq, view.lessons, view.aged],
        }
    )


def asked_for(data: dict[str, Any]) -> Request:
    """What a decision was asked, as it was logged."""
    return Request(*(data[name] for name in Request._fields))


def first(id: str, asked: Request, made: Choice) -> Decision:
    """A new decision."""

    def explain() -> Any:
        return reasons(made.features, asked, made.answer.choice, made.theta)

    return decision(id, asked, made.answer, explain)


def again(event: Event, asked: Request, key: str | None, explain: Any) -> Decision:
    """The answer that an id has had; another question under it is an error."""
    data = event.read()
    if Request(**plain(asked._asdict())) != asked_for(data) or event.key != key:
        raise UsedIdError(f"id {event.id!r} was used for another decision: use a new id for each")
    answer = Answer(data["choice"], data["p"], data["role"])
    return decision(str(event.id), asked_for(data), answer, explain)
