"""Mean rewards over time: values in windows of the latest decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from driftbandit.loop.reporting.estimates import Mean
from driftbandit.loop.reporting.policy_values import Line, Target, value
from driftbandit.reward import Reward

WINDOWS = 20  # at most
# Seconds that people count in; longer windows are whole days.
WIDTHS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400)


class Window(NamedTuple):
    """Decisions from `start` to before `end`, of which `rows` were trained, and their `values`."""

    start: float
    end: float
    rows: int
    values: Mapping[str, Mean | None]


def curve(lines: list[Line], targets: Mapping[str, Target], reward: Reward) -> tuple[Window, ...]:
    """Windows begin at multiples of their width, so that they stay where they are while time goes
    on. Those in which nothing was trained yet are left out."""
    trained = [line["at"] for line in lines if line["status"] == "trained"]
    if not trained:
        return ()
    width = _width(max(trained) - min(trained))
    parts: dict[int, list[Line]] = {}
    for line in lines:
        parts.setdefault(math.floor(line["at"] / width), []).append(line)
    found = (
        Window(
            k * width,
            (k + 1) * width,
            sum(line["status"] == "trained" for line in parts[k]),
            {name: value(parts[k], target, reward) for name, target in targets.items()},
        )
        for k in sorted(parts)
    )
    return tuple(window for window in found if window.rows)


def _width(span: float) -> float:
    """The smallest that needs at most so many windows, one of which is not full at either end."""
    least = span / (WINDOWS - 1)
    return float(next((w for w in WIDTHS if w >= least), 86400 * math.ceil(least / 86400)))
