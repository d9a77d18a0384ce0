"""The book: what events mean. Which decisions are open, and what is trained when, in which order.

A pure function of the events in order of `seq`: no clock, no database, no learner.

- A decision is open from its decide until a cancel, or until the first advance(w) with
  w >= at + wait. Then its last reward is trained, or `missing` if there was none.
- An advance trains in the order (at + wait, seq).
- With wait = 0 the first reward closes the decision and is trained at once; `missing` never is.
- Each position of a slate has its own reward, and is trained on its own, the first one first.
- A reward or cancel for a decision that does not exist yet is held for `wait`.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from driftbandit.loop.state.waiting import Example as Example
from driftbandit.loop.state.waiting import Held, Open, Place
from driftbandit.loop.storage.events import CHANGES, SILENT, Event, slate_size


class Outcome(NamedTuple):
    """What became of an event, and what the learner is to do: examples, or another change."""

    word: str
    changes: list[Example | Event]


class Book:
    """Open decisions and counts after all events so far; `keep` closes what waits for longer."""

    def __init__(self, wait: float, missing: float | None, keep: float | None = None) -> None:
        self.wait, self.missing, self.keep = wait, missing, keep
        self.seq, self.w, self.latest = 0, -math.inf, -math.inf
        self.open: dict[str, Open] = {}
        self.held: dict[str, Held] = {}
        self.counts: Counter[str] = Counter()
        self._early: dict[str, int] = {}  # open decisions whose reward came first, and its seq
        self._acts: dict[str, Callable[[Event], Outcome]] = {
            "decide": self._decide,
            "reward": self._reward,
            "cancel": self._cancel,
            "advance": self._advance,
            "metric": self._metric,
        }
        self._acts |= dict.fromkeys(CHANGES, self._change)
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
        act = self._acts.get(event.kind)
        word, changes = act(event) if act else Outcome("", [])
        self.seq = event.seq
        if event.kind not in SILENT:
            self.latest = max(self.latest, event.at)
        if event.kind != "checkpoint":  # a cache is no fact
            self.counts[f"{event.kind} {word}" if word else event.kind] += 1
        return Outcome(word, changes)

    def _decide(self, event: Event) -> Outcome:
        id, k = str(event.id), slate_size(event)
        values: dict[Place, float | None] = dict.fromkeys([None] if k is None else range(k))
        found, held = Open(event.seq, event.at, event.key, k, values), self.held.pop(id, None)
        if held and (counts := held.come_true(found)):
            self.counts.update(counts)
            self._early[id] = held.first
        if not found.values:
            self._early.pop(id)
            return Outcome("cancelled", [])
        self.open[id] = found
        self._expect(self.closes(event.at), event.seq, id)
        return Outcome("", [])

    def _expect(self, when: float, seq: int, id: str) -> None:
        if when < math.inf:
            heapq.heappush(self._due, (when, seq, id))

    def _reward(self, event: Event) -> Outcome:
        data, id = event.read(), str(event.id)
        if data["clipped"]:
            self.counts["clipped"] += 1
        found, value, place = self.open.get(id), float(data["value"]), data.get("position")
        if found is None:
            return Outcome("late", []) if data["of"] else self._hold(event, id, place, value)
        if place not in found.values:  # trained or cancelled already
            return Outcome("late", [])
        if self.wait == 0.0:
            self._leave(id, found, place)
            return Outcome("counted", [found.example(event.seq, place, value)])
        word = "counted" if found.values[place] is None else "corrected"
        found.values[place] = value
        return Outcome(word, [])

    def _cancel(self, event: Event) -> Outcome:
        data, id = event.read(), str(event.id)
        found, place = self.open.get(id), data.get("position")
        if found is None:
            return Outcome("late", []) if data["of"] else self._hold(event, id, place, None)
        if place is None:
            self.close(id)
        elif place in found.values:
            self._leave(id, found, place)
        else:
            return Outcome("late", [])
        return Outcome("cancelled", [])

    def _leave(self, id: str, found: Open, place: Place) -> None:
        """One position is open no longer."""
        del found.values[place]
        if not found.values:
            self.close(id)

    def _hold(self, event: Event, id: str, place: Place, value: float | None) -> Outcome:
        """Keep it for `wait`: its decision may be on the way. A cancel is final."""
        if self.wait == 0.0:
            return Outcome("unknown", [])
        held = self.held.setdefault(id, Held(event.seq, event.seq, {}, set()))
        held.say(event.seq, place, value)
        self._expect(event.at + self.wait, event.seq, id)
        return Outcome("held", [])

    def _advance(self, event: Event) -> Outcome:
        self.w = max(self.w, event.at)
        changes: list[Example | Event] = []
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

    def _closed(self, found: Open, event: int) -> list[Example]:
        """What a decision trains whose time is over."""
        said = found.values.items()
        if nothing := sum(value is None for _, value in said):
            self.counts["missing"] += nothing
        if self.wait == 0.0:
            return []
        words = ((place, self.missing if value is None else value) for place, value in said)
        return [found.example(event, place, value) for place, value in words if value is not None]

    def _metric(self, event: Event) -> Outcome:
        """Kept for those who compare: a example takes along what was recorded before it."""
        data, found = event.read(), self.open.get(str(event.id))
        if found and data.get("position") in found.values:
            found.record(data.get("position"), data["name"], float(data["value"]))
        return Outcome("", [])

    def _change(self, event: Event) -> Outcome:
        return Outcome("", [event])
