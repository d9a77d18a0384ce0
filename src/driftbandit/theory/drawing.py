"""The figure of `theory.check`: both sides of every inequality over t, slack shaded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

COLUMNS, LABELS = 2, 8.5  # panels beside each other; points, which are 11 px on a page

if TYPE_CHECKING:
    from driftbandit.theory.verdict import Inequality, Proof


def draw_proof(proof: Proof, figure: Any, seed: int) -> Any:
    """A panel for each; a new figure if there is none."""
    import matplotlib.pyplot as plt

    rows = math.ceil(len(proof.inequalities) / COLUMNS)
    if figure is None:
        figure = plt.figure(figsize=(7.0, 1.8 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, sharex=True, squeeze=False).ravel()
    for ax, one in zip(panels, proof):
        _draw(ax, one, seed)
    for ax in panels[len(proof.inequalities) :]:
        ax.axis("off")
    figure.supxlabel("round t;  * holds with probability 1 - delta", fontsize=LABELS)
    panels[0].legend(fontsize=LABELS, frameon=False)
    return figure


def _draw(ax: Any, one: Inequality, seed: int) -> None:
    left, right = one.left[seed], one.right[seed]
    t = np.arange(1, len(left) + 1)
    ax.fill_between(t, left, right, where=right >= left, color="C0", alpha=0.15, lw=0)
    ax.plot(t, right, color="C0", lw=0.9, label="right side")
    ax.plot(t, left, color="C3", lw=0.9, label="left side")
    ax.set_title(f"{one.place}: {one.claim}" + ("" if one.sure else " *"), fontsize=LABELS)
    ax.tick_params(labelsize=LABELS)
