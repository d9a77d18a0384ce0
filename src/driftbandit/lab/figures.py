"""The paper's figure from curves: cumulative regret above, cost of a round below."""

from __future__ import annotations

import textwrap
from itertools import cycle, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell repetitions apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888")
DASHES = ("solid", "dashed", "dotted", "dashdot")
ACROSS = 4
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "driftbandit",  # the same curves give the same bytes
}
UNDATED: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


class Look(NamedTuple):
    """How a policy is drawn, everywhere."""

    colour: str
    dash: str


def looks(curves: pl.DataFrame) -> dict[str, Look]:
    """A look for each policy, in the study's order."""
    policies = curves["policy"].unique().sort().to_list()
    pairs = cycle(product(DASHES, COLOURS))
    return {policy: Look(colour, dash) for policy, (dash, colour) in zip(policies, pairs)}


def draw_regret(curves: pl.DataFrame, folder: Path) -> dict[str, Path]:
    """Mean regret with one deviation, and µs per round, as regret.png, .svg and .pdf."""
    import matplotlib as mpl

    paths = {kind: folder / f"regret.{kind}" for kind in UNDATED}
    with mpl.rc_context(STYLE):
        figure = _figure(curves)
        for kind, path in paths.items():
            figure.savefig(path, dpi=160, metadata=UNDATED[kind])
    return paths


def _figure(curves: pl.DataFrame) -> Any:
    from matplotlib.figure import Figure

    parts = curves.sort("environment").partition_by("environment", maintain_order=True)
    across, styles = min(ACROSS, len(parts)), looks(curves)
    bands = -(-len(parts) // across)
    figure = Figure(figsize=(2.6 + 3.1 * across, 5.4 * bands), layout="constrained")
    axes = figure.subplots(2 * bands, across, squeeze=False, height_ratios=(2, 1) * bands)
    for number in range(bands * across):
        row, column = divmod(number, across)
        pair = axes[2 * row : 2 * row + 2, column]
        if number < len(parts):
            _draw_panel(pair, parts[number], styles)
        else:
            pair[0].remove()
            pair[1].remove()
    for row in range(bands):
        axes[2 * row, 0].set_ylabel("cumulative dynamic regret")
        axes[2 * row + 1, 0].set_ylabel("µs per round")
    _add_legend(figure, styles, room=int(24 * bands))
    return figure


def _draw_panel(pair: Any, part: pl.DataFrame, styles: dict[str, Look]) -> None:
    above, below = pair
    alpha = min(0.15, 1.5 / len(styles))
    for policy in part.partition_by("policy", maintain_order=True):
        t, mean = policy["round"].to_numpy(), policy["regret"].to_numpy()
        spread = policy["deviation"].fill_null(0.0).to_numpy()
        style = _line(styles[policy["policy"][0]]) | {"marker": "." if len(t) < 5 else ""}
        above.plot(t, mean, lw=1.4, **style)
        above.fill_between(t, mean - spread, mean + spread, color=style["color"], alpha=alpha, lw=0)
        below.plot(*_smooth(t, policy["cost_us"].to_numpy()), lw=1.0, **style)
    above.set_title(textwrap.fill(_plain(part["environment"][0]), 34))  # its panel's width
    above.set_ylim(bottom=0)
    below.set(xlabel="round $t$", yscale="log")
    for ax in pair:
        ax.set_xlim(0, part["round"].max())
        ax.grid(alpha=0.25)


def _smooth(t: Any, cost: Any, pieces: int = 60) -> tuple[Any, Any]:
    """Medians of consecutive pieces: single intervals are noisy."""
    known = np.flatnonzero(~np.isnan(cost))
    parts = np.array_split(known, max(1, min(pieces, len(known))))
    kept = [part for part in parts if len(part)]
    return [t[part].mean() for part in kept], [np.median(cost[part]) for part in kept]


def _add_legend(figure: Any, styles: dict[str, Look], room: int) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], lw=1.4, label=_plain(name), **_line(look)) for name, look in styles.items()
    ]
    columns = -(-len(handles) // room)
    figure.legend(handles=handles, loc="outside right upper", frameon=False, ncols=columns)


def _line(look: Look) -> dict[str, Any]:
    return {"color": look.colour, "linestyle": look.dash}


def _plain(text: str) -> str:
    """Dollars are money here, not mathematics."""
    return text.replace("$", r"\$")
