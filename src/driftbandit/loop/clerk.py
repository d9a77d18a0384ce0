"""The clerk puts events in order, in a thread of its own or in that of the caller.

Callers hand in tickets and wait. The clerk gives them the next `seq`, enters them into the book,
stores all that have come meanwhile in one transaction, and then lets their callers go on. So an
event is acknowledged when it is on the disk, one wait for the disk serves many callers, and the
learner is taught nothing that could be lost.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from driftbandit.loop.book import Book
from driftbandit.loop.events import SILENT, Event, LedgerError, slate_size, write
from driftbandit.loop.ledger import Ledger
from driftbandit.loop.tickets import Change, Mark, Ticket

AHEAD = 300.0  # seconds that a decision may be ahead of the clock
PAUSE = 0.1  # seconds between two advances
GROUP = 500  # tickets in one transaction
MOST_LINGER = 0.002  # seconds to wait for callers who were served just now: they come together
EVERY = 10_000  # lessons from one checkpoint to the next


class Clerk:
    """`now` is the clock; without one, events are. With `auto` it has a thread of its own, and
    windows close by themselves."""

    def __init__(
        self,
        ledger: Ledger,
        book: Book,
        hand: Callable[[list[Change]], None],
        now: Callable[[], float] | None,
        auto: bool,
        lessons: int = 0,
    ) -> None:
        self.ledger, self.book, self._hand, self._now, self._auto = ledger, book, hand, now, auto
        self.error: BaseException | None = None
        self._tickets: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self.process, self._closed, self._advanced = os.getpid(), False, 0.0
        self._expected, self._linger = 1, 0.0  # callers who may come at once; how long to wait
        self._lessons = lessons  # since the latest mark, also of processes that were killed
        self._stale = ledger.start > 1  # whether there is something to delete, a little at a time
        self._decided: dict[str, Event] = {}  # of this group
        self._turn = threading.Lock()  # where callers do the work themselves
        self._thread = threading.Thread(target=self._run, name="driftbandit clerk", daemon=True)
        if auto:
            self._thread.start()

    @property
    def clock(self) -> float:
        """What time it is; it never goes back."""
        return self.book.latest if self._now is None else max(self._now(), self.book.w)

    @property
    def due(self) -> bool:
        """Whether an advance would close something."""
        return self.book.due <= self.clock

    def submit(self, ticket: Ticket) -> Ticket:
        """Wait until an event is stored; raises what is wrong with it."""
        self.submit_all([ticket])
        if ticket.error is not None:
            raise ticket.error
        return ticket

    def submit_all(self, tickets: Sequence[Ticket]) -> None:
        """Wait until events are stored; what is wrong with one is its `error`."""
        self.check()
        for ticket in tickets:
            ticket.gate.acquire()
            self._tickets.put(ticket)
        if not self._auto:
            self._work()
        for ticket in tickets:
            while not ticket.gate.acquire(timeout=1.0):
                if not self._thread.is_alive():
                    self.check()
                    raise LedgerError("the loop was closed meanwhile: open it again")

    def put(self, ticket: Ticket) -> None:
        """Hand a ticket in without waiting."""
        self._tickets.put(ticket)

    def check(self) -> None:
        """Raise if nothing can be stored any more."""
        if os.getpid() != self.process:
            raise LedgerError(
                f"this loop was opened in process {self.process} and is of no use after a fork: "
                "open loops after the fork only"
            )
        if self._closed:
            raise LedgerError("this loop is closed: open it again")
        if self.error is not None:
            raise LedgerError(f"this loop has stopped: {self.error}") from self.error

    def close(self) -> None:
        """Store what has been handed in, and stop."""
        self._closed = True
        if os.getpid() == self.process and self._auto:
            self._tickets.put(None)
            self._thread.join()
        elif os.getpid() == self.process:
            self._work()

    def _run(self) -> None:
        ended = False
        while not ended:
            group, ended = self._take()
            self._try(group)

    def _work(self) -> None:
        """Do in the caller's thread what waits to be done, and what comes of it."""
        with self._turn:
            while not self._tickets.empty():
                self._try(self._take()[0])

    def _try(self, group: list[Ticket]) -> None:
        try:
            self._store(group)
        except BaseException as error:  # Ctrl-C, too: the book is ahead of the ledger
            self.error = error
            self._refuse(group)
            if not isinstance(error, Exception):
                raise

    def _take(self) -> tuple[list[Ticket], bool]:
        """All tickets that wait, and an advance of its own if it is time."""
        group: list[Ticket | None] = []
        with suppress(queue.Empty):
            group.append(self._tickets.get(timeout=self._patience))
            until = time.monotonic() + self._linger
            while len(group) < GROUP:
                left = until - time.monotonic() if len(group) < self._expected else 0.0
                group.append(self._tickets.get(left > 0.0, max(left, 0.0)))
        if self._auto and self.due and time.monotonic() - self._advanced >= PAUSE:
            group.append(Ticket("advance"))
        return [ticket for ticket in group if ticket], None in group

    @property
    def _patience(self) -> float | None:
        return min(1.0, max(PAUSE, self.book.due - self.clock)) if self._auto else None

    def _store(self, group: list[Ticket]) -> None:
        if self.error is not None:
            raise self.error
        changes: list[Change] = []
        for ticket in group:
            try:
                changes += self._enter(ticket) if ticket.work is None else []
            except ValueError as error:
                ticket.error = error
        events = [ticket.event for ticket in group if ticket.event]
        states = [(t.event.seq, t.state) for t in group if t.event and t.state is not None]
        begun = time.monotonic()
        self.ledger.append(events, states)
        self._linger = min(MOST_LINGER, 0.5 * (time.monotonic() - begun))
        self._expected = len(group) + self._tickets.qsize()
        self._decided.clear()
        self._hand(changes)
        for ticket in sorted(group, key=lambda ticket: ticket.work is not None):
            if ticket.work is not None:
                ticket.work()
            ticket.done()
        if states:
            self._trim()
        if self._stale:
            self._stale = self.ledger.sweep()

    def _trim(self) -> None:
        """Let go what is older than `keep`."""
        if self.book.keep is None:
            return
        then = self.clock - self.book.keep
        old = [each for each in self.ledger.checkpoints() if each.at <= then]
        if old and old[-1].seq > self.ledger.base:
            self.ledger.rest_on(old[-1].seq, start=old[-1].read()["mark"][1])
            self._stale = True

    def _refuse(self, group: list[Ticket]) -> None:
        """Nothing of this group is stored, and nothing will be: the book is ahead of it."""
        for ticket in group:
            if ticket.gate.locked():
                told = self.error if isinstance(self.error, Exception) else None
                ticket.error = told or LedgerError("this loop was interrupted: open it again")
                ticket.done()

    def _enter(self, ticket: Ticket) -> list[Change]:
        """Give a ticket its place in the order, unless it is refused."""
        at, data = self.clock if ticket.at is None else ticket.at, ticket.data
        if ticket.kind in SILENT:
            at = max(at, 0.0)
        elif at == -math.inf:
            raise ValueError("with clock='events' the first event says when it was: pass at=...")
        if ticket.kind == "decide":
            if not ticket.fresh and (known := self._find(str(ticket.id))):
                ticket.known = known[0]
                return []
            self._check_time(at)
        elif ticket.kind == "advance":
            at, self._advanced = max(self.book.w, at), time.monotonic()
        elif ticket.id is not None:
            data = {**data, "of": self._of(ticket.id, ticket.kind, data.get("position"))}
        text = data if isinstance(data, str) else write(data)
        event = Event(self.book.seq + 1, ticket.kind, at, ticket.id, ticket.key, text)
        ticket.word, changes = self.book.apply(event)
        ticket.event = event
        if ticket.kind == "decide":
            self._decided[str(ticket.id)] = event
        return [*changes, *self._marks(len(changes))]

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
            raise ValueError(f"decision {id!r} is no slate: leave position out")
        if k is not None and (position is None or position >= k):
            remedy = f"pass position=, from 0 to {k - 1}"
            raise ValueError(f"decision {id!r} is a slate: {remedy}, got {position}")
        return seq

    def _check_time(self, at: float) -> None:
        if self.book.wait > 0.0 and self.book.closes(at) <= self.book.w:
            raise ValueError(
                f"at={at:.0f} is too long ago: its window closed before {self.book.w:.0f}; decide "
                "in order of time, or with clock='events' for a past that is filled in"
            )
        if self._now is not None and at > self.clock + AHEAD:
            raise ValueError(
                f"at={at:.0f} is {at - self.clock:.0f} seconds ahead of the clock: seconds since "
                "the epoch, or a datetime with a time zone, at most five minutes ahead"
            )

    def _marks(self, lessons: int) -> list[Mark]:
        self._lessons += lessons
        if self._lessons < EVERY:
            return []
        self._lessons = 0
        return [self.mark()]

    def mark(self) -> Mark:
        book = self.book
        return Mark(book.seq, book.since, book.w, book.latest, dict(book.counts))
