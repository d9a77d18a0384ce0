"""Reward windows: what events mean. Which decisions are open, and which examples they give when.

A pure function of the events in order of `seq`: no clock, no database, no learner.

- A decision is open from its decide until a cancel, or until the first advance(w) with
  w >= at + wait. Then its last reward is an example, or `missing` if there was none.
- A repair(t) sets w to t, and what is open and dated after t counts as of t (`clock` says why).
- An advance gives examples in the order (at + wait, seq).
- With wait = 0 the first reward closes the decision and is an example at once; `missing` never is.
  Without a reward it is closed after `UNREWARDED`, or after `retention` if that is shorter.
- Each position of a slate has its own reward, and is an example on its own, the first one first.
  With `pairs`, a slate of two has one reward, 1 if the first arm was preferred and 0 if the second
  was. Other decisions have none, but one may be preferred over another one while both are open:
  that is one example, given when the first of both closes.
- A reward or cancel for a decision that does not exist yet is held for `wait`.
- While there are policies to ask, each decision is passed on when it is made, and again if it ends
  without an example.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, NamedTuple

from driftbandit.loop.state.accounts import Accounts
from driftbandit.loop.state.asking import Asking
from driftbandit.loop.state.clock import LoopClock, Situation
from driftbandit.loop.storage.events import CHANGES, SILENT, SPENT, UNCOUNTED, Event, RewardGiven

Position = int | None  # in a slate, or None for a decision that is not one
UNREWARDED = 7 * 86400.0  # seconds for which a decision without a wait is open
HOUR = 3600.0  # how often such decisions are closed: each time is an event


class Example(NamedTuple):
    """A decision to be learnt from."""

    event: int  # seq of what closed it
    decision: int  # its own seq
    at: float
    value: float  # raw reward
    position: int | None = None  # in a slate
    key: str | None = None  # whose decision it was
    metrics: tuple[tuple[str, float], ...] = ()  # what was recorded of it, the last value each
    over: int | None = None  # seq of the decision that it is compared with


class Mark(NamedTuple):
    """Here the learner can be stored: it will have learnt all events up to `seq`."""

    seq: int
    since: int  # where to read on to know what is open
    w: float
    clock: LoopClock
    counts: dict[str, int]
    accounts: dict[str, Any] | None = None  # of budgets


class Asked(NamedTuple):
    """A decision that was just made: policies say what they would have done."""

    decision: int


class Lost(NamedTuple):
    """A decision that policies were asked about, and that gives no example: `why` is "cancelled" or
    "missing". Or a reward that came too "late" for its decision."""

    decision: int
    why: str
    event: int  # seq of what says so


Note = Asked | Lost  # about a decision; it changes no learner, and counts for no example
Change = Example | Note | Event | Mark


def counts(change: Change) -> bool:
    """Return whether a change counts in the position of the learner."""
    return not isinstance(change, (Asked, Lost, Mark))


class Effect(NamedTuple):
    """What became of an event, and what the learner is to do: examples, or another change."""

    word: str
    changes: list[Example | Note | Event]


class Rival(NamedTuple):
    """Another open decision that people have compared a decision with."""

    seq: int
    won: float  # by the decision itself: 1 if it was preferred, 0 if its rival was


@dataclass(slots=True)
class OpenDecision:
    """A decision that waits, with the last value of each position that is open."""

    seq: int
    at: float
    key: str | None
    k: int | None  # positions of a slate
    values: dict[Position, float | None]
    metrics: dict[tuple[Position, str], float] | None = None  # most have none, and many are open
    asked: bool = False  # whether policies say what they would have done
    rivals: dict[str, Rival] | None = None  # by id

    @property
    def places(self) -> list[Position]:
        """Positions that are open: both of a pair, which has one value for them. A decision without
        a value is none, and nothing is learnt from it."""
        pair = self.k is not None and None in self.values
        return [*range(self.k or 0)] if pair else [*self.values] or [None]

    def example(self, event: int, position: Position, value: float) -> Example:
        """Return what is learnt of a position; `event` closed it."""
        if self.metrics is None:
            return Example(event, self.seq, self.at, value, position, self.key)
        said = tuple((name, x) for (where, name), x in self.metrics.items() if where == position)
        return Example(event, self.seq, self.at, value, position, self.key, said)

    def comparison(self, event: int, rival: Rival) -> Example:
        """Return what is learnt of two decisions; `event` closed this one."""
        return Example(event, self.seq, self.at, rival.won, key=self.key, over=rival.seq)

    def record(self, position: Position, name: str, number: float) -> None:
        """Keep a metric of a position; the last value counts."""
        self.metrics = (self.metrics or {}) | {(position, name): number}


@dataclass(slots=True)
class EarlyRewards:
    """Rewards and cancels that arrived before their decision."""

    first: int  # seq of the first that came
    seq: int  # and of the last
    rewards: dict[Position, tuple[float, int]]  # the last one, and how many there were
    cancelled: set[Position]  # None: all of it

    def add(self, seq: int, position: Position, value: float | None) -> None:
        """Keep a reward, or a cancel, which has no value."""
        self.seq = seq
        if value is None:
            self.cancelled.add(position)
        else:
            _, before = self.rewards.get(position, (value, 0))
            self.rewards[position] = value, before + 1

    def apply_to(self, found: OpenDecision) -> Counter[str]:
        """Count these for a decision that has come, as if they had come in time. Returns how many
        there were of each kind."""
        hits = [each for each in self.cancelled if each is None or each in found.values]
        for position in [p for p in found.values if {p, None} & self.cancelled]:
            del found.values[position]
        rewards = {p: said for p, said in self.rewards.items() if p in found.values}
        found.values.update((position, value) for position, (value, _) in rewards.items())
        corrected = sum(n - 1 for _, n in rewards.values())
        counts = {"cancel cancelled": len(hits), "reward counted": len(rewards)}
        return +Counter(counts | {"reward corrected": corrected})


class RewardWindows:
    """Open decisions and counts after all events so far; `retention` closes what waits longer.
    With `by_events` decisions are the readings of the clock, with `pairs` people say which of two
    arms they prefer."""

    def __init__(
        self,
        wait: float,
        missing: float | None,
        retention: float | None = None,
        *,
        by_events: bool = False,
        pairs: bool = False,
    ) -> None:
        self.wait, self.missing, self.retention = wait, missing, retention
        self.pairs = pairs
        self.by_events, self.seq, self.w, self.clock = by_events, 0, -math.inf, LoopClock()
        self._farthest = self._look = -math.inf  # latest date of what is open; when to look at it
        self._unrewarded = UNREWARDED if retention is None else min(UNREWARDED, retention)
        self.open: dict[str, OpenDecision] = {}
        self.early: dict[str, EarlyRewards] = {}
        self.counts: Counter[str] = Counter()
        self.accounts = Accounts()
        self.ask_as(Asking())
        self._rewarded: dict[str, int] = {}  # open decisions whose reward came first, and its seq
        self._acts: dict[str, Callable[[Event, Any], Effect]] = {
            "decide": self._decide,
            "reward": self._reward,
            "cancel": self._cancel,
            "advance": self._advance,
            "metric": self._metric,
            "repair": self._repair,
        }
        self._acts |= dict.fromkeys(CHANGES, self._change)
        self._acts["configure"] = self._configure
        self._due: list[tuple[float, int, str]] = []  # a heap; what is gone stays until its turn

    @property
    def due(self) -> float:
        """The earliest w at which an advance would close something."""
        first = self._due[:1]  # other threads ask, too
        due = first[0][0] if first else math.inf
        return due if self._look == -math.inf else min(due, self._look)

    @property
    def situation(self) -> Situation:
        """What a reading of the clock is judged by."""
        return Situation(self.w, self.due, self._farthest)

    @property
    def since(self) -> int:
        """Events before this one can be forgotten: nothing that they opened is open."""
        first = [open.seq for open in islice(self.open.values(), 1)]
        first += [early.first for early in islice(self.early.values(), 1)]
        return min([*first, *self._rewarded.values()], default=self.seq + 1)

    def apply(self, event: Event, payload: Any = None) -> Effect:
        """Go on by one event; its `payload` need not be given, but is faster than to read it."""
        act = self._acts.get(event.kind)
        outcome = act(event, payload) if act else Effect("", [])
        self.seq = event.seq
        if event.kind not in SILENT:
            self._tell(event)
        if event.kind not in UNCOUNTED:
            word = outcome.word
            self.counts[f"{event.kind} {word}" if word else event.kind] += 1
        return outcome

    def _tell(self, event: Event) -> None:
        """Let the clock know when an event was."""
        clock = self.clock
        if event.v == 1:  # in version 0.2 every event was believed
            self.clock = clock._replace(time=max(clock.time, event.at))
        elif event.kind == "decide":
            self.clock = clock.decided(event.at, is_reading=self.by_events)
        elif event.kind == "advance":
            self.clock = clock.advanced(event.at)
        elif event.kind == "leap":
            self.clock = clock.leaping(event.at)
        elif event.kind == "repair":
            self.clock = LoopClock(event.at)

    def mark(self) -> Mark:
        """Return where a checkpoint that is made now goes on."""
        accounts = self.accounts.state()
        return Mark(self.seq, self.since, self.w, self.clock, dict(self.counts), accounts)

    def restore(self, mark: Mark) -> None:
        """Take over what windows that were not read from the beginning cannot know."""
        self.seq, self.w, self.clock = mark.seq, mark.w, mark.clock
        self.counts.clear()
        self.counts.update(mark.counts)
        self.accounts.load(mark.accounts)

    def _decide(self, event: Event, priced: Any) -> Effect:
        id, k = str(event.id), event.k
        values = self._values(k)
        found = OpenDecision(event.seq, event.at, event.key, k, values)
        early = self.early.pop(id, None) if self.early else None
        if early and (counts := early.apply_to(found)):
            self.counts.update(counts)
            if not values:
                return Effect("cancelled", [])
            self._rewarded[id] = early.first
        if event.data.startswith(SPENT):
            self.accounts.decide(event, priced)
        self.open[id] = found
        self._farthest = max(self._farthest, event.at)
        if self.wait or (event.v == 1 and self.retention is not None):
            lasts = self.wait or self.retention or 0.0
            heapq.heappush(self._due, (event.at + lasts, event.seq, id))
        if self.wait == 0.0 and self._look == -math.inf:
            self._look_at(event.at)
        if self._asks and k is None:
            found.asked = True
            return Effect("", [Asked(event.seq)])
        return Effect("", [])

    def _values(self, k: int | None) -> dict[Position, float | None]:
        """Return what is said of a decision of k positions: nothing yet."""
        if self.pairs:
            return {} if k is None else {None: None}
        return {None: None} if k is None else dict.fromkeys(range(k))

    def is_over(self, id: str, at: float) -> bool:
        """Return whether a moment is after the window of an open decision. Time may have moved on
        without an advance: with clock="events", or between two of them."""
        found = self.open.get(id)
        return found is not None and 0.0 < self.wait < at - found.at

    def _reward(self, event: Event, payload: Any) -> Effect:
        said, id = payload or event.read(), str(event.id)
        if said.clipped:
            self.counts["clipped"] += 1
        if said.over is not None:
            return self._compare(event, said)
        found, position = self.open.get(id), said.position
        if found is None:
            if said.of is None:
                return self._hold(event, id, position, said.value)
            # with `retention` the decision may be gone when this is replayed
            told = self._asks and self.retention is None
            return Effect("late", [Lost(said.of, "late", event.seq)] if told else [])
        if position not in found.values:  # trained or cancelled already
            return Effect("late", [])
        if said.late:
            return Effect("late", [Lost(found.seq, "late", event.seq)] if self._asks else [])
        if self.wait == 0.0:
            self._leave(id, found, position)
            return Effect("counted", [found.example(event.seq, position, said.value)])
        word = "counted" if found.values[position] is None else "corrected"
        found.values[position] = said.value
        return Effect(word, [])

    def _compare(self, event: Event, said: RewardGiven) -> Effect:
        """Keep which of two decisions was preferred. Both have to be open."""
        id, over = str(event.id), str(said.over)
        won, lost = self.open.get(id), self.open.get(over)
        if won is None or lost is None or said.late:
            return Effect("late", [])
        is_new = won.rivals is None or over not in won.rivals
        if self.wait == 0.0 and not is_new:
            return Effect("late", [])  # trained already
        won.rivals = (won.rivals or {}) | {over: Rival(lost.seq, 1.0)}
        lost.rivals = (lost.rivals or {}) | {id: Rival(won.seq, 0.0)}
        if self.wait == 0.0:
            return Effect("counted", [won.comparison(event.seq, won.rivals[over])])
        return Effect("counted" if is_new else "corrected", [])

    def _cancel(self, event: Event, payload: Any) -> Effect:
        said, id = payload or event.read(), str(event.id)
        found, position = self.open.get(id), said.position
        if found is None:
            return Effect("late", []) if said.of else self._hold(event, id, position, None)
        if said.unspent:
            self.accounts.cancel(event.seq, said.of, said.unspent)
        if position is None:
            self.close(id)
        elif position in found.values:
            self._leave(id, found, position)
        else:
            return Effect("late", [])
        return Effect("cancelled", _lost(found, "cancelled", event.seq))

    def _leave(self, id: str, found: OpenDecision, position: Position) -> None:
        """Close one position."""
        del found.values[position]
        if not found.values:
            self.close(id)

    def _hold(self, event: Event, id: str, position: Position, value: float | None) -> Effect:
        """Keep it for `wait`: its decision may be on the way. A cancel is final."""
        if self.wait == 0.0:
            return Effect("unknown", [])
        early = self.early.setdefault(id, EarlyRewards(event.seq, event.seq, {}, set()))
        early.add(event.seq, position, value)
        heapq.heappush(self._due, (event.at + self.wait, event.seq, id))
        self._farthest = max(self._farthest, event.at)
        return Effect("held", [])

    def _advance(self, event: Event, _: Any) -> Effect:
        self.w = max(self.w, event.at)
        return Effect("", self._close_due(event))

    def _repair(self, event: Event, _: Any) -> Effect:
        """Set the clock; what is open and dated after it counts as of now."""
        self.w = self._farthest = event.at
        for found in self.open.values():
            found.at = min(found.at, event.at)
        latest = event.at + (self.wait or self.retention or 0.0)
        self._due = [(min(due, latest), seq, id) for due, seq, id in self._due]
        heapq.heapify(self._due)
        self._look = min(self._look, event.at)
        return Effect("", self._close_due(event))

    def _close_due(self, event: Event) -> list[Example | Note | Event]:
        changes: list[Example | Note | Event] = []
        while self._due and self._due[0][0] <= self.w:
            _, seq, id = heapq.heappop(self._due)
            found, early = self.open.get(id), self.early.get(id)
            if found and found.seq == seq:
                self.close(id)
                changes += self._closed(found, event.seq)
            elif early and early.seq == seq:
                del self.early[id]
                self.counts["expired"] += 1
        if self.wait == 0.0 and event.v > 1:  # in version 0.2 they stayed open
            changes += self._close_unrewarded(event)
        return changes

    def _close_unrewarded(self, event: Event) -> list[Example | Note | Event]:
        """Close decisions without a wait that no reward came for: the oldest, up to the first that
        may stay. They have no entry in the heap, in which those with a reward would pile up."""
        changes: list[Example | Note | Event] = []
        old = takewhile(lambda each: each[1].at + self._unrewarded <= self.w, self.open.items())
        for id, found in list(old):
            self.close(id)
            changes += self._closed(found, event.seq)
        self._look = -math.inf
        for found in islice(self.open.values(), 1):
            self._look_at(found.at)
        return changes

    def _look_at(self, at: float) -> None:
        """Look for decisions to close once one of this time is too old, at a full hour."""
        self._look = math.ceil((at + self._unrewarded) / HOUR) * HOUR

    def close(self, id: str) -> None:
        """Close a decision: from now on others cannot be compared with it."""
        found = self.open.pop(id)
        self._rewarded.pop(id, None)
        for rival in found.rivals or ():
            del (self.open[rival].rivals or {})[id]

    def _closed(self, found: OpenDecision, event: int) -> list[Example | Note | Event]:
        """Return the examples of a decision whose time is over."""
        if found.rivals and self.wait:
            return [found.comparison(event, rival) for rival in found.rivals.values()]
        said = found.values.items()
        if nothing := sum(value is None for _, value in said):
            self.counts["missing"] += nothing
        values = [(p, self.missing if value is None else value) for p, value in said]
        if self.wait == 0.0 or all(value is None for _, value in values):
            return _lost(found, "missing", event)
        return [found.example(event, p, value) for p, value in values if value is not None]

    def _metric(self, event: Event, payload: Any) -> Effect:
        """Keep it for comparisons: an example takes along what was recorded before it."""
        said, found = payload or event.read(), self.open.get(str(event.id))
        if found and said.position in found.values:
            found.record(said.position, said.name, said.value)
        if said.bill is not None:
            self.accounts.bill(event.seq, said.of, said.name, said.bill, said.value)
        return Effect("unknown" if said.of is None and event.v > 1 else "", [])

    def _change(self, event: Event, _: Any) -> Effect:
        self.ask_as(self.asking.after(event))
        return Effect("", [event])

    def _configure(self, event: Event, _: Any) -> Effect:
        self.ask_as(self.asking.after(event))
        return Effect("", [])

    def ask_as(self, asking: Asking) -> None:
        """Pass decisions on from here, as long as there are policies to ask."""
        self.asking, self._asks = asking, asking.needed


def _lost(found: OpenDecision, why: str, event: int) -> list[Example | Note | Event]:
    return [Lost(found.seq, why, event)] if found.asked else []
