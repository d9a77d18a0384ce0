"""One page that opens without a network: charts, tables and where the numbers came from.

Its script stands beside this file, in page.js; `pages` has the style and the charts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any

import polars as pl

from driftbandit.lab.report.summary import stored_study
from driftbandit.lab.report.tables import Entry, ReportTable
from driftbandit.lab.run.store import RunStore
from driftbandit.pages import asset
from driftbandit.pages.document import data_table, document, rounded, swatch
from driftbandit.pages.styles import STROKE, hero_of, looks

# Column of the curves, caption, axis title, and whether its axis starts logarithmic.
CHARTS = (
    ("regret", "Cumulative regret, mean over seeds and its 95 % interval", "regret", False),
    ("cost_us", "Cost of a round, median", "µs per round", True),
    ("bytes", "Memory", "bytes", True),
    ("error", "Tracking error, distance of the estimate to the truth", "distance", False),
    ("coverage", "Share of seeds with the truth inside the confidence set", "share", False),
)
FIGURE_SPACE, POINT_SPACE = "\N{FIGURE SPACE}", "\N{PUNCTUATION SPACE}"  # wide as a digit, a point
SHARED = "Timings were taken while cells shared cores; they are too long."


def page(
    store: RunStore,
    summaries: Sequence[ReportTable],
    per_world: Sequence[ReportTable],
    lines: pl.DataFrame,
    hero: str | None = None,
) -> str:
    """The report as HTML: summaries over all environments, then a section for each."""
    study = stored_study(store)
    title = (study and (study.title or study.name)) or store.folder.resolve().name
    data = _data(lines, hero)
    sections = "".join(_section(k, table, data) for k, table in enumerate(per_world))
    overviews = "".join(
        f'<section><h2 id="summary-{k}">{escape(table.title)}</h2>{_table(table)}</section>'
        for k, table in enumerate(summaries)
    )
    main = f"{_toggles(data['policies'])}{overviews}{sections}{_origin(store)}"
    script = asset("page.js", __package__)
    return document(title, _contents(summaries, per_world), main, data, script)


def _data(lines: pl.DataFrame, hero: str | None) -> dict[str, Any]:
    """Everything the charts show, once: policies, and per environment the rounds and the series."""
    names = lines["policy"].unique().sort().to_list()
    slugs, best = _slugs(names), hero_of(names, hero)
    policies = [
        {"label": label, "slug": slugs[label], "hero": label == best} | look.drawn()
        for label, look in looks(names).items()
    ]
    places = {label: place for place, label in enumerate(names)}
    parts = lines.sort("environment").partition_by("environment", maintain_order=True)
    return {"policies": policies, "worlds": [_world(part, places) for part in parts]}


def _world(part: pl.DataFrame, places: dict[str, int]) -> dict[str, Any]:
    t = part.select(pl.col("round").unique().sort())
    series = []
    for policy in part.partition_by("policy", maintain_order=True):
        aligned = t.join(policy, on="round", how="left", maintain_order="left")
        columns = ["deviation", "half", *(column for column, *_ in CHARTS)]
        values = {column: rounded(aligned[column]) for column in columns}
        known = {k: v for k, v in values.items() if any(x is not None for x in v)}
        series.append({"policy": places[policy["policy"][0]]} | known)
    return {"t": t["round"].to_list(), "series": series}


def _slugs(labels: list[str]) -> dict[str, str]:
    """Names for use in ids, all different."""
    found: dict[str, str] = {}
    for label in labels:
        slug = base = re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-") or "policy"
        number = 1
        while slug in found.values():
            number += 1
            slug = f"{base}-{number}"
        found[label] = slug
    return found


def _contents(summaries: Sequence[ReportTable], per_world: Sequence[ReportTable]) -> str:
    links = [(f"summary-{k}", table.title) for k, table in enumerate(summaries)]
    links += [(f"environment-{k}", table.title) for k, table in enumerate(per_world)]
    links.append(("origin", "Study and provenance"))
    items = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _swatch(policy: dict[str, Any]) -> str:
    return swatch(policy, 3.5 if policy["hero"] else STROKE)


def _toggles(policies: list[dict[str, Any]]) -> str:
    items = "".join(
        f'<label><input type="checkbox" checked id="toggle-{p["slug"]}" data-policy="{k}">'
        f"{_swatch(p)}{escape(p['label'])}</label>"
        for k, p in enumerate(policies)
    )
    return (
        f"<fieldset><legend>Policies shown in all charts; a double click isolates one</legend>"
        f'<div class="policies">{items}</div><button type="button" id="all">all</button> '
        '<button type="button" id="none">none</button></fieldset>'
    )


def _section(number: int, table: ReportTable, data: dict[str, Any]) -> str:
    world = data["worlds"][number]
    shown = [chart for chart in CHARTS if any(chart[0] in s for s in world["series"])]
    first, *others = (_chart(table.title, *chart) for chart in shown)
    return (
        f'<section data-world="{number}" aria-labelledby="environment-{number}"><h2 '
        f'id="environment-{number}">{escape(table.title)}</h2><div class="world">{first}'
        f'{_readout(world, data["policies"])}<div class="pair">{"".join(others)}</div></div>'
        f"{_table(table)}</section>"
    )


def _readout(world: dict[str, Any], policies: list[dict[str, Any]]) -> str:
    """The legend beside the charts, which also shows the values at the round pointed at."""
    entries = "".join(
        f'<li data-entry="{k}"><button type="button" data-policy="{k}" aria-pressed="true">'
        f"{_swatch(policies[k])}<span>{escape(policies[k]['label'])}</span><i></i><small></small>"
        "</button></li>"
        for k in (series["policy"] for series in world["series"])
    )
    return f'<aside class="readout"><p class="faint"></p><ol>{entries}</ol></aside>'


def _chart(world: str, column: str, caption: str, axis: str, log: bool) -> str:
    button = '<button type="button" data-axis="{0}" aria-pressed="{1}">log {0}</button>'
    buttons = button.format("x", "false") + button.format("y", str(log).lower())
    label = escape(f"{caption}, against the round, in {world}; a table gives the final numbers")
    return (
        f"<figure><figcaption><span>{caption}</span>{buttons}</figcaption>"
        f'<div class="chart" role="img" aria-label="{label}" data-x="linear" '
        f'data-column="{column}" data-title="{axis}" data-y="{"log" if log else "linear"}"></div>'
        "</figure>"
    )


def _table(table: ReportTable) -> str:
    columns = [aligned([item.text for item in column]) for column in zip(*table.rows)]
    rows = (
        (row[0].text, "".join(_cell(item, column[k]) for item, column in zip(row[1:], columns[1:])))
        for k, row in enumerate(table.rows)
    )
    return data_table(table.note, table.header, rows)


def _cell(item: Entry, text: str) -> str:
    kind = ' class="text"' if re.match(r"[a-z_]{3,} ", item.text) else ""
    return (
        f"<td{kind}><b>{escape(text)}</b></td>" if item.best else f"<td{kind}>{escape(text)}</td>"
    )


def aligned(texts: Sequence[str]) -> list[str]:
    """Padded so that the decimal points of a column stand one below the other, number by number."""
    split = [re.split(r"([−\d.]*\d)", text) for text in texts]  # numbers at odd places
    shape = max(map(len, split))
    parts = [pieces for pieces in split if len(pieces) == shape]
    for place in range(1, shape, 2):
        whole = [pieces[place].partition(".") for pieces in parts]
        left, right = (max(len(number[k]) for number in whole) for k in (0, 2))
        for pieces, (a, point, b) in zip(parts, whole):
            gap = POINT_SPACE if right and not point else ""
            pad = gap + FIGURE_SPACE * (right - len(b))
            pieces[place] = FIGURE_SPACE * (left - len(a)) + a + point + b
            pieces[place + 1] = re.sub(r"^[],%]*", rf"\g<0>{pad}", pieces[place + 1])
    return ["".join(pieces) for pieces in split]


def _origin(store: RunStore) -> str:
    """The study's text and where its numbers came from."""
    path, runs = store.folder / "study.toml", store.runs()
    text = path.read_text(encoding="utf-8") if path.exists() else "not stored"
    last = runs[-1] if runs else {}
    facts = "".join(
        f'<tr><th scope="row">{escape(str(key))}</th><td>{escape(str(value))}</td></tr>'
        for key, value in last.items()
    )
    note = f"<p><strong>{SHARED}</strong></p>" if any(r.get("shared_cores") for r in runs) else ""
    return (
        f'<section><h2 id="origin">Study and provenance</h2>{note}<details><summary>Study</summary>'
        f"<pre>{escape(text)}</pre></details><details><summary>Provenance: last of {len(runs)} runs"
        f'</summary><table class="facts"><tbody>{facts}</tbody></table></details></section>'
    )
