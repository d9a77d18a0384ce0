"""The sequencer gives events their place in the order, or refuses them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.state.clock import BOUND, judged, judged_by_events
from driftbandit.loop.state.reward_windows import Effect, RewardWindows
from driftbandit.loop.storage.events import SILENT, Bill, Event, Repair, RewardGiven, encode
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.writing.pending import Pending

AHEAD = 300.0  # seconds that the `at` of a call may be ahead of the clock


class Sequencer:
    """Enters pending events into the reward windows. `now` is the clock; without one, events are.
    Owned by the writer: only the thread that writes calls `enter` and `follow`."""

    def __init__(
        self, ledger: Ledger, windows: RewardWindows, now: Callable[[], float] | None
    ) -> None:
        self._ledger, self._windows, self._now = ledger, windows, now
        self.decided: dict[str, Event] = {}  # of this group, which the ledger cannot find yet
        self._latest: dict[str, Event] = {}  # the same by key, if answers are sticky
        self._cancelled: set[str] = set()  # ids of this group

    @property
    def clock(self) -> float:
        """What time it is for new decisions; it goes back only by a repair."""
        windows = self._windows
        return windows.clock.time if self._now is None else max(self._now(), windows.w)

    @property
    def believed(self) -> float:
        """The same, or the time of the log if a machine's clock is too far ahead of that."""
        return self._windows.clock.bounded(self.clock)

    @property
    def reading(self) -> float:
        """What the machine's clock says, or the time of the log if events are the clock."""
        return self._windows.clock.time if self._now is None else self._now()

    @property
    def due(self) -> bool:
        """Return whether a reading of the clock would have to be stored."""
        return self._judged(self.reading) is not None

    def _judged(self, now: float) -> str | None:
        windows = self._windows
        if self._now is None:
            return judged_by_events(windows.clock, windows.situation)
        return judged(windows.clock, now, windows.situation)

    def follow(self, event: Event) -> Effect:
        """Enter what another process has stored."""
        if event.kind == "erase":  # the windows have read what is blank now
            raise LedgerError("another process has erased a key: open the loop again")
        return self._windows.apply(event)

    def enter(self, pending: Pending) -> Effect:
        """Give a pending event its place, unless it is refused or known."""
        windows, kind = self._windows, pending.kind
        if kind == "advance" and pending.at is None:
            return self._enter_reading(pending)
        at = self.clock if pending.at is None else pending.at
        if at == -math.inf and kind not in SILENT:
            raise ValueError(
                "with clock='events' the first event must say when it was: pass at=..."
            )
        if kind == "decide":
            if not pending.new_id and (known := self._find(str(pending.id))):
                pending.known = known[0]
                return Effect("", [])
            if windows.wait > 0.0 and at + windows.wait <= windows.w:
                self._refuse_late(at)
            if pending.at is not None:
                self._check_ahead(pending, at)
            if pending.sticky is not None and (before := self._repeated(pending, at)):
                pending.known, pending.repeats = before.seq, True
                return Effect("", [])
        elif kind == "advance":
            at = max(windows.w, at)
        elif kind in SILENT:
            at = max(at, 0.0)
        elif pending.id is not None:
            self._complete(pending, pending.id, at)
        done = pending.payload is None or kind == "decide"
        data = pending.data if done else encode(pending.payload)
        made = Event(windows.seq + 1, kind, at, pending.id, pending.key, data, pending.k)
        pending.event = made
        if kind == "decide":
            self.decided[str(pending.id)] = made
            if pending.sticky is not None:
                self._latest[str(pending.key)] = made
        return windows.apply(made, pending.payload)

    def _complete(self, pending: Pending, id: str, at: float) -> None:
        """Say in a reward, a cancel or a metric which decision it is of, and what follows."""
        windows, kind, payload = self._windows, pending.kind, pending.payload
        if pending.at is not None:
            self._check_ahead(pending, at)
        if kind == "reward" and payload.over is not None:
            self._complete_comparison(payload, id, at)
            return
        payload.of = self._decision(id, kind, payload.position)
        if windows.accounts.by_name:
            self._charge(kind, payload, id)
        if kind == "cancel" and payload.position is None:
            self._cancelled.add(id)
        if kind == "reward":
            payload.late = windows.is_over(id, at)

    def _complete_comparison(self, payload: RewardGiven, id: str, at: float) -> None:
        """Say which decisions are compared: each played one arm, and is in the log."""
        over = str(payload.over)
        payload.of, payload.lost = self._played(id), self._played(over)
        payload.late = self._windows.is_over(id, at) or self._windows.is_over(over, at)

    def _played(self, id: str) -> int:
        """Return the seq of a decision for one arm."""
        found = self._find(id)
        if found is None:
            raise ValueError(
                f"decision {id!r} is not in the log: it was never made, or retention or an erasure "
                "has removed it, so it cannot be compared"
            )
        if found[1] is not None:
            raise ValueError(
                f"decision {id!r} showed a pair: say which of its arms was better with "
                "prefer(id, position)"
            )
        return found[0]

    def stored(self) -> None:
        """Forget the group: the ledger finds its events from now on."""
        for kept in (self.decided, self._latest, self._cancelled):
            kept.clear()

    def _repeated(self, pending: Pending, at: float) -> Event | None:
        """Return the latest decision of the key if it is the answer still."""
        key, sticky = str(pending.key), pending.sticky
        found = self._latest.get(key) or self._ledger.latest_of(key)
        if found is None or sticky is None or not sticky.repeats(found, at):
            return None
        id = str(found.id)
        return None if id in self._cancelled or self._ledger.is_cancelled(id) else found

    def _enter_reading(self, pending: Pending) -> Effect:
        """Take a reading of the clock, and store what it means (`state.clock`), if anything."""
        windows, now = self._windows, self.reading
        kind = self._judged(now)
        if kind is None and not (windows.clock.is_ahead(now) or windows.clock.is_back(now)):
            kind = "advance"
        if kind is None or now == -math.inf:
            return Effect("", [])
        payload = Repair("loop") if kind == "repair" else None
        at = max(now, windows.w) if kind == "advance" else now
        data = "{}" if payload is None else encode(payload)
        pending.event = Event(windows.seq + 1, kind, at, data=data)
        return windows.apply(pending.event, payload)

    def _charge(self, kind: str, payload: Any, id: str) -> None:
        """Say in an event what its decision has counted for in budgets, so that what the event
        means follows from the log in order."""
        if payload.of is None or kind == "reward":
            return
        if kind == "metric" and payload.name not in self._windows.accounts.by_name:
            return
        charges = self._windows.accounts.charges(payload.of, lambda seq: self._payload(seq, id))
        if kind == "cancel":
            open_ = {name: each.counted for name, each in charges.items() if not each.billed}
            payload.unspent = open_ if id in self._windows.open else {}
        elif payload.name in charges:
            payload.bill = Bill(*charges[payload.name])

    def _payload(self, seq: int, id: str) -> str:
        event = self.decided.get(id) or self._ledger.find(id)
        return event.data if event is not None and event.seq == seq else "{}"

    def _find(self, id: str) -> tuple[int, int | None] | None:
        """Return the seq of the decision with this id, and its positions if it is a slate."""
        if found := self._windows.open.get(id):
            return found.seq, found.k
        event = self.decided.get(id) or self._ledger.find(id)
        return (event.seq, event.k) if event else None

    def _decision(self, id: str, kind: str, position: int | None) -> int | None:
        """Return the seq of the decision that something is said of; its position is checked."""
        seq, k = self._find(id) or (None, None)
        if seq is None or (position is None and kind == "cancel"):
            return seq
        if kind == "reward" and self._windows.pairs:
            if k is None:
                raise ValueError(
                    f"decision {id!r} is no pair, so no arm was preferred: decide with k=2"
                )
            return seq
        if k is None and position is not None:
            raise ValueError(f"decision {id!r} is not a slate: leave position out")
        if k is not None and (position is None or position >= k):
            remedy = f"pass position=, from 0 to {k - 1}"
            raise ValueError(f"decision {id!r} is a slate: {remedy}, got {position}")
        return seq

    def _refuse_late(self, at: float) -> NoReturn:
        raise ValueError(
            f"at={at:.0f} is too long ago: its window closed before {self._windows.w:.0f}; decide "
            "in order of time, or fill in the past with a loop that has clock='events'. If "
            "the loop's clock is wrong, use driftbandit repair"
        )

    def _check_ahead(self, pending: Pending, at: float) -> None:
        """Raise if a caller's `at` is too far ahead. Where events are the clock, that of a decision
        may be, because only decisions can tell when a silence is over."""
        windows = self._windows
        if self._now is not None:
            latest, most = max(self._now(), windows.w), "five minutes"
            wrong = at > latest + AHEAD
        else:
            clock = windows.clock
            latest = clock.time if clock.leap is None else max(clock.time, clock.leap)
            most = "a day, or the wait for a reward,"
            wrong = pending.kind != "decide" and at > latest + max(BOUND, windows.wait) > -math.inf
        if wrong:
            raise ValueError(
                f"at={at:.0f} is {at - latest:.0f} seconds ahead of the clock: pass seconds "
                f"since the epoch, or a datetime with a time zone, at most {most} ahead"
            )
