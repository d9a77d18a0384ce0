"""Final regret against each number that a study sweeps, and the figure of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftbandit.lab.figures import Emphasis, Width, blank, finish, plain_decades, save
from driftbandit.lab.line_ends import LINE_HEIGHT, add_labels
from driftbandit.lab.looks import LOOKS, hero_of, looks
from driftbandit.lab.spec import Study
from driftbandit.lab.statistics import half_width

Lines = Mapping[tuple[str, str], Mapping[str, Any]]  # final results by environment and policy


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


def sweeps(study: Study, finals: pl.DataFrame) -> list[Sweep]:
    """Every quantity with three values or more whose variants have labels of their own."""
    lines = {(str(row["environment"]), str(row["policy"])): row for row in finals.to_dicts()}
    return [*_of_worlds(study, lines), *_of_policies(study, lines)]


def _of_worlds(study: Study, lines: Lines) -> Iterator[Sweep]:
    policies = dict.fromkeys(policy for _, policy in lines)
    for entry in study.environments:
        alone = study.model_copy(update={"environments": (entry,)})
        options = {label: options for label, _, options in alone.worlds()}
        for policy in policies:
            found = {k: lines[k, policy] for k in options if (k, policy) in lines}
            for quantity in _numbers(entry, {"horizon": study.horizon}):
                yield from _grouped(entry.type, quantity, policy, options, found, of_worlds=True)


def _of_policies(study: Study, lines: Lines) -> Iterator[Sweep]:
    for entry in study.policies:
        alone = study.model_copy(update={"policies": (entry,)})
        for label, world, _ in study.worlds():
            options = {name: options for name, _, options in alone.contenders(world)}
            if len(options) < len(alone.contenders(world)):
                continue  # tuning keeps one of them
            found = {k: lines[label, k] for k in options if (label, k) in lines}
            for quantity in _numbers(entry, {}):
                yield from _grouped(entry.type, quantity, label, options, found, of_worlds=False)


def _numbers(entry: Any, defaults: Mapping[str, Any]) -> list[str]:
    """The options of an entry that are lists of numbers."""
    options = {**defaults, **(entry.model_extra or {})}
    return [
        key
        for key, value in options.items()
        if isinstance(value, list) and all(type(v) in (int, float) for v in value)
    ]


def _grouped(
    kind: str,
    quantity: str,
    line: str,
    options: Mapping[str, Mapping[str, Any]],
    found: Mapping[str, Mapping[str, Any]],
    *,
    of_worlds: bool,
) -> Iterator[Sweep]:
    """One sweep for each setting of everything else that is swept."""
    groups: dict[str, dict[float, Mapping[str, Any]]] = {}
    for label, row in found.items():
        others = {k: v for k, v in options[label].items() if k != quantity}
        groups.setdefault(str(others), {})[float(options[label][quantity])] = row
    for rows in groups.values():
        if len(rows) >= ENOUGH:
            values = tuple(sorted(rows))
            means = tuple(float(rows[v]["mean"]) for v in values)
            halves = tuple(
                float(half_width(rows[v]["deviation"], rows[v]["seeds"])) for v in values
            )
            yield Sweep(kind, quantity, line, values, means, halves, of_worlds)


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
