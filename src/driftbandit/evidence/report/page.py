"""One page that opens without a network, in the lab's look."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from driftbandit.evidence.report.chart import ChartLine, chart
from driftbandit.evidence.report.sentences import moment, window
from driftbandit.evidence.report.tables import EvaluationTable, tables
from driftbandit.pages import POLICY, asset
from driftbandit.pages.styles import DARK, STROKE, Look, looks

if TYPE_CHECKING:
    from driftbandit.evidence.evaluation import Evaluation

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
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.key span { display: flex; gap: .4rem; align-items: center; }
"""
DETAILS = "Details: all estimates (DR, SNIPS, IPS, DM), overlap, values over time"
SCRIPT = """
const root = document.documentElement;
document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(root).colorScheme === "dark" ||
    (!root.style.colorScheme && matchMedia("(prefers-color-scheme: dark)").matches);
  root.style.colorScheme = dark ? "light" : "dark";
});
"""


def page(found: Evaluation) -> str:
    """The report as HTML."""
    title = escape(f"Evaluation of {', '.join(found.values)}")
    css = asset("page.css")
    verdicts = "".join(_verdict(found, k) for k in range(len(found.verdicts)))
    notes = "".join(f"<li>{escape(each)}</li>" for each in found.notes)
    used = f"{found.rows:,} of {found.log.counts.rows:,} rows were used."
    first, *others = sorted(tables(found), key=lambda table: table.title != "Differences")
    details = "".join(_section(table) for table in others)
    sections = f"{_section(first)}<details><summary>{DETAILS}</summary>{details}</details>"
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{css}{STYLE}</style></head><body>",
            f'<header><h1>{title}</h1><button type="button" id="theme">Light / dark</button>',
            "</header>",
            f'<main><div class="verdict">{verdicts}</div><p>{used}</p><ul>{notes}</ul>',
            f"{_plots(found)}{sections}</main><script>{SCRIPT}</script></body></html>",
        ]
    )


def _verdict(found: Evaluation, k: int) -> str:
    """A sentence; if the log cannot say, with a bar of the evidence that there is and is needed."""
    text = f"<p>{escape(found.verdicts[k])}</p>"
    gap = found.differences[k] if k < len(found.differences) else None
    if gap is None or gap.better or not math.isfinite(gap.rows):
        return text
    needed = found.rows + gap.rows
    label = f"evidence: {found.rows:,} rows of about {float(f'{needed:.2g}'):,.0f} that are needed"
    bar = f'<progress value="{found.rows}" max="{needed:.0f}"></progress>'
    return f'{text}<p class="needed">{bar} {label}</p>'


def _plots(found: Evaluation) -> str:
    """Values window by window and up to now, and each difference up to now."""
    names = list(found.values)
    own = looks(names)
    plots = [
        _figure(
            f"Value in windows of {window(found)}, and its interval",
            found,
            {name: _line(own[name], found, name) for name in names},
        ),
        _figure(
            "Mean value of all rows so far, and its interval",
            found,
            {name: _line(own[name], found, name, running=True) for name in names},
        ),
    ]
    for gap in found.differences:
        pair = gap.first, gap.second
        line = _line(own[gap.first], found, *pair, running=True)
        text = f"{gap.first} minus {gap.second}, of all rows so far, and its interval"
        plots.append(_figure(text, found, {gap.first: line}, zero=True))
    key = "".join(f"<span>{_swatch(own[name])}{escape(name)}</span>" for name in names)
    return f'<div class="key">{key}</div><div class="plots">{"".join(plots)}</div>'


def _line(look: Look, found: Evaluation, *names: str, running: bool = False) -> ChartLine:
    curve = found.curve if len(names) == 1 else found.gap_curve
    middle, band = curve(*names, running=running)
    dash = " ".join(f"{STROKE * length:g}" for length in look.dash)
    return ChartLine(middle, band, look.colour, DARK.get(look.colour, look.colour), dash)


def _figure(text: str, found: Evaluation, lines: dict[str, ChartLine], zero: bool = False) -> str:
    label = f"{text}; a table gives the numbers"
    drawn = chart(found.starts.tolist(), lines, label, lambda at: moment(found, at), zero)
    return f"<figure><figcaption>{escape(text)}</figcaption>{drawn}</figure>"


def _swatch(look: Look) -> str:
    dash = " ".join(f"{STROKE * length:g}" for length in look.dash)
    dark = DARK.get(look.colour, look.colour)
    return (
        f'<svg width="28" height="8" aria-hidden="true"><path d="M0 4H28" stroke-width="{STROKE}" '
        f'style="stroke: light-dark({look.colour}, {dark})" stroke-dasharray="{dash}"/></svg>'
    )


def _section(table: EvaluationTable) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<section><h2>{escape(table.title)}</h2><figure class="table"><figcaption>'
        f'{escape(table.note)}.</figcaption><div class="scroll" tabindex="0"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div></figure></section>"
    )
