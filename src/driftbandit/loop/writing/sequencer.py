"""The sequencer gives events their place in the order, or refuses them."""

from __future__ import annotations

import math
from collections.abc import Callable

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.state.reward_windows import Outcome, RewardWindows
from driftbandit.loop.storage.events import SILENT, Event, encode
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.writing.pending import Pending

AHEAD = 300.0  # seconds that a decision may be ahead of the clock


class Sequencer:
    """Enters pending events into the reward windows. `now` is the clock; without one, events are.
    Owned by the writer: only the thread that writes calls `enter` and `follow`."""

    def __init__(
        self, ledger: Ledger, windows: RewardWindows, now: Callable[[], float] | None
    ) -> None:
        self._ledger, self._windows, self._now = ledger, windows, now
        self.decided: dict[str, Event] = {}  # of this group, which the ledger cannot find yet

    @property
    def clock(self) -> float:
        """What time it is; it never goes back."""
        windows = self._windows
        return windows.latest if self._now is None else max(self._now(), windows.w)

    def follow(self, event: Event) -> Outcome:
        """Enter what another process has stored."""
        if event.kind == "erase":  # the windows have read what is blank now
            raise LedgerError("another process has erased a key: open the loop again")
        return self._windows.apply(event)

    def enter(self, pending: Pending) -> Outcome:
        """Give a pending event its place, unless it is refused or known."""
        windows, kind = self._windows, pending.kind
        at = self.clock if pending.at is None else pending.at
        if at == -math.inf and kind not in SILENT:
            raise ValueError(
                "with clock='events' the first event must say when it was: pass at=..."
            )
        if kind == "decide":
            if not pending.new_id and (known := self._find(str(pending.id))):
                pending.known = known[0]
                return Outcome("", [])
            self._check_time(at)
        elif kind == "advance":
            at = max(windows.w, at)
        elif kind in SILENT:
            at = max(at, 0.0)
        elif pending.id is not None:
            pending.payload.of = self._decision(pending.id, kind, pending.payload.position)
        data = pending.data if pending.payload is None else encode(pending.payload)
        made = Event(windows.seq + 1, kind, at, pending.id, pending.key, data, pending.k)
        pending.event = made
        if kind == "decide":
            self.decided[str(pending.id)] = made
        return windows.apply(made, pending.payload)

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
        if k is None and position is not None:
            raise ValueError(f"decision {id!r} is not a slate: leave position out")
        if k is not None and (position is None or position >= k):
            remedy = f"pass position=, from 0 to {k - 1}"
            raise ValueError(f"decision {id!r} is a slate: {remedy}, got {position}")
        return seq

    def _check_time(self, at: float) -> None:
        windows = self._windows
        if windows.wait > 0.0 and at + windows.wait <= windows.w:
            raise ValueError(
                f"at={at:.0f} is too long ago: its window closed before {windows.w:.0f}; decide "
                "in order of time, or fill in the past with a loop that has clock='events'"
            )
        if self._now is not None and at > self._now() + AHEAD and at > self.clock + AHEAD:
            raise ValueError(
                f"at={at:.0f} is {at - self.clock:.0f} seconds ahead of the clock: pass seconds "
                "since the epoch, or a datetime with a time zone, at most five minutes ahead"
            )
