"""The report of a stored study: tables, figures and one page that opens without a network."""

from __future__ import annotations

import json
import math
import os
import re
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from driftbandit.lab.figures import draw_regret
from driftbandit.lab.looks import looks
from driftbandit.lab.orders import fit_orders, orders_table
from driftbandit.lab.store import Store
from driftbandit.lab.summary import curves, finals, stored_study
from driftbandit.lab.tables import Table, overview, panels, to_latex, to_markdown

# Column of the curves, caption, axis title, and whether its axis starts logarithmic.
CHARTS = (
    ("regret", "Cumulative regret, mean and one deviation", "cumulative regret", False),
    ("cost_us", "Cost of a round", "µs per round", True),
    ("bytes", "Memory", "bytes", True),
    ("error", "Tracking error, distance of the estimate to the truth", "distance", False),
    ("coverage", "Share of seeds with the truth inside the confidence set", "share", False),
)
DARK = {"#000000": "#ffffff", "#0072B2": "#5b8def"}  # instead of colours too dark for a dark page
DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot", "dashdot": "dashdot"}
SHARED = "Timings were taken while cells shared cores; they are too long."
# The browser itself then refuses to fetch anything.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

STYLE = """
:root { color-scheme: light dark; --ground: light-dark(#ffffff, #15181c);
  --ink: light-dark(#1b1f24, #e4e7eb); --faint: light-dark(#5b6470, #a0a8b3);
  --line: light-dark(#d5dae0, #363c45); --raised: light-dark(#f3f5f7, #1f242a);
  --link: light-dark(#00568a, #7cc4f5); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .3rem 0; padding-right: 7rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .4rem; border-top: 1px solid var(--line);
  padding-top: 1.2rem; }
a { color: var(--link); }
nav ul { columns: 16rem; margin: .4rem 0; padding-left: 1.2rem; }
.faint, figcaption { color: var(--faint); }
button { font: inherit; font-size: .85rem; color: var(--ink); background: var(--raised);
  border: 1px solid var(--line); border-radius: .4rem; padding: .2rem .6rem; cursor: pointer; }
button[aria-pressed=true] { background: var(--link); color: var(--ground); }
#theme { position: absolute; top: 1rem; right: max(1rem, calc(50vw - 37rem)); }
fieldset { border: 1px solid var(--line); border-radius: .5rem; margin: 1rem 0; }
.policies { display: grid; grid-template-columns: repeat(auto-fill, minmax(14.5rem, 1fr));
  gap: .1rem 1rem; margin-bottom: .5rem; }
.policies label { display: flex; gap: .45rem; align-items: center; cursor: pointer; }
.policies svg { flex: none; }
figure { margin: 1rem 0 0; min-width: 0; }
figcaption { display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; font-size: .95rem; }
figcaption span { flex: 1 1 14rem; }
.chart { height: 19rem; }
.chart[data-column=regret] { height: max(27rem, var(--policies) * 1.2rem + 6rem); }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr));
  gap: 0 1.5rem; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; white-space: nowrap; color: var(--faint); padding-bottom: .3rem; }
th, td { padding: .25rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
thead th { white-space: normal; vertical-align: bottom; min-width: 5rem; }
th:first-child, .facts td { text-align: left; }
.scroll th:first-child { position: sticky; left: 0; background: var(--ground); }
tbody th { font-weight: normal; }
.facts td { white-space: normal; overflow-wrap: anywhere; }
details { margin: .6rem 0; }
summary { cursor: pointer; }
pre { overflow-x: auto; background: var(--raised); padding: .8rem; border-radius: .5rem;
  font-size: .85rem; }
@media (max-width: 40rem) { .chart[data-column=regret] { height: 20rem; } }
@media print { button, fieldset { display: none; } }
"""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const charts = [...document.querySelectorAll(".chart")];
const boxes = [...document.querySelectorAll("[data-policy]")];
const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const isDark = () => root.style.colorScheme ? root.style.colorScheme === "dark" : system.matches;
const ink = policy => isDark() ? policy.dark : policy.colour;
const safe = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function traces(chart) {
  const world = data.worlds[chart.dataset.world], column = chart.dataset.column;
  return world.series.flatMap(series => {
    const policy = data.policies[series.policy], y = series[column];
    const common = { x: world.t, meta: series.policy, legendgroup: policy.slug,
      mode: world.t.length < 5 ? "lines+markers" : "lines",
      visible: boxes[series.policy].checked ? true : "legendonly", name: safe(policy.label) };
    const line = { ...common, y, connectgaps: true,
      line: { color: ink(policy), dash: policy.dash, width: 2 } };
    if (!y || y.every(value => value === null)) return [];
    return column === "regret" ? [band(common, policy, series, chart), line] : [line];
  });
}

function band(common, policy, series, chart) {
  const spread = k => series.deviation[k] ?? 0;
  const least = k => chart.dataset.y === "log" ? series.regret[k] / 100 : -Infinity;
  const known = [...common.x.keys()].filter(k => series.regret[k] !== null), back = [...known];
  back.reverse();
  return { ...common, x: [...known, ...back].map(k => common.x[k]),
    y: [...known.map(k => series.regret[k] + spread(k)),
      ...back.map(k => Math.max(series.regret[k] - spread(k), least(k)))],
    fill: "toself", fillcolor: ink(policy), opacity: Math.min(0.14, 1.4 / data.policies.length),
    mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
}

function decades(chart) {
  const column = chart.dataset.column, all = data.worlds[chart.dataset.world].series;
  const values = all.flatMap(series => series[column] ?? []).filter(value => value > 0);
  const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [1e300, 0]);
  return values.length ? Math.log10(high / low) : 0;
}

function layout(chart) {
  const style = getComputedStyle(document.body), faint = isDark() ? "#363c45" : "#e1e5ea";
  const faintInk = getComputedStyle(document.querySelector("figcaption")).color;
  const axis = (type, title) => ({ type, title: { text: title }, gridcolor: faint,
    linecolor: faint, zerolinecolor: faint, automargin: true, nticks: 7 });
  const yaxis = axis(chart.dataset.y, chart.dataset.title);
  if (yaxis.type === "log") yaxis.dtick = decades(chart) > 2 ? 1 : "D2";
  return { xaxis: { ...axis(chart.dataset.x, "round t"), unifiedhovertitle: { text: "t = %{x}" } },
    yaxis: { ...yaxis, rangemode: "tozero" },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: style.color, family: "system-ui, sans-serif", size: 12 },
    hovermode: "x unified", dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    hoverlabel: { bgcolor: style.backgroundColor, namelength: -1,
      font: { color: style.color, size: 11 } },
    showlegend: chart.dataset.column === "regret" && chart.clientWidth > 700,
    legend: { tracegroupgap: 0, font: { size: 11 } }, margin: { l: 60, r: 15, t: 30, b: 45 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: faintInk,
      activecolor: getComputedStyle(document.querySelector("a")).color },
    uirevision: chart.dataset.x + chart.dataset.y };
}

function draw(chart) {
  const config = { responsive: true, displaylogo: false, showSendToCloud: false,
    plotlyServerURL: "", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  Plotly.react(chart, traces(chart), layout(chart), config);
  if (chart.dataset.drawn) return;
  chart.dataset.drawn = "yes";
  chart.on("plotly_legendclick", event => {
    const box = boxes[event.data[event.curveNumber].meta];
    box.checked = !box.checked;
    drawAll();
    return false;
  });
  chart.on("plotly_legenddoubleclick", event => {
    const chosen = boxes[event.data[event.curveNumber].meta];
    const alone = chosen.checked && boxes.every(box => box === chosen || !box.checked);
    show(box => alone || box === chosen);
    return false;
  });
}

function show(wanted) {
  boxes.forEach(box => { box.checked = wanted(box); });
  drawAll();
}

function drawAll() { charts.forEach(draw); }

async function start() {
  for (const chart of charts) {
    draw(chart);
    await new Promise(resume => setTimeout(resume));
  }
  document.body.dataset.state = "ready";
}

boxes.forEach(box => box.addEventListener("change", drawAll));
document.getElementById("all").addEventListener("click", () => show(() => true));
document.getElementById("none").addEventListener("click", () => show(() => false));
document.getElementById("theme").addEventListener("click", () => {
  root.style.colorScheme = isDark() ? "light" : "dark";
  drawAll();
});
system.addEventListener("change", drawAll);
document.querySelectorAll("[data-axis]").forEach(button => button.addEventListener("click", () => {
  const chart = button.closest("figure").querySelector(".chart"), axis = button.dataset.axis;
  chart.dataset[axis] = chart.dataset[axis] === "log" ? "linear" : "log";
  button.setAttribute("aria-pressed", chart.dataset[axis] === "log");
  draw(chart);
}));
start();
"""


def write_report(
    folder: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> dict[str, Path]:
    """Write tables, figures and report.html of a stored study; returns the files by kind."""
    store = Store(folder)
    ends, lines = finals(store), curves(store)
    target = Path(out) if out else store.folder / "report"
    target.mkdir(parents=True, exist_ok=True)
    per_world = panels(ends)
    tables = [overview(ends), *per_world] if len(per_world) > 1 else per_world
    texts = {
        "md": ("table.md", "\n".join(to_markdown(table) for table in tables)),
        "tex": ("table.tex", "\n".join(to_latex(table) for table in tables)),
        "csv": ("finals.csv", ends.write_csv()),
        "html": ("report.html", _page(store, tables, per_world, lines)),
    }
    if orders := fit_orders(store):
        texts["orders"] = ("orders.md", orders_table(orders))
    for name, text in texts.values():
        (target / name).write_text(text, encoding="utf-8")
    return {k: target / name for k, (name, _) in texts.items()} | draw_regret(lines, target)


def _page(store: Store, tables: list[Table], per_world: list[Table], lines: pl.DataFrame) -> str:
    from plotly.offline import get_plotlyjs

    study = stored_study(store)
    title = escape((study and (study.title or study.name)) or store.folder.resolve().name)
    data = _data(lines)
    sections = "".join(_section(k, t, data["worlds"][k]) for k, t in enumerate(per_world))
    summary = f'<h2 id="overview">Overview</h2>{_table(tables[0])}' if tables != per_world else ""
    # A label must not be able to close the script element.
    encoded = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body>",
            f'<header><h1>{title}</h1><button type="button" id="theme">Light / dark</button>',
            f"{_contents(per_world, bool(summary))}</header>",
            f'<main style="--policies: {len(data["policies"])}">{_toggles(data["policies"])}',
            f"{summary}{sections}{_origin(store)}</main>",
            f'<script type="application/json" id="data">{encoded}</script>',
            f"<script>{get_plotlyjs()}</script><script>{SCRIPT}</script></body></html>",
        ]
    )


def _data(lines: pl.DataFrame) -> dict[str, Any]:
    """Everything the charts show, once: policies, and per environment the rounds and the series."""
    styles = looks(lines["policy"].unique().sort().to_list())
    slugs = _slugs(list(styles))
    policies = [
        {
            "label": label,
            "slug": slugs[label],
            "colour": look.colour,
            "dark": DARK.get(look.colour, look.colour),
            "dash": DASHES[look.dash],
        }
        for label, look in styles.items()
    ]
    places = {label: place for place, label in enumerate(styles)}
    parts = lines.sort("environment").partition_by("environment", maintain_order=True)
    return {"policies": policies, "worlds": [_world(part, places) for part in parts]}


def _world(part: pl.DataFrame, places: dict[str, int]) -> dict[str, Any]:
    t = part.select(pl.col("round").unique().sort())
    series = []
    for policy in part.partition_by("policy", maintain_order=True):
        aligned = t.join(policy, on="round", how="left", maintain_order="left")
        columns = ["deviation", *(column for column, *_ in CHARTS)]
        values = {column: _rounded(aligned[column]) for column in columns}
        known = {k: v for k, v in values.items() if any(x is not None for x in v)}
        series.append({"policy": places[policy["policy"][0]]} | known)
    return {"t": t["round"].to_list(), "series": series}


def _rounded(values: pl.Series) -> list[float | None]:
    """Five digits, which no screen can tell from more."""
    finite = (v if v is not None and math.isfinite(v) else None for v in values.to_list())
    short = (None if v is None else float(f"{v:.5g}") for v in finite)
    return [int(v) if v is not None and v == int(v) else v for v in short]


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


def _contents(per_world: list[Table], has_overview: bool) -> str:
    links = [("overview", "Overview")] if has_overview else []
    links += [(f"environment-{k}", table.title) for k, table in enumerate(per_world)]
    links.append(("origin", "Study and provenance"))
    items = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in links)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _toggles(policies: list[dict[str, str]]) -> str:
    dashes = {"solid": "", "dash": "7 4", "dot": "2 3", "dashdot": "7 3 2 3"}
    items = "".join(
        f'<label><input type="checkbox" checked id="toggle-{p["slug"]}" data-policy="{k}">'
        '<svg width="28" height="8" aria-hidden="true"><path d="M0 4H28" stroke-width="2.5" '
        f'style="stroke: light-dark({p["colour"]}, {p["dark"]})" '
        f'stroke-dasharray="{dashes[p["dash"]]}"/></svg>{escape(p["label"])}</label>'
        for k, p in enumerate(policies)
    )
    return (
        f'<fieldset><legend>Policies shown in all charts</legend><div class="policies">{items}'
        '</div><button type="button" id="all">all</button> '
        '<button type="button" id="none">none</button></fieldset>'
    )


def _section(number: int, table: Table, world: dict[str, Any]) -> str:
    shown = [chart for chart in CHARTS if any(chart[0] in s for s in world["series"])]
    first, *others = (_chart(number, table.title, *chart) for chart in shown)
    return (
        f'<section aria-labelledby="environment-{number}"><h2 id="environment-{number}">'
        f'{escape(table.title)}</h2>{first}{_table(table)}<div class="pair">{"".join(others)}'
        "</div></section>"
    )


def _chart(number: int, world: str, column: str, caption: str, axis: str, log: bool) -> str:
    button = '<button type="button" data-axis="{0}" aria-pressed="{1}">log {0}</button>'
    buttons = button.format("x", "false") + button.format("y", str(log).lower())
    label = escape(f"{caption}, against the round, in {world}; a table gives the final numbers")
    return (
        f"<figure><figcaption><span>{caption}</span>{buttons}</figcaption>"
        f'<div class="chart" role="img" aria-label="{label}" data-world="{number}" data-x="linear" '
        f'data-column="{column}" data-title="{axis}" data-y="{"log" if log else "linear"}"></div>'
        "</figure>"
    )


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.header)
    body = ""
    for name, *items in table.rows:
        cells = (f"<b>{escape(i.text)}</b>" if i.best else escape(i.text) for i in items)
        body += f'<tr><th scope="row">{escape(name.text)}</th>'
        body += "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(table.note)}</caption><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _origin(store: Store) -> str:
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
