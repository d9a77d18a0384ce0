"""One side of a declaration, context or arm, compiled: raw columns in, slots out.

A slot is a coordinate that is not zero (`at`) and its `value`, both (slots, N). Columns of one kind
are encoded together: numbers and flags, categories, vectors, items. Sums and functions run value by
value, so a row is the same alone, among others and in a frame. What is hashed, categories without a
list and terms that are folded, has a hash that never changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.features import values
from driftbandit.features.columns import Columns, Mappings
from driftbandit.features.declarations import (
    BENDS_SINCE,
    ENCODING,
    Category,
    Feature,
    Flag,
    Item,
    Number,
    Vector,
)
from driftbandit.problem import FIRST_NAME
from driftbandit.validate import nearest, show

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Slots = tuple[Ints, Floats]  # what is not zero in N vectors: coordinates, values; (slots, N)
Counts = MutableMapping[tuple[str, str], int]

ONE = "1"  # the name of the constant, coordinate 0 of each side
REMEMBERED = 1 << 14  # hashed texts per column
BEND = 0.7  # height of the first bend, in ends of the line: see `make bench-declarations`


def stable(text: str) -> int:
    """Return 64 bits of BLAKE2b, which never change: Python's own hash() differs from process to
    process."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@lru_cache(maxsize=1 << 14)  # of a pure function: popular values are hashed once
def bucket(text: str, size: int) -> int:
    """Return the coordinate of a hashed category."""
    return stable(text) % size


def fold(terms: Sequence[str], dim: int) -> tuple[Ints, Floats]:
    """Return coordinate and sign of every term: many are folded into few coordinates.

    With random signs, terms that share a coordinate do not add up on average: inner products are
    kept in expectation (Weinberger et al. 2009).
    """
    hashes = np.array([stable(term) for term in terms], dtype=np.uint64)
    sign = 1.0 - 2.0 * (hashes & np.uint64(1)).astype(np.float64)
    return ((hashes >> np.uint64(1)) % np.uint64(dim)).astype(np.intp), sign


def count(counts: Counts | None, name: str, what: str, n: int) -> None:
    """Add n to the values of a column that were missing, unknown or clipped."""
    if counts is not None and n:
        counts[name, what] = counts.get((name, what), 0) + n


@lru_cache
def scales(n: int) -> list[float]:
    """Return how high the bends of a curve of n coordinates are: `BEND`/k. With u(1 - u) pi^2/2,
    the sum of sin(k pi u)^2/k^2 over all k, line and bends have norm 1 at most."""
    return [BEND / k for k in range(1, n)]


def bends(place: float, height: list[float]) -> list[float]:
    """Return a place from -1 to 1 and height_k sin(k pi u), u = (place + 1)/2, by
    sin(k a) = 2 cos(a) sin((k-1) a) - sin((k-2) a)."""
    angle = (0.5 * math.pi) * (place + 1.0)
    before, now, double, found = 0.0, math.sin(angle), 2.0 * math.cos(angle), [place]
    for each in height:
        found.append(now * each)
        before, now = now, double * now - before
    return found


def many_bends(place: Floats, height: list[float]) -> Floats:
    """Return the same of many places (m, N), with the same bits, (coordinates, m, N)."""
    angle = ((0.5 * math.pi) * (place + 1.0)).ravel().tolist()
    out = np.empty((1 + len(height), *place.shape))
    out[0] = place
    double = 2.0 * np.array(list(map(math.cos, angle))).reshape(place.shape)
    now = np.array(list(map(math.sin, angle))).reshape(place.shape)  # NumPy's own may differ
    before = np.zeros(place.shape)
    for k, each in enumerate(height, start=1):
        np.multiply(now, each, out=out[k])
        before, now = now, double * now - before
    return out


@lru_cache
def heights(n: int) -> list[float]:
    """Return how high each of n waves is: 1/k, so that all together have norm 1 at most."""
    norm = math.sqrt(math.fsum(1.0 / k**2 for k in range(1, n + 1)))
    return [1.0 / (k * norm) for k in range(1, n + 1)]


def waves(place: float, height: list[float]) -> list[float]:
    """Return height_k cos(k pi u) of a place from -1 to 1, u = (place + 1)/2, by
    cos(k a) = 2 cos(a) cos((k-1) a) - cos((k-2) a)."""
    first = math.cos((0.5 * math.pi) * (place + 1.0))
    before, now, double, found = 1.0, first, 2.0 * first, []
    for each in height:
        found.append(now * each)
        before, now = now, double * now - before
    return found


def many_waves(place: Floats, height: list[float]) -> Floats:
    """Return the same of many places (m, N), with the same bits, (waves, m, N)."""
    angle = (0.5 * math.pi) * (place + 1.0)
    out = np.empty((len(height), *place.shape))
    first = list(map(math.cos, angle.ravel().tolist()))  # NumPy's may differ with the length
    out[0].flat = first
    double = 2.0 * out[0]
    for k in range(1, len(height)):
        np.multiply(double, out[k - 1], out=out[k])
        out[k] -= out[k - 2] if k > 1 else 1.0
    out *= np.array(height)[:, None, None]
    return out


class Curve(NamedTuple):
    """How a number becomes n coordinates: factors of n, and functions of one place and of many."""

    factors: Callable[[int], list[float]]
    one: Callable[[float, list[float]], list[float]]
    many: Callable[[Floats, list[float]], Floats]


WAVE_CURVE, BEND_CURVE = Curve(heights, waves, many_waves), Curve(scales, bends, many_bends)


class Reals:
    """Numbers and flags. A slot each; a cyclic number has another one for the sine, and a curve
    one for every coordinate after the first."""

    def __init__(
        self, features: Mapping[str, Number | Flag], starts: Mapping[str, int], encoding: int
    ) -> None:
        self.features, names = features, list(features)
        self.curve = WAVE_CURVE if encoding < BENDS_SINCE else BEND_CURVE
        self.logs = [k for k, f in enumerate(features.values()) if f.log]
        slots = [f.width - (not f.required) for f in features.values()]
        more = [(k, j) for k, n in enumerate(slots) for j in range(1, n)]
        sizes = [f.curve or 0 for f in features.values()]
        more.sort(key=lambda each: (sizes[each[0]], each[1]))  # of curves, one after the other
        self.labels = names + [names[k] for k, _ in more]
        self.at = [starts[n] for n in names] + [starts[names[k]] + j for k, j in more]
        self.gone = np.array([starts[n] + f.width - 1 for n, f in features.items()])
        self.low, self.high = self._column("low"), self._column("high")
        ends = np.array([f.ends for f in features.values()])
        self.middle, self.scale = ends.mean(axis=1)[:, None], 2.0 / np.diff(ends)
        # Rounding is monotone: what is at most this far from the middle was not clipped.
        self.inner = np.abs((ends - self.middle) * self.scale).min()
        self.more: dict[int, list[int]] = {}  # further slots of a number
        for slot, (k, _) in enumerate(more, start=len(names)):
            self.more.setdefault(k, []).append(slot)
        self.sines = [(own[0], k) for k, own in self.more.items() if self._feature(k).cyclic]
        self.curves = self._curves()
        self.plain = self._plain()

    def _feature(self, k: int) -> Number | Flag:
        return self.features[self.labels[k]]

    def _column(self, name: str) -> Floats:
        return np.array([[getattr(f, name)] for f in self.features.values()])

    def _curves(self) -> list[tuple[list[int], list[float], slice]]:
        """Return numbers that are curves, together if they have as many coordinates: which they
        are, their factors, and the further slots, coordinate by coordinate."""
        curves = [(f.curve, k) for k, f in enumerate(self.features.values()) if f.curve]
        found = []
        for n in sorted({n for n, _ in curves}):
            own = [k for each, k in curves if each == n]
            start = self.more[own[0]][0] if n > 1 else 0
            found.append((own, self.curve.factors(n), slice(start, start + (n - 1) * len(own))))
        return found

    def _plain(self) -> list[Any]:
        """What `row` needs of each column, as Python's own numbers; slot 0 is the constant."""
        types = {Number: values.NUMBERS - {type(None)}, Flag: values.FLAGS - {type(None)}}
        numbers = (each.ravel().tolist() for each in (self.middle, self.scale, self.gone))
        return [
            (
                *(k + 1, name, types[type(f)], f.low, f.high, middle, scale, f.log),
                tuple(slot + 1 for slot in self.more.get(k, ())),
                self.curve.factors(f.curve) if f.curve else None,
                None if f.required else gone,
            )
            for k, ((name, f), middle, scale, gone) in enumerate(
                zip(self.features.items(), *numbers)
            )
        ]

    def row(self, given: Mapping[str, Any], at: list[int], value: list[float]) -> bool:
        """Fill the slots of one row of plain values; return False if one needs a closer look."""
        for k, name, types, low, high, middle, scale, log, more, curve, gone in self.plain:
            raw: Any = given.get(name)
            x = float(raw) if type(raw) in types else math.inf
            if low <= x <= high:
                pass
            elif raw is None or x != x:
                if gone is None:
                    return False
                at[k], value[k] = gone, 1.0
                for slot in more:
                    value[slot] = 0.0
                continue
            elif x - x == 0.0:
                x = low if x < low else high
            else:
                return False
            place = ((math.log(x) if log else x) - middle) * scale
            value[k] = place
            if curve is not None:
                for slot, each in zip((k, *more), self.curve.one(place, curve)):
                    value[slot] = each
            elif more:
                angle = math.pi * place
                value[k], value[more[0]] = math.cos(angle), math.sin(angle)
        return True

    def fill(self, columns: Columns, at: Ints, value: Floats, counts: Counts | None) -> None:
        """Fill the slots of N rows."""
        raw, place = self._raw(columns), value[: len(self.features)]
        if counts is None and not self.logs and not self.more and not self.curves:
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
        for own, curve, more in self.curves:
            found = self.curve.many(place[own], curve)
            value[own] = found[0]
            value[more] = found[1:].reshape(more.stop - more.start, place.shape[1])
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
        for k, more in self.more.items():
            for slot in more:
                value[slot, row[which == k]] = 0.0
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
        self.listed = {each: start + j for j, each in enumerate(feature.values or ())}
        super().__init__(self.listed)
        self.name, self.feature = name, feature
        self.last = start + feature.width - 1  # for what is missing or not in the list
        self.hashed = feature.size or feature.room  # coordinates for values by their hash
        self.hashed_from = start + len(feature.values or ())

    def __missing__(self, given: Any) -> int:
        """The coordinate of what is hashed, missing or not in the list, or an error."""
        if values.missing(given):
            if self.feature.required and None not in self:
                values.refuse_missing(self.name)
            return self.get(None, self.last)
        text = values.text(self.name, given)
        if given in self:
            return self[given]
        if self.hashed:
            return self._remembered(given, self.hashed_from + bucket(text, self.hashed))
        if self.feature.required:
            near = nearest(given, self.feature.values or ())
            values.refuse(self.name, given, "one of the declared values", near)
        return self.last

    def _remembered(self, given: Any, at: int) -> int:
        """Remember texts only: True equals 1, and is hashed as another value."""
        if type(given) is str:
            if len(self) >= REMEMBERED:
                self.clear()
                self.update(self.listed)
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
    """Vectors: as many slots as numbers are kept."""

    def __init__(self, features: Mapping[str, Vector], starts: Mapping[str, int]) -> None:
        self.features, self.starts = features, starts
        sizes = [(name, f.kept) for name, f in features.items()]
        self.labels = [name for name, size in sizes for _ in range(size)]
        self.at = [starts[name] + j for name, size in sizes for j in range(size)]

    def fill(self, columns: Columns, at: Ints, value: Floats, counts: Counts | None) -> None:
        end = 0
        for name, f in self.features.items():
            start, end = end, end + f.kept
            rows, gone = _vectors(name, f, columns.values(name))
            value[start:end] = f.encoded(rows).T
            if gone:
                value[start:end, gone] = 0.0
                at[start, gone] = self.starts[name] + f.kept
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


@lru_cache(maxsize=1 << 14)
def name_number(text: str) -> float:
    """Return the number that stands for the name of an item: 52 bits, so names differ in it."""
    return FIRST_NAME + float(stable(text) >> 12)


class Items:
    """Items: a slot for the weight of the effect, and one for the number of the name."""

    def __init__(self, features: Mapping[str, Item], starts: Mapping[str, int]) -> None:
        self.features = features
        self.labels = [name for name in features for _ in range(2)]
        self.at = [starts[name] + j for name in features for j in range(2)]

    def fill(self, columns: Columns, at: Ints, value: Floats, counts: Counts | None) -> None:
        for k, (name, feature) in enumerate(self.features.items()):
            names = [
                0.0 if values.missing(each) else name_number(values.text(name, each))
                for each in columns.values(name)
            ]
            value[2 * k + 1] = names
            gone = value[2 * k + 1] == 0.0
            if feature.required and gone.any():
                values.refuse_missing(name)
            value[2 * k, gone] = 0.0
            count(counts, name, "missing", int(gone.sum()))


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

    def __init__(self, features: Mapping[str, Feature], encoding: int = ENCODING) -> None:
        self.names, self.features = frozenset(features), features
        self.coordinates, self.starts = [ONE], {ONE: 0}
        for name, feature in features.items():
            self.starts[name] = len(self.coordinates)
            self.coordinates += feature.coordinates(name, encoding)
        parts = [
            part(own, self.starts, encoding) if part is Reals else part(own, self.starts)
            for part, own in _by_kind(features)
        ]
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
        self._others: list[tuple[Any, slice]] = []  # vectors and items
        for part, own in self._parts:
            if isinstance(part, Reals):
                self._reals = part
            elif isinstance(part, Categories):
                finds = part.coordinates.items()
                self._finds = [(own.start + k, *item) for k, item in enumerate(finds)]
            else:
                self._others.append((part, own))

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
            for part, own in self._others:
                columns = Mappings("a row", (given,), self.names)
                part.fill(columns, slots[0][own], slots[1][own], None)
        except (ValueError, TypeError, OverflowError):
            return None
        return slots

    def known(self, given: Mapping[str, Any]) -> Slots:
        """The slots of one row in which columns that are not given are 0."""
        filled = {name: f.example for name, f in self.features.items()} | dict(given)
        at, value = self.encode(self.read("this", (filled,)))
        for k, label in enumerate(self.labels):
            if label != ONE and label not in given:
                value[k] = 0.0
        return at, value

    def encode(self, columns: Columns, counts: Counts | None = None) -> Slots:
        """The slots of N rows."""
        n = columns.size
        at, value = self._at.repeat(n, axis=1), self._ones.repeat(n, axis=1)
        for part, own in self._parts:
            part.fill(columns, at[own], value[own], counts)
        return at, value


def _by_kind(features: Mapping[str, Feature]) -> list[tuple[Any, dict[str, Any]]]:
    """What encodes them, and the columns of each kind that there is."""
    kinds: tuple[tuple[Any, Any], ...] = (
        (Reals, (Number, Flag)), (Categories, Category), (Vectors, Vector), (Items, Item)
    )  # fmt: skip
    chosen = (
        (part, {n: f for n, f in features.items() if isinstance(f, kind)}) for part, kind in kinds
    )
    return [(part, own) for part, own in chosen if own]
