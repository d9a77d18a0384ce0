"""How much one request, and one API key, may use."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import time
from collections import deque
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Any

from driftbandit import validate
from driftbandit.service.errors import RefusedError

Arms = Mapping[str, Any] | list[Any]
Owner = tuple[str, str]  # an API key, and the loop that it asks
SMALL = 1 << 16  # bytes of a body that is read quickly whatever it holds
PER_ARM = 25  # bytes of a probability in an answer, with its punctuation


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on what one request, and one API key, may use."""

    body: int = 1_000_000  # bytes
    batch: int = 1000  # decisions in one request
    arms: int = 1000  # in one decision
    positions: int = 100  # of one slate
    ranked: int = 10_000  # arms that one slate scores, at all its positions
    scored: int = 50_000  # arms that one request scores: at all positions of all its decisions
    numbers: int = 5_000_000  # coordinates of all these arms
    answer: int = 2_000_000  # bytes
    requests: int = 64  # of one key to one loop that are under way at once; others wait
    held: int = 4_000_000  # bytes of these requests
    loops: int = 100  # in one ledger
    candidates: int = 10  # of one loop: each of them is trained on all examples
    rows: int = 100_000  # in one evaluation
    streams: int = 100  # dashboards that are open at once
    rate: float = 5000.0  # decisions, rewards, ... per second of one key, and twice as many at once
    seconds: float = 30.0  # for an answer, and for a body to arrive

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            check = validate.count if field.type == "int" else validate.positive
            check(field.name, getattr(self, field.name), "a limit of the service")

    def check_body(self, size: int) -> None:
        if size > self.body:
            raise RefusedError(413, f"a body has at most {self.body} bytes: send less")

    def check_values(self, raw: bytes) -> None:
        """Raise if a body holds so many values that reading it would take long."""
        if len(raw) > SMALL and raw.count(b"{") + raw.count(b"[") > 2 * self.scored:
            raise RefusedError(
                413, f"a body has at most {2 * self.scored} lists and objects: send less"
            )

    def check_decision(self, arms: Arms, k: int | None) -> tuple[int, int]:
        """Return how many arms a decision scores, and the bytes of its answer."""
        if len(arms) > self.arms:
            raise RefusedError(
                422, f"a decision has at most {self.arms} arms, got {len(arms)}: send fewer"
            )
        if k is not None and k > self.positions:
            raise RefusedError(422, f"k is at most {self.positions}, got {k}: ask for fewer")
        places = 1 if k is None or k < 1 else k
        if places * len(arms) > max(self.arms, self.ranked):
            raise RefusedError(
                422,
                f"a slate scores at most {self.ranked} arms, {len(arms)} at each of {k} positions "
                "are more: ask for fewer",
            )
        names = 0 if isinstance(arms, list) else sum(map(len, arms))
        return places * len(arms), places * (names + PER_ARM * len(arms))

    def check_total(self, scored: int, coordinates: int, answer: int) -> None:
        """Raise if all decisions of a request together are too much work, or too long an answer."""
        most = min(self.scored, self.numbers // coordinates)
        if scored > most:
            raise RefusedError(
                413,
                f"a request scores at most {most} arms, at all positions, got {scored}: split it",
            )
        if answer > self.answer:
            raise RefusedError(
                413, f"an answer has at most {self.answer} bytes: send fewer arms or shorter names"
            )

    def check_batch(self, decisions: Sized) -> None:
        if len(decisions) > self.batch:
            raise RefusedError(
                413, f"a batch has at most {self.batch} decisions, got {len(decisions)}: split it"
            )


class Share:
    """What one key has under way at one loop, and what waits for its turn."""

    def __init__(self) -> None:
        self.requests, self.size = 0, 0
        self.waiting: deque[tuple[asyncio.Future[None], int]] = deque()


class UnderWay:
    """Lets in so many requests of one key to one loop at once, and so many bytes of them; the
    others wait in their order, and their bodies are not read. Used by the event loop alone."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._shares: dict[Owner, Share] = {}

    async def enter(self, owner: Owner, size: int) -> None:
        """Wait for the turn of a request of this size."""
        share = self._shares.get(owner)
        if share is None:
            share = self._shares[owner] = Share()
        if not share.waiting and self._fits(share, size):
            share.requests += 1
            share.size += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        share.waiting.append((turn, size))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                share.waiting.remove((turn, size))
            else:
                self.leave(owner, size)
            raise

    def leave(self, owner: Owner, size: int) -> None:
        """End a request; those that fit now have their turn."""
        share = self._shares[owner]
        share.requests -= 1
        share.size -= size
        while share.waiting and self._fits(share, share.waiting[0][1]):
            turn, more = share.waiting.popleft()
            share.requests += 1
            share.size += more
            turn.set_result(None)

    def _fits(self, share: Share, size: int) -> bool:
        room = share.size + size <= self._limits.held or not share.requests
        return room and share.requests < self._limits.requests


class RateLimiter:
    """A token bucket for every key: `rate` calls per second, twice as many at once. A batch takes
    one token for each of its decisions, and may leave the bucket in debt."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: dict[str, tuple[float, float]] = {}  # tokens, and when they were counted

    def take(self, name: str) -> None:
        """Take a token for a request; raise if there is none."""
        now, most = time.monotonic(), 2.0 * self._rate
        tokens, then = self._left.get(name, (most, now))
        tokens = min(most, tokens + (now - then) * self._rate)
        if tokens < 1.0:
            self._left[name] = tokens, now
            raise TooManyError(name, self._rate, (1.0 - tokens) / self._rate)
        self._left[name] = tokens - 1.0, now

    def charge(self, name: str, calls: int) -> None:
        """Take tokens for what a request turned out to hold, besides the one it has taken."""
        tokens, then = self._left[name]
        self._left[name] = tokens - calls, then


class TooManyError(RefusedError):
    """A key that sends too much; `seconds` is how long it should wait."""

    def __init__(self, name: str, rate: float, seconds: float) -> None:
        super().__init__(
            429, f"{name!r} asks for more than {rate:g} decisions or rewards per second: wait"
        )
        self.seconds, self.headers = seconds, {"retry-after": str(math.ceil(seconds))}
