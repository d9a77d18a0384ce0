"""What an evaluation found: values, differences, curves, and doubts about the log."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftbandit.estimators import ope, shrinkage
from driftbandit.estimators.accumulators import Band, Difference, Value
from driftbandit.estimators.overlap import Estimate, Overlap
from driftbandit.estimators.planning import rows_between, rows_until
from driftbandit.estimators.propensity_check import Check
from driftbandit.estimators.spend import Spent
from driftbandit.estimators.windows import WindowSums
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.report import sentences
from driftbandit.evidence.spend import SpendSums
from driftbandit.html_table import table
from driftbandit.units import Interval, Unit

if TYPE_CHECKING:
    from driftbandit.evidence.log import Log

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
class Evaluation:
    """The value of every candidate on a log. `verdict` says it in words, `write` as a report."""

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
        return int(next(iter(self.found.values.values()))[:, 0].sum())

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

    @cached_property
    def notes(self) -> list[str]:
        """What to know, and what to doubt."""
        return sentences.notes(self)

    @cached_property
    def verdicts(self) -> list[str]:
        """A sentence for each difference, or for each value if there is one candidate."""
        return sentences.sentences(self)

    @property
    def verdict(self) -> str:
        return " ".join(self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """All numbers as JSON-ready types; None stands for what there is not."""
        from driftbandit.evidence.report.tables import to_dict

        return to_dict(self)

    def markdown(self) -> str:
        from driftbandit.evidence.report.tables import markdown

        return markdown(self)

    def html(self) -> str:
        """One page that opens without a network."""
        from driftbandit.evidence.report.page import page

        return page(self)

    def write(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """evaluation.json, evaluation.md and evaluation.html."""
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        texts = {
            "json": json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n",
            "md": self.markdown(),
            "html": self.html(),
        }
        paths = {kind: out / f"evaluation.{kind}" for kind in texts}
        for kind, path in paths.items():
            path.write_text(texts[kind], encoding="utf-8")
        return paths

    def _repr_html_(self) -> str:
        """Return the values of all candidates as a table, with verdicts below it."""
        kind = next(iter(next(iter(self.values.values())).estimates))
        rows = [
            (name, worth.estimates[kind].value, *worth.sequence, worth.effective)
            for name, worth in self.values.items()
        ]
        header = ("candidate", f"value ({kind})", "low", "high", "effective rows")
        return table(f"Evaluation, {self.rows:,} rows", header, rows, self.verdicts)

    def __repr__(self) -> str:
        names = ", ".join(self.found.values)
        return f"Evaluation({names}; {self.rows:,} rows): {self.verdict}"
