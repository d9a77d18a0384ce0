"""Comparisons: what candidates are worth, and who is better, at every moment at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from driftbandit.estimators import ope
from driftbandit.estimators.accumulators import Value
from driftbandit.estimators.formatting import as_json, between, more_rows, number, percent
from driftbandit.estimators.leads import BETTER, WORSE, Evidence
from driftbandit.estimators.spend import Spent
from driftbandit.html_table import table
from driftbandit.loop.candidates.lost_rewards import FAIR, ArmLoss
from driftbandit.loop.candidates.scoring import LOST
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

    Rows count by how much they tell. The bound that the first would be promoted by holds at every
    moment with confidence `level`, the other one with that of the guard. `better` is 1 for the
    first, -1 for the second, 0 if the log does not tell yet; `more` are the rows that takes, if
    they are like those before. `recent` is -1 if the latest rows speak against the first, whatever
    was before. `worst` is by how much the first may be worse, at most.
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
    level: float
    recent: int
    worst: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        found: dict[str, Any] = as_json(self)
        return found

    def words(self) -> str:
        """Return it as a sentence. Who is better, and by how much at least, is one bound with
        confidence `level`; two bounds together have less, and are said to have it each."""
        what = f" in {self.metric!r}" if self.metric else ""
        word = {1: "better", -1: "worse", 0: "not shown to be better or worse"}[self.better]
        head = (
            f"{self.first} is {word} than {self.second}{what} with {percent(self.level)} confidence"
        )
        rows = f"after {self.rows:,} rows"
        if self.better:
            least = min(abs(self.low), abs(self.high))
            return f"{head}: by {number(abs(self.value))}, at least {number(least)}, {rows}"
        size = f"the difference is {number(self.value)}, {between(self.low, self.high)}"
        return f"{head} at each end: {size}, {rows}; {more_rows(self.more)}"


class Loss(NamedTuple):
    """Decisions that give no example (`why`: cancelled, missing, late) come from the first policy
    `often`: "more" or "less" often than from the second, among `rows` of them. `arm` is the arm
    with the largest excess: it has `lost` of them, and `expected` by its probabilities."""

    first: str
    second: str
    why: str
    often: str
    rows: int
    arm: str
    lost: int
    expected: float

    def words(self) -> str:
        """Return what this means for a comparison."""
        return (
            f"rewards of {self.first} are {self.why} {self.often} often than those of "
            f"{self.second}, so the two cannot be compared fairly: arm {self.arm!r} has "
            f"{self.lost:,} of them, where about {self.expected:,.0f} were to be expected"
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How candidates stand against the live policy and the default. It prints as text.

    | field | |
    |---|---|
    | `acting` | who acts: "live", or "default" |
    | `level` | confidence of all comparisons of the loop together |
    | `values` | mean reward of each by name, in its unit |
    | `leads` | differences on the same rows: of rewards, and of the guard's metrics |
    | `losses` | candidates whose rewards are missing, late or cancelled more or less often |
    | `arm_losses` | arms whose rewards are missing, late or cancelled more or less often |
    | `spend` | by budget: what each would spend at the same price, as a part of the bound |
    | `trials` | shares of decisions by candidate |
    | `skipped` | examples in which no policies were compared, by reason |
    | `unread` | latest decisions in a row that a candidate could not read |
    """

    acting: str
    level: float
    values: Mapping[str, Standing]
    leads: tuple[Lead, ...]
    losses: tuple[Loss, ...]
    arm_losses: tuple[ArmLoss, ...]
    spend: Mapping[str, Mapping[str, Spent]]
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
        lines = [
            f"{name}: {number(one.value)}, {between(one.low, one.high)}, {one.rows:,} rows"
            for name, one in self.values.items()
        ]
        return "\n".join([self._head(), *(f"  {line}" for line in [*lines, *self._lines()])])

    def _repr_html_(self) -> str:
        """Return the values of all as a table, with differences below it."""
        rows = [(name, *one) for name, one in self.values.items()]
        header = ("policy", "mean reward", "low", "high", "rows")
        return table(self._head(), header, rows, self._lines())

    def _head(self) -> str:
        return f"{self.acting} acts; confidence {percent(self.level)}"

    def _lines(self) -> list[str]:
        """Return what is to say besides values."""
        lines = [each.words() for each in self.leads]
        lines += [each.words() for each in self.losses]
        lines += [each.words() for each in self.arm_losses]
        for budget, parts in self.spend.items():
            told = ", ".join(f"{name} {part.words()}" for name, part in parts.items())
            lines.append(f"would spend of budget {budget!r}: {told}")
        return lines + [f"not compared: {n:,} x {why}" for why, n in self.skipped.items()]


class Errors(NamedTuple):
    """The probability with which one is said to be better, or worse, and is not."""

    better: float
    worse: float


def leads(
    totals: Totals,
    reward: Reward,
    metrics: Mapping[str, Reward],
    errors: Callable[[str], Errors],
) -> list[Lead]:
    """Return all differences; each bound fails with the error of its comparison at most."""
    units = {"": reward, **metrics}
    known = [key for key in totals.evidence if key[2] in units]
    return [lead(totals, key, units[key[2]], errors(key[0])) for key in sorted(known)]


def lead(totals: Totals, key: Key, reward: Reward, errors: Errors) -> Lead:
    """Return one difference, in the unit of its reward."""
    found, unit, (first, second, metric) = totals.evidence[key], Unit(reward), key
    low, high = found.lower(BETTER, errors.better), -found.lower(WORSE, errors.worse)
    better = int(found.proves(BETTER, errors.better)) - int(found.proves(WORSE, errors.worse))
    which = BETTER if found.value > 0.0 else WORSE
    more = 0.0 if better else found.more(which, errors[which])
    low_end, high_end = unit.interval(low, high, gap=True)
    return Lead(
        first=first,
        second=second,
        metric=metric or None,
        value=unit.gap(found.value),
        low=low_end,
        high=high_end,
        rows=found.rows,
        better=better,
        more=more,
        level=1.0 - errors.better,
        recent=recently(found),
        worst=-low * reward.range,
    )


def recently(found: Evidence) -> int:
    """Return -1 if the latest rows speak against the first, and 0 if they do not: the evidence,
    averaged over all moments at which it could have become worse, is larger than 1."""
    return -int(found.alarm(WORSE) > found.rows)


def losses(totals: Totals) -> list[Loss]:
    """Return policies whose decisions give no example more or less often than those of the live
    policy, by reason."""
    found: list[Loss] = []
    for (first, second, metric), each in sorted(totals.evidence.items(), key=lambda e: e[0]):
        if metric.startswith(LOST):
            signs = [each.proves(which, FAIR) for which in (BETTER, WORSE)]
            if any(signs):
                why, often = metric.removeprefix(LOST), "more" if signs[0] else "less"
                arm, most = totals.lost.most(why)
                about = arm, most.lost, most.expected
                found.append(Loss(first, second, why, often, each.rows, *about))
    return found


def standings(totals: Totals, reward: Reward, level: float) -> dict[str, Standing]:
    """All values."""
    unit, found = Unit(reward), {}
    for name, sums in totals.values.items():
        band = Value.band(sums, 1.0 - level)
        low, high = unit.interval(float(band.low), float(band.high))
        value = unit.value(float(sums[DR] / sums[0]))
        found[name] = Standing(value, low, high, int(sums[0]))
    return found
