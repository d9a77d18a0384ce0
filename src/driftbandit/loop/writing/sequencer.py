"""The register gives events their place in the order, or refuses them."""

from __future__ import annotations

import math
from collections.abc import Callable

from driftbandit.loop.state.reward_windows import Book, Outcome
from driftbandit.loop.storage.events import SILENT, Event, LedgerError, slate_size, write
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.writing.pending import Ticket

AHEAD = 300.0  # seconds that a decision may be ahead of the clock


class Register:
    """Enters tickets into the book. `now` is the clock; without one, events are."""

    def __init__(self, ledger: Ledger, book: Book, now: Callable[[], float] | None) -> None:
        self.ledger, self.book, self._now = ledger, book, now
        self._decided: dict[str, Event] = {}  # of this group

    @property
    def clock(self) -> float:
        """What time it is; it never goes back."""
        return self.book.latest if self._now is None else max(self._now(), self.book.w)

    def follow(self, event: Event) -> Outcome:
        """Enter what another one has stored."""
        if event.kind == "erase":  # the book has read what is blank now
            raise LedgerError("another process has erased a key: open the loop again")
        return self.book.apply(event)

    def enter(self, ticket: Ticket) -> Outcome:
        """Give a ticket its place, unless it is refused or known."""
        at, data = self.clock if ticket.at is None else ticket.at, ticket.data
        if ticket.kind in SILENT:
            at = max(at, 0.0)
        elif at == -math.inf:
            raise ValueError(
                "with clock='events' the first event must say when it was: pass at=..."
            )
        if ticket.kind == "decide":
            if not ticket.fresh and (known := self._find(str(ticket.id))):
                ticket.known = known[0]
                return Outcome("", [])
            self._check_time(at)
        elif ticket.kind == "advance":
            at = max(self.book.w, at)
        elif ticket.id is not None:
            data = {**data, "of": self._of(ticket.id, ticket.kind, data.get("position"))}
        text = data if isinstance(data, str) else write(data)
        ticket.event = Event(self.book.seq + 1, ticket.kind, at, ticket.id, ticket.key, text)
        if ticket.kind == "decide":
            self._decided[str(ticket.id)] = ticket.event
        return self.book.apply(ticket.event)

    def stored(self) -> None:
        """The group is in the ledger, where its decisions are found from now on."""
        self._decided.clear()

    def _find(self, id: str) -> tuple[int, int | None] | None:
        """The seq of the decision with this id, and its positions if it is a slate."""
        if found := self.book.open.get(id):
            return found.seq, found.k
        event = self._decided.get(id) or self.ledger.find(id)
        return (event.seq, slate_size(event)) if event else None

    def _of(self, id: str, kind: str, position: int | None) -> int | None:
        """The seq of the decision that something is said of; its position is checked."""
        seq, k = self._find(id) or (None, None)
        if seq is None or (position is None and kind == "cancel"):
            return seq
        if k is None and position is not None:
            raise ValueError(f"decision {id!r} is not a slate: leave position out")
        if k is not None and (position is None or position >= k):
            remedy = f"pass position=, from 0 to {k - 1}"
            raise ValueError(f"decision {id!r} is a slate: {remedy}, got {position}")
        return seq

    def _check_time(self, at: float) -> None:
        if self.book.wait > 0.0 and self.book.closes(at) <= self.book.w:
            raise ValueError(
                f"at={at:.0f} is too long ago: its window closed before {self.book.w:.0f}; decide "
                "in order of time, or fill in the past with a loop that has clock='events'"
            )
        if self._now is not None and at > self.clock + AHEAD:
            raise ValueError(
                f"at={at:.0f} is {at - self.clock:.0f} seconds ahead of the clock: pass seconds "
                "since the epoch, or a datetime with a time zone, at most five minutes ahead"
            )
