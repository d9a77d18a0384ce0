"""Sticky answers: a key that asks again soon is given its latest decision again.

A repeated answer is no event: the decision was drawn once, is logged once with the probability that
it had, and is trained and evaluated once. Which decision is given again follows from the log.
"""

from __future__ import annotations

from typing import NamedTuple

from driftbandit.loop.storage.events import Decide, Event


class Sticky(NamedTuple):
    """What the latest decision of a key must be like to be the answer to a new question."""

    lasts: float  # seconds
    role: str
    names: list[str | int]  # arms on offer
    default: str | int | list[str | int] | None
    k: int | None

    def repeats(self, event: Event, at: float) -> bool:
        """Return whether a decision is still the answer. It is not if its arm is no longer on
        offer, or if the loop would decide in another role, as after a demotion."""
        if abs(at - event.at) >= self.lasts:  # it is ahead if the clock was repaired meanwhile
            return False
        data: Decide = event.read()
        arms = {data.names[each] for each in data.choices if each is not None}
        same = (data.role, data.k) == (self.role, self.k)
        same = same and (self.role == "active" or data.default == self.default)
        return same and bool(arms) and arms.issubset(self.names)
