"""Tables of final results, in Markdown and in LaTeX (booktabs)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

MISSING = "–"
BOLD = (
    "bold: the least mean regret, and every policy that a paired t test on common seeds does not "
    "tell from it (5 %, Holm's correction within the environment)"
)
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


class Entry(NamedTuple):
    """One entry of a table; the best are set in bold."""

    text: str
    best: bool = False


class ReportTable(NamedTuple):
    """A titled table whose first column names its rows."""

    title: str
    header: tuple[str, ...]
    rows: list[list[Entry]]
    note: str


def overview(finals: pl.DataFrame) -> ReportTable:
    """Final regret, policies down and environments across, or turned if that is narrower."""
    lines = finals.to_dicts()
    worlds = list(dict.fromkeys(line["environment"] for line in lines))
    policies = finals["policy"].unique().sort().to_list()
    texts = {(x["environment"], x["policy"]): Entry(_regret(x), x["best"]) for x in lines}
    seeds = {p: Entry(_range(x["seeds"] for x in lines if x["policy"] == p)) for p in policies}
    title, note = "Overview", f"Final cumulative regret, mean ± deviation over seeds; {BOLD}"
    blank = Entry(MISSING)
    if len(worlds) <= len(policies):
        rows = [[Entry(p), seeds[p], *(texts.get((w, p), blank) for w in worlds)] for p in policies]
        return ReportTable(title, ("policy", "seeds", *worlds), rows, note)
    rows = [[Entry(w), *(texts.get((w, p), blank) for p in policies)] for w in worlds]
    return ReportTable(
        title, ("environment", *policies), [[Entry("seeds"), *seeds.values()], *rows], note
    )


COLUMNS = {  # names by which a caller asks for columns: their headings
    "seeds": "seeds",
    "regret": "regret",
    "chosen": "chosen by tuning",
    "difference": "difference to {reference} [95\N{NO-BREAK SPACE}%]",
    "p": "p",
    "cost": "µs per round, early → late",
    "memory": "memory",
    "error": "tracking error",
    "coverage": "coverage",
    "ratio": "distance / width",
}


def panels(
    finals: pl.DataFrame,
    chosen: Mapping[tuple[str, str], str] | None = None,
    columns: Sequence[str] = (),
) -> list[ReportTable]:
    """One table per environment: regret, paired difference, cost, memory, tracking error, and the
    options that tuning chose; or those of `COLUMNS` that are asked for, in this order."""
    for name in columns:
        if name not in COLUMNS:
            raise ValueError(f"no column {name!r}: there are {', '.join(COLUMNS)}")
    lines = [line | {"chosen": _chosen(line, chosen or {})} for line in finals.to_dicts()]
    worlds = dict.fromkeys(line["environment"] for line in lines)
    return [_panel(w, [x for x in lines if x["environment"] == w], columns) for w in worlds]


def _panel(world: str, lines: list[dict[str, Any]], asked: Sequence[str]) -> ReportTable:
    reference = lines[0]["reference"]
    texts: dict[str, Callable[..., str]] = {
        "seeds": lambda line: str(line["seeds"]),
        "regret": _regret,
        "chosen": lambda line: line["chosen"],
        "difference": _difference,
        "p": lambda line: _p_value(line["p"]),
        "cost": _cost,
        "memory": _memory,
        "error": lambda line: number(line["error"]),
        "coverage": _coverage,
        "ratio": lambda line: number(line["ratio"]),
    }
    empty = set() if any(line["chosen"] for line in lines) else {"chosen"}
    if all(line["coverage"] is None for line in lines):
        empty |= {"coverage", "ratio"}
    names = list(asked) or [name for name in texts if name not in empty]
    rows = [
        [Entry(line["policy"])]
        + [Entry(texts[name](line), line["best"] and name == "regret") for name in names]
        for line in lines
    ]
    note = (
        f"After {lines[0]['horizon']} rounds, mean ± deviation over seeds; {BOLD}; differences and "
        f"p (paired t, Holm) are on the seeds shared with {reference}"
    )
    header = (COLUMNS[name].format(reference=reference) for name in names)
    return ReportTable(world, ("policy", *header), rows, note)


def _chosen(line: dict[str, Any], chosen: Mapping[tuple[str, str], str]) -> str:
    return chosen.get((line["environment"], line["policy"]), "")


def across_worlds(aggregates: pl.DataFrame, scale: str, left_out: int) -> ReportTable:
    """Interquartile mean and optimality gap of normalised regret, best first."""
    rows = [
        [
            Entry(line["policy"]),
            Entry(_interval(line, "iqm")),
            Entry(_interval(line, "gap")),
        ]
        for line in aggregates.to_dicts()
    ]
    worlds, seeds = aggregates["worlds"][0], aggregates["seeds"][0]
    note = (
        f"Regret over that of {scale} in the same environment, {worlds} environments, {seeds} "
        "seeds that all share [95 % stratified bootstrap interval]. Interquartile mean: of the "
        "middle half of all runs. Optimality gap: mean distance to the oracle, worst runs included"
    )
    if left_out:
        note += f". Left out: {left_out} not played everywhere"
    header = ("policy", "interquartile mean", "optimality gap")
    return ReportTable("All environments together", header, rows, note)


def _interval(line: dict[str, Any], name: str) -> str:
    return f"{line[name]:.3f} [{line[f'{name}_low']:.3f}, {line[f'{name}_high']:.3f}]"


def _range(values: Any) -> str:
    found = sorted(set(values))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _p_value(p: float | None) -> str:
    if p is None:
        return MISSING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def number(value: float | None) -> str:
    """Three digits or more, as few as that needs."""
    if value is None or math.isnan(value):
        return MISSING
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def _regret(line: dict[str, Any]) -> str:
    return f"{number(line['mean'])} ± {number(line['deviation'])}"


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


def to_markdown(table: ReportTable) -> str:
    """The table with its title as a heading."""
    lines = [[_md(name) for name in table.header], ["---"] + ["---:"] * (len(table.header) - 1)]
    for row in table.rows:
        lines.append([f"**{_md(i.text)}**" if i.best else _md(i.text) for i in row])
    body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"## {_md(table.title)}\n\n{_md(table.note)}.\n\n{body}\n"


def to_latex(table: ReportTable) -> str:
    """The table as a float; needs the packages booktabs and textcomp."""
    lines = [[_tex(name) for name in table.header]]
    for row in table.rows:
        lines.append([rf"\textbf{{{_tex(i.text)}}}" if i.best else _tex(i.text) for i in row])
    head, *body = (" & ".join(cells) + r" \\" for cells in lines)
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_tex(table.title)}. {_tex(table.note)}.}}",
            rf"\label{{tab:{_slug(table.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(table.header) - 1)}}}",
            *(r"\toprule", head, r"\midrule", *body, r"\bottomrule"),
            *(r"\end{tabular}", r"\end{table}", ""),
        ]
    )


def _slug(text: str) -> str:
    """A title as the key of a label: "Drift, S = 1" is "drift-s-1"."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _md(text: str) -> str:
    return re.sub(r"([\\`*_|<>&\[\]])", r"\\\1", " ".join(text.split()))


def _tex(text: str) -> str:
    return "".join(TEX.get(c, c) for c in text)
