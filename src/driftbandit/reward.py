"""What a reward means: its range, its goal, and how long to wait for it."""

from __future__ import annotations

import logging
import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from driftbandit import validate
from driftbandit.durations import seconds
from driftbandit.families import Bernoulli, Binomial, Bounded, Family
from driftbandit.recipe import Recipe

GOALS, INVALID = ("max", "min"), ("clip", "error")
log = logging.getLogger("driftbandit.reward")


@dataclass(frozen=True)
class Reward(Recipe):
    """Rewards from `low` to `high`, in any unit: clicks, euros, milliseconds, stars.

    | option | |
    |---|---|
    | `goal` | "max", or "min" for what should be small, such as latency |
    | `wait` | how long a reward may take, such as "30min"; 0 takes it when it comes |
    | `missing` | the reward where none came in that time; None: such a decision trains nothing |
    | `invalid` | "clip" moves what is out of range to its end, "error" refuses it |
    | `counts` | whether they are whole successes out of `high - low` equal tries |

    Learners see numbers without a unit: 0 is worst and 1 is best, or successes if `counts`.
    docs/rewards.md helps to choose.

    >>> revenue = Reward(0, 500)
    >>> revenue.inside(125.0), revenue.inside(900.0), float(revenue.outside(0.5))
    ((0.25, False), (1.0, True), 250.0)
    >>> Reward(0, 2000, goal="min").inside(500.0)
    (0.75, False)
    """

    low: float
    high: float
    _: KW_ONLY
    goal: str = "max"
    wait: Any = 0.0  # seconds, however it was given
    missing: float | None = None
    invalid: str = "clip"
    counts: bool = False
    reach: ClassVar[float] = 1.0  # norm of what is learnt from, in norms of a row

    def __post_init__(self) -> None:
        for name, allowed in (("goal", GOALS), ("invalid", INVALID)):
            given = getattr(self, name)
            if not isinstance(given, str) or given not in allowed:
                raise ValueError(f"{name} must be one of {allowed}, got {validate.show(given)}")
        if not isinstance(self.counts, bool):
            raise ValueError(f"counts must be True or False, got {validate.show(self.counts)}")
        self._set(
            low=validate.number("low", self.low, "the smallest reward"),
            high=validate.number("high", self.high, "the largest reward"),
            wait=seconds(self.wait, "wait"),
        )
        self._check_range()
        if self.missing is not None:
            self._check_missing()

    def _check_range(self) -> None:
        if not self.low + validate.SMALLEST < self.high:
            raise ValueError(
                f"low must be below high, got {self.low:g} and {self.high:g}: what should be small "
                "has goal='min'"
            )
        if self.counts:
            tries = self.range if _whole(self.range) is None else int(self.range)
            validate.count("high - low", tries, "tries behind one reward")

    def _check_missing(self) -> None:
        raw = self._number(self.missing, "missing")
        if not self.low <= raw <= self.high:
            raise ValueError(
                f"missing must be a reward from {self.low:g} to {self.high:g}, got {raw:g}"
            )
        if self.wait == 0.0:
            log.warning("missing=%g never fires: pass wait=, how long to wait for a reward", raw)
        self._set(missing=raw)

    @property
    def range(self) -> float:
        """The largest reward minus the smallest."""
        return self.high - self.low

    @property
    def family(self) -> Family:
        """The family by which learners model it: `Bounded`, or `Binomial` for counts."""
        return Binomial(int(self.range)) if self.counts else Bounded()

    def inside(self, value: Any) -> tuple[float, bool]:
        """Return the reward on the scale of the family, and whether it was out of range and
        clipped."""
        raw = self._number(value, "a reward")
        kept = min(max(raw, self.low), self.high)
        if kept != raw and self.invalid == "error":
            raise ValueError(
                f"a reward must be from {self.low:g} to {self.high:g}, got {raw:g}: widen the "
                "range, or use invalid='clip'"
            )
        good = self.high - kept if self.goal == "min" else kept - self.low
        return good if self.counts else good / self.range, kept != raw

    def _number(self, value: Any, name: str) -> float:
        """A raw reward as a float."""
        yes_or_no = (self.low, self.high) == (0.0, 1.0) and isinstance(value, (bool, np.bool_))
        raw = float(value) if yes_or_no else validate.real(value)
        if math.isnan(raw):
            raise ValueError(
                f"{name} must be a number from {self.low:g} to {self.high:g}, got "
                f"{validate.show(value)}: convert it, or leave it out and declare missing="
            )
        if self.counts and not math.isinf(raw) and _whole(raw - self.low) is None:
            raise ValueError(
                f"{name} must be a whole number above {self.low:g}, got {raw:g}: drop counts=True "
                "for rewards in between"
            )
        return raw

    def outside(self, mean: ArrayLike) -> Any:
        """Return means of the family in the unit of the reward, of any shape."""
        part = np.asarray(mean, dtype=float) / (self.range if self.counts else 1.0)
        good = 1.0 - part if self.goal == "min" else part
        return self.low + good * self.range


@dataclass(frozen=True)
class Preference(Reward):
    """Which of two arms that were shown side by side is the better one, as people say.

    A loop shows both with `decide(..., k=2)`, and `prefer(id, position)` says which one was
    preferred. The model is that of Bradley and Terry: the arm w is preferred to l with probability
    1/(1 + exp(-(x_w - x_l)'theta)). So the loop learns from differences of rows, which may be twice
    as long as a row. `wait` is that of a `Reward`.

    >>> Preference(wait="10min")
    Preference(wait=600.0)
    """

    low: float = field(default=0.0, init=False, repr=False)
    high: float = field(default=1.0, init=False, repr=False)
    _: KW_ONLY
    goal: str = field(default="max", init=False, repr=False)
    missing: float | None = field(default=None, init=False, repr=False)
    invalid: str = field(default="error", init=False, repr=False)
    counts: bool = field(default=False, init=False, repr=False)
    reach: ClassVar[float] = 2.0

    @property
    def family(self) -> Family:
        return Bernoulli()

    def to_dict(self) -> dict[str, Any]:
        return {"type": "Preference", "wait": self.wait}


def _whole(value: float) -> int | None:
    return int(value) if value == math.floor(value) else None
