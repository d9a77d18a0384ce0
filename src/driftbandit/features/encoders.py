"""One side of a declaration, context or arm, compiled: raw columns in, slots out.

A slot is a coordinate that is not zero (`at`) and its `value`, both (slots, N). Columns of one kind
are encoded together: numbers and flags, categories, vectors. Sums and functions run value by
value, so a row is the same alone, among others and in a frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftbandit.features import values
from driftbandit.features.columns import Columns, Mappings
from driftbandit.features.declarations import Category, Feature, Flag, Number, Vector
from driftbandit.features.hashing import bucket
from driftbandit.validate import nearest, show

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Slots = tuple[Ints, Floats]  # what is not zero in N vectors: coordinates, values; (slots, N)
Counts = MutableMapping[tuple[str, str], int]

ONE = "1"  # the name of the constant, coordinate 0 of each side
REMEMBERED = 1 << 14  # hashed texts per column


def count(counts: Counts | None, name: str, what: str, n: int) -> None:
    """Add n to the values of a column that were missing, unknown or clipped."""
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
        # Rounding is monotone: what is at most this far from the middle was not clipped.
        self.inner = np.abs((ends - self.middle) * self.scale).min()
        self.plain = self._plain(dict(zip(cyclic, range(len(features), len(self.labels)))))

    def _column(self, name: str) -> Floats:
        return np.array([[getattr(f, name)] for f in self.features.values()])

    def _plain(self, sines: Mapping[int, int]) -> list[Any]:
        """What `row` needs of each column, as Python's own numbers; slot 0 is the constant."""
        types = {Number: values.NUMBERS - {type(None)}, Flag: values.FLAGS - {type(None)}}
        numbers = (each.ravel().tolist() for each in (self.middle, self.scale, self.gone))
        return [
            (
                *(k + 1, name, types[type(f)], f.low, f.high, middle, scale, f.log),
                *(sines.get(k, -1) + 1, None if f.required else gone),
            )
            for k, ((name, f), middle, scale, gone) in enumerate(
                zip(self.features.items(), *numbers)
            )
        ]

    def row(self, given: Mapping[str, Any], at: list[int], value: list[float]) -> bool:
        """Fill the slots of one row of plain values; return False if one needs a closer look."""
        for k, name, types, low, high, middle, scale, log, sine, gone in self.plain:
            raw: Any = given.get(name)
            x = float(raw) if type(raw) in types else math.inf
            if low <= x <= high:
                pass
            elif raw is None or x != x:
                if gone is None:
                    return False
                at[k], value[sine] = gone, 0.0
                value[k] = value[0] = 1.0  # slot 0, the constant, stands for no sine
                continue
            elif x - x == 0.0:
                x = low if x < low else high
            else:
                return False
            place = ((math.log(x) if log else x) - middle) * scale
            value[k] = place
            if sine:
                angle = math.pi * place
                value[k], value[sine] = math.cos(angle), math.sin(angle)
        return True

    def fill(self, columns: Columns, at: Ints, value: Floats, counts: Counts | None) -> None:
        """Fill the slots of N rows."""
        raw, place = self._raw(columns), value[: len(self.features)]
        if counts is None and not self.logs and not self.sines:
            np.multiply(raw - self.middle, self.scale, out=place)
            if np.abs(place).max(initial=0.0) <= self.inner:
                return
        inside = np.minimum(np.maximum(raw, self.low), self.high)
        odd = np.count_nonzero(inside != raw)  # clipped, or NaN
        for k in self.logs:  # NumPy's own log may differ in the last digit with the length
            inside[k] = list(map(math.log, inside[k].tolist()))
        np.multiply(inside - self.middle, self.scale, out=place)
        for sine, k in self.sines:
            angle = (math.pi * place[k]).tolist()
            value[k], value[sine] = list(map(math.cos, angle)), list(map(math.sin, angle))
        if odd and odd > self._fill_missing(raw, at, value, counts):
            self._count_clipped(raw, counts)

    def _raw(self, columns: Columns) -> Floats:
        """Values as floats (features, N)."""
        raw: list[Any] = []
        try:
            for name, feature in self.features.items():
                if type(feature) is Flag:
                    column: Any = columns.values(name)
                    plain, clean = values.FLAGS, values.flag
                else:
                    column = columns.numbers(name)
                    plain, clean = values.NUMBERS, values.number
                if type(column) is not np.ndarray and not plain.issuperset(map(type, column)):
                    column = [clean(name, each) for each in column]
                raw.append(column)
            return np.array(raw, float)
        except OverflowError:  # a whole number too large for a float: find it
            for name in (n for n, f in self.features.items() if isinstance(f, Number)):
                for each in columns.values(name):
                    values.number(name, each)
            raise

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


class Coordinates(dict[Any, int]):
    """The coordinate of every value of a category: those of a list are there from the start, and
    hashed texts are remembered."""

    def __init__(self, name: str, feature: Category, start: int) -> None:
        super().__init__((each, start + j) for j, each in enumerate(feature.values or ()))
        self.name, self.feature, self.start = name, feature, start
        self.last = start + feature.width - 1  # for what is missing or not in the list
        self.hashed = feature.width - (not feature.required) if feature.values is None else 0

    def __missing__(self, given: Any) -> int:
        """The coordinate of what is hashed, missing or not in the list, or an error."""
        if values.missing(given):
            if self.feature.required and None not in self:
                values.refuse_missing(self.name)
            return self.get(None, self.last)
        text = values.text(self.name, given)
        if self.hashed:
            return self._remembered(given, self.start + bucket(text, self.hashed))
        if given in self:
            return self[given]
        if self.feature.required:
            near = nearest(given, self.feature.values or ())
            values.refuse(self.name, given, "one of the declared values", near)
        return self.last

    def _remembered(self, given: Any, at: int) -> int:
        """Remember texts only: True equals 1, and is hashed as another value."""
        if type(given) is str:
            if len(self) >= REMEMBERED:
                self.clear()
            self[given] = at
        return at


class Categories:
    """Categories: a slot each, with value 1."""

    def __init__(self, features: Mapping[str, Category], starts: Mapping[str, int]) -> None:
        self.labels, self.at = list(features), [starts[name] for name in features]
        self.coordinates = {n: Coordinates(n, f, starts[n]) for n, f in features.items()}

    def fill(self, columns: Columns, at: Ints, _: Floats, counts: Counts | None) -> None:
        """Fill the slots of N rows, whose values are 1 already."""
        for k, (name, find) in enumerate(self.coordinates.items()):
            column = columns.values(name)
            try:
                at[k] = list(map(find.__getitem__, column))
            except TypeError:  # a value that cannot be hashed
                at[k] = list(map(find.__missing__, column))
            if counts is not None:
                _count_category(name, find, column, counts)


def _count_category(name: str, find: Coordinates, column: Sequence[Any], counts: Counts) -> None:
    """Count what is missing, or not in the list; None may be in the list."""
    for each in column:
        if values.missing(each):
            count(counts, name, "missing", each is not None or None not in find)
        elif not find.hashed:
            count(counts, name, "unknown", each not in find)


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


class PlainRows:
    """Dicts that have all columns and no others."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], getters: list[tuple[str, Any]]) -> None:
        columns = {}
        for name, get in getters:
            columns[name] = list(map(get, rows))
        self.size, self.values = len(rows), columns.__getitem__
        self.numbers = self.values


class Side:
    """The vector (1, columns...) of one side.

    `coordinates` names its entries, `starts` says where a column begins and `labels` which column
    fills a slot.
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self.names, self.features = frozenset(features), features
        self.coordinates, self.starts = [ONE], {ONE: 0}
        for name, feature in features.items():
            self.starts[name] = len(self.coordinates)
            self.coordinates += feature.coordinates(name)
        parts = [part(own, self.starts) for part, own in _by_kind(features)]
        self.labels = [ONE] + [label for part in parts for label in part.labels]
        self._at = np.array([0] + [at for part in parts for at in part.at])[:, None]
        self._ones = np.ones(self._at.shape)
        ends = np.cumsum([1] + [len(part.labels) for part in parts]).tolist()
        self._parts = [(part, slice(a, b)) for part, a, b in zip(parts, ends, ends[1:])]
        self._getters = [(name, itemgetter(name)) for name in features]
        self._compile_row()

    def _compile_row(self) -> None:
        """Look up what `row` needs: slots as they are if nothing is missing, and what fills
        them."""
        self._first = self._at[:, 0].tolist(), self._ones[:, 0].tolist()
        self._reals: Any = None
        self._finds: list[tuple[int, str, Coordinates]] = []
        self._vectors: list[tuple[Any, slice]] = []
        for part, own in self._parts:
            if isinstance(part, Reals):
                self._reals = part
            elif isinstance(part, Categories):
                finds = part.coordinates.items()
                self._finds = [(own.start + k, *item) for k, item in enumerate(finds)]
            else:
                self._vectors = [(part, own)]

    def block(self, name: str) -> range:
        """The coordinates of a column."""
        width = 1 if name == ONE else self.features[name].width
        return range(self.starts[name], self.starts[name] + width)

    def read(self, what: str, rows: Sequence[Mapping[str, Any]]) -> Columns:
        """The columns of N rows; quickly if they are dicts with all declared columns."""
        if set(map(type, rows)) == {dict} and sum(map(len, rows)) == len(rows) * len(self.names):
            try:
                return PlainRows(rows, self._getters)
            except KeyError:  # a column that is not declared, in place of one that is
                pass
        return Mappings(what, rows, self.names)

    def row(self, given: Any) -> Slots | None:
        """The slots of one dict, computed without arrays; None if a value needs the closer look of
        `encode`, which says what is wrong."""
        if type(given) is not dict or not self.names.issuperset(given):
            return None
        at, value = self._first[0].copy(), self._first[1].copy()
        try:
            if self._reals is not None and not self._reals.row(given, at, value):
                return None
            for k, name, find in self._finds:
                at[k] = find[given.get(name)]
            slots = np.array(at)[:, None], np.array(value)[:, None]
            for part, own in self._vectors:
                columns = Mappings("a row", (given,), self.names)
                part.fill(columns, slots[0][own], slots[1][own], None)
        except (ValueError, TypeError, OverflowError):
            return None
        return slots

    def encode(self, columns: Columns, counts: Counts | None = None) -> Slots:
        """The slots of N rows."""
        n = columns.size
        at, value = self._at.repeat(n, axis=1), self._ones.repeat(n, axis=1)
        for part, own in self._parts:
            part.fill(columns, at[own], value[own], counts)
        return at, value


def _by_kind(features: Mapping[str, Feature]) -> list[tuple[Any, dict[str, Any]]]:
    """What encodes them, and the columns of each kind that there is."""
    kinds = ((Reals, (Number, Flag)), (Categories, Category), (Vectors, Vector))
    chosen = (
        (part, {n: f for n, f in features.items() if isinstance(f, kind)}) for part, kind in kinds
    )
    return [(part, own) for part, own in chosen if own]
