"""The clerk puts events in order, in a thread of its own or in that of the caller.

Callers hand in tickets and wait. The clerk gives them the next `seq`, enters them into the book,
stores all that have come meanwhile in one transaction, and then lets their callers go on. So an
event is acknowledged when it is on the disk, one wait for the disk serves many callers, and the
learner is trained nothing that could be lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from driftbandit.loop.state.reward_windows import Book
from driftbandit.loop.storage.events import FOREVER, Event
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.writing.hatch import Hatch
from driftbandit.loop.writing.pending import Change, Mark, Ticket
from driftbandit.loop.writing.sequencer import Register

PAUSE = 0.1  # seconds between two advances
EVERY = 10_000  # examples from one checkpoint to the next
LOOK = 0.25  # seconds until it is seen what others have stored, and that they are gone


class Clerk(Hatch):
    """`now` is the clock; without one, events are. With `auto` it has a thread of its own, and
    windows close by themselves where the loop is trained. Others who write to the same ledger take
    turns with it: it enters what they have stored, and is told of settings (`hear`)."""

    def __init__(
        self,
        ledger: Ledger,
        book: Book,
        hand: Callable[[list[Change]], None],
        now: Callable[[], float] | None,
        auto: bool,
        examples: int = 0,
        hear: Callable[[Event], None] = lambda _: None,
    ) -> None:
        super().__init__(auto)
        self.ledger, self.book, self._hand, self._hear = ledger, book, hand, hear
        self._register = Register(ledger, book, now)
        self._advanced = self._looked = 0.0
        self._examples = examples  # since the latest mark, also of processes that were killed
        self._stale = ledger.start > 1  # whether there is something to delete, a little at a time
        self.open()

    @property
    def clock(self) -> float:
        """What time it is; it never goes back."""
        return self._register.clock

    @property
    def due(self) -> bool:
        """Whether an advance would close something."""
        return self.book.due <= self.clock

    def _patience(self) -> float:
        most = 1.0 if self.ledger.lock.alone else LOOK
        return min(most, max(PAUSE, self.book.due - self.clock))

    def _store(self, group: list[Ticket]) -> None:
        if self.error is not None:
            raise self.error
        self._look()
        own = [ticket for ticket in group if ticket.work is None]
        if self._auto and self.ledger.lock.trains and self.due and self._rested:
            own.append(Ticket("advance"))
        if own:
            self._write(own)
        else:
            self._hand(self._follow(self.ledger.after(self.book.seq)))
        for ticket in own:
            ticket.done()
        for ticket in group:
            if ticket.work is not None:
                ticket.work()
                ticket.done()
        self._tidy(own)

    @property
    def _rested(self) -> bool:
        return time.monotonic() - self._advanced >= PAUSE

    def _tidy(self, group: list[Ticket]) -> None:
        """What nobody waits for."""
        if any(ticket.state is not None for ticket in group):
            self._trim()
        if self._stale and self.ledger.lock.trains:
            self._stale = self.ledger.sweep()

    def _look(self) -> None:
        """Whether the one who trains has gone."""
        if not self.ledger.lock.trains and time.monotonic() - self._looked >= LOOK:
            self.ledger.lock.train()
            self._looked = time.monotonic()

    def _write(self, group: list[Ticket]) -> None:
        """All of it in one transaction, after what others have stored."""
        begun = time.monotonic()
        changes: list[Change] = []
        with self.turn():
            for ticket in group:
                try:
                    changes += self._enter(ticket)
                except ValueError as error:
                    ticket.error = error
            events = [ticket.event for ticket in group if ticket.event]
            states = [(t.event.seq, t.state) for t in group if t.event and t.state is not None]
            self.ledger.append(events, states)
        self._register.stored()
        self._served(group, time.monotonic() - begun)
        self._hand(changes)

    @contextmanager
    def turn(self, *, long: bool = False) -> Iterator[None]:
        """Nobody else writes meanwhile; what others have stored is entered and handed on."""
        with self.ledger.turn(self.book.seq, long=long) as others:
            self._hand(self._follow(others))
            yield

    def _follow(self, events: Sequence[Event]) -> list[Change]:
        found: list[Change] = []
        for event in events:
            changes = self._register.follow(event).changes
            found += [*changes, *self._marks(len(changes))]
            if event.kind in FOREVER:
                self._hear(event)
        return found

    def _enter(self, ticket: Ticket) -> list[Change]:
        if ticket.kind == "advance":
            self._advanced = time.monotonic()
        ticket.word, changes = self._register.enter(ticket)
        return [*changes, *self._marks(len(changes))]

    def _trim(self) -> None:
        """Let go what is older than `keep`."""
        if self.book.keep is None:
            return
        then = self.clock - self.book.keep
        begun = [each.seq for each in self.ledger.declared() if each.kind == "shadow"]
        old = [e for e in self.ledger.checkpoints() if e.at <= then and not _amid(e, begun)]
        if old and old[-1].seq > self.ledger.base:
            self.ledger.rest_on(old[-1].seq, start=old[-1].read()["mark"][1])
            self._stale = True

    def _marks(self, examples: int) -> list[Mark]:
        self._examples += examples
        if self._examples < EVERY:
            return []
        self._examples = 0
        return [self.mark()]

    def mark(self) -> Mark:
        book = self.book
        return Mark(book.seq, book.since, book.w, book.latest, dict(book.counts))


def _amid(checkpoint: Event, begun: Sequence[int]) -> bool:
    """Whether a candidate came while a checkpoint was under way: what it began with would go."""
    mark = checkpoint.read()["mark"][0]
    return any(mark < seq < checkpoint.seq for seq in begun)
