"""The hatch: callers hand tickets in and wait; all that wait are served together.

That is done in a thread of its own, or in that of the caller.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from driftbandit.loop.storage.events import LedgerError
from driftbandit.loop.writing.pending import Ticket

GROUP = 500  # tickets in one transaction
MOST_LINGER = 0.002  # seconds to wait for callers who were served just now: they come together


class Hatch:
    """With `auto` it has a thread of its own, from `open` on. Once something went wrong, all are
    refused."""

    def __init__(self, auto: bool) -> None:
        self.error: BaseException | None = None
        self.process, self._auto, self._closed = os.getpid(), auto, False
        self._tickets: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._expected, self._linger = 1, 0.0  # callers who may come at once; how long to wait
        self._turn = threading.Lock()  # where callers do the work themselves
        self._thread = threading.Thread(target=self._run, name="driftbandit clerk", daemon=True)

    def open(self) -> None:
        """Begin to serve."""
        if self._auto:
            self._thread.start()

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
                f"this loop was opened in process {self.process} and cannot be used after a fork: "
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
        """All tickets that wait, and whether it was the last time."""
        group: list[Ticket | None] = []
        with suppress(queue.Empty):
            group.append(self._tickets.get(timeout=self._patience() if self._auto else None))
            until = time.monotonic() + self._linger
            while len(group) < GROUP:
                left = until - time.monotonic() if len(group) < self._expected else 0.0
                group.append(self._tickets.get(left > 0.0, max(left, 0.0)))
        return [ticket for ticket in group if ticket], None in group

    def _patience(self) -> float:
        """Seconds until there may be something to do that nobody has asked for."""
        raise NotImplementedError

    def _store(self, group: list[Ticket]) -> None:
        """Do what was asked for, and what is to be done anyway."""
        raise NotImplementedError

    def _refuse(self, group: list[Ticket]) -> None:
        """Nothing of this group is stored, and nothing will be: the book is ahead of it."""
        for ticket in group:
            if ticket.gate.locked():
                told = self.error if isinstance(self.error, Exception) else None
                ticket.error = told or LedgerError("this loop was interrupted: open it again")
                ticket.done()

    def _served(self, group: list[Ticket], seconds: float) -> None:
        """They tend to come back together: wait for them, at most half the time of a write."""
        self._linger = min(MOST_LINGER, 0.5 * seconds)
        self._expected = len(group) + self._tickets.qsize()
