"""Columns of one kind, encoded together: numbers and flags, categories, vectors.

A part fills slots: the coordinates that are not zero (`at`) and their values, both (slots, N). Sums
and functions run value by value, so a row is the same alone, among others and in a frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit.features import values
from driftbandit.features.columns import Columns
from driftbandit.features.declarations import Category, Flag, Number, Vector
from driftbandit.features.fold import bucket
from driftbandit.validate import show

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Counts = MutableMapping[tuple[str, str], int]


def count(counts: Counts | None, name: str, what: str, n: int) -> None:
    if counts is not None and n:
        counts[name, what] = counts.get((name, what), 0) + n


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
        except OverflowError:  # a whole number too large for a float
            for name in self.features:
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


class Categories:
    """Categories: a slot each, with value 1."""

    def __init__(self, features: Mapping[str, Category], starts: Mapping[str, int]) -> None:
        self.features, self.starts = features, starts
        self.labels, self.at = list(features), [starts[name] for name in features]
        self.places = {
            name: {each: starts[name] + j for j, each in enumerate(f.values or ())}
            for name, f in features.items()
        }

    def fill(self, columns: Columns, at: Ints, value: Floats, counts: Counts | None) -> None:
        for k, (name, feature) in enumerate(self.features.items()):
            at[k] = self._places(name, feature, columns.values(name), counts)
        value[:] = 1.0

    def _places(self, name: str, f: Category, column: list[Any], counts: Counts | None) -> Any:
        if f.values is None:
            return [self._other(name, f, each, counts) for each in column]
        find = self.places[name].get
        try:
            found = [find(each, -1) for each in column]
        except TypeError:  # a value that cannot be hashed
            found = [-1] * len(column)
        if -1 in found:
            pairs = zip(column, found)
            return [self._other(name, f, v, counts) if at < 0 else at for v, at in pairs]
        return found

    def _other(self, name: str, f: Category, given: Any, counts: Counts | None) -> int:
        """The coordinate of what is hashed, missing or not in the list."""
        start, places = self.starts[name], self.places[name]
        if values.missing(given):
            if f.required and None not in places:
                values.refuse_missing(name)
            count(counts, name, "missing", 1)
            return places.get(None, start + f.width - 1)
        text = values.text(name, given)
        if f.values is None:
            return start + bucket(text, f.width - (not f.required))
        if given in places:
            return places[given]
        if f.required:
            near = values.nearest(given, f.values)
            values.refuse(name, given, "one of the declared values", near)
        count(counts, name, "unknown", 1)
        return start + f.width - 1


class Vectors:
    """Vectors: as many slots as they have numbers."""

    def __init__(self, features: Mapping[str, Vector], starts: Mapping[str, int]) -> None:
        self.features, self.starts = features, starts
        sizes = [(name, f.size) for name, f in features.items()]
        self.labels = [name for name, size in sizes for _ in range(size)]
        self.at = [starts[name] + j for name, size in sizes for j in range(size)]

    def fill(self, columns: Columns, at: Ints, value: Floats, counts: Counts | None) -> None:
        end = 0
        for name, f in self.features.items():
            start, end = end, end + f.size
            rows, gone = _vectors(name, f, columns.values(name))
            value[start:end] = _unit(rows).T
            if gone:
                at[start, gone] = self.starts[name] + f.size
                value[start, gone] = 1.0
                count(counts, name, "missing", len(gone))


def _vectors(name: str, f: Vector, column: list[Any]) -> tuple[Floats, list[int]]:
    """Vectors (N, size) and the rows in which they are missing."""
    gone = [k for k, each in enumerate(column) if values.missing(each)]
    if gone and f.required:
        values.refuse_missing(name)
    left = (
        [np.zeros(f.size) if values.missing(each) else each for each in column] if gone else column
    )
    try:
        rows = np.array(left)
    except (ValueError, TypeError, OverflowError):  # of different lengths, for example
        rows = np.empty(0, dtype=object)
    good = rows.dtype.kind in "iuf" and rows.shape == (len(column), f.size)
    if not good or not np.isfinite(rows).all():
        _refuse_vector(name, f, left)
    return np.ascontiguousarray(rows, dtype=np.float64), gone


def _refuse_vector(name: str, f: Vector, column: list[Any]) -> None:
    """Find the first that is no vector."""
    for each in column:
        expected = f"{f.size} finite numbers"
        try:
            row = np.array(each)
        except (ValueError, TypeError, OverflowError):
            values.refuse(name, each, expected, "pass a list or an array")
        if row.shape != (f.size,):
            shape = f"an array of shape {row.shape}" if row.shape else show(each)
            raise ValueError(f"{name!r} must be {expected}, got {shape}: see Vector({f.size})")
        if row.dtype.kind not in "iuf" or not np.isfinite(row).all():
            values.refuse(name, each, expected, "pass None where it is unknown")
    raise ValueError(f"{name!r} mixes vectors of different kinds: pass arrays of one type")


def _unit(rows: Floats) -> Floats:
    """Rows scaled to norm 1, by their largest number first, so that no square overflows."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = np.divide(rows, largest, where=largest > 0.0, out=np.zeros_like(rows))
    norm = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return np.divide(rows, norm, where=norm > 0.0, out=rows)
