"""Calls that wait at the same time are made together: one thread computes, one write stores.

Every API key that waits for a loop gets the same share of a group, and a request with many calls
is made in parts. A key that is heavy has small groups of its own, one at a time, and they wait
while a lighter key has a request under way (service/fairness.py).
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.loop.loop import Loop
from driftbandit.service.errors import LedgerError
from driftbandit.service.fairness import PATIENCE, TIMES, Shares
from driftbandit.service.pool.loop_pool import LoopPool

CALL = 20  # arms that cost as much as a call by itself
BYTES = 200  # of a body, which cost as much as an arm: they are checked and stored
GROUP = 64  # calls that share a write
SCORED = 1000  # arms that a group scores, unless one call alone has more
SMALL, FEW = 8, 250  # calls of a group of a heavy key, and arms that it scores
ASKED = 1.0  # seconds in which a key may ask again
THREADS = 2  # one computes while the other waits for the disk
MOST = 32  # threads, when loops do not answer
STALLED = 0.25  # seconds after which a group no longer counts as busy: other loops get a thread

LoopCalls = Sequence[tuple[str, Mapping[str, Any]]]


class Submission:
    """Calls of one request, and where their answers go. `scored` is how many arms they score, or
    what costs as much."""

    __slots__ = ("answer", "busy", "calls", "key", "loop", "made", "missing", "name", "scored",
                 "taken")  # fmt: skip

    def __init__(self, key: str, name: str, loop: Loop, calls: LoopCalls, scored: int) -> None:
        self.key, self.name, self.loop, self.calls = key, name, loop, calls
        self.scored = max(1, scored // max(1, len(calls)))  # of one call
        self.taken, self.missing, self.busy = 0, len(calls), False
        self.made: list[Any] = [None] * len(calls)
        self.answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

    def take(self, calls: int, scored: int) -> Part:
        """Return the next calls, so many at most, but one at least. Until they are made there is no
        other part: the calls of a request are stored in their order."""
        first = self.taken
        self.taken = min(len(self.calls), first + max(1, min(calls, scored // self.scored)))
        self.busy = True
        return Part(self, first, self.taken)


class Part(NamedTuple):
    """Calls of a submission that are made together."""

    of: Submission
    first: int
    end: int


class FairQueue:
    """Submissions that wait, by loop and key. Threads take groups; loops take turns, and the keys
    of a loop have equal shares of a group. A loop has at most `THREADS` groups under way. Beside
    one of a heavy key there are only groups of lighter ones, so a thread is free for them."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._waiting: dict[Loop, dict[str, deque[Submission]]] = {}
        self._groups: Counter[Loop] = Counter()  # under way
        self._heavy: dict[Submission, float] = {}  # of heavy keys, under way: since when
        self._held: dict[str, float] = {}  # heavy keys that wait for others: since when
        self._lock = threading.Lock()  # guards the four above; then it takes that of the shares
        self._news: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False: stop when all is made
        shares.freed.append(self._freed)

    def put(self, one: Submission) -> None:
        with self._lock:
            self._waiting.setdefault(one.loop, {}).setdefault(one.key, deque()).append(one)
        self._news.put(True)

    def take(self) -> list[Part]:
        """Wait for a group of one loop; return an empty one at the end."""
        while True:
            goes_on = self._next()
            with self._lock:
                found, left = self._group(), bool(self._waiting)
            if left and found:
                self._news.put(True)  # for another thread
            if not goes_on and (left or found):
                self._news.put(False)  # the end comes later
                time.sleep(0.0 if found else 0.001)  # another thread makes what is left
            if found or not (goes_on or left):
                return found

    def _next(self) -> bool:
        """Wait until there may be something to do; return False if it is the end."""
        try:
            return self._news.get(timeout=PATIENCE if self._held or self._heavy else None)
        except queue.Empty:
            return True

    def _freed(self) -> None:
        if self._held:
            self._news.put(True)

    def _group(self) -> list[Part]:
        for loop in list(self._waiting):
            if self._groups[loop] >= THREADS:
                continue
            keys = self._waiting.pop(loop)
            group = self._parts(keys)
            if keys:
                self._waiting[loop] = keys  # behind the other loops
            if group:
                self._groups[loop] += 1
                return group
        if not self._waiting:
            self._held.clear()
        return []

    def _parts(self, keys: dict[str, deque[Submission]]) -> list[Part]:
        """Take the share of every key; the first key is the last one the next time. A key that
        asked just now has its share, too: it may ask again while this group is made."""
        light = [key for key in keys if not self._shares.is_heavy(key)]
        active, group = max(1, len(light), self._shares.recent(ASKED)), list[Part]()
        for key in light:
            group += self._taken(keys, key, max(1, GROUP // active), SCORED // active)
        return group or self._small(keys, [key for key in keys if key not in light])

    def _small(self, keys: dict[str, deque[Submission]], heavy: list[str]) -> list[Part]:
        """Take a small group of the lightest of the heavy keys, if it may go first."""
        now = time.monotonic()
        for key in sorted(heavy, key=self._shares.cost):
            if self._is_held(key, now):
                continue
            if group := self._taken(keys, key, SMALL, FEW):
                self._heavy[group[0].of] = now
                return group
        return []

    def _is_held(self, key: str, now: float) -> bool:
        """Return whether a heavy key waits: for a group of a key that is not much heavier, or for
        requests of lighter keys, but not for long."""
        own = self._shares.cost(key)
        for one, since in self._heavy.items():
            if now - since < STALLED and own * TIMES > self._shares.cost(one.key):
                return True
        if not self._shares.must_wait(key):
            self._held.pop(key, None)
        elif now - self._held.setdefault(key, now) < PATIENCE:
            return True
        else:
            del self._held[key]
        return False

    def _taken(
        self, keys: dict[str, deque[Submission]], key: str, calls: int, scored: int
    ) -> list[Part]:
        """Take a share of a key, which is then behind the others."""
        found, waiting = self._share(keys[key], calls, scored), keys.pop(key)
        if waiting:
            keys[key] = waiting
        return found

    def _share(self, waiting: deque[Submission], calls: int, scored: int) -> list[Part]:
        found: list[Part] = []
        for one in list(islice(waiting, GROUP)):
            if calls <= 0 or (scored < one.scored and found):
                break
            if one.busy:
                continue
            if one.answer.done():  # the request has timed out
                waiting.remove(one)
                continue
            part = one.take(calls, scored)
            found.append(part)
            calls -= part.end - part.first
            scored -= (part.end - part.first) * one.scored
            if one.taken == len(one.calls):
                waiting.remove(one)
        return found

    def done(self, group: list[Part]) -> None:
        """Let the next parts of these submissions be taken."""
        with self._lock:
            for part in group:
                part.of.busy = False
            loop = group[0].of.loop
            self._heavy.pop(group[0].of, None)
            self._groups[loop] -= 1
            if not self._groups[loop]:
                del self._groups[loop]
            left = bool(self._waiting)
        if left:
            self._news.put(True)

    def close(self, threads: int) -> None:
        for _ in range(threads):
            self._news.put(False)


class Batcher:
    """Takes requests that wait, and makes the calls of each loop together. Its threads only ever
    meet loops that are open. If all of them wait for loops that do not answer, it starts more."""

    def __init__(self, pool: LoopPool, shares: Shares) -> None:
        self._pool, self._shares, self._queue = pool, shares, FairQueue(shares)
        self._busy: dict[threading.Thread, float] = {}  # since when
        self._threads: list[threading.Thread] = []
        self._looking = False
        for _ in range(THREADS):
            self._start()

    def _start(self) -> None:
        thread = threading.Thread(
            target=self._run, name=f"driftbandit batch {len(self._threads)}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    async def call(
        self, key: str, name: str, loop: Loop, calls: LoopCalls, scored: int
    ) -> list[Any]:
        """Return answers in order; in place of a call that is refused, the error. `key` is whose
        share of a group this is."""
        if not calls:
            return []
        one = Submission(key, name, loop, calls, scored)
        self._queue.put(one)
        if not self._looking and len(self._busy) >= len(self._threads):
            self._looking = True
            one.answer.get_loop().call_later(STALLED, self._look)
        return await one.answer

    def _look(self) -> None:
        """Start a thread if all have been busy for long; look again while they are."""
        busy = list(self._busy.values())
        self._looking = 0 < len(self._threads) <= len(busy) and len(self._threads) < MOST
        if self._looking:
            if max(busy) < time.monotonic() - STALLED:
                self._start()
            asyncio.get_running_loop().call_later(STALLED, self._look)

    def close(self) -> None:
        """Answer what waits, and stop."""
        self._queue.close(len(self._threads))
        for thread in list(self._threads):
            thread.join()

    def _run(self) -> None:
        me = threading.current_thread()
        while group := self._queue.take():
            self._busy[me] = time.monotonic()
            try:
                self._make(group)
            finally:
                del self._busy[me]
                self._queue.done(group)
            if len(self._threads) > THREADS:  # the others answer again
                break
        self._threads.remove(me)

    def _make(self, group: list[Part]) -> None:
        first, begun = group[0].of, time.thread_time()
        calls = [call for part in group for call in part.of.calls[part.first : part.end]]
        try:
            made = first.loop.submit_many(calls)
        except Exception as error:
            made = [error] * len(calls)
        self._charge(group, time.thread_time() - begun)
        if any(isinstance(each, LedgerError) for each in made):
            self._pool.close_if_stopped(first.name, first.loop)
        with suppress(RuntimeError):  # the server has stopped meanwhile
            first.answer.get_loop().call_soon_threadsafe(_answer, group, made)

    def _charge(self, group: list[Part], seconds: float) -> None:
        """Charge keys for what the group has cost, by calls and by the arms that they score."""
        work = [(part.end - part.first) * (CALL + part.of.scored) for part in group]
        for part, each in zip(group, work):
            self._shares.charge(part.of.key, seconds * each / sum(work))


def _answer(group: list[Part], made: list[Any]) -> None:
    """Hand answers over in the event loop's thread; requests that timed out get none."""
    answers = iter(made)
    for one, first, end in group:
        for k in range(first, end):
            one.made[k] = next(answers)
        one.missing -= end - first
        if not one.missing and not one.answer.done():
            one.answer.set_result(one.made)
