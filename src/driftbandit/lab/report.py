"""Tables and figures of finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.paper import Panel, label
from driftbandit.simulate import Run

# Okabe and Ito's colours, told apart by colour-blind readers and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")


def table(results: list[tuple[Panel, list[Run]]]) -> list[dict[str, str]]:
    """One row per policy: regret (mean ± deviation over seeds) in each panel and cost a round."""
    rows = []
    for runs in zip(*(runs for _, runs in results)):
        row = {"policy": label(runs[0].policy)}
        for (panel, _), run in zip(results, runs):
            spread = run.total.std(ddof=1) if len(run.seeds) > 1 else 0.0
            row[panel.title] = f"{run.total.mean():.0f} ± {spread:.0f}"
        row["us / round"] = f"{np.median([run.microseconds for run in runs]):.1f}"
        rows.append(row)
    return rows


def draw(results: list[tuple[Panel, list[Run]]], path: Path) -> Path:
    """Cumulative regret above, cost of a round below, one column per panel."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(1.2 + 3.4 * len(results), 5.6), layout="constrained")
        axes = figure.subplots(2, len(results), squeeze=False, height_ratios=(2, 1), sharey="row")
        for column, (panel, runs) in enumerate(results):
            _draw_panel(axes[:, column], panel, runs)
        axes[0, 0].set_ylabel("cumulative dynamic regret")
        axes[1, 0].set_ylabel("µs per round")
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="outside lower center", ncols=min(len(names), 4), frameon=False
        )
        figure.savefig(path, dpi=160)
    return path


def _draw_panel(axes: Any, panel: Panel, runs: list[Run]) -> None:
    above, below = axes
    for run, colour in zip(runs, COLOURS):
        run.plot(above, color=colour, label=label(run.policy), lw=1.4)
        t, cost = _smooth(run.choose_ns + run.update_ns)
        below.plot(t, cost / 1000, color=colour, lw=1.2)
    above.set(
        title=panel.title, xlabel="", ylabel="", xlim=(0, panel.environment.horizon), ylim=(0, None)
    )
    below.set(xlabel="round $t$", yscale="log", xlim=(0, panel.environment.horizon))
    below.grid(axis="y", alpha=0.25)
    above.grid(alpha=0.25)


def _smooth(cost: Any, pieces: int = 50) -> tuple[Any, Any]:
    """Medians of consecutive pieces: single rounds are noisy."""
    parts = [part for part in np.array_split(np.arange(len(cost)), pieces) if len(part)]
    return np.array([p.mean() + 1 for p in parts]), np.array([np.median(cost[p]) for p in parts])
