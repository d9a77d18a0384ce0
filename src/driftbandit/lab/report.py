"""Tables and figures of finished runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.paper import Panel, label
from driftbandit.policies import Policy
from driftbandit.simulate import Run

# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell repetitions apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", ":")
COLUMNS = (
    *("panel", "policy", "seeds", "horizon", "regret", "deviation"),
    *("us_per_round", "us_early", "us_late", "tuning"),
)


def table(results: list[tuple[Panel, list[Run]]]) -> list[dict[str, str]]:
    """One row per policy: regret (mean ± deviation over seeds) in each panel and cost a round."""
    titles = [panel.title for panel, _ in results]
    rows: dict[str, dict[str, str]] = {}
    costs: dict[str, list[float]] = {}
    for panel, runs in results:
        for run in runs:
            name = label(run.policy)
            spread = run.total.std(ddof=1) if len(run.seeds) > 1 else 0.0
            row = rows.setdefault(name, {"policy": name} | dict.fromkeys(titles, ""))
            row[panel.title] = f"{run.total.mean():.0f} ± {spread:.0f}"
            costs.setdefault(name, []).append(run.microseconds)
    return [row | {"µs / round": f"{np.median(costs[name]):.1f}"} for name, row in rows.items()]


def write_csv(results: list[tuple[Panel, list[Run]]], path: Path) -> Path:
    """One line per panel and policy, with the tuning that was used: what documents quote."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for panel, runs in results:
            for run in runs:
                total, cost = run.total, (run.choose_ns + run.update_ns) / 1000.0
                spread = total.std(ddof=1) if len(total) > 1 else 0.0
                tenth = max(1, len(cost) // 10)
                early, late = np.median(cost[tenth : 2 * tenth]), np.median(cost[-tenth:])
                numbers = total.mean(), spread, run.microseconds, early, late
                writer.writerow(
                    [panel.title, label(run.policy), len(total), panel.environment.horizon]
                    + [f"{value:.4g}" for value in numbers]
                    + [json.dumps(_tuning(run.policy))]
                )
    return path


def _tuning(policy: Policy) -> dict[str, Any]:
    recipe = policy.to_dict()
    return {key: value for key, value in recipe.items() if key not in ("type", "problem", "base")}


def draw(results: list[tuple[Panel, list[Run]]], path: Path) -> Path:
    """Cumulative regret above, cost of a round below, one column per panel."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(3.0 + 3.2 * len(results), 5.6), layout="constrained")
        axes = figure.subplots(2, len(results), squeeze=False, height_ratios=(2, 1))
        names = dict.fromkeys(label(run.policy) for _, runs in results for run in runs)
        looks = [{"color": c, "linestyle": dash} for dash in DASHES for c in COLOURS]
        styles = dict(zip(names, looks))
        for column, (panel, runs) in enumerate(results):
            _draw_panel(axes[:, column], panel, runs, styles)
        axes[0, 0].set_ylabel("cumulative dynamic regret")
        axes[1, 0].set_ylabel("µs per round")
        handles: dict[str, Any] = {}
        for ax in axes[0]:
            handles = dict(zip(*ax.get_legend_handles_labels()[::-1])) | handles
        order = [handles[name] for name in names]
        figure.legend(order, list(names), loc="outside right upper", frameon=False)
        figure.savefig(path, dpi=160)
    return path


def _draw_panel(axes: Any, panel: Panel, runs: list[Run], styles: dict[str, Any]) -> None:
    above, below = axes
    for run in runs:
        style = styles[label(run.policy)]
        run.plot(above, label=label(run.policy), lw=1.4, **style)
        t, cost = _smooth(run.choose_ns + run.update_ns)
        below.plot(t, cost / 1000, lw=1.2, **style)
    above.set(title=panel.title, xlabel="", ylabel="", xlim=(0, panel.environment.horizon))
    above.set_ylim(bottom=0)
    below.set(xlabel="round $t$", yscale="log", xlim=(0, panel.environment.horizon))
    below.grid(axis="y", alpha=0.25)
    above.grid(alpha=0.25)


def _smooth(cost: Any, pieces: int = 50) -> tuple[Any, Any]:
    """Medians of consecutive pieces: single rounds are noisy."""
    parts = [part for part in np.array_split(np.arange(len(cost)), pieces) if len(part)]
    return np.array([p.mean() + 1 for p in parts]), np.array([np.median(cost[p]) for p in parts])
