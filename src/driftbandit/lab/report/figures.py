"""The paper's figure from curves: cumulative regret above, cost of a round below.

One look per policy everywhere; its name stands at the end of its line. With a focus, only the
policies in it have colours and names, and the others are grey.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from driftbandit.pages.styles import Look, hero_of, looks

DPI = 200
LINE_HEIGHT = 1.2  # of a label, in sizes of its font
LEADER = 8.0  # points between the end of a line and its label
PALE = "#cccccc"  # of policies outside the focus
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,  # fonts that publishers accept, embedded
    "ps.fonttype": 42,
    "svg.hashsalt": "driftbandit",  # the same curves give the same bytes
}
UNDATED: dict[str, dict[str, None]] = {
    "png": {},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}


class Width(NamedTuple):
    """Inches on the page, panels side by side, size of the text in points."""

    inches: float
    across: int
    size: float


# A column of ICML, the page of NeurIPS, a screen; text is as large as a caption's or smaller.
WIDTHS = {"icml": Width(3.25, 1, 7.0), "neurips": Width(5.5, 2, 7.0), "full": Width(9.0, 2, 9.0)}


class Emphasis(NamedTuple):
    """Who is drawn how: all looks, the hero, and the policies that have colours (all, if none)."""

    looks: dict[str, Look]
    hero: str
    focus: Sequence[str]

    def line(self, policy: str) -> dict[str, Any]:
        if not self.coloured(policy):
            return {"color": PALE, "lw": 0.7, "zorder": 1.5}
        look = self.looks[policy]
        style = {"color": look.colour, "linestyle": (0, look.dash) if look.dash else "solid"}
        return style | ({"lw": 2.2, "zorder": 4} if policy == self.hero else {"lw": 1.2})

    def coloured(self, policy: str) -> bool:
        return not self.focus or policy in self.focus or policy == self.hero


def emphasis(frame: pl.DataFrame, hero: str | None = None, focus: Sequence[str] = ()) -> Emphasis:
    """The looks of a frame's policies; names that it lacks are left out of the focus."""
    policies = frame["policy"].unique().sort().to_list()
    first = focus[0] if focus and hero is None else hero
    return Emphasis(looks(policies), hero_of(policies, first), focus)


def draw_regret(
    curves: pl.DataFrame,
    folder: Path,
    width: str = "full",
    hero: str | None = None,
    focus: Sequence[str] = (),
) -> dict[str, Path]:
    """Mean regret with its 95 % interval, and median µs per round, as regret.png, .svg, .pdf."""
    return save(
        "regret", folder, width, lambda w: regret_figure(curves, w, emphasis(curves, hero, focus))
    )


def save(name: str, folder: Path, width: str, draw: Any) -> dict[str, Path]:
    """Draw once, write every format."""
    import matplotlib as mpl

    paths = {kind: folder / f"{name}.{kind}" for kind in UNDATED}
    with mpl.rc_context(STYLE | {"font.size": WIDTHS[width].size}):
        figure = draw(WIDTHS[width])
        for kind, path in paths.items():
            figure.savefig(path, dpi=DPI, metadata=UNDATED[kind])
    return paths


def regret_figure(curves: pl.DataFrame, width: Width, how: Emphasis) -> Any:
    parts = curves.sort("environment").partition_by("environment", maintain_order=True)
    across = min(width.across, len(parts))
    bands, size = -(-len(parts) // across), width.size - 1.0
    most = max(_count(part, how) for part in parts)
    above = max(0.25 * width.inches / across + 1.0, (most + 1) * LINE_HEIGHT * size / 72)
    figure = blank(width.inches, (above + 1.75) * bands)
    axes = figure.subplots(2 * bands, across, squeeze=False, height_ratios=(above, 0.9) * bands)
    labelled = []
    for number in range(bands * across):
        row, column = divmod(number, across)
        pair = axes[2 * row : 2 * row + 2, column]
        if number < len(parts):
            labelled += _draw_panel(pair, parts[number], how, size)
            if column == 0:
                pair[0].set_ylabel("cumulative dynamic regret")
                pair[1].set_ylabel("µs per round")
        else:
            pair[0].remove()
            pair[1].remove()
    finish(figure, labelled, size, width, _caption(curves))
    return figure


def blank(width: float, height: float) -> Any:
    """A figure of so many inches that makes room for what stands beside its axes."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def plain_decades(ax: Any) -> None:
    """Ticks of a logarithmic height as plain numbers, few enough to be read."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = ax.get_ylim()
    subs = (1.0,) if high / low > 200 else (1.0, 2.0, 5.0)
    ax.yaxis.set_major_locator(LogLocator(subs=subs, numticks=6))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


def finish(figure: Any, labelled: list[Any], size: float, width: Width, caption: str) -> None:
    """Say what bands are; then, with the size of every panel settled, place the labels."""
    letters = int(width.inches * 72 / (0.52 * size))
    figure.supxlabel(textwrap.fill(caption, letters), fontsize=size, color="#555555")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax, labels in labelled:
        settle(ax, labels, size)


def _caption(curves: pl.DataFrame) -> str:
    seeds = curves.group_by("environment", "policy").agg(pl.col("seeds").max())["seeds"]
    least, most = min(seeds), max(seeds)
    n = f"n = {most}" if least == most else f"n = {least} to {most}"
    bands = "bands: 95 % interval of the mean" if most > 1 else "no bands: one seed"
    return (
        f"Lines: means over {n} seeds; {bands}. Cost: medians over seeds and neighbouring rounds."
    )


def _count(part: pl.DataFrame, how: Emphasis) -> int:
    return sum(how.coloured(name) for name in part["policy"].unique())


def _draw_panel(pair: Any, part: pl.DataFrame, how: Emphasis, size: float) -> list[Any]:
    above, below = pair
    ends: dict[Any, dict[str, tuple[float, str, bool]]] = {above: {}, below: {}}
    for policy in part.partition_by("policy", maintain_order=True):
        name, t = policy["policy"][0], policy["round"].to_numpy()
        style = how.line(name) | {"marker": "." if len(t) < 5 else ""}
        for ax, column in ((above, "regret"), (below, "cost_us")):
            y = policy[column].to_numpy()
            ax.plot(t, y, **style)
            if how.coloured(name) and not np.isnan(y[-1]):
                ends[ax][name] = (y[-1], style["color"], name == how.hero)
        if how.coloured(name):
            mean, half = policy["regret"].to_numpy(), policy["half"].fill_null(0.0).to_numpy()
            above.fill_between(t, mean - half, mean + half, color=style["color"], alpha=0.15, lw=0)
    above.set_title(textwrap.fill(part["environment"][0].replace("$", r"\$"), 40))
    above.set_ylim(bottom=0)
    below.set(xlabel="round $t$", yscale="log")
    plain_decades(below)
    for ax in pair:
        ax.set_xlim(0, part["round"].max())
        ax.grid(alpha=0.25)
    fits = len(ends[below]) * LINE_HEIGHT * size < 0.8 * 72  # else the names above must do
    return [(ax, add_labels(ax, ends[ax], size)) for ax in pair if ax is above or fits]


def spread(wanted: ArrayLike, gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Places at least `gap` apart in [low, high], as near to the wanted ones as can be, in their
    order: an isotonic regression of wanted_k - k gap. More than fit start at low."""
    wanted = np.asarray(wanted, dtype=float)
    if not len(wanted):
        return wanted
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    blocks: list[list[float]] = []  # mean and size
    for value in wanted[order] - steps:
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (mean, size), (other, more) = blocks[-2:]
            blocks[-2:] = [[(mean * size + other * more) / (size + more), size + more]]
    level = np.concatenate([np.full(int(size), mean) for mean, size in blocks])
    places = np.empty(len(wanted))
    room = max(low, high - gap * (len(wanted) - 1))
    places[order] = np.clip(level, low, room) + steps
    return places


def add_labels(ax: Any, ends: dict[str, tuple[float, str, bool]], size: float) -> list[Any]:
    """A label and a leader for each (height, colour, whether bold), to the right of the axes."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    aside = ax.transAxes + ScaledTranslation(LEADER / 72.0, 0.0, ax.figure.dpi_scale_trans)
    found = []
    for name, (y, colour, bold) in ends.items():
        leader = Line2D([], [], lw=0.6, color=colour, transform=ax.transAxes, clip_on=False)
        ax.add_artist(leader)
        style = {"color": colour, "fontsize": size, "va": "center"}
        plain = name.replace("$", r"\$")  # dollars are money here, not mathematics
        weight = "bold" if bold else "normal"
        text = ax.text(1.0, 0.5, plain, transform=aside, fontweight=weight, **style)
        found.append((y, text, leader))
    return found


def settle(ax: Any, labels: list[Any], size: float) -> None:
    """Move the labels to their places, once the size of the axes is known."""
    box = ax.get_window_extent()
    width, height = (length * 72.0 / ax.figure.dpi for length in (box.width, box.height))
    into = ax.transData + ax.transAxes.inverted()
    ends = [float(into.transform((ax.get_xlim()[1], y))[1]) for y, _, _ in labels]
    places = spread(np.multiply(ends, height), LINE_HEIGHT * size, 0.0, height) / height
    for (_, text, leader), end, place in zip(labels, ends, places):
        text.set_y(place)
        leader.set_data([1.0, 1.0 + (LEADER - 1.0) / width], [end, place])
