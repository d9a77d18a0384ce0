"""Comparisons: what candidates are worth, and who is better, at every moment at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from driftbandit.estimators import ope
from driftbandit.estimators.accumulators import Difference, Value
from driftbandit.estimators.formatting import as_json, between, more_rows, number, percent
from driftbandit.estimators.planning import rows_until
from driftbandit.estimators.sequences import lower
from driftbandit.loop.candidates.totals import Key, Totals
from driftbandit.reward import Reward
from driftbandit.units import Unit

DR = ope.SUMS.index("dr")


class Standing(NamedTuple):
    """The mean reward of one, doubly robust, with its confidence sequence and rows."""

    value: float
    low: float
    high: float
    rows: int


class Lead(NamedTuple):
    """The first one's mean minus the second's, in the reward's unit or that of `metric`.

    `low` and `high` are bounds that hold at every moment, each on its own with the confidence of
    the comparison. `better` is 1 for the first, -1 for the second, 0 if one cannot say; `more` are
    the rows that takes, if they are like those before.
    """

    first: str
    second: str
    metric: str | None
    value: float
    low: float
    high: float
    rows: int
    better: int
    more: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        found: dict[str, Any] = as_json(self)
        return found

    def words(self, level: float) -> str:
        what = f" in {self.metric!r}" if self.metric else ""
        word = {1: "better", -1: "worse", 0: "not shown to be better or worse"}[self.better]
        size = f"by {number(self.value)}, {between(self.low, self.high)}"
        end = "" if self.better else f"; {more_rows(self.more)}"
        return (
            f"{self.first} is {word} than {self.second}{what} with {percent(level)} confidence: "
            f"{size}, after {self.rows:,} rows{end}"
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How candidates stand against the live policy and the default. It prints as text.

    | field | |
    |---|---|
    | `acting` | who acts: "live", or "default" |
    | `level` | confidence; the error is split over the candidates |
    | `values` | mean reward of each by name, in its unit |
    | `leads` | differences on the same rows: of rewards, and of the guard's metrics |
    | `trials` | shares of decisions by candidate |
    | `skipped` | examples in which no policies were compared, by reason |
    | `unread` | latest decisions in a row that a candidate could not read |
    """

    acting: str
    level: float
    values: Mapping[str, Standing]
    leads: tuple[Lead, ...]
    trials: Mapping[str, float]
    skipped: Mapping[str, int]
    unread: Mapping[str, int]

    def lead(self, first: str, second: str, metric: str | None = None) -> Lead:
        """One of the leads; a ValueError where the two were never compared."""
        for each in self.leads:
            if (each.first, each.second, each.metric) == (first, second, metric):
                return each
        raise ValueError(
            f"{first!r} was not compared with {second!r} yet: wait until some decisions are "
            "trained, and pass default= to decide if one of the two is the default"
        )

    def between(self, first: str, second: str) -> list[Lead]:
        """All leads of one over another: in the reward, and in metrics."""
        return [each for each in self.leads if (each.first, each.second) == (first, second)]

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {field.name: as_json(getattr(self, field.name)) for field in fields(self)}

    def __repr__(self) -> str:
        head = f"{self.acting} acts; confidence {percent(self.level)}"
        lines = [
            f"{name}: {number(one.value)}, {between(one.low, one.high)}, {one.rows:,} rows"
            for name, one in self.values.items()
        ]
        lines += [each.words(self.level) for each in self.leads]
        lines += [f"not compared: {n:,} x {why}" for why, n in self.skipped.items()]
        return "\n".join([head, *(f"  {line}" for line in lines)])


def leads(
    totals: Totals, reward: Reward, metrics: Mapping[str, Reward], alpha: float
) -> list[Lead]:
    """All differences; each bound fails with probability `alpha` at most."""
    units = {"": reward, **metrics}
    known = [key for key in totals.sums if key[1] and key[2] in units]
    return [lead(totals, key, units[key[2]], alpha) for key in sorted(known)]


def lead(totals: Totals, key: Key, reward: Reward, alpha: float) -> Lead:
    """One difference, in the unit of its reward; a band has two ends, so its error is 2 alpha."""
    sums, unit, (first, second, metric) = totals.sums[key], Unit(reward), key
    band, part = Difference.band(sums, 2.0 * alpha), float(sums[1] / sums[0])
    better, more = int(band.low > 0.0) - int(band.high < 0.0), 0.0
    if not better:
        n = float(sums[0])
        more = rows_until(n, *Difference.bets(sums, part > 0.0), 2.0 * alpha) - n
    low, high = unit.interval(float(band.low), float(band.high), gap=True)
    return Lead(
        first, second, metric or None, unit.gap(part), low, high, int(sums[0]), better, more
    )


def is_worse(totals: Totals, key: Key, alpha: float) -> bool:
    """Whether the first is worse, without the rest of what a lead says: the guard asks often."""
    sums = totals.sums.get(key)
    if sums is None:
        return False
    return bool(lower(sums[0], *Difference.bets(sums, False), alpha, 2.0) > 1.0)


def standings(totals: Totals, reward: Reward, level: float) -> dict[str, Standing]:
    """All values."""
    unit, found = Unit(reward), {}
    for (name, over, _), sums in totals.sums.items():
        if not over:
            band = Value.band(sums, 1.0 - level)
            low, high = unit.interval(float(band.low), float(band.high))
            value = unit.value(float(sums[DR] / sums[0]))
            found[name] = Standing(value, low, high, int(sums[0]))
    return found
