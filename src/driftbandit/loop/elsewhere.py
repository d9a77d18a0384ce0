"""Decisions that were made elsewhere, while the loop was away: the default was played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driftbandit.loop.deciding.types import Slate
from driftbandit.loop.writing.pending import Started

RECORDED, CANCELLED = "recorded", "cancelled"


def check(id: Any, default: Any) -> None:
    """Without an id it could not be sent again, and nobody could say what it gave."""
    if id is None or default is None:
        raise ValueError("a decision made elsewhere has an id and played its default: pass both")


def recorded(started: Started, default: Any, cancel: Callable[[], str]) -> Started:
    """The answer of the loop may have been lost on its way: then it has a choice of its own under
    this id, which nobody saw."""

    def finish() -> str:
        found = started.finish()
        chosen = found.arms if isinstance(found, Slate) else [found.arm]
        if chosen == (list(default) if isinstance(found, Slate) else [default]):
            return RECORDED
        cancel()
        return CANCELLED

    return Started(started.ticket, finish)
