"""An evaluation as tables, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from driftbandit.estimators.formatting import number, percent
from driftbandit.estimators.overlap import Estimate
from driftbandit.evidence.numbers import Gap, Numbers
from driftbandit.evidence.report.sentences import moment, notes, title, used, verdicts, window

KEEPS = {True: "yes", False: "no", None: "cannot say"}


class EvaluationTable(NamedTuple):
    """A titled table whose first column names its rows."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str


def tables(found: Numbers) -> list[EvaluationTable]:
    """All tables of a report."""
    kinds = [values, differences] if found.differences else [values]
    kinds += [spend] if any(worth.spend for worth in found.values.values()) else []
    return [kind(found) for kind in [*kinds, overlap, curve]]


def values(found: Numbers) -> EvaluationTable:
    level = percent(found.level)
    kinds = [kind for kind in next(iter(found.values.values())).estimates if kind != "dr"]
    header = ("candidate", f"dr [{level}]", "at every moment", *kinds)
    rows = []
    for name, worth in found.values.items():
        others = [ranged(worth.estimates[kind]) for kind in kinds]
        every = _interval(*worth.sequence)
        rows.append((name, ranged(worth.estimates["dr"]), every, *others))
    note = (
        f"Mean reward with its {level} interval, which holds for one look at the end of the log. "
        "The interval at every moment holds whenever you look, also for values that drift. "
        f"Weights are clipped at {found.clip:g}; shrunk and switch choose theirs by the data, "
        "and have the interval of dr. Reward model: "
        f"{found.found.model}, before it is told the reward"
    )
    return EvaluationTable("Values", header, rows, note)


def differences(found: Numbers) -> EvaluationTable:
    header = ("difference", "paired dr", "at every moment", "better", "more rows", "latest windows")
    rows = [_gap(gap) for gap in found.differences]
    note = (
        f"All {len(rows)} together hold with {percent(found.level)} confidence. More rows: "
        "until it can be said, two times in three, if they are like these. Latest windows: the "
        f"last four of {window(found)} on their own"
    )
    return EvaluationTable("Differences", header, rows, note)


def spend(found: Numbers) -> EvaluationTable:
    level = percent(found.level)
    header = ("candidate", "budget", f"spends [{level}]", "bound", "keeps it")
    rows = [
        (name, budget, ranged(Estimate(*each[:3])), number(each.bound), KEEPS[each.keeps])
        for name, worth in found.values.items()
        for budget, each in worth.spend.items()
    ]
    note = (
        "For a decision, at the logged prices: what arms were expected to cost, corrected by the "
        "bills. A budget is kept if at most 5 % more is spent"
    )
    return EvaluationTable("Spend", header, rows, note)


def _gap(gap: Gap) -> tuple[str, ...]:
    best = {1: gap.first, -1: gap.second, 0: "cannot say"}[gap.better]
    more = "–" if gap.better else " to ".join(map(_count, (gap.fewest, gap.most)))
    ends = _interval(*gap.sequence), best, more, _interval(*gap.recent)
    return (f"{gap.first} − {gap.second}", ranged(gap.estimate), *ends)


def _count(rows: float) -> str:
    return f"{rows:,.0f}" if math.isfinite(rows) else "never"


def overlap(found: Numbers) -> EvaluationTable:
    header = (
        *("candidate", "effective rows", "events"),
        *("mean weight", "largest weight", "could be logged"),
    )
    rows = [
        (
            name,
            f"{worth.effective:,.0f}",
            f"{worth.events:,.0f}",
            number(worth.mean_weight),
            number(worth.largest_weight),
            f"{worth.support:.1%}",
        )
        for name, worth in found.values.items()
    ]
    check = found.found.check
    note = (
        "Effective rows: as many of its own would tell as much, by the logged probabilities. "
        "Events: rows with the rarer outcome that carry its estimates. A mean weight is 1 but for "
        "noise. "
        f"Sample-ratio check: p = {check.p:.2g}; what fits least is {check.what}, expected "
        f"{check.expected:,.4g} and found {check.found:,.4g}"
    )
    return EvaluationTable("Overlap", header, rows, note)


def curve(found: Numbers) -> EvaluationTable:
    curves = {name: found.curve(name) for name in found.values}
    rows = []
    for k, start in enumerate(found.starts.tolist()):
        cells = (
            f"{number(middle[k])} {_interval(band.low[k], band.high[k])}"
            for middle, band in curves.values()
        )
        rows.append((moment(found, start), f"{found.counts[k]:,.0f}", *cells))
    note = f"Windows of {window(found)}: doubly robust value, and its interval at every moment"
    return EvaluationTable("Value over time", ("from", "rows", *curves), rows, note)


def ranged(found: Estimate) -> str:
    if math.isnan(found.low):
        return number(found.value)
    return f"{number(found.value)} {_interval(found.low, found.high)}"


def _interval(low: float, high: float) -> str:
    return f"[{number(low)}, {number(high)}]"


def markdown(found: Numbers) -> str:
    """The report as Markdown."""
    parts = [f"# {title(found)}", *verdicts(found), used(found)]
    doubts = notes(found)
    parts += ["\n".join(f"- {note}" for note in doubts)] if doubts else []
    for table in tables(found):
        lines = [_line(table.header), _line(["---"] * len(table.header)), *map(_line, table.rows)]
        parts += [f"## {table.title}", table.note + ".", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
