"""What callers hand to the writer: an event to be, and a place for the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from driftbandit.loop.state.sticky import Sticky
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.key_rows import Numbers


@dataclass(slots=True)
class Pending:
    """An event to be stored, or `work` that no event may interrupt.

    `payload` is a typed payload that the sequencer completes and encodes; a decision is encoded
    already, as `data`, and its payload says what budgets need. The writer fills in what became of
    it.
    """

    kind: str
    at: float | None = None
    id: str | None = None
    key: str | None = None
    payload: Any = None
    data: str = "{}"
    k: int | None = None  # positions of a slate
    new_id: bool = False  # whether the id was made for it, so that no other decision has it
    state: Numbers | None = None  # of a checkpoint
    work: Callable[[], None] | None = None
    event: Event | None = None
    word: str = ""
    known: int | None = None  # seq of the decision that is the answer already
    sticky: Sticky | None = None  # whether the key's latest decision may be the answer
    repeats: bool = False  # whether it is
    error: Exception | None = None
    stored: Any = field(default_factory=threading.Lock)  # held while a caller waits
