"""What waits: open decisions, and words that came before theirs; and what decisions train."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

Place = int | None  # a position, or None in a decision that is no slate


class Example(NamedTuple):
    """A decision to be trained."""

    event: int  # seq of what closed it
    decision: int  # its own seq
    at: float
    value: float  # raw reward
    position: int | None = None  # in a slate
    key: str | None = None  # whose decision it was
    metrics: tuple[tuple[str, float], ...] = ()  # what was recorded of it, the last word each


@dataclass(slots=True)
class Open:
    """A decision that waits, with the last word on each position that is open."""

    seq: int
    at: float
    key: str | None
    k: int | None  # positions of a slate
    values: dict[Place, float | None]
    metrics: dict[tuple[Place, str], float] | None = None  # most have none, and many are open

    def example(self, event: int, place: Place, value: float) -> Example:
        """What is trained of a position; `event` closed it."""
        words = (self.metrics or {}).items()
        said = tuple((name, number) for (where, name), number in words if where == place)
        return Example(event, self.seq, self.at, value, place, self.key, said)

    def record(self, place: Place, name: str, number: float) -> None:
        """A metric of a position; the last word counts."""
        self.metrics = (self.metrics or {}) | {(place, name): number}


@dataclass(slots=True)
class Held:
    """Rewards and cancels that wait for their decision."""

    first: int  # seq of the first that came
    seq: int  # and of the last
    rewards: dict[Place, tuple[float, int]]  # the last one, and how many there were
    cancelled: set[Place]  # None: all of it

    def say(self, seq: int, place: Place, value: float | None) -> None:
        """A reward, or a cancel, which has no value."""
        self.seq = seq
        if value is None:
            self.cancelled.add(place)
        else:
            _, before = self.rewards.get(place, (value, 0))
            self.rewards[place] = value, before + 1

    def come_true(self, found: Open) -> Counter[str]:
        """The decision is there: words on positions that it has count like those that come in time.
        Says how many there were."""
        hits = [place for place in self.cancelled if place is None or place in found.values]
        for place in [place for place in found.values if {place, None} & self.cancelled]:
            del found.values[place]
        rewards = {p: word for p, word in self.rewards.items() if p in found.values}
        found.values.update((place, value) for place, (value, _) in rewards.items())
        corrected = sum(n - 1 for _, n in rewards.values())
        counts = {"cancel cancelled": len(hits), "reward counted": len(rewards)}
        return +Counter(counts | {"reward corrected": corrected})
