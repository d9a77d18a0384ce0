"""Retention: events older than a loop keeps are deleted, once a checkpoint stands for them.

A replay starts from a checkpoint and needs what was open then. So an event can go when a checkpoint
exists that needs nothing as old as it. Where a loop has a retention, checkpoints are made by time,
too, whether or not anything was learnt, so that the oldest decision is at most a day older than
declared (`CADENCE`, `LEEWAY` and `LOOK` together), as long as the loop is open. A loop that was
closed catches up when it opens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from driftbandit.durations import LAST
from driftbandit.loop.state.reward_windows import RewardWindows
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.ledger import Ledger

CADENCE = 21600.0  # seconds from one checkpoint to the next, at most
PARTS = 4  # checkpoints in the time that events are kept, at least
KEYED = 8  # of those that hold rows of keys, which are large: about so many are kept
LEEWAY = 43200.0  # seconds for which what is too old may stay, so that the rest can be audited
LOOK = 3600.0  # seconds between two looks for events that are too old


class Retention:
    """Says when a checkpoint is needed, and lets old events go. Owned by the writer."""

    def __init__(self, ledger: Ledger, windows: RewardWindows) -> None:
        self._ledger, self._windows = ledger, windows
        kept = windows.retention
        self._cadence = math.inf if kept is None else min(CADENCE, kept / PARTS)
        ledger.spacing = None if kept is None else max(self._cadence, kept / KEYED)
        self._looked, self._new, self._marked = -math.inf, False, windows.clock.time
        if kept is not None and (found := ledger.checkpoints()):
            self._marked, self._new = found[-1].at, windows.seq > found[-1].seq

    def note(self, events: Sequence[Event], now: float) -> None:
        """Take notice of events that were stored."""
        self._new = self._new or any(each.kind != "checkpoint" for each in events)
        self._marked = now if self._marked == -math.inf else self._marked

    def needs_mark(self, now: float) -> bool:
        """Return whether a checkpoint is due by time."""
        return self._new and now >= self._marked + self._cadence

    def marked(self, now: float) -> None:
        """Take notice of a checkpoint that is on its way."""
        self._marked, self._new = now, False

    def look_again(self) -> None:
        """Take notice of a checkpoint that is stored."""
        self._looked = -math.inf

    @property
    def due(self) -> bool:
        """Whether it is time to look for old events."""
        return self._windows.retention is not None and time.monotonic() >= self._looked + LOOK

    def apply(self, now: float) -> bool:
        """Let old events go, in this process's turn: that is an event. Returns whether there are
        any."""
        self._looked = time.monotonic()
        return let_go(self._ledger, self._windows, now)


def let_go(ledger: Ledger, windows: RewardWindows, now: float) -> bool:
    """Forget what is older than `retention`; return whether there are events to delete."""
    if windows.retention is None or not windows.clock.may_delete:
        return False
    begun = [each.seq for each in ledger.lasting() if each.kind == "shadow"]
    able = [e for e in ledger.checkpoints() if not _amid(e, begun)]
    base, start = _new_bounds(ledger, able, now - windows.retention)
    if base < ledger.base or start <= ledger.decision_after(-LAST):
        return False  # nothing would go
    anchor = ledger.rest_on(base, start, windows.seq + 1, max(now, 0.0))
    if anchor:
        windows.apply(anchor)
    return anchor is not None


def _new_bounds(ledger: Ledger, able: Sequence[Event], then: float) -> tuple[int, int]:
    """Return the checkpoint that replays start from, and the first event that is kept; zeros if
    nothing has to change.

    All that is kept can be audited if the checkpoint is of that time. It may need what was open
    then, which is older. Once something is too old by `LEEWAY`, a later checkpoint has to do."""
    first, late = ledger.decision_after(-LAST), ledger.decision_after(then - LEEWAY)
    bounds = [(e.seq, e.read().mark[1]) for e in able]
    of_then = [each for e, each in zip(able, bounds) if e.at <= then]
    if of_then and of_then[-1][1] >= late:
        return of_then[-1]
    if late == first or not bounds:
        return 0, 0
    end = max(ledger.decision_after(then), ledger.checkpoint_before(then))
    base, since = next((each for each in bounds if each[1] >= end), bounds[-1])
    return base, min(since, end)


def _amid(checkpoint: Event, begun: Sequence[int]) -> bool:
    """Return whether a candidate came while a checkpoint was under way: its beginning would go."""
    mark = checkpoint.read().mark[0]
    return any(mark < seq < checkpoint.seq for seq in begun)
