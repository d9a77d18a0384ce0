"""The loops of a ledger, open while the service runs.

Each loop is opened, or closed after a failure, by one task of its own, so that a loop that takes
long to open holds up no other one. Requests for it wait for that task, off all working threads.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from driftbandit.loop.config import check_name
from driftbandit.loop.loop import Loop
from driftbandit.loop.storage.ledger import names
from driftbandit.loop.storage.store import is_url
from driftbandit.service.errors import LedgerError, RefusedError
from driftbandit.service.schema.options import check_new

log = logging.getLogger("driftbandit.service")
MOVED = (
    "the ledger's file was moved, replaced or deleted while the service runs: put it back and "
    "restart the service"
)
PAUSE = 1.0  # seconds between two attempts to open a loop that has stopped
BETWEEN = 0.05  # seconds between two looks for a loop that is not known
THREADS = 4  # that open loops

Opener = Callable[..., Loop]  # takes the ledger, name= and the options of a new loop


class LoopPool:
    """One `Loop` for each name. A loop that has stopped, because the disk was full for example, is
    opened again with the next request for it."""

    def __init__(self, path: str, opener: Opener = Loop) -> None:
        self.path, self._opener = path, opener
        self._known = frozenset(names(path))
        self._file = file_at(path)  # the ledger's, as long as the service runs
        self._moved = False
        self._open: dict[str, Loop] = {}
        self._tasks: dict[str, Future[Loop]] = {}  # what is done with a loop that is not open
        self._failed: dict[str, tuple[float, str]] = {}  # when, and what was wrong
        self._lock = threading.Lock()  # guards the four above; never held while a loop works
        self._threads = ThreadPoolExecutor(THREADS, "driftbandit open")
        self._closed = False
        self._looking, self._looked = asyncio.Lock(), -BETWEEN  # for loops of other services

    @property
    def names(self) -> list[str]:
        return sorted(self._known)

    @property
    def opened(self) -> dict[str, Loop]:
        return dict(self._open)

    @property
    def ready(self) -> bool:
        return not (self._closed or self._moved) and self._known == self._open.keys()

    def open_all(self) -> None:
        """Open the loops that are not open or have stopped, one after the other; that replays what
        came after their checkpoints. Other services may have declared new ones."""
        self._refresh()
        if not self._moved and file_at(self.path) != self._file:
            self._moved = True
            log.error("%s; it was %r", MOVED, self.path)
        for name, loop in self.opened.items():
            self.close_if_stopped(name, loop)
        for name in self.names:
            with suppress(RefusedError):
                self.task(name)[0].result()

    def _refresh(self) -> None:
        """Read which loops there are."""
        with suppress(LedgerError):
            found = names(self.path, write=False)
            with self._lock:
                self._known = self._known.union(found)

    async def wait_for(self, name: str) -> Loop:
        """Return the loop of this name once it is open."""
        if self._moved:
            raise RefusedError(503, MOVED)
        found = self._open.get(name)
        if found is not None:
            return found
        if name not in self._known and is_url(self.path):
            await self._look_for(name)
        return await _result(self.task(name)[0])

    async def _look_for(self, name: str) -> None:
        """Look for a loop that another service may have declared. One read answers all who asked
        before it began, and reads have a pause between them, whatever clients ask for."""
        asked = time.monotonic()
        async with self._looking:
            if name in self._known or self._looked > asked:
                return
            await asyncio.sleep(self._looked + BETWEEN - asked)
            self._looked = time.monotonic()
            await asyncio.to_thread(self._refresh)

    async def create(self, name: str, options: Mapping[str, Any]) -> tuple[Loop, bool]:
        """Return the loop of this name, declared with these options if there is none, and whether
        it is new."""
        check_name(name)
        if is_url(self.path):
            await asyncio.to_thread(self._refresh)
        if name in self._known:
            return await self.wait_for(name), False
        await asyncio.to_thread(check_new, options)
        task, new = self.task(name, options)
        return await _result(task), new

    def task(
        self, name: str, options: Mapping[str, Any] | None = None
    ) -> tuple[Future[Loop], bool]:
        """Return the task that opens a loop, and whether this call has started it. With options it
        declares a new loop."""
        with self._lock:
            if (task := self._tasks.get(name)) is not None:
                return task, False
            if (loop := self._open.get(name)) is not None:
                task = Future()
                task.set_result(loop)
                return task, False
            self._check(name, options)
            return self._start(name, lambda: self._opened(name, options)), True

    def _check(self, name: str, options: Mapping[str, Any] | None) -> None:
        """Raise if there is no use in opening a loop now."""
        if self._closed:
            raise RefusedError(503, "the service is stopping: ask again")
        if self._moved:
            raise RefusedError(503, MOVED)
        if name not in self._known and options is None:
            raise _unknown(name)
        when, wrong = self._failed.get(name, (0.0, ""))
        if time.monotonic() - when < PAUSE:
            raise RefusedError(503, wrong)

    def _start(self, name: str, work: Callable[[], Loop]) -> Future[Loop]:
        """Start the one task of a name; the lock is held."""
        self._tasks[name] = self._threads.submit(self._run, name, work)
        return self._tasks[name]

    def _run(self, name: str, work: Callable[[], Loop]) -> Loop:
        try:
            loop = work()
            with self._lock:
                self._open[name], self._known = loop, self._known | {name}
            return loop
        finally:
            with self._lock:
                del self._tasks[name]

    def _opened(self, name: str, options: Mapping[str, Any] | None) -> Loop:
        if options is not None:
            return self._opener(self.path, name=name, **options)
        try:
            return self._opener(self.path, name=name)
        except ValueError as error:
            if str(error) != self._failed.get(name, (0.0, ""))[1]:
                log.warning("loop %s does not open: %s", name, error)
            self._failed[name] = time.monotonic(), str(error)
            raise RefusedError(503, str(error)) from None

    def close_if_stopped(self, name: str, loop: Loop) -> None:
        """Close a loop that has stopped, so that it can be opened again; do not wait for that."""
        try:
            loop.check()
        except LedgerError as error:
            with self._lock:
                if self._open.get(name) is loop and not self._closed:
                    del self._open[name]
                    wrong = str(error)
                    self._start(name, lambda: self._stopped(name, loop, wrong))

    def _stopped(self, name: str, loop: Loop, wrong: str) -> Loop:
        self._failed[name] = time.monotonic(), wrong
        with suppress(ValueError):
            loop.close()
        raise RefusedError(503, wrong)

    def close(self) -> None:
        """Store and train all that was acknowledged, and stop."""
        with self._lock:
            self._closed = True
        self._threads.shutdown()
        for name, loop in self._open.items():
            try:
                loop.close()
            except ValueError as error:
                log.error("loop %s did not close well: %s", name, error)
        self._open.clear()


def file_at(path: str) -> tuple[int, int] | None:
    """Return device and number of the file at a path; None if there is none, or for an address."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _unknown(name: str) -> RefusedError:
    return RefusedError(404, f"no loop {name!r}: declare it with PUT /v1/loops/NAME")


async def _result(task: Future[Loop]) -> Loop:
    """Wait for a task that others wait for, too: one of them that gives up does not cancel it."""
    return await asyncio.shield(asyncio.wrap_future(task))
