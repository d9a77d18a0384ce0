"""`driftbandit demo`: a simulated shop whose visitors change their tastes."""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from driftbandit.client.client import Client, UnreachableError

LOOP = "shop"
RATE = 25.0  # visitors per second
TURN = 75.0  # seconds after which tastes change
SLOWEST = 2.5  # seconds until a click comes
FIRST_TIMEOUT, TIMEOUT = 120.0, 2.0  # seconds to wait for an answer, at first and later on
LOOK = 1.0  # seconds from one look at the loop's health to the next
RECENT, BACK = 60.0, 0.9  # visits of a running mean; part of the former mean that is a recovery
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

    def visit(self, now: float) -> float:
        """Serve one visitor, `now` seconds after the start, and send the clicks that are due.

        Return how likely the visitor was to click on what was shown.
        """
        phone = self._rng.random() < 0.5
        made = self._client.decide({"phone": phone}, OFFERS, default=DEFAULT)
        likely = chance(phone, OFFERS[str(made.arm)]["kind"], now)
        if self._rng.random() < likely:
            when = now + self._rng.uniform(0.3, SLOWEST)
            heapq.heappush(self._clicks, (when, made.id))
        while self._clicks and self._clicks[0][0] <= now:
            self._client.reward(heapq.heappop(self._clicks)[1], 1)
        return likely


def chance(phone: bool, kind: str, now: float) -> float:
    """Return how likely a visitor clicks."""
    on_phone, elsewhere = TASTES[int(now // TURN) % len(TASTES)]
    if kind == (on_phone if phone else elsewhere):
        return LIKED
    return HOME if kind == "home" else OTHERS


class Narrator:
    """Says in the terminal what happens in the shop, and what the loop makes of it.

    The shop knows when tastes change; the loop is not told. `say` is called with one line, and
    `happened` with the time of each change.
    """

    def __init__(
        self, say: Callable[[str], None], happened: Callable[[float], object] = lambda at: None
    ) -> None:
        self._happened = happened
        self._say, self._turn, self._changed = say, 0, 0.0
        self._before = self._recent = 0.0  # mean chance of a click that the shop's choices had
        self._noticed = self._recovered = True  # nothing has happened yet

    def opened(self) -> None:
        """Say what visitors like at first."""
        on_phone, others = TASTES[0]
        self._tell(
            0.0,
            f"the shop is open: {RATE:.0f} visitors per second like {on_phone} on phones, {others} "
            "elsewhere; the loop is not told",
        )

    def visited(self, now: float, chosen: float) -> None:
        """Note a visit, `now` seconds after the start, whose choice had this chance of a click."""
        self._recent += (chosen - self._recent) / RECENT
        if int(now // TURN) != self._turn:
            self._turn, self._changed, self._before = int(now // TURN), now, self._recent
            self._noticed = self._recovered = False
            self._happened(time.time())
            on_phone, others = TASTES[self._turn % len(TASTES)]
            self._tell(
                now,
                f"tastes change: {on_phone} on phones, {others} elsewhere; the loop is not told",
            )
        elif not self._recovered and now > self._changed + 2.0 and self._back():
            self._recovered = True
            self._tell(
                now,
                f"recovered, {now - self._changed:.0f} s after the change: visitors like "
                "what they see as much as before",
            )

    def _back(self) -> bool:
        return self._recent >= BACK * self._before

    def looked(self, now: float, report: Mapping[str, Any]) -> None:
        """Note what the loop's health says."""
        if not self._noticed and report["state"] == "just changed":
            self._noticed = True
            self._tell(now, f"the loop has noticed, {now - self._changed:.0f} s after the change")

    def concluded(self, now: float, report: Mapping[str, Any]) -> None:
        """Say how the loop did next to the shop's default."""
        ours, default = (report["values"].get(name) for name in ("loop", "default"))
        if (more := report["uplift"]) and more["relative"]:
            middle, low, high = (f"{100.0 * more[end]:+.0f} %" for end in ("mean", "low", "high"))
            self._tell(
                now,
                f"{middle} clicks over the default (95 %: {low} to {high}): {ours['mean']:.2f} per "
                f"visitor, where {DEFAULT!r} alone has {default['mean']:.2f}",
            )

    def _tell(self, now: float, text: str) -> None:
        self._say(f"{int(now) // 60:02d}:{int(now) % 60:02d}  {text}")


def run(
    address: Callable[[], str | None],
    over: Callable[[], bool],
    *,
    seconds: float = math.inf,
    opened: Callable[[str], object] = lambda url: None,
    happened: Callable[[float], object] = lambda at: None,
) -> None:
    """Declare the loop once the service has an address, and send visitors until it is over.

    `opened` is called with the address, once the dashboard has something to show, and `happened`
    with the time at which tastes change.
    """
    while (url := address()) is None:
        if over():
            return
        time.sleep(0.02)
    print(f"the demo runs: open {url} in a browser; Ctrl-C ends it", flush=True)
    try:
        _declare(url)
        opened(url)
        with Client(url, LOOP, timeout=TIMEOUT) as client:
            _visits(client, over, seconds, happened)
    except UnreachableError as error:
        if not over():  # else the service was stopped first
            print(f"the demo ends early: {error}", flush=True)


def _declare(url: str) -> None:
    """Declare the loop, and ask for a first decision, which may have to wait for a compiler."""
    with Client(url, LOOP, timeout=FIRST_TIMEOUT) as client:
        client.declare(**DECLARED)
        client.cancel(client.decide({"phone": False}, OFFERS, default=DEFAULT).id)


def _visits(
    client: Client,
    over: Callable[[], bool],
    seconds: float,
    happened: Callable[[float], object],
) -> None:
    """Send visitors, look at the loop's health every second, and say what happens."""
    shop, narrator = Shop(client), Narrator(lambda line: print(line, flush=True), happened)
    begun, looked, now = time.monotonic(), 0.0, 0.0
    narrator.opened()
    while not over() and (now := time.monotonic() - begun) < seconds:
        narrator.visited(now, shop.visit(now))
        if now - looked > LOOK:
            looked = now
            with suppress(UnreachableError):  # a busy machine: the next look tells
                narrator.looked(now, client.health()["report"])
        time.sleep(1.0 / RATE)
    if not over():
        narrator.concluded(now, client.health()["report"])
