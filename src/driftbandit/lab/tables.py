"""Tables of final results, in Markdown and in LaTeX (booktabs)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl

YARDSTICKS = ("Oracle", "Uniform")  # never the best: one knows the truth, the other does not learn
MISSING = "–"
TEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "→": r"$\to$",
    "µ": r"\textmu{}",
    "–": "--",
    "−": "$-$",
    "\N{NO-BREAK SPACE}": "~",
}


class Item(NamedTuple):
    """One entry of a table; the best of its kind is set in bold."""

    text: str
    best: bool = False


class Table(NamedTuple):
    """A titled table whose first column names its rows."""

    title: str
    header: tuple[str, ...]
    rows: list[list[Item]]
    note: str


def overview(finals: pl.DataFrame) -> Table:
    """Final regret, policies down and environments across, or turned if that is narrower."""
    lines = finals.to_dicts()
    worlds = list(dict.fromkeys(line["environment"] for line in lines))
    policies = finals["policy"].unique().sort().to_list()
    found = {(line["environment"], line["policy"]): _regret(line) for line in lines}
    winners = {world: _best(_of(lines, world), lambda line: line["mean"]) for world in worlds}
    texts = {(w, p): Item(text, p in winners[w]) for (w, p), text in found.items()}
    title, note = "Overview", "Final cumulative regret, mean ± deviation over seeds; best in bold"
    blank = Item(MISSING)
    if len(worlds) <= len(policies):
        rows = [[Item(p), *(texts.get((w, p), blank) for w in worlds)] for p in policies]
        return Table(title, ("policy", *worlds), rows, note)
    rows = [[Item(w), *(texts.get((w, p), blank) for p in policies)] for w in worlds]
    return Table(title, ("environment", *policies), rows, note)


def panels(finals: pl.DataFrame) -> list[Table]:
    """One table per environment: regret, paired difference, cost, memory, tracking error."""
    lines = finals.to_dicts()
    worlds = dict.fromkeys(line["environment"] for line in lines)
    return [_panel(world, _of(lines, world)) for world in worlds]


def _panel(world: str, lines: list[dict[str, Any]]) -> Table:
    columns: list[tuple[str, Callable[..., str], Callable[..., Any]]] = [
        ("regret", _regret, lambda line: line["mean"]),
        (f"difference to {lines[0]['reference']} [95\N{NO-BREAK SPACE}%]", _difference, _gap),
        ("µs per round, early → late", _cost, lambda line: line["late_us"]),
        ("memory", _memory, lambda line: line["bytes"]),
        ("tracking error", lambda line: number(line["error"]), lambda line: line["error"]),
    ]
    if any(line["coverage"] is not None for line in lines):
        columns.append(("coverage", _coverage, lambda line: None))
        columns.append(("distance / width", lambda line: number(line["ratio"]), lambda line: None))
    winners = [_best(lines, value) for _, _, value in columns]
    rows = [
        [Item(line["policy"])]
        + [Item(text(line), line["policy"] in w) for (_, text, _), w in zip(columns, winners)]
        for line in lines
    ]
    seeds = " or ".join(str(n) for n in sorted({line["seeds"] for line in lines}))
    note = f"After {lines[0]['horizon']} rounds, mean ± deviation over {seeds} seeds; best in bold"
    return Table(world, ("policy", *(name for name, _, _ in columns)), rows, note)


def _of(lines: list[dict[str, Any]], world: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["environment"] == world]


def _best(lines: list[dict[str, Any]], value: Callable[..., Any]) -> set[str]:
    """The policies with the smallest value, unless all have it."""
    values = {line["policy"]: value(line) for line in lines if line["policy"] not in YARDSTICKS}
    known = {policy: amount for policy, amount in values.items() if amount is not None}
    lowest = {policy for policy, amount in known.items() if amount == min(known.values())}
    return lowest if len(lowest) < len(known) else set()


def number(value: float | None) -> str:
    """Three digits or more, as few as that needs."""
    if value is None or math.isnan(value):
        return MISSING
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def _regret(line: dict[str, Any]) -> str:
    return f"{number(line['mean'])} ± {number(line['deviation'])}"


def _gap(line: dict[str, Any]) -> Any:
    return 0.0 if line["policy"] == line["reference"] else line["difference"]


def _difference(line: dict[str, Any]) -> str:
    if line["policy"] == line["reference"]:
        return "reference"
    if line["difference"] is None:
        return MISSING
    return f"{number(line['difference'])} [{number(line['low'])}, {number(line['high'])}]"


def _cost(line: dict[str, Any]) -> str:
    return f"{number(line['early_us'])} → {number(line['late_us'])}"


def _memory(line: dict[str, Any]) -> str:
    size = line["bytes"]
    return f"{size} B" if size < 10_000 else f"{number(size / 1000)} kB"


def _coverage(line: dict[str, Any]) -> str:
    return MISSING if line["coverage"] is None else f"{100 * line['coverage']:.1f} %"


def to_markdown(table: Table) -> str:
    """The table with its title as a heading."""
    lines = [[_md(name) for name in table.header], ["---"] + ["---:"] * (len(table.header) - 1)]
    for row in table.rows:
        lines.append([f"**{_md(i.text)}**" if i.best else _md(i.text) for i in row])
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"## {_md(table.title)}\n\n{_md(table.note)}.\n\n{body}\n"


def to_latex(table: Table) -> str:
    """The table as a float; needs the packages booktabs and textcomp."""
    lines = [[_tex(name) for name in table.header]]
    for row in table.rows:
        lines.append([rf"\textbf{{{_tex(i.text)}}}" if i.best else _tex(i.text) for i in row])
    head, *body = (" & ".join(cells) + r" \\" for cells in lines)
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_tex(table.title)}. {_tex(table.note)}.}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
            *(r"\end{tabular}", r"\end{table}", ""),
        ]
    )


def _md(text: str) -> str:
    return re.sub(r"([\\`*_|<>&\[\]])", r"\\\1", " ".join(text.split()))


def _tex(text: str) -> str:
    return "".join(TEX.get(c, c) for c in text)
