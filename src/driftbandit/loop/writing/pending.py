"""What callers hand to the writer: an event to be, and a place for the answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from driftbandit.loop.storage.events import Event


@dataclass(slots=True)
class Pending:
    """An event to be stored, or `work` that no event may interrupt.

    `payload` is a typed payload that the sequencer completes and encodes; a decision's is encoded
    already and is `data`. The writer fills in what became of it.
    """

    kind: str
    at: float | None = None
    id: str | None = None
    key: str | None = None
    payload: Any = None
    data: str = "{}"
    k: int | None = None  # positions of a slate
    new_id: bool = False  # whether the id was made for it, so that no other decision has it
    state: bytes | None = None  # of a checkpoint
    work: Callable[[], None] | None = None
    event: Event | None = None
    word: str = ""
    known: int | None = None  # seq of the decision that has this id already
    error: Exception | None = None
    stored: Any = field(default_factory=threading.Lock)  # held while a caller waits
