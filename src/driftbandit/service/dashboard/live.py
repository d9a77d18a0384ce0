"""The live view of a loop: its health and latest decisions, made once for all who watch."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec

from driftbandit.loop.deciding.types import Decision, Place, Slate
from driftbandit.loop.loop import Loop
from driftbandit.loop.storage.events import LedgerError
from driftbandit.service.http.errors import RefusedError
from driftbandit.service.http.limits import Limits
from driftbandit.service.pool.loop_pool import Loops
from driftbandit.service.schema import views as v

PAUSE = 1.0  # seconds from one view to the next, at least
REST = 4.0  # times as long as the latest view took: watching takes at most a fifth of a core
TICK = 0.25  # seconds after which a stream looks for a new view, or for the end
LIFE = 30.0  # seconds of a stream; whoever asks again shows the key again
GONE = 10.0  # seconds after which nobody watches
POINTS, LATEST, NOTED, TERMS = 300, 12, 4, 4  # of a history; decisions; of one view; reasons


class Live:
    """Views of all loops. A thread of its own makes them, one after the other."""

    def __init__(self, loops: Loops, limits: Limits) -> None:
        self._loops, self._limits, self._streams = loops, limits, 0
        self._watched: dict[str, Watched] = {}
        self._thread = ThreadPoolExecutor(1, "driftbandit live")
        self.over: Callable[[], bool] = lambda: False  # whether the server stops

    async def view(self, name: str) -> v.Overview:
        """The latest view, or a new one if it is time."""
        if name not in self._watched:
            await self._run(self._loops.get, name)  # refuses a name that there is not
            self._watched.setdefault(name, Watched(name))
        watched = self._watched[name]
        watched.asked = time.monotonic()
        async with watched.turn:
            if time.monotonic() >= watched.due:
                await self._run(lambda: watched.look(self._loops.get(name)))
        return watched.view

    async def _run(self, act: Callable[..., Any], *args: Any) -> None:
        running = asyncio.get_running_loop().run_in_executor(self._thread, act, *args)
        await asyncio.wait_for(running, self._limits.seconds)

    async def stream(self, name: str) -> AsyncIterator[bytes]:
        """New views as server-sent events, after a first one that says what is wrong, if anything
        is."""
        if self._streams >= self._limits.streams:
            raise RefusedError(503, f"{self._streams} pages watch already: close some, ask again")
        return self._events(name, await self.view(name))

    async def _events(self, name: str, found: v.Overview) -> AsyncIterator[bytes]:
        sent, end = None, time.monotonic() + LIFE
        self._streams += 1
        try:
            with suppress(LedgerError, RefusedError, asyncio.TimeoutError):  # it is told when asked
                while not self.over() and time.monotonic() < end:
                    if found is not sent:
                        yield b"data: " + msgspec.json.encode(found) + b"\n\n"
                        sent = found
                    await asyncio.sleep(TICK)
                    found = await self.view(name)
        finally:
            self._streams -= 1

    def note(self, name: str, found: Decision | Slate) -> None:
        """A decision that was just made, for who watches."""
        watched = self._watched.get(name)
        if watched and time.monotonic() - watched.asked < GONE:
            watched.noted.append((time.time(), found))

    def close(self) -> None:
        self._thread.shutdown()


class Watched:
    """What is shown of one loop. The history is as old as the first look."""

    view: v.Overview

    def __init__(self, name: str) -> None:
        self._name, self._seen, self._again = name, ({"": 0}, 0), True  # unlike any loop
        self.asked, self.due, self.turn = -math.inf, -math.inf, asyncio.Lock()
        self.noted: deque[tuple[float, Decision | Slate]] = deque(maxlen=NOTED)
        self._latest: deque[v.Shown] = deque(maxlen=LATEST)
        self._history: deque[v.Point] = deque(maxlen=POINTS)
        self._since: float | None = None

    def look(self, loop: Loop) -> None:
        """Make a new view if anything has happened, and once more when that is trained, too."""
        begun, seen = time.monotonic(), (loop.counts, loop.lag.examples)
        if self._again or seen != self._seen:
            self._again, self._seen = seen != self._seen, seen
            self.view = self._look(loop)
        self.due = time.monotonic() + max(PAUSE, REST * (time.monotonic() - begun))

    def _look(self, loop: Loop) -> v.Overview:
        since, found = self._since, health(self._name, loop, self._since)
        report = found.report
        self._since = _middle(report["curve"])
        shares = report["exploration"], report["missing"]
        self._history.append(v.Point(time.time(), report["memory"], *shares, found.behind))
        while self.noted:
            self._latest.extendleft(_shown(*self.noted.popleft()))
        return v.Overview(found, since, list(self._history), list(self._latest))


def health(name: str, loop: Loop, since: float | None) -> v.Health:
    """How a loop is doing, and with `since` what has changed."""
    report = loop.health(since=since).to_dict()
    mode, policy = loop.settings.mode, type(loop.policy).__name__
    return v.Health(name, mode, policy, loop.counts, *loop.lag, report)


def _middle(curve: list[dict[str, Any]]) -> float | None:
    """Half of what is shown is before, half after."""
    return curve[len(curve) // 2]["start"] if len(curve) > 1 else None


def _shown(at: float, found: Decision | Slate) -> list[v.Shown]:
    """A decision, or all positions of a slate, the last one first."""
    if isinstance(found, Decision):
        return [_line(at, found, None, found, found.why)]
    both = enumerate(zip(found.places, found.why))
    return [_line(at, found, k, place, why) for k, (place, why) in both][::-1]


def _line(
    at: float, found: Decision | Slate, position: int | None, place: Decision | Place, why: Any
) -> v.Shown:
    line = v.Shown(found.id, at, found.role, position, place.arm, place.probability)
    if why is not None:
        line.runner_up, line.lead = why.runner_up, why.lead
        line.terms = dict([term for term in why.terms.items() if term[1]][:TERMS])
    return line
