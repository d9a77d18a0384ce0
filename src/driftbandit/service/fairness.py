"""Keys share the service: who has cost much lately gives way to who has cost little.

What is computed for an API key is charged to it, in seconds. Beside a key that asks too, one that
has cost more than twice as much is heavy: its work is done in small pieces, one after the other,
and a piece waits while the other key has a request under way, for a few milliseconds at most. If
no other key asks, no key is heavy, and nothing waits.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
LATELY = 3.0  # seconds after which a third of a charge still counts
RECENT = 10.0  # seconds in which a key counts as one that asks
TIMES, LEAST = 2.0, 0.02  # a heavy key has cost so many times as much, and so many seconds more
PATIENCE = 0.005  # seconds that a piece of its work waits for lighter keys
PIECE = 0.001  # seconds of a piece of work on the event loop
REQUEST = 0.0002  # seconds charged for a request, before it is known what it asks


class Account:
    """What a key has cost lately, how many of its requests are under way, when it asked last."""

    __slots__ = ("_charged", "_cost", "asked", "under_way")

    def __init__(self, now: float) -> None:
        self.under_way, self.asked = 0, now
        self._cost, self._charged = 0.0, now

    def cost(self, now: float) -> float:
        return self._cost * math.exp((self._charged - now) / LATELY)

    def charge(self, seconds: float, now: float) -> None:
        self._cost, self._charged = self.cost(now) + seconds, now


class Shares:
    """The accounts of all keys that ask. Used by all threads; `freed` is called on the event loop
    when a key has no request under way any more."""

    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}
        self._lock = threading.Lock()  # guards the accounts; it takes no other
        self.freed: list[Callable[[], None]] = []

    def note(self, key: str) -> None:
        """Note that a key asks, and charge for it."""
        now = time.monotonic()
        with self._lock:
            account = self._account(key, now)
            account.asked = now
            account.charge(REQUEST, now)

    def _account(self, key: str, now: float) -> Account:
        if key not in self._accounts:
            self._forget(now)
            self._accounts[key] = Account(now)
        return self._accounts[key]

    def _forget(self, now: float) -> None:
        old = [
            key
            for key, each in self._accounts.items()
            if now - each.asked > RECENT and not each.under_way
        ]
        for key in old:
            del self._accounts[key]

    def charge(self, key: str, seconds: float) -> None:
        with self._lock:
            if (account := self._accounts.get(key)) is not None:
                account.charge(seconds, time.monotonic())

    @contextmanager
    def charged(self, key: str) -> Iterator[None]:
        """Charge a key for what this thread computes in the block."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self.charge(key, time.thread_time() - begun)

    @contextmanager
    def under_way(self, key: str) -> Iterator[None]:
        """A request that has arrived, until its answer is there: heavier keys wait for it. What a
        client is slow to send or to read does not count."""
        with self._lock:
            account = self._account(key, time.monotonic())
            account.under_way += 1
        try:
            yield
        finally:
            with self._lock:
                account.under_way -= 1
            if not account.under_way:
                for call in self.freed:
                    call()

    def cost(self, key: str) -> float:
        """Return what a key has cost lately, in seconds."""
        with self._lock:
            account = self._accounts.get(key)
            return 0.0 if account is None else account.cost(time.monotonic())

    def recent(self, seconds: float = RECENT) -> int:
        """Return how many keys have asked in these seconds."""
        with self._lock:
            latest = time.monotonic() - seconds
            return sum(each.asked >= latest for each in self._accounts.values())

    def is_heavy(self, key: str) -> bool:
        """Return whether a key has cost much more than another that asks lately."""
        return self._exceeds(key, lambda other, now: now - other.asked <= RECENT)

    def must_wait(self, key: str) -> bool:
        """Return whether a key that has cost much less has a request under way."""
        return self._exceeds(key, lambda other, _: other.under_way > 0)

    def _exceeds(self, key: str, counts: Callable[[Account, float], bool]) -> bool:
        if len(self._accounts) < 2:
            return False
        with self._lock:
            now, own = time.monotonic(), self._accounts.get(key)
            most = 0.0 if own is None else (own.cost(now) - LEAST) / TIMES
            return most > 0.0 and any(
                counts(each, now) and each.cost(now) < most for each in self._accounts.values()
            )


class Turns:
    """The order in which the event loop does what is long, or for heavy keys: one piece of work
    after the other, that of the lightest key first, and between two of them it looks at its
    connections. Used by the event loop alone."""

    def __init__(self, shares: Shares) -> None:
        self.shares = shares
        self._line: dict[str, deque[asyncio.Future[None]]] = {}
        self._pump: asyncio.Task[None] | None = None
        self._freed = asyncio.Event()
        shares.freed.append(self._freed.set)

    async def wait(self, key: str, *, is_long: bool = False) -> None:
        """Wait for the turn of a piece of work. It is at once if no other key asks, and if the work
        is short and the key is not heavy."""
        if not (self.shares.recent() > 1 if is_long else self.shares.is_heavy(key)):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.setdefault(key, deque()).append(turn)
        if self._pump is None:
            self._pump = asyncio.create_task(self._run())
        await turn

    async def each(self, key: str, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return what `work` gives for each item. Long work is done in pieces, and others have
        their turn in between."""
        made, left = list[R](), iter(items)
        while True:
            with self.shares.charged(key):
                end = time.perf_counter() + PIECE
                for item in left:
                    made.append(work(item))
                    if time.perf_counter() > end:
                        break
            if len(made) == len(items):
                return made
            await asyncio.sleep(0)
            await self.wait(key, is_long=True)

    async def _run(self) -> None:
        while self._line:
            await self._until_free(min(self._line, key=self.shares.cost))
            key = min(self._line, key=self.shares.cost)
            turn = self._line[key].popleft()
            if not self._line[key]:
                del self._line[key]
            if not turn.done():  # the request has not timed out
                turn.set_result(None)
                for _ in range(2):  # the piece is done, and connections are looked at
                    await asyncio.sleep(0)
        self._pump = None

    async def _until_free(self, key: str) -> None:
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0.0 and self.shares.must_wait(key):
            self._freed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._freed.wait()
            except TimeoutError:
                return
