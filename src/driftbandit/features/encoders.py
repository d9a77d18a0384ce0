"""Columns of one kind, encoded together: categories, and vectors; `reals` has the numbers.

A part fills slots: the coordinates that are not zero (`at`) and their values, both (slots, N). Sums
and functions run value by value, so a row is the same alone, among others and in a frame.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit.features import values
from driftbandit.features.columns import Columns
from driftbandit.features.declarations import Category, Vector
from driftbandit.features.hashing import bucket
from driftbandit.validate import show

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Counts = MutableMapping[tuple[str, str], int]


def count(counts: Counts | None, name: str, what: str, n: int) -> None:
    if counts is not None and n:
        counts[name, what] = counts.get((name, what), 0) + n


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
        rows = np.array(left) if left else np.zeros((0, f.size))
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
