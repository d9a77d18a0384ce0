"""The loop's clock: how far an event may move it, and what happens to a time that is too far off.

Reward windows close, memories age and old events are deleted by the loop's clock. A wrong reading
must do none of this, and an honest silence must not stop the loop. No single reading can tell the
two apart, so the rule asks for a second one:

- **Bound.** A reading moves the clock by at most `BOUND`, one day, beyond the time that the log
  has reached. A reading further ahead is a *leap*. It is noted in the log and moves nothing.
- **Confirmation.** Readings that stay ahead for `CONFIRM`, ten minutes, confirm a leap: the clock
  follows. A reading that is back within the bound ends the leap, and decisions that were dated in
  it count as made at the time of that reading.
- **Going back.** A reading more than `BACK`, ten minutes, behind the clock is a leap, too. Until
  it is confirmed, or the machine has caught up, time stands still. With clock="events" the clock
  never goes back by itself.
- **Repair.** `Loop.repair` (`driftbandit repair`) sets the clock at once. It is an event, and so
  is what the loop does by itself (`repair` after a leap that ended or went back).

With clock="wall" the readings are those of the process that trains, which stores them as `advance`,
`leap` or `repair`. With clock="events" decisions are the readings. `close_windows(at)` is a
statement of the program and is believed. Rewards never move the clock.

| what happens | what the loop does |
|---|---|
| no event for a month, or closed for a month | decides at once; windows close after ten minutes |
| the machine was asleep for a night | goes on: a night is within the bound |
| the clock is wrong by ten years for two seconds | notes a leap; then dates its decisions anew |
| the clock is wrong for days and then right | follows, goes back ten minutes after it is right |
| clock="events", one `at` in the wrong unit | the next decision ends the leap |
| clock="events", all of them in the wrong unit | follows them; `repair` brings it back |

What cannot be undone waits longer: after a leap nothing is deleted for `SETTLE`, half a day, and
after a leap of more than `LONGEST`, a year, not before a repair says that the clock is right.
"""

from __future__ import annotations

import math
from typing import NamedTuple

BOUND = 86400.0  # seconds by which a reading may move the clock
CONFIRM = 600.0  # seconds for which readings must stay ahead, or behind
BACK = 600.0  # seconds behind the clock at which a machine's clock was set back
SETTLE = 43200.0  # seconds after a leap in which nothing is deleted
LONGEST = 366 * 86400.0  # seconds: after a longer leap a person must say that the clock is right


class LoopClock(NamedTuple):
    """What the log says about time."""

    time: float = -math.inf  # that the log has reached
    leap: float | None = None  # the first reading of a leap that is not confirmed yet
    leapt: float = 0.0  # seconds of the longest leap that was confirmed since a repair
    landed: float = -math.inf  # when the latest was

    def is_ahead(self, at: float) -> bool:
        """Return whether a time is further ahead than an event may move the clock."""
        return at > self.time + BOUND and self.time > -math.inf

    def is_back(self, at: float) -> bool:
        """Return whether a machine with this time was set back."""
        return at < self.time - BACK

    def bounded(self, at: float) -> float:
        """Return a time, or that of the log if it is too far ahead."""
        return self.time if self.is_ahead(at) else at

    def at_least(self, at: float) -> LoopClock:
        """Return the clock after an event that is believed."""
        if self.is_ahead(at):
            return LoopClock(at, None, max(self.leapt, at - self.time), at)
        return self._replace(time=max(self.time, at))

    def advanced(self, at: float) -> LoopClock:
        """Return the clock after windows were closed up to then, which ends any leap."""
        return self.at_least(at)._replace(leap=None)

    def decided(self, at: float, *, is_reading: bool) -> LoopClock:
        """Return the clock after a decision; with clock="events" it is a reading."""
        if not self.is_ahead(at):
            leap = None if is_reading else self.leap
            if at <= self.time and leap == self.leap:
                return self
            return LoopClock(max(self.time, at), leap, self.leapt, self.landed)
        if not is_reading:
            return self
        if self.leap is None or at < self.leap:
            return self._replace(leap=at)
        if at < self.leap + CONFIRM:
            return self
        return self.advanced(self.leap).decided(at, is_reading=True)

    def leaping(self, at: float) -> LoopClock:
        """Return the clock after a reading that is too far off to be believed at once."""
        return self._replace(leap=at)

    def confirms(self, now: float) -> bool:
        """Return whether readings have stayed where the leap began, for long enough."""
        return self.leap is not None and now >= self.leap + CONFIRM

    def begins(self, now: float) -> bool:
        """Return whether a reading that is too far off is the first of a leap."""
        return (
            self.leap is None or now < self.leap or self.is_ahead(now) != self.is_ahead(self.leap)
        )

    @property
    def may_delete(self) -> bool:
        """Return whether the clock is sure enough for what cannot be undone."""
        settled = self.time >= self.landed + SETTLE
        return self.leap is None and settled and self.leapt <= LONGEST


class Situation(NamedTuple):
    """What a reading is judged by, besides the clock."""

    closed: float  # the time up to which windows are closed
    due: float  # the earliest time at which a window closes
    farthest: float  # the latest date of anything that is open


def judged(clock: LoopClock, now: float, open: Situation) -> str | None:
    """Return the event that a reading of the machine's clock is: "advance", "leap", "repair", or
    None if it says nothing that has to be stored."""
    if clock.is_ahead(now):
        matters = open.due <= now or clock.is_ahead(open.farthest)
        if matters and clock.begins(now):
            return "leap"
        return "advance" if matters and clock.confirms(now) else None
    if clock.is_back(now):
        if clock.begins(now):
            return "leap"
        return "repair" if clock.confirms(now) else None
    if open.farthest > now + BOUND:
        return "repair"
    return "advance" if clock.leap is not None or open.due <= max(now, open.closed) else None


def judged_by_events(clock: LoopClock, open: Situation) -> str | None:
    """Return the event that is due where decisions are the readings."""
    if clock.leap is None and clock.is_ahead(open.farthest):
        return "repair"
    return "advance" if open.due <= clock.time else None
