"""How much one request, and one API key, may use."""

from __future__ import annotations

import time
from collections.abc import Sized
from dataclasses import dataclass

from driftbandit import validate
from driftbandit.service.errors import RefusedError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on what one request, and one API key, may use."""

    body: int = 1_000_000  # bytes
    batch: int = 1000  # decisions in one request
    arms: int = 1000  # in one decision
    loops: int = 100  # in one ledger
    candidates: int = 10  # of one loop: each of them is trained on all examples
    rows: int = 100_000  # in one evaluation
    streams: int = 100  # dashboards that are open at once
    rate: float = 5000.0  # requests per second of one key, and twice as many at once
    seconds: float = 30.0  # for an answer, and for a body to arrive

    def __post_init__(self) -> None:
        for name in ("body", "batch", "arms", "loops", "candidates", "rows", "streams"):
            validate.count(name, getattr(self, name), "a limit of the service")
        for name in ("rate", "seconds"):
            validate.positive(name, getattr(self, name), "a limit of the service")

    def check_body(self, size: int) -> None:
        if size > self.body:
            raise RefusedError(413, f"a body has at most {self.body} bytes: send less")

    def check_arms(self, arms: Sized) -> None:
        if len(arms) > self.arms:
            raise RefusedError(
                422, f"a decision has at most {self.arms} arms, got {len(arms)}: send fewer"
            )

    def check_batch(self, decisions: Sized) -> None:
        if len(decisions) > self.batch:
            raise RefusedError(
                413, f"a batch has at most {self.batch} decisions, got {len(decisions)}: split it"
            )


class RateLimiter:
    """A token bucket for every key: `rate` requests per second, twice as many at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: dict[str, tuple[float, float]] = {}  # tokens, and when they were counted

    def take(self, name: str) -> None:
        now, most = time.monotonic(), 2.0 * self._rate
        tokens, then = self._left.get(name, (most, now))
        tokens = min(most, tokens + (now - then) * self._rate)
        self._left[name] = max(tokens - 1.0, 0.0), now
        if tokens < 1.0:
            raise RefusedError(
                429, f"{name!r} sends more than {self._rate:g} requests per second: wait"
            )
