"""Calls that come at the same time are made together: one thread computes, one write stores."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from driftbandit.loop.storage.events import LedgerError
from driftbandit.service.pool.loop_pool import Loops

GROUP = 64  # calls that share a write
THREADS = 2  # one computes while the other waits for the disk

Calls = Sequence[tuple[str, Mapping[str, Any]]]


class Waiting(NamedTuple):
    """A request, and where its answers go."""

    name: str
    calls: Calls
    running: asyncio.AbstractEventLoop
    answer: asyncio.Future[list[Any]]


class Crowd:
    """Takes all requests that wait, and makes the calls of each loop together."""

    def __init__(self, loops: Loops, seconds: float) -> None:
        self._loops, self._seconds = loops, seconds
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name="driftbandit crowd", daemon=True)
            for _ in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    async def call(self, name: str, calls: Calls) -> list[Any]:
        """Answers in order; in place of a call that is refused, the error."""
        running = asyncio.get_running_loop()
        waiting = Waiting(name, calls, running, running.create_future())
        self._waiting.put(waiting)
        return await asyncio.wait_for(waiting.answer, self._seconds)

    def close(self) -> None:
        """Answer what waits, and stop."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (group := self._take()) is not None:
            for name in dict.fromkeys(each.name for each in group):
                self._make(name, [each for each in group if each.name == name])

    def _take(self) -> list[Waiting] | None:
        """What waits, up to so many calls; None at the end."""
        first = self._waiting.get()
        if first is None:
            return None
        group, size = [first], len(first.calls)
        with suppress(queue.Empty):
            while size < GROUP:
                found = self._waiting.get_nowait()
                if found is None:
                    self._waiting.put(None)  # after this group
                    break
                group.append(found)
                size += len(found.calls)
        return group

    def _make(self, name: str, group: list[Waiting]) -> None:
        try:
            made = self._together(name, [call for each in group for call in each.calls])
        except Exception as error:
            made = [error for each in group for _ in each.calls]
        parts, k = [], 0
        for each in group:
            parts.append(made[k : k + len(each.calls)])
            k += len(each.calls)
        with suppress(RuntimeError):  # the server has stopped meanwhile
            group[0].running.call_soon_threadsafe(_tell, group, parts)

    def _together(self, name: str, calls: list[Any]) -> list[Any]:
        loop = self._loops.get(name)
        try:
            made = loop.submit_many(calls)
        except LedgerError:
            self._loops.suspect(name, loop)
            raise
        if any(isinstance(each, LedgerError) for each in made):
            self._loops.suspect(name, loop)
        return made


def _tell(group: list[Waiting], parts: list[list[Any]]) -> None:
    """In the event loop's thread; who has gone meanwhile is not told."""
    for each, part in zip(group, parts):
        if not each.answer.done():
            each.answer.set_result(part)
