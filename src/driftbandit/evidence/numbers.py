"""What an evaluation found, in numbers: values, differences and curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from driftbandit.estimators import ope, shrinkage
from driftbandit.estimators.accumulators import Band, Difference, Value
from driftbandit.estimators.overlap import Estimate, Overlap
from driftbandit.estimators.planning import rows_between, rows_until
from driftbandit.estimators.propensity_check import Check
from driftbandit.estimators.spend import Spent
from driftbandit.estimators.windows import WindowSums
from driftbandit.evidence.log import Log
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.spend import SpendSums
from driftbandit.units import Interval, Unit

RECENT = 4  # windows that "the latest" are


@dataclass(frozen=True, eq=False)
class Found:
    """Sums by window, and what else a pass has seen."""

    values: Mapping[str, Floats]  # (windows, columns) by candidate
    shrunk: Mapping[str, Floats]  # sums of `shrinkage`, by candidate
    differences: Mapping[tuple[str, str], Floats]
    overlaps: Mapping[str | tuple[str, str], Overlap]  # of candidates, and of differences
    windows: WindowSums
    check: Check
    largest: Mapping[str, float]
    absent: Mapping[str, int]
    learners: Mapping[str, str]
    model: str
    complete: bool
    end: float  # time of the last row
    spend: SpendSums


class Worth(NamedTuple):
    """What a candidate is worth, in the log's unit."""

    estimates: dict[str, Estimate]  # with intervals for this log's length alone
    sequence: Interval  # holds whenever one looks
    effective: float  # rows of its own that would tell as much, by the design of the log
    events: float  # rows with the rarer outcome that carry the estimates
    mean_weight: float  # 1 but for noise, less if it plays what was never logged
    largest_weight: float
    support: float  # share of its choices that the log could have made
    absent: int  # rows in which an `Always` was not on offer
    spend: dict[str, Spent]  # by budget of the loop: what it would spend for a decision


class Gap(NamedTuple):
    """The first candidate's value minus the second's."""

    first: str
    second: str
    estimate: Estimate
    sequence: Interval
    better: int  # 1 the first, -1 the second, 0 cannot say
    rows: float  # more rows until it can be said, if they are like these; 0 if it is said
    fewest: float  # two times in three it takes more rows than this,
    most: float  # and fewer than this
    recent: Interval  # the sequence of the latest windows alone
    recently: int  # who is better in them


@dataclass(frozen=True, eq=False)
class Numbers:
    """The value of every candidate on a log, and the differences between them."""

    log: Log
    level: float
    clip: float
    found: Found = field(repr=False)

    @cached_property
    def unit(self) -> Unit:
        return Unit(self.log.reward)

    @property
    def rows(self) -> int:
        """Rows that were used."""
        return int(self.counts.sum())

    @property
    def counts(self) -> Floats:
        """Rows of each window."""
        return next(iter(self.found.values.values()))[:, 0]

    @cached_property
    def values(self) -> dict[str, Worth]:
        """By candidate."""
        return {
            name: self._worth(name, sums.sum(axis=0)) for name, sums in self.found.values.items()
        }

    def _worth(self, name: str, total: Floats) -> Worth:
        own = total[: len(ope.SUMS)]
        sums = dict(zip(ope.SUMS, own.tolist()))
        band = Value.band(total, 1.0 - self.level)
        seen = self.found.overlaps[name]
        return Worth(
            estimates=self._estimates(name, own, seen),
            sequence=self.unit.interval(float(band.low), float(band.high)),
            effective=seen.effective,
            events=ope.events(own),
            mean_weight=sums["w"] / sums["n"],
            largest_weight=self.found.largest[name],
            support=sums["support"] / sums["n"],
            absent=self.found.absent[name],
            spend=self.found.spend.found(name, self.level),
        )

    def _estimates(self, name: str, own: Floats, seen: Overlap) -> dict[str, Estimate]:
        found = ope.estimates(own, seen, self.level, self.clip)
        shrunk = self.found.shrunk[name].sum(axis=0)
        found |= shrinkage.estimates(shrunk, seen, found["dr"], found["dm"].value)
        return {kind: self.unit.estimate(each) for kind, each in found.items()}

    @property
    def alpha(self) -> float:
        """Of each difference, so that all of them together hold with confidence `level`."""
        return (1.0 - self.level) / max(1, len(self.found.differences))

    @cached_property
    def differences(self) -> list[Gap]:
        """Paired, on the same rows."""
        return [self._gap(*pair, sums) for pair, sums in self.found.differences.items()]

    def _gap(self, first: str, second: str, sums: Floats) -> Gap:
        total, latest = sums.sum(axis=0), sums[-RECENT:].sum(axis=0)
        bands = [Difference.band(each, self.alpha) for each in (total, latest)]
        better, recently = (int(band.low > 0.0) - int(band.high < 0.0) for band in bands)
        whole, recent = (
            self.unit.interval(float(band.low), float(band.high), gap=True) for band in bands
        )
        seen = self.found.overlaps[first, second]
        estimate = ope.difference(total[:3], seen, 1.0 - self.alpha)
        more = (0.0, 0.0, 0.0) if better else self._more_rows(total, estimate.value > 0.0)
        out = self.unit.estimate(estimate, gap=True)
        return Gap(first, second, out, whole, better, *more, recent, recently)

    def _more_rows(self, total: Floats, better: bool) -> tuple[float, float, float]:
        n, bets = float(total[0]), Difference.bets(total, better)
        every = rows_until(n, *bets, self.alpha), *rows_between(n, *bets, self.alpha)
        middle, fewest, most = (max(rows - n, 0.0) for rows in every)
        return middle, fewest, most

    @property
    def starts(self) -> Floats:
        """Where windows begin: seconds since the epoch, or rows in a log without time."""
        return self.found.windows.starts

    def curve(self, name: str, *, running: bool = False) -> tuple[Floats, Band]:
        """The doubly robust value in each window and its sequence, or of all rows up to its end."""
        sums = self.found.values[name]
        sums = np.cumsum(sums, axis=0) if running else sums
        middle = sums[:, ope.SUMS.index("dr")] / sums[:, 0]
        return self._outside(middle, Value.band(sums, 1.0 - self.level), gap=False)

    def gap_curve(self, first: str, second: str, *, running: bool = False) -> tuple[Floats, Band]:
        """The same for a difference."""
        sums = self.found.differences[first, second]
        sums = np.cumsum(sums, axis=0) if running else sums
        return self._outside(sums[:, 1] / sums[:, 0], Difference.band(sums, self.alpha), gap=True)

    def _outside(self, middle: Floats, band: Band, gap: bool) -> tuple[Floats, Band]:
        out = self.unit.gap if gap else self.unit.value
        ends = [np.array([out(x) for x in end.tolist()]) for end in band]
        low, high = ends if self.unit.sign > 0.0 else ends[::-1]
        return np.array([out(x) for x in middle.tolist()]), Band(low, high)
