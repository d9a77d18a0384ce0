"""Raw columns by name, from mappings or from a frame (pandas, Polars, Arrow)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from driftbandit.validate import nearest, show


class Columns(Protocol):
    """N raw values by name; None where there is no such column."""

    size: int

    def values(self, name: str) -> list[Any]: ...

    def numbers(self, name: str) -> list[Any] | NDArray[np.float64]:
        """The same, or clean floats with NaN for missing values where that costs nothing."""


class Mappings:
    """Rows that are mappings from names to values."""

    def __init__(self, what: str, rows: Sequence[Mapping[str, Any]], names: frozenset[str]) -> None:
        for row in rows:
            if type(row) is not dict and not isinstance(row, Mapping):
                raise ValueError(
                    f"{what} must be a mapping such as {{{min(names, default='name')!r}: ...}}, "
                    f"got {show(row)}"
                )
            if not names.issuperset(row):
                refuse_unknown(what, row, names)
        self.rows, self.size = rows, len(rows)

    def values(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]

    numbers = values


class Frame:
    """A frame, through narwhals."""

    def __init__(self, what: str, frame: Any, names: frozenset[str] | None = None) -> None:
        complaint = (
            f"{what} must be a frame of pandas, Polars or Arrow, in memory and with different "
            f"names for all columns, got {show(type(frame).__name__)}"
        )
        if not hasattr(type(frame), "columns"):
            raise ValueError(complaint)
        self._narwhals = _narwhals()
        try:
            self._frame = self._narwhals.from_native(frame, eager_only=True)
            self.names = list(self._frame.columns)
        except Exception:  # narwhals has a type of its own for every complaint
            raise ValueError(complaint) from None
        self._columns = frozenset(self.names)
        if names is not None and not names.issuperset(self.names):
            refuse_unknown(what, self.names, names)
        self.size = len(self._frame)

    def values(self, name: str) -> list[Any]:
        if name not in self._columns:
            return [None] * self.size
        return self._frame[name].to_list()

    def numbers(self, name: str) -> list[Any] | NDArray[np.float64]:
        if name in self._columns:
            series, types = self._frame[name], self._narwhals
            if series.dtype.is_numeric() and series.dtype != types.Decimal:
                filled = series.cast(types.Float64).fill_null(float("nan"))
                return np.asarray(filled.to_numpy(), dtype=np.float64)
        return self.values(name)


def _narwhals() -> Any:
    try:
        import narwhals  # imported lazily: only frames need it
    except ImportError:
        raise ImportError(
            "frames need narwhals: install it with pip install 'driftbandit[frames]'"
        ) from None
    return narwhals


def refuse_unknown(what: str, given: Iterable[Any], names: frozenset[str]) -> NoReturn:
    """Name the first column that was not declared, and the nearest that was."""
    unknown = next(name for name in given if name not in names)
    raise ValueError(
        f"{what} has {show(unknown)}, which is not declared: {nearest(unknown, sorted(names))}"
    )
