"""Final regret against each number that a study sweeps, as lines; against two, as a heat map."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftbandit.lab.report.figures import (
    LINE_HEIGHT,
    Emphasis,
    Width,
    add_labels,
    blank,
    finish,
    plain_decades,
    save,
)
from driftbandit.lab.report.statistics import half_width
from driftbandit.lab.run.cells import Cell
from driftbandit.pages.styles import LOOKS, hero_of, looks

Line = Mapping[str, Any]  # of the final results


ENOUGH = 3  # values that make a line


class Sweep(NamedTuple):
    """One line: regrets at the values of a quantity, with half of their 95 % intervals."""

    kind: str  # of the environment or policy whose number is swept
    quantity: str
    line: str  # the policy, or the environment, in which it is swept
    values: tuple[float, ...]
    regrets: tuple[float, ...]
    halves: tuple[float, ...]
    of_worlds: bool


def sweeps(cells: Iterable[Cell], finals: pl.DataFrame) -> list[Sweep]:
    """Every quantity that takes three values or more while all other options stay the same."""
    lines = {(str(row["environment"]), str(row["policy"])): row for row in finals.to_dicts()}
    groups: dict[tuple[Any, ...], dict[float, Line]] = {}
    for cell in cells:
        row = lines.get((cell.environment_label, cell.policy_label))
        if row is not None:
            for of_worlds in (True, False):
                for key, value in _places(cell, of_worlds):
                    groups.setdefault(key, {})[value] = row
    found = {key: rows for key, rows in groups.items() if len(rows) >= ENOUGH}
    return [
        _sweep(kind, quantity, line + _rest(key, found), rows, of_worlds)
        for key, rows in found.items()
        for of_worlds, kind, quantity, line, _ in [key]
    ]


def _rest(key: tuple[Any, ...], groups: Iterable[tuple[Any, ...]]) -> str:
    """Name the other options in which a line differs from its neighbours of the same name."""
    *same, others = key
    several = [json.loads(each[-1]) for each in groups if list(each[:-1]) == same]
    mine = json.loads(others)
    differ = [k for k in mine if any(other.get(k) != mine[k] for other in several)]
    return "".join(f", {k.partition('.')[2]} = {_short(mine[k])}" for k in differ)


def _short(value: Any) -> str:
    return f"{value:g}" if type(value) in (int, float) else str(value)


class Grid(NamedTuple):
    """Mean regrets at every pair of values of two quantities; NaN where a pair was not played."""

    kind: str
    quantities: tuple[str, str]  # down, across
    line: str
    down: tuple[float, ...]
    across: tuple[float, ...]
    regrets: tuple[tuple[float, ...], ...]


def grids(cells: Iterable[Cell], finals: pl.DataFrame) -> list[Grid]:
    """Every pair of quantities that take three values or more together, all else the same."""
    lines = {(str(row["environment"]), str(row["policy"])): row for row in finals.to_dicts()}
    groups: dict[tuple[Any, ...], dict[tuple[float, float], float]] = {}
    for cell in cells:
        row = lines.get((cell.environment_label, cell.policy_label))
        if row is not None:
            for of_worlds in (True, False):
                for key, pair in _pairs(cell, of_worlds):
                    groups.setdefault(key, {})[pair] = float(row["mean"])
    found = (_grid(key, rows) for key, rows in groups.items())
    return [g for g in found if min(len(g.down), len(g.across)) >= ENOUGH]


def _pairs(cell: Cell, of_worlds: bool) -> Iterator[tuple[tuple[Any, ...], tuple[float, float]]]:
    """The maps on which a cell is a point, and where."""
    start, recipe, line = _side(cell, of_worlds)
    options = {k: v for k, v in json.loads(cell.swept).items() if k.startswith(start)}
    numbers = [k for k, v in options.items() if type(v) in (int, float)]
    for one, other in combinations(numbers, 2):
        rest = {k: v for k, v in options.items() if k not in (one, other)}
        names = one.removeprefix(start), other.removeprefix(start)
        key = (json.loads(recipe)["type"], names, line, json.dumps(rest, sort_keys=True))
        yield key, (float(options[one]), float(options[other]))


def _grid(key: tuple[Any, ...], rows: Mapping[tuple[float, float], float]) -> Grid:
    kind, names, line, _ = key
    down, across = (tuple(sorted({pair[k] for pair in rows})) for k in (0, 1))
    regrets = tuple(tuple(rows.get((y, x), np.nan) for x in across) for y in down)
    return Grid(kind, names, line, down, across, regrets)


def draw_grids(found: Sequence[Grid], folder: Path, width: str = "full") -> dict[str, Path]:
    """A heat map per grid, as heatmap.png, .svg and .pdf; nothing if no grid was swept."""
    if not found:
        return {}
    return save("heatmap", folder, width, lambda size: _maps(found, size))


def _maps(found: Sequence[Grid], width: Width) -> Any:
    across, size = min(width.across, len(found)), width.size - 1.0
    bands = -(-len(found) // across)
    tallest = max(len(grid.down) for grid in found)
    figure = blank(width.inches, (0.9 + 0.28 * tallest) * bands + 0.3)
    axes = figure.subplots(bands, across, squeeze=False).ravel()
    for ax, grid in zip(axes, found):
        _draw_map(ax, grid, size)
    for ax in axes[len(found) :]:
        ax.remove()
    finish(figure, [], size, width, "Mean final regret over seeds; boxed: the least.")
    return figure


def _draw_map(ax: Any, grid: Grid, size: float) -> None:
    """Cells with their regret; the least has a frame."""
    values = np.array(grid.regrets)
    ax.imshow(values, aspect="auto", cmap="viridis_r", alpha=0.75)
    best = np.unravel_index(np.nanargmin(values), values.shape)
    dark = 0.35 * np.nanmin(values) + 0.65 * np.nanmax(values)  # above it cells are dark
    for place, value in np.ndenumerate(values):
        if np.isfinite(value):
            box = {"boxstyle": "round", "fc": "none", "ec": "k"} if place == best else None
            words = {"ha": "center", "va": "center", "fontsize": size - 1.0}
            words["color"] = "white" if value > dark else "black"
            ax.text(place[1], place[0], f"{value:.3g}", bbox=box, **words)
    ax.set_xticks(range(len(grid.across)), [f"{v:g}" for v in grid.across])
    ax.set_yticks(range(len(grid.down)), [f"{v:g}" for v in grid.down])
    down, across = (name.replace("_", " ") for name in grid.quantities)
    ax.set(xlabel=across, ylabel=down)
    ax.set_title(f"{grid.kind}: {grid.line}", fontsize=size)


def _side(cell: Cell, of_worlds: bool) -> tuple[str, str, str]:
    """How the swept options of one side begin, its recipe, and the label of the other side."""
    if of_worlds:
        return "environment.", cell.environment, cell.policy_label
    return "policy.", cell.policy, cell.environment_label


def _places(cell: Cell, of_worlds: bool) -> Iterator[tuple[tuple[Any, ...], float]]:
    """The lines on which a cell is a point, and where."""
    start, recipe, line = _side(cell, of_worlds)
    options = {k: v for k, v in json.loads(cell.swept).items() if k.startswith(start)}
    for name, value in options.items():
        if type(value) in (int, float):
            others = json.dumps({k: v for k, v in options.items() if k != name}, sort_keys=True)
            kind = json.loads(recipe)["type"]
            yield (of_worlds, kind, name.removeprefix(start), line, others), float(value)


def _sweep(
    kind: str, quantity: str, line: str, rows: Mapping[float, Line], of_worlds: bool
) -> Sweep:
    values = tuple(sorted(rows))
    means = tuple(float(rows[v]["mean"]) for v in values)
    halves = tuple(float(half_width(rows[v]["deviation"], rows[v]["seeds"])) for v in values)
    return Sweep(kind, quantity, line, values, means, halves, of_worlds)


def draw_sweeps(
    found: Sequence[Sweep], folder: Path, width: str = "full", hero: str | None = None
) -> dict[str, Path]:
    """A panel per quantity, as sweep.png, .svg and .pdf; nothing where nothing is swept."""
    if not found:
        return {}
    return save("sweep", folder, width, lambda size: _figure(found, size, hero))


def _figure(found: Sequence[Sweep], width: Width, hero: str | None) -> Any:
    panels: dict[tuple[str, str, bool], list[Sweep]] = {}
    for sweep in found:
        panels.setdefault((sweep.kind, sweep.quantity, sweep.of_worlds), []).append(sweep)
    names = list(dict.fromkeys(s.line for s in found))
    policies = list(dict.fromkeys(s.line for s in found if s.of_worlds))
    styles = looks(policies) | dict(zip((name for name in names if name not in policies), LOOKS))
    best = hero_of(policies, hero if hero in policies else None) if policies else ""
    how = Emphasis(styles, best, ())
    across, size = min(width.across, len(panels)), width.size - 1.0
    bands = -(-len(panels) // across)
    most = max(len(lines) for lines in panels.values())
    height = max(2.0, (most + 1) * LINE_HEIGHT * size / 72) + 0.6
    figure = blank(width.inches, height * bands + 0.3)
    axes = figure.subplots(bands, across, squeeze=False).ravel()
    labelled = []
    for ax, (key, lines) in zip(axes, panels.items()):
        labelled.append((ax, _draw_panel(ax, key, lines, how, size)))
    for ax in axes[len(panels) :]:
        ax.remove()
    finish(figure, labelled, size, width, "Means over seeds; bars: 95 % interval of the mean.")
    return figure


def _draw_panel(
    ax: Any, key: tuple[str, str, bool], lines: list[Sweep], how: Emphasis, size: float
) -> list[Any]:
    kind, quantity, of_worlds = key
    ends = {}
    for sweep in lines:
        style = how.line(sweep.line) | {"marker": "o", "ms": 3, "capsize": 2, "elinewidth": 0.8}
        ax.errorbar(sweep.values, sweep.regrets, yerr=np.nan_to_num(sweep.halves), **style)
        ends[sweep.line] = (sweep.regrets[-1], style["color"], sweep.line == how.hero)
    values = sorted({v for sweep in lines for v in sweep.values})
    wide = values[0] > 0 and values[-1] / values[0] >= 4
    rising = of_worlds and wide and min(r for s in lines for r in s.regrets) > 0
    ax.set(xscale="log" if wide else "linear", yscale="log" if rising else "linear")
    if wide:
        ax.set_xticks(values, [f"{v:g}" for v in values], minor=False)
        ax.set_xticks([], minor=True)
    if rising:
        plain_decades(ax)
    else:
        ax.set_ylim(bottom=0)
    ax.margins(x=0.03)
    ax.set(xlabel=quantity.replace("_", " "), ylabel="final regret", title=kind)
    ax.grid(alpha=0.25)
    return add_labels(ax, ends, size)
