"""Figures of the evidence pages, from stored results: `python -m benchmarks.charts`.

Each is one SVG: a line per method, a panel per quantity, a dot with its 95 % interval. It follows
light and dark pages by itself. The recommended method, AutoDOMD, has one colour in all of them.
`benchmarks.readme` draws them again whenever it fills the pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from benchmarks import tables
from benchmarks.tables import stored

HERO = "AutoDOMD"
WIDTH, ROW, TOP, BOTTOM, GAP, LETTER = 760, 19, 40, 30, 18, 6.6  # pixels
# Colours of pages/styles.py: the recommended method's, and those of a page's ink.
STYLE = (
    "text{fill:#444}.grid{stroke:#ddd}.line{stroke:#777}.dot{fill:#777}.one{stroke:#999;"
    "stroke-dasharray:3 3}.hero{fill:#0072b2;stroke:#0072b2}text.hero{stroke:none;font-weight:600}"
    "@media (prefers-color-scheme:dark){text{fill:#ccc}.grid{stroke:#3a3f45}.line{stroke:#9aa2ad}"
    ".dot{fill:#9aa2ad}.hero{fill:#56b4e9;stroke:#56b4e9}}"
)


class Point(NamedTuple):
    """A value with the ends of its interval, which are the value itself if there is none."""

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, half: float = 0.0) -> Point:
        return cls(value, value - half, value + half)


class Panel(NamedTuple):
    """What a panel shows, and its point by method."""

    title: str
    points: dict[str, Point]
    log: bool = False
    mark: float | None = None  # a value to compare with
    own: bool = False  # all points are the recommended method's


def dots(title: str, panels: Sequence[Panel], rows: Sequence[str], hero: str = HERO) -> str:
    """Draw methods down and panels across."""
    left = 14 + LETTER * max(map(len, rows))
    width = (WIDTH - left - GAP * len(panels)) / len(panels)
    height = TOP + ROW * len(rows) + BOTTOM
    parts = []
    for k, name in enumerate(rows):
        kind = ' class="hero"' if name == hero else ""
        y = TOP + ROW * (k + 0.5) + 4
        parts.append(
            f'<text{kind} x="{left - 8:.0f}" y="{y:.1f}" text-anchor="end">{escape(name)}</text>'
        )
    for k, panel in enumerate(panels):
        parts += _panel(panel, rows, left + k * (width + GAP), width - 8, hero)
    return svg(title, height, 12.5, STYLE, parts)


def svg(title: str, height: int, size: float, style: str, parts: Sequence[str]) -> str:
    """Return a picture as wide as a page's column, with a style of its own for light and dark."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="{size:g}">'
    )
    return "\n".join(
        [head, f"<title>{escape(title)}</title><style>{style}</style>", *parts, "</svg>\n"]
    )


def _panel(panel: Panel, rows: Sequence[str], start: float, width: float, hero: str) -> list[str]:
    shown = [point for name, point in panel.points.items() if name in rows]
    to = math.log10 if panel.log else float
    ends = [to(end) for point in shown for end in point if end > 0 or not panel.log]
    ends += [to(panel.mark)] if panel.mark is not None else []
    low, high = min(ends), max(ends)
    room = 0.04 * (high - low or 1.0)
    low, high = low - room, high + room

    def x(value: float) -> float:
        return start + (to(value) - low) / (high - low) * width

    bottom = TOP + ROW * len(rows)
    parts = [f'<text x="{start:.0f}" y="22" font-weight="600">{escape(panel.title)}</text>']
    for tick in _ticks(low, high, panel.log, 3 if width < 160 else 5):
        parts.append(
            f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP - 6}" '
            f'y2="{bottom}"/><text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">'
            f"{tick:,g}</text>"
        )
    if panel.mark is not None:
        at = f"{x(panel.mark):.1f}"
        parts.append(f'<line class="one" x1="{at}" x2="{at}" y1="{TOP - 6}" y2="{bottom}"/>')
    for k, name in enumerate(rows):
        if name in panel.points:
            parts += _dot(panel.points[name], x, TOP + ROW * (k + 0.5), panel.own or name == hero)
    return parts


def _dot(point: Point, x, y: float, hero: bool) -> list[str]:
    kind, size = ("hero", 5) if hero else ("", 3.5)
    line = (
        f'<line class="line {kind}" stroke-width="{3 if hero else 1.5}" x1="{x(point.low):.1f}" '
        f'x2="{x(point.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    )
    dot = f'<circle class="dot {kind}" cx="{x(point.value):.1f}" cy="{y:.1f}" r="{size}"/>'
    return [line, dot] if point.high > point.low else [dot]


def _ticks(low: float, high: float, log: bool, about: int) -> list[float]:
    """Round numbers inside, whole powers of ten on a logarithmic axis that is long enough."""
    if log and high - low > 1.2:
        return [10.0**k for k in range(math.ceil(low), math.floor(high) + 1)]
    if log:
        low, high = 10.0**low, 10.0**high
    size = 10.0 ** math.floor(math.log10((high - low) / about))
    step = next(k * size for k in (1, 2, 5, 10) if (high - low) / (k * size) <= about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def auto() -> str:
    """AutoDOMD's regret over that of the best fixed setting, environment by environment."""
    lines = sorted(stored("worlds"), key=lambda line: float(line["ratio"]))
    points = {
        line["world"]: Point(*(float(line[name]) for name in ("ratio", "ratio_low", "ratio_high")))
        for line in lines
    }
    panel = Panel("regret of AutoDOMD / best fixed [95 %]", points, True, 1.0, own=True)
    return dots("AutoDOMD next to the best fixed setting of each environment", [panel], [*points])


def leaderboard() -> str:
    """Scores of suite-1 with their intervals."""
    from driftbandit.lab.report import scorecards

    ranked = list(scorecards.ranking(scorecards.read_card(tables.RESULTS / "suite-1.json")))
    placed = [(name, found) for name, found, _ in ranked if all(found.values())]
    panels = [
        Panel(f"score, {group}", {name: Point(*found[group]) for name, found in placed})
        for group in placed[0][1]
    ]
    return dots("Scores on suite-1, lower is better", panels, [name for name, _ in placed])


def peers() -> str:
    """Cost and regret of every learner, the cheapest first."""
    speed = {x["contender"]: float(x["choose_us"]) + float(x["update_us"]) for x in _peers()}
    regrets = stored("peers")
    panels = [Panel("µs per round", {n: Point.around(us) for n, us in speed.items()}, log=True)]
    for world in ("drift, S = 3", "flip, S = 3"):
        mine = [line for line in regrets if line["world"] == world and line["contender"] in speed]
        points = {
            x["contender"]: Point.around(float(x["mean"]), _half(x["deviation"], x["seeds"]))
            for x in mine
        }
        panels.append(Panel(f"regret, {world}", points))
    rows = sorted(speed, key=speed.__getitem__)
    return dots("Cost and regret of learners, lower is better", panels, rows, f"driftbandit {HERO}")


def _peers() -> list[dict[str, str]]:
    return [x for x in stored("peers-speed") if x["contender"] != "uniform choice"]


def _half(deviation: str, seeds: str) -> float:
    """Half of a 95 % interval of the mean, if there are seeds enough for one."""
    return 1.96 * float(deviation) / math.sqrt(int(seeds)) if int(seeds) > 2 else 0.0


def streams() -> str:
    """Mean reward on every real stream in time order."""
    lines = [x for x in stored("real-streams") if x["order"] == "time"]
    lines = [x for x in lines if x["contender"] != "uniform choice"]
    panels = [
        Panel(
            f"{stream}, %",
            {
                x["contender"]: Point.around(float(x["mean"]), float(x["half"]))
                for x in lines
                if x["stream"] == stream
            },
        )
        for stream in dict.fromkeys(x["stream"] for x in lines)
    ]
    rows = sorted(
        dict.fromkeys(x["contender"] for x in lines),
        key=lambda name: -sum(panel.points[name].value for panel in panels),
    )
    title = "Mean reward on real streams in time order, higher is better"
    return dots(title, panels, rows, f"driftbandit {HERO}")


def comparison(study: str, hero: str = HERO) -> str:
    """Final regret of every policy of a study in the paper's four settings."""
    lines = [x for x in stored(study) if x["policy"] != "Oracle"]
    panels = [
        Panel(
            world.replace("piecewise-stationary", "piecewise"),
            {
                x["policy"]: Point.around(float(x["mean"]), _half(x["deviation"], x["seeds"]))
                for x in lines
                if x["environment"] == world
            },
        )
        for world in dict.fromkeys(x["environment"] for x in lines)
    ]
    first = panels[0].points | panels[2].points
    rows = sorted(first, key=lambda name: first[name].value)
    return dots("Dynamic regret after 5,000 rounds, lower is better", panels, rows, hero)


def speed() -> str:
    """Cost of a round of every package."""
    costs = {x["contender"]: float(x["choose_us"]) + float(x["update_us"]) for x in _peers()}
    panel = Panel(
        "µs per round: choose and update, 5 features, 30 arms",
        {name: Point.around(us) for name, us in costs.items()},
        log=True,
    )
    rows = sorted(costs, key=costs.__getitem__)
    return dots("Cost of a round, lower is better", [panel], rows, f"driftbandit {HERO}")


CHARTS = {
    "auto": auto,
    "leaderboard": leaderboard,
    "peers": peers,
    "real-streams": streams,
    "paper-figure": lambda: comparison("paper-figure"),
    "sharp-lambda": lambda: comparison("sharp-lambda", "DOMD-GLB, sharp"),
    "speed": speed,
}


def draw(folder: Path = tables.RESULTS) -> None:
    for name, made in CHARTS.items():
        (folder / f"{name}.svg").write_text(made(), encoding="utf-8")


if __name__ == "__main__":
    draw()
