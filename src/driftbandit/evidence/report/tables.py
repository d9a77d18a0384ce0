"""An evaluation as data, as tables, and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from driftbandit.estimators.formatting import number
from driftbandit.estimators.overlap import Estimate
from driftbandit.evidence.report.sentences import moment, title, used, window

if TYPE_CHECKING:
    from driftbandit.evidence.evaluation import Evaluation, Gap


KEEPS = {True: "yes", False: "no", None: "cannot say"}


class EvaluationTable(NamedTuple):
    """A titled table whose first column names its rows."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str


def tables(found: Evaluation) -> list[EvaluationTable]:
    """All tables of a report."""
    kinds = [values, differences] if found.differences else [values]
    kinds += [spend] if any(worth.spend for worth in found.values.values()) else []
    return [kind(found) for kind in [*kinds, overlap, curve]]


def values(found: Evaluation) -> EvaluationTable:
    level = f"{100.0 * found.level:g} %"
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


def differences(found: Evaluation) -> EvaluationTable:
    header = ("difference", "paired dr", "at every moment", "better", "more rows", "latest windows")
    rows = [_gap(gap) for gap in found.differences]
    note = (
        f"All {len(rows)} together hold with {100.0 * found.level:g} % confidence. More rows: "
        "until it can be said, two times in three, if they are like these. Latest windows: the "
        f"last four of {window(found)} on their own"
    )
    return EvaluationTable("Differences", header, rows, note)


def spend(found: Evaluation) -> EvaluationTable:
    level = f"{100.0 * found.level:g} %"
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


def overlap(found: Evaluation) -> EvaluationTable:
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


def curve(found: Evaluation) -> EvaluationTable:
    curves = {name: found.curve(name) for name in found.values}
    counts = next(iter(found.found.values.values()))[:, 0]
    rows = []
    for k, start in enumerate(found.starts.tolist()):
        cells = (
            f"{number(middle[k])} {_interval(band.low[k], band.high[k])}"
            for middle, band in curves.values()
        )
        rows.append((moment(found, start), f"{counts[k]:,.0f}", *cells))
    note = f"Windows of {window(found)}: doubly robust value, and its interval at every moment"
    return EvaluationTable("Value over time", ("from", "rows", *curves), rows, note)


def ranged(found: Estimate) -> str:
    if math.isnan(found.low):
        return number(found.value)
    return f"{number(found.value)} {_interval(found.low, found.high)}"


def _interval(low: float, high: float) -> str:
    return f"[{number(low)}, {number(high)}]"


def markdown(found: Evaluation) -> str:
    """The report as Markdown."""
    parts = [f"# {title(found)}", *found.verdicts, used(found)]
    parts += ["\n".join(f"- {note}" for note in found.notes)] if found.notes else []
    for table in tables(found):
        lines = [_line(table.header), _line(["---"] * len(table.header)), *map(_line, table.rows)]
        parts += [f"## {table.title}", table.note + ".", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def to_dict(found: Evaluation) -> dict[str, Any]:
    """All numbers; what is not finite is None."""
    windows = found.found.windows
    data = {
        "verdicts": found.verdicts,
        "notes": found.notes,
        "level": found.level,
        "clip": found.clip,
        "model": found.found.model,
        "log": found.log.counts.to_dict(),
        "values": {name: worth._asdict() for name, worth in found.values.items()},
        "differences": [gap._asdict() for gap in found.differences],
        "ratios": found.found.check._asdict(),
        "windows": {
            "unit": "seconds" if windows.timed else "rows",
            "width": windows.width,
            "starts": found.starts.tolist(),
            "rows": next(iter(found.found.values.values()))[:, 0].tolist(),
            "values": {name: _curves(found.curve, name) for name in found.values},
            "differences": [
                {"first": g.first, "second": g.second} | _curves(found.gap_curve, g.first, g.second)
                for g in found.differences
            ],
        },
    }
    plain: dict[str, Any] = _plain(data)
    return plain


def _curves(of: Callable[..., Any], *names: str) -> dict[str, Any]:
    """In each window, and of all rows up to its end."""
    out: dict[str, Any] = {}
    for kind, running in (("window", False), ("running", True)):
        middle, band = of(*names, running=running)
        out[kind] = {"dr": middle, "low": band.low, "high": band.high}
    return out


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
