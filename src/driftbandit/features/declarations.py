"""What a column is: a number, a category, a flag, a vector or the name of an item.

Each becomes a block of coordinates whose norm is at most 1 for every legal value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from driftbandit import validate
from driftbandit.features import projections
from driftbandit.recipe import Recipe

ENCODING = 3  # raised when the same declaration gives other numbers: part of a fingerprint
BENDS_SINCE = 3  # the encoding from which on curves are a line and bends; before, cosine waves
CURVE = 4  # coordinates of a curve, unless it says how many: see `make bench-declarations`
CURVE_BEFORE = {2: 5}  # the same in an older encoding
SPAN = 50.0  # high over low, from which on a curve has a logarithmic scale by default
MOST_CURVE = 32
SLOTS = 48  # names of items that are held, unless the column says how many
MOST_NUMBERS = 4096  # of a vector that is projected


class Feature(Recipe):
    """Base of the declarations of a column.

    A missing value (None, NaN or no such key) has a coordinate of its own, unless the column is
    `required`: then it is an error, and the coordinate is saved.
    """

    required: bool
    rest: ClassVar[str] = "missing"  # name of the coordinate for what has no other

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self._values + (not self.required)

    @property
    def _values(self) -> int:
        """Number of coordinates for values that are there."""
        raise NotImplementedError

    @property
    def example(self) -> Any:
        """A legal value."""
        raise NotImplementedError

    def coordinates(self, name: str, encoding: int = ENCODING) -> list[str]:
        """A name for every coordinate; the last is that of missing values."""
        return self._names(name, encoding) + [f"{name} {self.rest}"] * (not self.required)

    def _names(self, name: str, encoding: int) -> list[str]:
        raise NotImplementedError

    def _check_required(self) -> None:
        if not isinstance(self.required, bool):
            raise ValueError(f"required must be True or False, got {validate.show(self.required)}")

    def __repr__(self) -> str:
        """Only what differs from the defaults."""
        given = [
            repr(getattr(self, f.name))
            if f.default is dataclasses.MISSING
            else f"{f.name}={value!r}"
            for f in dataclasses.fields(self)  # type: ignore[arg-type]
            if (value := getattr(self, f.name)) != f.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class Number(Feature):
    """A number from `low` to `high`; what lies outside is clipped, and counted.

    | option | coordinates |
    |---|---|
    | none | one, from -1 at `low` to 1 at `high` |
    | `log` | the same on a logarithmic scale, for prices, counts and times; needs `low` above 0 |
    | `cyclic` | cosine and sine: `high` is `low` again, as in hours from 0 to 24 |
    | `curve` | as many as it says, 4 for True: the line and bends; the best value may lie inside |

    With a line alone the best of all values is always an end. So a number of an arm is a curve
    unless it is cyclic or has `curve=False`, and a number of the context is a line unless it has
    `curve=True`. If such a curve has `low` above 0 and `high` at least 50 times `low`, its scale is
    logarithmic; `log=False` or `curve=4` says that it is not. Bend k is 0.7 sin(k pi u) / k, with u
    from 0 at `low` to 1 at `high`: the line weighs most and slow bends more than fast ones, so a
    curve is nearly a line until rewards say otherwise.

    >>> Number(0, 24, cyclic=True).coordinates("hour")
    ['hour cos', 'hour sin', 'hour missing']
    >>> Number(0, 100, curve=3, required=True).coordinates("price")
    ['price', 'price bend 1', 'price bend 2']
    """

    low: float
    high: float
    _: KW_ONLY
    cyclic: bool = False
    log: bool | None = None  # None: not said, until `Features` decides
    required: bool = False
    curve: int | None = None  # 0 for a line; None: a line, until `Features` has it for arms
    absent: ClassVar[Mapping[str, Any]] = {"curve": None}

    def __post_init__(self) -> None:
        self._check_required()
        low = validate.number("low", self.low, "smallest value")
        high = validate.number("high", self.high, "largest value")
        if not high - low >= validate.SMALLEST:
            raise ValueError(f"Number needs low < high, got low={low:g} and high={high:g}")
        if not (isinstance(self.cyclic, bool) and isinstance(self.log, bool | None)):
            raise ValueError(
                f"cyclic and log must be True or False, got {self.cyclic!r} and {self.log!r}"
            )
        if self.cyclic and self.log:
            raise ValueError("a cyclic Number has no logarithmic scale: pass cyclic or log")
        if self.log and low < validate.SMALLEST:
            raise ValueError(
                f"a logarithmic Number needs low above 0, got {low:g}: pass the smallest value "
                "that matters; smaller ones, such as 0, count as low"
            )
        self._set(low=low, high=high, curve=self._curve_size())
        if self.log is None and not self._may_be_log:
            self._set(log=False)
        if not self.ends[1] > self.ends[0]:
            raise ValueError(f"low={low!r} and high={high!r} are too close to tell apart")

    def _curve_size(self) -> int | None:
        """Return `curve` as a number of coordinates."""
        given: Any = self.curve
        if given is None or given is False:
            return None if given is None else 0
        size = CURVE if given is True else validate.count("curve", given, "coordinates", least=0)
        if size and self.cyclic:
            raise ValueError("a cyclic Number is a curve already: pass cyclic or curve")
        if size > MOST_CURVE:
            raise ValueError(
                f"curve must be at most {MOST_CURVE} coordinates, such as {CURVE}, got {size}"
            )
        return size

    @property
    def _may_be_log(self) -> bool:
        """Whether an arm has this number on a logarithmic scale, unless it says otherwise."""
        spans = self.low >= validate.SMALLEST and self.high >= SPAN * self.low
        return spans and self.curve is None and not self.cyclic

    def of_arm(self, encoding: int) -> Number:
        """Return the number as arms have it: a curve, unless it says what it is; on a logarithmic
        scale if it spans that much, because few bends over 1 to 128 cannot tell 1 from 4."""
        if self.curve is not None or self.cyclic:
            return self
        size = CURVE_BEFORE.get(encoding, CURVE)
        return dataclasses.replace(self, curve=size, log=self.log is not False)

    @property
    def of_context(self) -> Number:
        """The number as contexts have it: on a plain scale, unless it says otherwise."""
        return dataclasses.replace(self, log=bool(self.log))

    @property
    def ends(self) -> tuple[float, float]:
        """low and high on the scale of the coordinate."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    @property
    def _values(self) -> int:
        return 2 if self.cyclic else self.curve or 1

    @property
    def example(self) -> float:
        return self.low

    def __repr__(self) -> str:
        said = super().__repr__()  # a plain scale is worth a word only where arms have another one
        return said if self._may_be_log else said.replace(", log=False", "")

    def _names(self, name: str, encoding: int) -> list[str]:
        if self.curve and encoding < BENDS_SINCE:
            return [f"{name} wave {k}" for k in range(1, self.curve + 1)]
        if self.curve:
            return [name] + [f"{name} bend {k}" for k in range(1, self.curve)]
        return [f"{name} cos", f"{name} sin"] if self.cyclic else [name]


@dataclass(frozen=True, repr=False)
class Flag(Feature):
    """True or False (or 1 and 0), as 1 and -1."""

    _: KW_ONLY
    required: bool = False

    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    ends: ClassVar[tuple[float, float]] = (0.0, 1.0)
    cyclic: ClassVar[bool] = False
    log: ClassVar[bool] = False
    curve: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self._check_required()

    @property
    def _values(self) -> int:
        return 1

    @property
    def example(self) -> bool:
        return True

    def _names(self, name: str, encoding: int) -> list[str]:
        return [name]


@dataclass(frozen=True, repr=False)
class Category(Feature):
    """One of the values in a list, each with a coordinate, or any value, hashed into `size`.

    Values are text or whole numbers. What is not in the list shares a coordinate with what is
    missing; put None into the list to give missing values one of their own. `room=16` gives values
    that are not in the list 16 coordinates by their hash, so that a loop learns about new ones. The
    hash is the same in every process and on every machine. Of n such values, each shares its
    coordinate with another one with probability 1 - (1 - 1/room)^(n - 1): `shared(n)`.

    >>> Category(["rock", "jazz"]).coordinates("genre")
    ['genre=rock', 'genre=jazz', 'genre other']
    """

    values: Sequence[Any] | None = None
    _: KW_ONLY
    size: int | None = None
    required: bool = False
    room: int = 0
    absent: ClassVar[Mapping[str, Any]] = {"room": 0}

    def __post_init__(self) -> None:
        self._check_required()
        if (self.values is None) == (self.size is None):
            raise ValueError(
                "Category takes a list of values, or size= to hash any value: "
                "Category(['NL', 'DE']) or Category(size=32)"
            )
        if self.values is not None:
            room = validate.count("room", self.room, "coordinates for new values", least=0)
            self._set(values=_distinct(self.values), room=room)
        elif self.room:
            raise ValueError("room= is for values beside a list; size= has room for all values")
        else:
            self._set(size=validate.count("size", self.size, "coordinates of a hashed category"))

    @property
    def rest(self) -> str:  # type: ignore[override]
        return "missing" if self.values is None else "other"

    @property
    def _values(self) -> int:
        return len(self.values) + self.room if self.values is not None else int(self.size or 0)

    @property
    def example(self) -> Any:
        return "" if self.values is None else self.values[0]

    def shared(self, n: int) -> float:
        """Return the chance that one of n values, all hashed, shares its coordinate.

        >>> round(Category(["NL"], room=16).shared(4), 3)
        0.176
        """
        places = self.size or self.room
        return 1.0 - (1.0 - 1.0 / places) ** (n - 1) if places else 1.0

    def _names(self, name: str, encoding: int) -> list[str]:
        listed = [f"{name}={value}" for value in self.values or ()]
        return listed + [f"{name}#{j}" for j in range(self._values - len(listed))]

    def __repr__(self) -> str:
        if self.values is None:
            return super().__repr__()
        room = f", room={self.room}" if self.room else ""
        required = ", required=True" if self.required else ""
        return f"Category({validate.show(list(self.values))}{required}{room})"


@dataclass(frozen=True, repr=False)
class Item(Feature):
    """The name of an arm that comes and goes, such as an article: it gets an effect of its own.

    A new name begins at the prediction that its other columns give, and departs from it as its own
    rewards come. The learner holds `slots` names; a name that has not been trained for the longest
    time makes way, and is forgotten. So memory stays constant however many names there are: let
    `slots` be about three times the names that are on offer at once. Text and whole numbers are
    names; an arm without one has the shared prediction alone.

    >>> Item(slots=2).coordinates("article")
    ['article new', 'article slot 1', 'article slot 2']
    """

    slots: int = SLOTS
    _: KW_ONLY
    required: bool = False

    def __post_init__(self) -> None:
        self._check_required()
        self._set(slots=validate.count("slots", self.slots, "names that are held"))

    @property
    def width(self) -> int:
        return 1 + self.slots

    @property
    def example(self) -> str:
        return ""

    def coordinates(self, name: str, encoding: int = ENCODING) -> list[str]:
        """Return the coordinate of a new item, and of those that hold a slot."""
        return [f"{name} new"] + [f"{name} slot {k + 1}" for k in range(self.slots)]


@dataclass(frozen=True, repr=False)
class Vector(Feature):
    """`size` numbers, such as an embedding, scaled to norm 1 (a vector of zeros stays zero).

    `keep=24` projects them to 24 numbers: by a fixed random projection, or, better, by one that
    `Vector.fitted(sample, keep=24)` learns from vectors of a sample. `projection` is that one, as
    text with its digest.

    >>> Vector(384, keep=24).width
    25
    """

    size: int
    _: KW_ONLY
    required: bool = False
    keep: int | None = None
    projection: str | None = None
    absent: ClassVar[Mapping[str, Any]] = {"keep": None, "projection": None}

    def __post_init__(self) -> None:
        self._check_required()
        size = validate.count("size", self.size, "numbers in a vector")
        self._set(size=size)
        if self.keep is None and self.projection is not None:
            raise ValueError("a projection needs keep=, how many numbers are kept")
        if self.keep is not None:
            keep = validate.count("keep", self.keep, "numbers that are kept of a vector")
            if keep > size or size > MOST_NUMBERS:
                raise ValueError(
                    f"keep is at most size, and size at most {MOST_NUMBERS}, got keep={keep} and "
                    f"size={size}"
                )
            self._set(keep=keep)
            self._projection  # noqa: B018  (checks it)

    @staticmethod
    def fitted(sample: Any, *, keep: int, required: bool = False) -> Vector:
        """Return a vector whose projection keeps the components in which a sample (n, size) varies
        most.

        >>> import numpy as np
        >>> Vector.fitted(np.random.default_rng(0).normal(size=(100, 50)), keep=2).width
        3
        """
        try:
            rows = np.array(sample, dtype=np.float64)
        except (ValueError, TypeError):
            rows = np.zeros(0)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise ValueError("a sample is an array of shape (vectors, size) of finite numbers")
        keep = validate.count("keep", keep, "numbers that are kept of a vector")
        text = projections.principal(rows, keep)
        return Vector(rows.shape[1], keep=keep, projection=text, required=required)

    @property
    def _projection(self) -> projections.Projection:
        keep = int(self.keep or 0)
        if self.projection is None:
            return projections.random_signs(self.size, keep)
        return projections.from_text(self.projection, self.size, keep)

    def encoded(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return clean vectors (n, size) as coordinates (n, kept)."""
        rows = projections.unit(rows)
        return rows if self.keep is None else projections.project(rows, self._projection)

    @property
    def kept(self) -> int:
        """Numbers in a row: `keep`, or all."""
        return self.size if self.keep is None else self.keep

    @property
    def _values(self) -> int:
        return self.kept

    @property
    def example(self) -> list[float]:
        return [0.0] * self.size

    def _names(self, name: str, encoding: int) -> list[str]:
        part = "" if self.keep is None else "part "
        return [f"{name}[{part}{j}]" for j in range(self.kept)]

    def __repr__(self) -> str:
        if self.projection is None:
            return super().__repr__()
        digest = self.projection.partition(":")[0]
        required = ", required=True" if self.required else ""
        return f"Vector({self.size}, keep={self.keep}, projection='{digest}:...'{required})"


def _distinct(values: Any) -> tuple[Any, ...]:
    """The values of a category: text, whole numbers or None, that read differently."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"Category needs a list of values, got {validate.show(values)}")
    clean = tuple(value.item() if hasattr(value, "item") else value for value in values)
    for value in clean:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (value is None or isinstance(value, str) or whole):
            raise ValueError(
                f"the values of a Category are text or whole numbers, got {validate.show(value)}: "
                "use Number for numbers and Flag for True and False"
            )
    if not clean or len(set(map(str, clean))) < len(clean):
        raise ValueError(
            "a Category needs one or more values that read differently, got "
            f"{validate.show(list(clean))}"
        )
    return clean
