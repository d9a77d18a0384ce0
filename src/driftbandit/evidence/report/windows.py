"""Windows: sums over fixed stretches of time, or of rows in a log without time."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.durations import seconds
from driftbandit.evidence.reading.chunk import Chunk, Floats

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
# Widths to choose from where none is given; each is a multiple of the one before.
LADDER = (MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY, 364 * DAY, 3640 * DAY)
FIRST = 64.0  # rows in the narrowest window of a log without time
FEW = 48  # windows that a curve shows where no width is given
MOST = 10_000  # windows where one is given


class LogWindows:
    """Sums of columns by window. Without a given width, windows widen as the log goes on."""

    def __init__(self, width: Any = None) -> None:
        self._given = width
        self.width = 0.0  # seconds, or rows
        self.timed = True
        self._sums: dict[int, Floats] = {}
        self._rows = 0

    def add(self, chunk: Chunk, columns: Floats) -> None:
        """Rows (n, m) of a chunk."""
        if not self.width:
            self._begin(bool(np.isfinite(chunk.at).all()))
        place = chunk.at if self.timed else self._rows + np.arange(len(chunk), dtype=float)
        self._rows += len(chunk)
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
