"""`driftbandit serve --demo`: a simulated shop whose visitors change their tastes."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from driftbandit.client.client import Client, UnreachableError

LOOP = "shop"
RATE = 25.0  # visitors per second
TURN = 75.0  # seconds after which tastes change
SLOWEST = 2.5  # seconds until a click comes
FIRST_TIMEOUT, TIMEOUT = 120.0, 2.0  # seconds to wait for an answer, at first and later on
OFFERS = {
    "tent": {"kind": "outdoor"},
    "novel": {"kind": "books"},
    "lamp": {"kind": "home"},
    "speaker": {"kind": "music"},
}
DEFAULT = "lamp"  # what the shop shows today
KINDS = [offer["kind"] for offer in OFFERS.values()]
DECLARED: dict[str, Any] = {
    "features": {
        "context": {"phone": {"type": "Flag", "required": True}},
        "arm": {"kind": {"type": "Category", "values": KINDS, "required": True}},
    },
    "reward": {"low": 0, "high": 1, "wait": "3s", "missing": 0},
    "policy": "AutoDOMD",
    "exploration": 0.25,  # much: the value of other offers shows within minutes
    "holdout": 0.2,
}
# What visitors on a phone and others like best, one pair after the other.
TASTES = (("music", "books"), ("books", "outdoor"), ("outdoor", "music"))
LIKED, HOME, OTHERS = 0.6, 0.25, 0.08  # chances of a click; every visitor likes a lamp a little


class Shop:
    """Visitors, and their clicks, which come a little later. `seed` draws them."""

    def __init__(self, client: Client, seed: int = 0) -> None:
        self._client, self._rng = client, random.Random(seed)
        self._clicks: list[tuple[float, str]] = []  # a heap: when, and of which decision

    def visit(self, now: float) -> None:
        """One visitor, `now` seconds after the start, and the clicks that are due."""
        phone = self._rng.random() < 0.5
        made = self._client.decide({"phone": phone}, OFFERS, default=DEFAULT)
        if self._rng.random() < chance(phone, OFFERS[str(made.arm)]["kind"], now):
            when = now + self._rng.uniform(0.3, SLOWEST)
            heapq.heappush(self._clicks, (when, made.id))
        while self._clicks and self._clicks[0][0] <= now:
            self._client.reward(heapq.heappop(self._clicks)[1], 1)


def chance(phone: bool, kind: str, now: float) -> float:
    """Return how likely a visitor clicks."""
    on_phone, elsewhere = TASTES[int(now // TURN) % len(TASTES)]
    if kind == (on_phone if phone else elsewhere):
        return LIKED
    return HOME if kind == "home" else OTHERS


def run(address: Callable[[], str | None], over: Callable[[], bool]) -> None:
    """Declare the loop once the service has an address, and send visitors until it is over."""
    while (url := address()) is None:
        if over():
            return
        time.sleep(0.02)
    print(f"the demo runs: open {url} in a browser; Ctrl-C ends it", flush=True)
    with suppress(UnreachableError):  # the service was stopped first
        _declare(url)
        with Client(url, LOOP, timeout=TIMEOUT) as client:
            _visits(Shop(client), over)


def _declare(url: str) -> None:
    """Declare the loop, and ask for a first decision, which may have to wait for a compiler."""
    with Client(url, LOOP, timeout=FIRST_TIMEOUT) as client:
        client.declare(**DECLARED)
        client.cancel(client.decide({"phone": False}, OFFERS, default=DEFAULT).id)


def _visits(shop: Shop, over: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not over():
        shop.visit(time.monotonic() - begun)
        time.sleep(1.0 / RATE)
