"""Matplotlib's figures as SVG that follow light and dark pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

# What a figure draws in ink, in grey or as ground, and the same on a dark page.
INK, GREY, GRID = "#262626", "#808080", "#e6e6e6"
DARK = {INK: "#d0d4da", GREY: "#9aa2ad", GRID: "#3a3f45", "#0072b2": "#56b4e9"}
NEAR = 0.5  # pixels
SAME = {"#000000": INK, "black": INK, "#ffffff": "none", "white": "none"}


def save(figure: Any, path: Path) -> None:
    """Store a figure as an SVG without a ground, whose ink follows the page."""
    figure.patch.set_alpha(0.0)
    for ax in figure.axes:
        ax.patch.set_alpha(0.0)
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "driftbandit"}):
        figure.savefig(path, metadata={"Date": None})
    path.write_text(themed(path.read_text(encoding="utf-8")), encoding="utf-8")


def thinned(path: re.Match[str]) -> str:
    """A path without the points that are nearer than half a pixel to the one before."""
    kept, x, y = [], float("inf"), float("inf")
    for kind, *numbers in (part.split() for part in re.findall(r"[MLCQz][^MLCQz]*", path[1])):
        if kind in "CQ":
            return path[0]  # a curve: it is short
        at = [float(number) for number in numbers] or [x, y]
        if kind == "L" and abs(at[0] - x) < NEAR and abs(at[1] - y) < NEAR:
            continue
        x, y = at
        kept.append("z" if kind == "z" else f"{kind}{x:.1f} {y:.1f}")
    return f'd="{"".join(kept)}"'


def themed(svg: str) -> str:
    """Replace a figure's ink by variables that a dark page sets otherwise."""
    for old, new in SAME.items():
        svg = re.sub(rf"(fill|stroke): {old}\b", rf"\1: {new}", svg)
    names = {colour: f"--c{k}" for k, colour in enumerate(DARK)}
    for colour, name in names.items():
        svg = re.sub(rf"(fill|stroke): {colour}\b", rf"\1: var({name})", svg, flags=re.I)
    light = ";".join(f"{name}:{colour}" for colour, name in names.items())
    dark = ";".join(f"{name}:{DARK[colour]}" for colour, name in names.items())
    svg = re.sub(r'\bd="([^"]{2000,})"', thinned, svg)
    style = (
        f"<style>:root{{{light}}} text{{fill:var({names[INK]})}} "
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    )
    return re.sub(r"(<svg[^>]*>)", rf"\1{style}", svg, count=1)
