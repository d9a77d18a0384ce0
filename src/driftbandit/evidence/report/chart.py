"""Lines with bands as an SVG that a page can hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from driftbandit.estimators.accumulators import Band
from driftbandit.evidence.reading.chunk import Floats

WIDTH, HEIGHT = 760.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 12.0, 10.0, 34.0


class ChartLine(NamedTuple):
    """Values with a band, and how they are drawn."""

    middle: Floats
    band: Band
    colour: str
    dark: str
    dash: str


class Axis(NamedTuple):
    """From numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + part * (self.end - self.start)


def chart(
    x: Sequence[float],
    lines: Mapping[str, ChartLine],
    label: str,
    name: Callable[[float], str],
    zero: bool = False,
) -> str:
    """Lines over x; `name` writes a place on the x axis, `zero` draws a line at 0."""
    low, high = _range(list(lines.values()), zero)
    across = Axis(min(x), max(x), LEFT, WIDTH - RIGHT)
    up = Axis(low, high, HEIGHT - BOTTOM, TOP)
    parts = [_grid(up), _names(across, x, name)]
    if zero:
        y = up.at(0.0)
        parts.append(f'<path class="cursor" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" fill="none"/>')
    parts += [_band(line, x, across, up) for line in lines.values()]
    parts += [_line(line, x, across, up) for line in lines.values()]
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def _range(lines: Sequence[ChartLine], zero: bool) -> tuple[float, float]:
    """Return what to show: all middles, and bands as far as they are not out of all proportion."""
    middles = [float(v) for line in lines for v in line.middle]
    low, high = min(middles), max(middles)
    room = 3.0 * ((high - low) or abs(high) or 1.0)
    ends = [float(v) for line in lines for end in line.band for v in end]
    low, high = min(low, max(min(ends), low - room)), max(high, min(max(ends), high + room))
    return (min(low, 0.0), max(high, 0.0)) if zero else (low, high)


def ticks(low: float, high: float) -> list[float]:
    """Round numbers, about five."""
    size = 10.0 ** math.floor(math.log10(((high - low) or 1.0) / 4.0))
    step = next((k * size for k in (5.0, 2.0, 1.0) if (high - low) / (k * size) >= 4.0), size)
    return [
        k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def _grid(up: Axis) -> str:
    return "".join(
        f'<path class="grid" d="M{LEFT} {up.at(v):.1f}H{WIDTH - RIGHT}"/>'
        f'<text x="{LEFT - 6}" y="{up.at(v) + 4:.1f}" text-anchor="end">{v:.6g}</text>'
        for v in ticks(up.low, up.high)
    )


def _names(across: Axis, x: Sequence[float], name: Callable[[float], str]) -> str:
    """The first, a middle and the last place."""
    places = dict.fromkeys([x[0], x[len(x) // 2], x[-1]])
    anchors = ("start", "middle", "end") if len(places) == 3 else ("start", "end")
    return "".join(
        f'<text x="{across.at(v):.1f}" y="{HEIGHT - 12}" text-anchor="{anchor}">'
        f"{escape(name(v))}</text>"
        for v, anchor in zip(places, anchors)
    )


def _style(line: ChartLine, what: str) -> str:
    return f"{what}: light-dark({line.colour}, {line.dark})"


def _band(line: ChartLine, x: Sequence[float], across: Axis, up: Axis) -> str:
    def y(value: float) -> float:
        return up.at(min(max(value, up.low), up.high))

    there = [f"{across.at(a):.1f} {y(b):.1f}" for a, b in zip(x, line.band.high)]
    back = [f"{across.at(a):.1f} {y(b):.1f}" for a, b in zip(x, line.band.low)]
    path = "M" + "L".join(there + back[::-1]) + "Z"
    return f'<path d="{path}" style="{_style(line, "fill")}" fill-opacity="0.12"/>'


def _line(line: ChartLine, x: Sequence[float], across: Axis, up: Axis) -> str:
    path = "M" + "L".join(f"{across.at(a):.1f} {up.at(b):.1f}" for a, b in zip(x, line.middle))
    fill = _style(line, "fill")
    dots = "".join(
        f'<circle cx="{across.at(a):.1f}" cy="{up.at(b):.1f}" r="2.5" style="{fill}"/>'
        for a, b in zip(x, line.middle)
    )
    return (
        f'<path d="{path}" fill="none" stroke-width="2" style="{_style(line, "stroke")}" '
        f'stroke-dasharray="{line.dash}"/>{dots}'
    )
