"""Names at the ends of lines, spread so that none covers another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LINE_HEIGHT = 1.2  # of a label, in sizes of its font
LEADER = 8.0  # points between the end of a line and its label


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
