"""Numbers and flags, encoded together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit.features import values
from driftbandit.features.columns import Columns
from driftbandit.features.declarations import Flag, Number
from driftbandit.features.encoders import Counts, Floats, Ints, count


class Reals:
    """Numbers and flags. A slot each; cyclic numbers have another one for the sine."""

    def __init__(self, features: Mapping[str, Number | Flag], starts: Mapping[str, int]) -> None:
        self.features = features
        cyclic = [k for k, f in enumerate(features.values()) if f.cyclic]
        self.logs = [k for k, f in enumerate(features.values()) if f.log]
        self.sines = list(enumerate(cyclic, start=len(features)))
        names = list(features)
        self.labels = names + [names[k] for k in cyclic]
        self.at = [starts[n] for n in names] + [starts[names[k]] + 1 for k in cyclic]
        self.gone = np.array([starts[n] + f.width - 1 for n, f in features.items()])
        self.low, self.high = self._column("low"), self._column("high")
        ends = np.array([f.ends for f in features.values()])
        self.middle, self.scale = ends.mean(axis=1)[:, None], 2.0 / np.diff(ends)

    def _column(self, name: str) -> Floats:
        return np.array([[getattr(f, name)] for f in self.features.values()])

    def fill(self, columns: Columns, at: Ints, value: Floats, counts: Counts | None) -> None:
        raw, n = self._raw(columns), len(self.features)
        inside = np.minimum(np.maximum(raw, self.low), self.high)
        odd = np.count_nonzero(inside != raw)  # clipped, or NaN
        for k in self.logs:  # NumPy's own log may differ in the last digit with the length
            inside[k] = list(map(math.log, inside[k].tolist()))
        place = np.multiply(inside - self.middle, self.scale, out=value[:n])
        for sine, k in self.sines:
            angle = (math.pi * place[k]).tolist()
            value[k], value[sine] = list(map(math.cos, angle)), list(map(math.sin, angle))
        if odd and odd > self._fill_missing(raw, at, value, counts):
            self._count_clipped(raw, counts)

    def _raw(self, columns: Columns) -> Floats:
        """Values as floats (features, N)."""
        try:
            return np.array([self._clean(columns, *item) for item in self.features.items()], float)
        except OverflowError:  # a whole number too large for a float: find it
            for name in (n for n, f in self.features.items() if isinstance(f, Number)):
                for each in columns.values(name):
                    values.number(name, each)
            raise

    def _clean(self, columns: Columns, name: str, feature: Number | Flag) -> Any:
        plain, clean = values.NUMBERS, values.number
        if isinstance(feature, Flag):
            column: Any = columns.values(name)
            plain, clean = values.FLAGS, values.flag
        else:
            column = columns.numbers(name)
        if type(column) is np.ndarray or plain.issuperset(map(type, column)):
            return column
        return [clean(name, each) for each in column]

    def _fill_missing(self, raw: Floats, at: Ints, value: Floats, counts: Counts | None) -> int:
        """Move missing values to their own coordinates; returns how many there are."""
        which, row = np.nonzero(raw != raw)
        for k, n in enumerate(np.bincount(which, minlength=len(raw)).tolist()):
            if n and self.features[self.labels[k]].required:
                values.refuse_missing(self.labels[k])
            count(counts, self.labels[k], "missing", n)
        at[which, row], value[which, row] = self.gone[which], 1.0
        for sine, k in self.sines:
            value[sine, row[which == k]] = 0.0
        return int(which.size)

    def _count_clipped(self, raw: Floats, counts: Counts | None) -> None:
        outside = (raw < self.low) | (raw > self.high)
        for k in np.flatnonzero(outside.any(axis=1)).tolist():
            name = self.labels[k]
            if np.isinf(raw[k]).any():
                values.refuse(name, math.inf, "a finite number", "pass None where it is unknown")
            count(counts, name, "clipped", int(np.count_nonzero(outside[k])))
