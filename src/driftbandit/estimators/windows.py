"""Windows: fixed stretches of time, or of rows in a log without time, and sums over them.

A window begins at a multiple of its width, so it stays where it is while the log goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.durations import DAY, HOUR, MINUTE, seconds
from driftbandit.estimators.increments import Floats

# Seconds that people count in; longer windows are whole days.
WIDTHS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 43200, 86400)
# Widths of a log that is read once, of unknown length; each is a multiple of the one before.
LADDER = (MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY, 364 * DAY, 3640 * DAY)
FIRST = 64.0  # rows in the narrowest window of a log without time
FEW = 48  # windows that a curve shows where no width is given
MOST = 10_000  # windows where one is given


def width_of(least: float) -> float:
    """Return the smallest width that is not below `least` seconds."""
    return float(next((w for w in WIDTHS if w >= least), DAY * math.ceil(least / DAY)))


def by_window(moments: Iterable[float], width: float) -> dict[int, list[int]]:
    """Return the places of moments by the number of their window, the earliest window first."""
    found: dict[int, list[int]] = {}
    for place, at in enumerate(moments):
        found.setdefault(math.floor(at / width), []).append(place)
    return dict(sorted(found.items()))


class WindowSums:
    """Sums of columns by window. Without a given width, windows widen as the log goes on."""

    def __init__(self, width: Any = None) -> None:
        self._given = width
        self.width = 0.0  # seconds, or rows
        self.timed = True
        self._sums: dict[int, Floats] = {}
        self._rows = 0

    def add(self, at: Floats, columns: Floats) -> None:
        """Add rows (n, m) at moments (n,), which are NaN in a log without time."""
        if not self.width:
            self._begin(bool(np.isfinite(at).all()))
        place = at if self.timed else self._rows + np.arange(len(at), dtype=float)
        self._rows += len(at)
        which = np.floor(place / self.width).astype(np.int64)
        found, inverse = np.unique(which, return_inverse=True)
        sums = np.zeros((len(found), columns.shape[1]))
        np.add.at(sums, inverse, columns)
        for window, row in zip(found.tolist(), sums):
            self._sums[window] = self._sums[window] + row if window in self._sums else row
        self._widen()

    def _begin(self, timed: bool) -> None:
        self.timed, given = timed, self._given
        if given is None:
            self.width = LADDER[0] if timed else FIRST
        elif timed:
            self.width = validate.positive("window", seconds(given, "window"), "length")
        else:
            rows = int(given) if isinstance(given, str) and given.isdecimal() else given
            self.width = float(validate.count("window", rows, "rows: this log has no time"))

    def _widen(self) -> None:
        while self._given is None and len(self._sums) > FEW:
            factor = 2
            if self.timed:
                wider = [width for width in LADDER if width > self.width]
                factor = round(wider[0] / self.width) if wider else 2
            self.width *= factor
            merged: dict[int, Floats] = {}
            for window, row in self._sums.items():
                wide = window // factor
                merged[wide] = merged[wide] + row if wide in merged else row
            self._sums = merged
        if len(self._sums) > MOST:
            raise ValueError(f"the log has more than {MOST:,} windows: pass a longer window")

    @property
    def starts(self) -> Floats:
        """Where each window begins: seconds since the epoch, or rows."""
        return np.array(sorted(self._sums)) * self.width

    @property
    def sums(self) -> Floats:
        """(windows, m), in order."""
        return np.stack([self._sums[window] for window in sorted(self._sums)])
