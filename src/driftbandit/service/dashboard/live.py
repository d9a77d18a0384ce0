"""Live views of loops: health and latest decisions, made once for all dashboards."""

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

from driftbandit.loop.deciding.types import Decision, Slate, SlatePosition
from driftbandit.loop.loop import Loop
from driftbandit.service.errors import LedgerError, RefusedError
from driftbandit.service.limits import Limits
from driftbandit.service.pool.loop_pool import LoopPool
from driftbandit.service.schema import messages as m

PAUSE = 1.0  # seconds from one view to the next, at least
REST = 4.0  # times as long as the latest view took: views take at most a fifth of a core
TICK = 0.25  # seconds after which a stream looks for a new view, or for the end
LIFE = 25.0  # seconds of a stream; the next request for one shows the key again
GONE = 10.0  # seconds after the last request for a view in which decisions are still noted
POINTS, LATEST, NOTED, TERMS = 300, 12, 4, 4  # of a history; decisions; of one view; reasons
SHOWN = 80  # characters of an arm's name
CHANGED, DETECTED = "just changed", 20  # a state of AutoDOMD; changes that are kept
CALM = 10.0  # seconds without that state, after which the next one is another change


class LiveViews:
    """Views of all loops. A thread of its own makes them, one after the other."""

    def __init__(self, pool: LoopPool, limits: Limits) -> None:
        self._pool, self._limits, self._streams = pool, limits, 0
        self._views: dict[str, LoopView] = {}
        self._thread = ThreadPoolExecutor(1, "driftbandit views")
        self.stopping: Callable[[], bool] = lambda: False  # set by the server
        self.happened: list[float] = []  # times of true changes; a demo adds them

    async def view(self, name: str) -> m.Overview:
        """Return the latest view, or a new one if it is time."""
        loop = await self._pool.wait_for(name)
        found = self._views.setdefault(name, LoopView(name, self.happened))
        found.asked = time.monotonic()
        async with found.turn:
            if time.monotonic() >= found.due:
                running = asyncio.get_running_loop()
                async with asyncio.timeout(self._limits.seconds):
                    await running.run_in_executor(self._thread, found.refresh, loop)
        return found.view

    async def stream(self, name: str) -> AsyncIterator[bytes]:
        """Return new views as server-sent events, after a first one that raises if it cannot be
        made."""
        if self._streams >= self._limits.streams:
            raise RefusedError(503, f"{self._streams} dashboards are open: close some, ask again")
        return self._events(name, await self.view(name))

    async def _events(self, name: str, found: m.Overview) -> AsyncIterator[bytes]:
        sent, end = None, time.monotonic() + LIFE
        self._streams += 1
        try:
            with suppress(LedgerError, RefusedError, TimeoutError):  # the next request is told
                while not self.stopping() and time.monotonic() < end:
                    if found is not sent:
                        yield b"data: " + msgspec.json.encode(found) + b"\n\n"
                        sent = found
                    await asyncio.sleep(TICK)
                    found = await self.view(name)
        finally:
            self._streams -= 1

    def note(self, name: str, found: Decision | Slate) -> None:
        """Show a decision that was just made, if a dashboard is open."""
        view = self._views.get(name)
        if view is not None and time.monotonic() - view.asked < GONE:
            view.noted.append((time.time(), found))

    def close(self) -> None:
        self._thread.shutdown()


class LoopView:
    """The view of one loop. Its history begins with the first request for it."""

    view: m.Overview

    def __init__(self, name: str, happened: list[float] | None = None) -> None:
        self._happened = [] if happened is None else happened
        self._name, self._seen, self._again = name, ({"": 0}, 0), True  # unlike any loop
        self.asked, self.due, self.turn = -math.inf, -math.inf, asyncio.Lock()
        self.noted: deque[tuple[float, Decision | Slate]] = deque(maxlen=NOTED)
        self._latest: deque[m.RecentDecision] = deque(maxlen=LATEST)
        self._history: deque[m.HistoryPoint] = deque(maxlen=POINTS)
        self._detected: deque[float] = deque(maxlen=DETECTED)
        self._since: float | None = None
        self._before: float | None = None  # a time before the change that was detected last

    def refresh(self, loop: Loop) -> None:
        """Make a new view if anything has happened, and once more when that is trained, too."""
        begun, seen = time.monotonic(), (loop.counts, loop.lag.examples)
        if self._again or seen != self._seen:
            self._again, self._seen = seen != self._seen, seen
            self.view = self._made(loop)
        self.due = time.monotonic() + max(PAUSE, REST * (time.monotonic() - begun))

    def _made(self, loop: Loop) -> m.Overview:
        found, since = self._compared(loop), self._since
        report = found.report
        shares = report["exploration_share"], report["missing"]
        point = m.HistoryPoint(
            time.time(), report["memory"], *shares, found.behind, report["state"]
        )
        self._detect(point)
        self._history.append(point)
        self._since = self._reference(report["curve"])
        while self.noted:
            self._latest.extendleft(_shown(*self.noted.popleft()))
        times = list(self._detected), list(self._happened)
        return m.Overview(found, since, *times, list(self._history), list(self._latest))

    def _reference(self, curve: list[dict[str, Any]]) -> float | None:
        """Return the time to compare with: before the latest change, or the middle of the curve.

        With clock="events" the curve may lie in the past, where no view was made.
        """
        if self._before is not None and curve and self._before <= curve[-1]["end"]:
            return self._before
        return _middle(curve)

    def _compared(self, loop: Loop) -> m.HealthResponse:
        try:
            return health_of(self._name, loop, self._since)
        except ValueError:  # a policy promoted since then has no estimate of that time
            self._since = self._before = None
            return health_of(self._name, loop, None)

    def _detect(self, point: m.HistoryPoint) -> None:
        """Note a change, and the time before it: memory was longest when it began to shrink."""
        if not self._history:
            return
        past = list(self._history)
        recent = [each.state for each in past if each.at >= point.at - CALM] + [past[-1].state]
        if point.state != CHANGED or CHANGED in recent:
            return
        last = self._detected[-1] if self._detected else -math.inf
        known = [each for each in past if each.at > last and each.state != CHANGED]
        if known:
            self._before = max(known, key=lambda each: (each.memory or 0.0, each.at)).at
        self._detected.append(point.at)


def health_of(name: str, loop: Loop, since: float | None) -> m.HealthResponse:
    """Return how a loop is doing, and with `since` what has changed."""
    report = loop.health(since=since).to_dict()
    mode, policy = loop.settings.mode, type(loop.policy).__name__
    return m.HealthResponse(name, mode, policy, loop.counts, *loop.lag, report)


def _middle(curve: list[dict[str, Any]]) -> float | None:
    """Half of what is shown is before, half after."""
    return curve[len(curve) // 2]["start"] if len(curve) > 1 else None


def _shown(at: float, found: Decision | Slate) -> list[m.RecentDecision]:
    """A decision, or all positions of a slate, the last one first."""
    if isinstance(found, Decision):
        return [_line(at, found, None, found, found.why)]
    both = enumerate(zip(found.places, found.why))
    return [_line(at, found, k, place, why) for k, (place, why) in both][::-1]


def _line(
    at: float,
    found: Decision | Slate,
    position: int | None,
    place: Decision | SlatePosition,
    why: Any,
) -> m.RecentDecision:
    chosen = _short(place.arm), place.probability
    line = m.RecentDecision(found.id, at, found.role, position, *chosen)
    if why is not None:
        line.runner_up, line.lead, line.bonus = _short(why.runner_up), why.lead, why.bonus
        line.terms = dict([term for term in why.terms.items() if term[1]][:TERMS])
        line.costs = dict(why.costs)
    return line


def _short(arm: Any) -> Any:
    """Return a name as it is shown: every stream has a copy of the view, and names may be long."""
    return f"{arm[: SHOWN - 1]}…" if isinstance(arm, str) and len(arm) > SHOWN else arm
