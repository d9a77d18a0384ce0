"""The book: what events mean. Which decisions are open, and what is taught when, in which order.

A pure function of the events in order of `seq`: no clock, no database, no learner.

- A decision is open from its decide until a cancel, or until the first advance(w) with
  w >= at + wait. Then its last reward is taught, or `missing` if there was none.
- An advance teaches in the order (at + wait, seq).
- With wait = 0 the first reward closes the decision and is taught at once; `missing` never is.
- A reward or cancel for a decision that does not exist yet is held for `wait`.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.loop.events import SILENT, Event


class Lesson(NamedTuple):
    """A decision to be taught."""

    event: int  # seq of what closed it
    decision: int  # its own seq
    at: float
    value: float  # raw reward


class Outcome(NamedTuple):
    """What became of an event, and what the learner is to do: lessons, or grow."""

    word: str
    changes: list[Lesson | Event]


@dataclass(slots=True)
class Open:
    """A decision that waits."""

    seq: int
    at: float
    value: float | None = None


@dataclass(slots=True)
class Held:
    """A reward (or a cancel, which has no value) that waits for its decision."""

    first: int  # seq of the first that came
    seq: int  # and of the last
    value: float | None
    rewards: int


class Book:
    """Open decisions and counts after all events so far; `keep` closes what waits for longer."""

    def __init__(self, wait: float, missing: float | None, keep: float | None = None) -> None:
        self.wait, self.missing, self.keep = wait, missing, keep
        self.seq, self.w, self.latest = 0, -math.inf, -math.inf
        self.open: dict[str, Open] = {}
        self.held: dict[str, Held] = {}
        self.counts: Counter[str] = Counter()
        self._early: dict[str, int] = {}  # open decisions whose reward came first, and its seq
        self._due: list[tuple[float, int, str]] = []  # a heap; what is gone stays until its turn

    @property
    def due(self) -> float:
        """The earliest w at which an advance would close something."""
        first = self._due[:1]  # other threads ask, too
        return first[0][0] if first else math.inf

    @property
    def since(self) -> int:
        """Events before this one can be forgotten: nothing that they opened is open."""
        first = [open.seq for open in islice(self.open.values(), 1)]
        first += [held.first for held in islice(self.held.values(), 1)]
        return min([*first, *self._early.values()], default=self.seq + 1)

    def closes(self, at: float) -> float:
        """When the window of a decision closes, if no reward closes it before."""
        if self.wait > 0.0:
            return at + self.wait
        return math.inf if self.keep is None else at + self.keep

    def apply(self, event: Event) -> Outcome:
        """Go on by one event."""
        act: Any = getattr(self, f"_{event.kind}", None)
        word, changes = act(event) if act else ("", [])
        self.seq = event.seq
        if event.kind not in SILENT:
            self.latest = max(self.latest, event.at)
        if event.kind != "checkpoint":  # a cache is no fact
            self.counts[f"{event.kind} {word}".strip()] += 1
        return Outcome(word, changes)

    def _decide(self, event: Event) -> Outcome:
        id, held = str(event.id), self.held.pop(str(event.id), None)
        if held and held.value is None:
            self.counts["cancel cancelled"] += 1
            return Outcome("cancelled", [])
        if held:
            self._took(held.rewards)
            self._early[id] = held.first
        self.open[id] = Open(event.seq, event.at, held.value if held else None)
        self._expect(self.closes(event.at), event.seq, id)
        return Outcome("", [])

    def _took(self, rewards: int) -> None:
        """Rewards that were held count like those that come in time."""
        self.counts["reward counted"] += 1
        if rewards > 1:
            self.counts["reward corrected"] += rewards - 1

    def _expect(self, when: float, seq: int, id: str) -> None:
        if when < math.inf:
            heapq.heappush(self._due, (when, seq, id))

    def _reward(self, event: Event) -> Outcome:
        data, id = event.read(), str(event.id)
        if data["clipped"]:
            self.counts["clipped"] += 1
        found, value = self.open.get(id), float(data["value"])
        if found is None:
            return Outcome("late", []) if data["of"] else self._hold(event, id, value)
        if self.wait == 0.0:
            self.close(id)
            return Outcome("counted", [Lesson(event.seq, found.seq, found.at, value)])
        word = "counted" if found.value is None else "corrected"
        found.value = value
        return Outcome(word, [])

    def _cancel(self, event: Event) -> Outcome:
        if str(event.id) in self.open:
            self.close(str(event.id))
            return Outcome("cancelled", [])
        if event.read()["of"]:
            return Outcome("late", [])
        return self._hold(event, str(event.id), None)

    def _hold(self, event: Event, id: str, value: float | None) -> Outcome:
        """Keep it for `wait`: its decision may be on the way. A cancel is final."""
        if self.wait == 0.0:
            return Outcome("unknown", [])
        held = self.held.setdefault(id, Held(event.seq, event.seq, value, 0))
        held.seq, held.rewards = event.seq, held.rewards + (event.kind == "reward")
        held.value = None if held.value is None else value
        self._expect(event.at + self.wait, event.seq, id)
        return Outcome("held", [])

    def _advance(self, event: Event) -> Outcome:
        self.w = max(self.w, event.at)
        changes: list[Lesson | Event] = []
        while self.due <= self.w:
            _, seq, id = heapq.heappop(self._due)
            found, held = self.open.get(id), self.held.get(id)
            if found and found.seq == seq:
                self.close(id)
                changes += self._closed(found, event.seq)
            elif held and held.seq == seq:
                del self.held[id]
                self.counts["expired"] += 1
        return Outcome("", changes)

    def close(self, id: str) -> None:
        """A decision is open no longer."""
        del self.open[id]
        self._early.pop(id, None)

    def _closed(self, found: Open, event: int) -> list[Lesson]:
        """What a decision teaches whose time is over."""
        value = self.missing if found.value is None else found.value
        if found.value is None:
            self.counts["missing"] += 1
        if value is None or self.wait == 0.0:
            return []
        return [Lesson(event, found.seq, found.at, value)]

    def _grow(self, event: Event) -> Outcome:
        return Outcome("", [event])
