"""One side of a declaration, context or arm: raw columns in, slots out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit.features.columns import Columns
from driftbandit.features.declarations import Category, Feature, Flag, Number, Vector
from driftbandit.features.encoders import Categories, Counts, Floats, Ints, Vectors
from driftbandit.features.reals import Reals

ONE = "1"  # the name of the constant, coordinate 0 of each side


class Slots(NamedTuple):
    """What is not zero in N vectors: coordinates and values, both (slots, N)."""

    at: Ints
    value: Floats


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
        self._parts = self._sort(features)
        self.labels = [ONE] + [label for part in self._parts for label in part.labels]
        self._at = np.array([0] + [at for part in self._parts for at in part.at])[:, None]

    def _sort(self, features: Mapping[str, Feature]) -> list[Any]:
        """Columns by kind."""
        kinds: tuple[Any, ...] = (
            (Reals, (Number, Flag)),
            (Categories, Category),
            (Vectors, Vector),
        )
        chosen = (
            (part, {n: f for n, f in features.items() if isinstance(f, kind)})
            for part, kind in kinds
        )
        return [part(own, self.starts) for part, own in chosen if own]

    def block(self, name: str) -> range:
        """The coordinates of a column."""
        width = 1 if name == ONE else self.features[name].width
        return range(self.starts[name], self.starts[name] + width)

    def encode(self, columns: Columns, counts: Counts | None) -> Slots:
        """The slots of N rows."""
        n, end = columns.size, 1
        at, value = self._at.repeat(n, axis=1), np.empty((len(self.labels), n))
        value[0] = 1.0
        for part in self._parts:
            start, end = end, end + len(part.labels)
            part.fill(columns, at[start:end], value[start:end], counts)
        return Slots(at, value)
