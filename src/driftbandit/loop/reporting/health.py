"""The health of a loop: what a person on call would ask."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from driftbandit.loop.reporting.curve import Window
from driftbandit.loop.reporting.drift_report import Change
from driftbandit.loop.reporting.estimates import Mean
from driftbandit.loop.training.trainer import Lag


class Bin(NamedTuple):
    """Decisions whose expected rewards are neighbours: what was expected, and what came."""

    expected: float
    observed: Mean


@dataclass(frozen=True, kw_only=True)
class Health:
    """Counts of a whole life, and the state of its latest decisions. Rewards are in their unit.

    | field | |
    |---|---|
    | `decisions`, `rewards` | in all, of which `recent` decisions are judged below |
    | `missing`, `cancelled` | shares of what is closed, and of what was decided |
    | `clipped`, `late` | shares of rewards |
    | `exploration_share` | mean probability that another arm than the likeliest is chosen |
    | `lag` | examples that wait to be trained, or to be heard of, and for how many seconds |
    | `trains` | whether this process trains; else another one that writes to the ledger does |
    | `acts` | who acts: "live", the name of a promoted candidate, or "default" |
    | `candidates` | shares of decisions by name; 0 in the shadow |
    | `memory`, `state` | how many rewards the estimate rests on; how AutoDOMD sees its world |
    | `bias`, `calibration` | observed minus expected rewards; both in bins of what was expected |
    | `values` | mean reward of the loop, of uniform choices and of the default; None: unknown |
    | `curve` | the same over time, in windows |
    | `metrics` | by name and arm |
    | `changed` | terms that have moved since the date that was asked for |
    """

    name: str
    decisions: int
    rewards: int
    recent: int
    missing: float
    cancelled: float
    clipped: float
    late: float
    exploration_share: float
    lag: Lag
    trains: bool
    acts: str
    candidates: Mapping[str, float]
    memory: float | None
    state: str | None
    bias: Mean | None
    calibration: tuple[Bin, ...]
    values: Mapping[str, Mean | None]
    curve: tuple[Window, ...]
    metrics: Mapping[str, Mapping[str, Mean | None]]
    changed: tuple[Change, ...]

    @property
    def concerns(self) -> list[str]:
        """What is not as it should be, and what to do about it."""
        bias = self.bias and (self.bias.low > 0.0 or self.bias.high < 0.0)
        signs = {
            f"{self.late:.0%} of rewards come too late: raise wait": self.late > 0.05,
            f"{self.clipped:.0%} of rewards are out of range: widen the range": self.clipped > 0.01,
            f"training is {self.lag.seconds:.0f} s behind": self.lag.seconds > 1.0,
            f"rewards, observed minus expected: {_told(self.bias)}": bool(bias),
            "no arm is ever explored: pass exploration=0.02": self.recent
            and not self.exploration_share,
        }
        return [words for words, true in signs.items() if true]

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        names = [*(field.name for field in fields(self)), "concerns"]
        return {name: as_json(getattr(self, name)) for name in names}

    def __repr__(self) -> str:
        head = f"loop {self.name!r}: {self.decisions} decisions, {self.rewards} rewards"
        return "\n".join([head, *(f"  {line}" for line in self._lines())])

    def _lines(self) -> list[str]:
        shares = ("missing", "cancelled", "clipped", "late", "exploration_share")
        lines = [
            f"the latest {self.recent} decisions: "
            + ", ".join(f"{name} {getattr(self, name):.1%}" for name in shares),
            f"lag {self.lag.seconds:.1f} s, {self.lag.examples} examples; {self._memory()}",
            f"{self.acts} acts{self._candidates()}",
            f"observed minus expected: {_told(self.bias)}",
            "mean reward: " + "; ".join(f"{k} {_told(v)}" for k, v in self.values.items()),
        ]
        for name, arms in self.metrics.items():
            lines.append(f"{name}: " + "; ".join(f"{arm} {_told(v)}" for arm, v in arms.items()))
        for each in self.changed:
            lines.append(f"changed: {each.term} {each.before:+.3g} -> {each.after:+.3g}")
        return lines + [f"look: {concern}" for concern in self.concerns]

    def _candidates(self) -> str:
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.candidates.items())
        return f"; candidates and their shares: {shares}" if shares else ""

    def _memory(self) -> str:
        if self.memory is None:
            return "memory unknown"
        word = f", {self.state}" if self.state else ""
        return f"memory {self.memory:.0f} rewards{word}"


def _told(found: Mean | None) -> str:
    if found is None:
        return "unknown"
    return f"{found.mean:.3g} ({found.low:.3g} to {found.high:.3g})"


def as_json(value: Any) -> Any:
    """JSON has no infinity, and names what tuples have in order."""
    if isinstance(value, Mapping):
        return {str(k): as_json(v) for k, v in value.items()}
    if hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if isinstance(value, (tuple, list)):
        return [as_json(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
