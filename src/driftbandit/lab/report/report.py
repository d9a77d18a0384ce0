"""The report of a stored study: tables, figures and a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from driftbandit.lab.report.aggregate import Runs, aggregates, draw_profiles, normalised_runs
from driftbandit.lab.report.figures import WIDTHS, draw_regret
from driftbandit.lab.report.page import page
from driftbandit.lab.report.regret_slopes import fit_orders, orders_table
from driftbandit.lab.report.summary import (
    chosen,
    curves,
    final_regrets,
    finals,
    named,
    stored_policies,
)
from driftbandit.lab.report.sweeps import draw_grids, draw_sweeps, grids, sweeps
from driftbandit.lab.report.tables import (
    ReportTable,
    across_worlds,
    overview,
    panels,
    to_latex,
    to_markdown,
)
from driftbandit.lab.run.store import RunStore
from driftbandit.lab.study.selection import split_names


def write_report(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    reference: str | None = None,
    policies: Sequence[str] = (),
    hero: str | None = None,
    focus: Sequence[str] = (),
    width: str = "full",
    columns: Sequence[str] = (),
) -> dict[str, Path]:
    """Write tables, figures and report.html of a stored study; returns the files by kind.

    Differences are to `reference`; only `policies` are shown, or all; `hero` is emphasised; with a
    `focus`, figures grey out all other policies; `width` is "neurips", "icml" or "full". Tables of
    single environments have all columns, or those of `COLUMNS` that `columns` names.
    """
    if width not in WIDTHS:
        raise ValueError(f"width {width!r} is unknown: choose one of {', '.join(WIDTHS)}")
    store = RunStore(folder)
    ends, lines = finals(store, reference, policies), curves(store, policies=policies)
    shown = ends["policy"].unique().sort().to_list()
    named([*focus, *([hero] if hero else [])], shown)
    runs = normalised_runs(final_regrets(store, policies), ends["reference"][0])
    target = Path(out) if out else store.folder / "report"
    target.mkdir(parents=True, exist_ok=True)
    paths = _write_texts(store, target, ends, lines, runs, hero, columns)
    paths |= draw_regret(lines, target, width, hero, focus)
    cells = store.current()
    swept = draw_sweeps(sweeps(cells, ends), target, width, hero)
    maps = draw_grids(grids(cells, ends), target, width)
    profiles = draw_profiles(runs, target, width, hero, focus) if runs else {}
    more = {"sweep": swept, "heat map": maps, "profile": profiles}
    return paths | {f"{name} {kind}": p for name, of in more.items() for kind, p in of.items()}


def names_of(folder: str | os.PathLike[str], text: str | None) -> list[str]:
    """Policies from a list with commas; names that have commas themselves are found whole."""
    known = stored_policies(RunStore(folder))
    names = split_names(text, known)
    return named(names, known) if names else []


def _write_texts(
    store: RunStore,
    target: Path,
    ends: pl.DataFrame,
    lines: pl.DataFrame,
    runs: Runs | None,
    hero: str | None,
    columns: Sequence[str],
) -> dict[str, Path]:
    per_world, summaries = panels(ends, chosen(store), columns), _summaries(ends, runs)
    tables = [*summaries, *per_world]
    texts = {
        "md": ("table.md", "\n".join(to_markdown(table) for table in tables)),
        "tex": ("table.tex", "\n".join(to_latex(table) for table in tables)),
        "csv": ("finals.csv", ends.write_csv()),
        "html": ("report.html", page(store, summaries, per_world, lines, hero)),
    }
    if orders := fit_orders(store):
        texts["orders"] = ("orders.md", orders_table(orders))
    for name, text in texts.values():
        (target / name).write_text(text, encoding="utf-8")
    return {kind: target / name for kind, (name, _) in texts.items()}


def _summaries(ends: pl.DataFrame, runs: Runs | None) -> list[ReportTable]:
    """Return what stands above the tables of single environments."""
    found = [overview(ends)] if ends["environment"].n_unique() > 1 else []
    if runs:
        found.insert(0, across_worlds(aggregates(runs), runs.scale, runs.left_out))
    return found
