"""Calls that wait at the same time are made together: one thread computes, one write stores."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from driftbandit.loop.loop import Loop
from driftbandit.service.errors import LedgerError
from driftbandit.service.pool.loop_pool import LoopPool

GROUP = 64  # calls that share a write
THREADS = 2  # one computes while the other waits for the disk

LoopCalls = Sequence[tuple[str, Mapping[str, Any]]]


class Submission(NamedTuple):
    """Calls of one request, and where their answers go."""

    name: str
    loop: Loop
    calls: LoopCalls
    running: asyncio.AbstractEventLoop
    answer: asyncio.Future[list[Any]]


class Batcher:
    """Takes all requests that wait, and makes the calls of each loop together. Its threads only
    ever meet loops that are open."""

    def __init__(self, pool: LoopPool) -> None:
        self._pool = pool
        self._waiting: queue.SimpleQueue[Submission | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"driftbandit batch {k}", daemon=True)
            for k in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    async def call(self, name: str, loop: Loop, calls: LoopCalls) -> list[Any]:
        """Return answers in order; in place of a call that is refused, the error."""
        running = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = running.create_future()
        self._waiting.put(Submission(name, loop, calls, running, answer))
        return await answer

    def close(self) -> None:
        """Answer what waits, and stop."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (group := self._take()) is not None:
            while group:
                loop = group[0].loop
                self._make([each for each in group if each.loop is loop])
                group = [each for each in group if each.loop is not loop]

    def _take(self) -> list[Submission] | None:
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

    def _make(self, group: list[Submission]) -> None:
        calls = [call for each in group for call in each.calls]
        try:
            made = group[0].loop.submit_many(calls)
        except Exception as error:
            made = [error] * len(calls)
        if any(isinstance(each, LedgerError) for each in made):
            self._pool.close_if_stopped(group[0].name, group[0].loop)
        with suppress(RuntimeError):  # the server has stopped meanwhile
            group[0].running.call_soon_threadsafe(_answer, group, made)


def _answer(group: list[Submission], made: list[Any]) -> None:
    """Hand answers over in the event loop's thread; requests that timed out get none."""
    first = 0
    for each in group:
        end = first + len(each.calls)
        if not each.answer.done():
            each.answer.set_result(made[first:end])
        first = end
