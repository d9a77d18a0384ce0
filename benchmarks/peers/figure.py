"""Regret against microseconds a round, log-log, from the stored results."""

from __future__ import annotations

from collections import defaultdict

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from benchmarks import tables

PANELS = {"fresh arms every round": False, "arms that stay": True}
UNIFORM = "uniform choice"
# Where a label may stand around its point, the first that is free: (dx, dy, alignment).
PLACES = [
    (side * dx, dy, "left" if side > 0 else "right")
    for dx in (7, 16, 30, 50)
    for dy in (0, 9, -9, 18, -18, 28, -28, 40, -40)
    for side in (1, -1)
]


def regrets(fixed: bool) -> dict[str, float]:
    """Mean regret of each contender over the worlds with fixed, or fresh, arms."""
    found = defaultdict(list)
    for line in tables.stored("peers"):
        if ("fixed" in line["world"]) == fixed:
            found[line["contender"]].append(float(line["mean"]))
    return {name: sum(values) / len(values) for name, values in found.items()}


def costs() -> dict[str, float]:
    lines = tables.stored("peers-speed")
    return {x["contender"]: float(x["choose_us"]) + float(x["update_us"]) for x in lines}


def label(ax, name: str, point: tuple[float, float], taken: list) -> None:
    """Write the name next to its point, where it hides nothing."""
    renderer, frame = ax.figure.canvas.get_renderer(), ax.get_window_extent()
    for dx, dy, side in PLACES:
        line = {"arrowstyle": "-", "lw": 0.5, "color": "0.6"} if dy or abs(dx) > 7 else None
        text = ax.annotate(
            name,
            point,
            (dx, dy),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=8,
            arrowprops=line,
        )
        text.update_positions(renderer)
        box = Text.get_window_extent(text, renderer)  # without the line to its point
        inside = frame.x0 < box.x0 and box.x1 < frame.x1 and frame.y0 < box.y0 and box.y1 < frame.y1
        if inside and not any(box.overlaps(other) for other in taken):
            taken.append(box)
            return
        text.remove()
    raise ValueError(f"no room for the label {name!r}: make the figure larger")


def panel(ax, title: str, regret: dict[str, float], cost: dict[str, float]) -> None:
    ax.set(xscale="log", yscale="log", title=title, xlabel="µs per round (choose + update)")
    points = {name: (cost[name], value) for name, value in regret.items() if name != UNIFORM}
    for name, point in points.items():
        ours = name.startswith("driftbandit")
        ax.plot(*point, "o", color="C3" if ours else "C0", ms=6, zorder=3)
    ax.axhline(regret[UNIFORM], ls="--", lw=1, color="0.5")
    ax.set_xlim(min(cost.values()) / 2, max(cost.values()) * 4)
    low = min(value for _, value in points.values())
    ax.set_ylim(low / 1.5, regret[UNIFORM] * 1.4)
    ax.grid(which="both", lw=0.3, alpha=0.5)
    ax.figure.canvas.draw()
    taken = [ax.transData.transform(point) for point in points.values()]
    boxes = [Bbox.from_bounds(x - 5, y - 5, 10, 10) for x, y in taken]
    left, height = ax.transData.transform((ax.get_xlim()[0], regret[UNIFORM]))
    boxes.append(Bbox.from_bounds(left, height - 1, ax.get_window_extent().width, 2))
    ax.text(ax.get_xlim()[0] * 1.1, regret[UNIFORM], UNIFORM, fontsize=8, va="bottom")
    for name in sorted(points, key=lambda name: points[name]):
        label(ax, name, points[name], boxes)


def draw() -> None:
    """peers.png from peers.csv and peers-speed.csv."""
    fig, axes = plt.subplots(1, 2, figsize=(13, 5.5))
    fig.subplots_adjust(left=0.065, right=0.99, top=0.94, bottom=0.09, wspace=0.13)
    cost = costs()
    for ax, (title, fixed) in zip(axes, PANELS.items()):
        panel(ax, title, regrets(fixed), cost)
    axes[0].set_ylabel("cumulative regret, mean over worlds")
    fig.savefig(tables.RESULTS / "peers.png", dpi=130)
    plt.close(fig)
