"""What callers hand to the clerk, and what the clerk hands to the trainer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.events import Event


class Mark(NamedTuple):
    """Here the learner can be stored: it will have learnt all events up to `seq`."""

    seq: int
    since: int  # where to read on to know what is open
    w: float
    latest: float
    counts: dict[str, int]


Change = Example | Event | Mark


@dataclass(slots=True)
class Ticket:
    """An event to be; `data` is JSON text, or a mapping to which the clerk adds."""

    kind: str
    at: float | None = None
    id: str | None = None
    key: str | None = None
    data: Any = "{}"
    fresh: bool = False  # whether the id was made for it, so that nobody else has it
    state: bytes | None = None  # of a checkpoint
    work: Callable[[], None] | None = None  # instead of an event: what no event may interrupt
    event: Event | None = None
    word: str = ""
    known: int | None = None  # seq of the decision that has this id already
    error: Exception | None = None
    gate: Any = field(default_factory=threading.Lock)

    def done(self) -> None:
        """Let the caller go on, if one waits."""
        if self.gate.locked():
            self.gate.release()


class Started(NamedTuple):
    """A call whose event is still to be stored; `finish` gives its answer then."""

    ticket: Ticket
    finish: Callable[[], Any]

    def end(self) -> Any:
        """The answer, or what is wrong."""
        try:
            return self.ticket.error or self.finish()
        except ValueError as error:
            return error
