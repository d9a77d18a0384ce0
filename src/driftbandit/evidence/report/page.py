"""One page that opens without a network, in the lab's look.

Its script stands beside this file, in charts.js; `pages` has the style and what charts share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from driftbandit.estimators.accumulators import Band
from driftbandit.evidence.numbers import Numbers
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.report.sentences import moment, notes, title, used, verdicts, window
from driftbandit.evidence.report.tables import EvaluationTable, tables
from driftbandit.pages import asset
from driftbandit.pages.document import data_table, document, rounded, swatch
from driftbandit.pages.styles import STROKE, Look, looks

STYLE = """
.verdict { font-size: 1.15rem; background: var(--raised); border-radius: .5rem;
  padding: .3rem 1rem; }
.needed { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: center; font-size: .95rem;
  color: var(--faint); }
.needed progress { width: min(24rem, 100%); accent-color: light-dark(#0072B2, #5b8def); }
.plots { display: grid; gap: 0 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
.plots svg { width: 100%; height: auto; }
.plots text { fill: var(--faint); font-size: 13px; }
.plots .line { fill: none; stroke: var(--own); stroke-width: 2; }
.plots .band { fill: var(--own); fill-opacity: .12; }
.plots .dot { fill: var(--own); }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.key span { display: flex; gap: .4rem; align-items: center; }
"""
DETAILS = "Details: all estimates (DR, SNIPS, IPS, DM), overlap, values over time"


def page(found: Numbers) -> str:
    """The report as HTML."""
    said = "".join(_verdict(found, k, each) for k, each in enumerate(verdicts(found)))
    doubts = "".join(f"<li>{escape(each)}</li>" for each in notes(found))
    first, *others = sorted(tables(found), key=lambda table: table.title != "Differences")
    details = "".join(_section(table) for table in others)
    sections = f"{_section(first)}<details><summary>{DETAILS}</summary>{details}</details>"
    charts = _charts(found)
    main = f'<div class="verdict">{said}</div><p>{used(found)}</p><ul>{doubts}</ul>'
    main += f"{_key(found)}{_plots(charts)}{sections}"
    starts = found.starts.tolist()
    data = {"starts": starts, "names": _names(found, starts), "charts": charts}
    return document(title(found), "", main, data, asset("charts.js", __package__), style=STYLE)


def _verdict(found: Numbers, k: int, sentence: str) -> str:
    """A sentence; if the log cannot say, with a bar of the evidence that there is and is needed."""
    text = f"<p>{escape(sentence)}</p>"
    gap = found.differences[k] if k < len(found.differences) else None
    if gap is None or gap.better or not math.isfinite(gap.rows):
        return text
    needed = found.rows + gap.rows
    label = f"evidence: {found.rows:,} rows of about {float(f'{needed:.2g}'):,.0f} that are needed"
    bar = f'<progress value="{found.rows}" max="{needed:.0f}"></progress>'
    return f'{text}<p class="needed">{bar} {label}</p>'


def _charts(found: Numbers) -> list[dict[str, Any]]:
    """Values window by window and up to now, and each difference up to now."""
    own = looks(list(found.values))
    out = [
        _chart(
            f"Value in windows of {window(found)}, and its interval",
            [_line(look, found.curve(name)) for name, look in own.items()],
        ),
        _chart(
            "Mean value of all rows so far, and its interval",
            [_line(look, found.curve(name, running=True)) for name, look in own.items()],
        ),
    ]
    for gap in found.differences:
        curve = found.gap_curve(gap.first, gap.second, running=True)
        text = f"{gap.first} minus {gap.second}, of all rows so far, and its interval"
        out.append(_chart(text, [_line(own[gap.first], curve)], zero=True))
    return out


def _chart(text: str, lines: list[dict[str, Any]], zero: bool = False) -> dict[str, Any]:
    """Return what charts.js draws; `zero` is a line at 0."""
    return {"text": text, "lines": lines, "zero": zero}


def _line(look: Look, curve: tuple[Floats, Band]) -> dict[str, Any]:
    middle, band = curve
    numbers = {"middle": middle, "low": band.low, "high": band.high}
    return look.drawn() | {name: rounded(each.tolist()) for name, each in numbers.items()}


def _names(found: Numbers, starts: list[float]) -> list[tuple[float, str, str]]:
    """Return the first, a middle and the last place below a chart, their names and anchors."""
    places = dict.fromkeys([starts[0], starts[len(starts) // 2], starts[-1]])
    anchors = ("start", "middle", "end") if len(places) == 3 else ("start", "end")
    return [(place, moment(found, place), anchor) for place, anchor in zip(places, anchors)]


def _plots(charts: Sequence[dict[str, Any]]) -> str:
    """Return a place for each chart."""
    figures = (
        f"<figure><figcaption>{escape(each['text'])}</figcaption>"
        f'<svg viewBox="0 0 760 300" role="img" '
        f'aria-label="{escape(each["text"])}; a table gives the numbers"></svg></figure>'
        for each in charts
    )
    return f'<div class="plots">{"".join(figures)}</div>'


def _key(found: Numbers) -> str:
    items = (
        f"<span>{swatch(look.drawn(), STROKE)}{escape(name)}</span>"
        for name, look in looks(list(found.values)).items()
    )
    return f'<div class="key">{"".join(items)}</div>'


def _section(table: EvaluationTable) -> str:
    rows = ((row[0], "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])) for row in table.rows)
    shown = data_table(table.note, table.header, rows)
    return f"<section><h2>{escape(table.title)}</h2>{shown}</section>"
