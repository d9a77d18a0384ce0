"""What a column is: a number, a category, a flag or a vector.

Each becomes a block of coordinates whose norm is at most 1 for every legal value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from driftbandit import validate
from driftbandit.recipe import Recipe


class Feature(Recipe):
    """Base of the declarations of a column.

    A missing value (None, NaN or no such key) has a coordinate of its own, unless the column is
    `required`: then it is an error, and the coordinate is saved.
    """

    required: bool
    absent: ClassVar[str] = "missing"

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return self._values + (not self.required)

    @property
    def _values(self) -> int:
        """Number of coordinates for values that are there."""
        raise NotImplementedError

    def coordinates(self, name: str) -> list[str]:
        """A name for every coordinate; the last is that of missing values."""
        return self._names(name) + [f"{name} {self.absent}"] * (not self.required)

    def _names(self, name: str) -> list[str]:
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

    >>> Number(0, 24, cyclic=True).coordinates("hour")
    ['hour cos', 'hour sin', 'hour missing']
    """

    low: float
    high: float
    _: KW_ONLY
    cyclic: bool = False
    log: bool = False
    required: bool = False

    def __post_init__(self) -> None:
        self._check_required()
        low = validate.number("low", self.low, "smallest value")
        high = validate.number("high", self.high, "largest value")
        if not high - low >= validate.SMALLEST:
            raise ValueError(f"Number needs low < high, got low={low:g} and high={high:g}")
        if not (isinstance(self.cyclic, bool) and isinstance(self.log, bool)):
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
        self._set(low=low, high=high)
        if not self.ends[1] > self.ends[0]:
            raise ValueError(f"low={low!r} and high={high!r} are too close to tell apart")

    @property
    def ends(self) -> tuple[float, float]:
        """low and high on the scale of the coordinate."""
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)

    @property
    def _values(self) -> int:
        return 2 if self.cyclic else 1

    def _names(self, name: str) -> list[str]:
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

    def __post_init__(self) -> None:
        self._check_required()

    @property
    def _values(self) -> int:
        return 1

    def _names(self, name: str) -> list[str]:
        return [name]


@dataclass(frozen=True, repr=False)
class Category(Feature):
    """One of the values in a list, each with a coordinate, or any value, hashed into `size`.

    Values are text or whole numbers. What is not in the list shares a coordinate with what is
    missing; put None into the list to give missing values one of their own. The hash is
    the same in every process and on every machine.

    >>> Category(["rock", "jazz"]).coordinates("genre")
    ['genre=rock', 'genre=jazz', 'genre other']
    """

    values: Sequence[Any] | None = None
    _: KW_ONLY
    size: int | None = None
    required: bool = False

    def __post_init__(self) -> None:
        self._check_required()
        if (self.values is None) == (self.size is None):
            raise ValueError(
                "Category takes a list of values, or size= to hash any value: "
                "Category(['NL', 'DE']) or Category(size=32)"
            )
        if self.values is not None:
            self._set(values=_distinct(self.values))
        else:
            self._set(size=validate.count("size", self.size, "coordinates of a hashed category"))

    @property
    def absent(self) -> str:  # type: ignore[override]
        return "missing" if self.values is None else "other"

    @property
    def _values(self) -> int:
        return len(self.values) if self.values is not None else int(self.size or 0)

    def _names(self, name: str) -> list[str]:
        if self.values is None:
            return [f"{name}#{j}" for j in range(self._values)]
        return [f"{name}={value}" for value in self.values]

    def __repr__(self) -> str:
        if self.values is None:
            return super().__repr__()
        required = ", required=True" if self.required else ""
        return f"Category({validate.show(list(self.values))}{required})"


@dataclass(frozen=True, repr=False)
class Vector(Feature):
    """`size` numbers, such as an embedding, scaled to norm 1 (a vector of zeros stays zero)."""

    size: int
    _: KW_ONLY
    required: bool = False

    def __post_init__(self) -> None:
        self._check_required()
        self._set(size=validate.count("size", self.size, "numbers in a vector"))

    @property
    def _values(self) -> int:
        return self.size

    def _names(self, name: str) -> list[str]:
        return [f"{name}[{j}]" for j in range(self.size)]


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
            f"a Category needs values that read differently, got {validate.show(list(clean))}"
        )
    return clean
