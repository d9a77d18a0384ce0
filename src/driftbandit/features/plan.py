"""A declaration, compiled: terms and their weights, and rows from the slots of both sides.

The row of an arm is w (1, c) x (1, a): constant, context c, arm a, and their products. Constant,
context, arm and products each get the same part of the squared norm, shared equally among the
columns (or pairs of columns) in them. A column's own block has norm at most 1, so a row has, too.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit.features.encoders import ONE, Floats, Ints, Side, Slots
from driftbandit.features.hashing import fold

if TYPE_CHECKING:
    from driftbandit.features.features import Features

Pair = tuple[str, str]  # of a context column and an arm column; ONE stands for none

CHUNK = 1 << 15  # products at once: as many as fit into a core's cache
log = logging.getLogger("driftbandit.features")


def new_pairs(features: Features) -> list[Pair]:
    """Pairs of columns that `base` did not have, by name: their order in dicts does not matter."""
    old = set() if features.base is None else set(all_pairs(features.base))
    contexts, arms = (ONE, *sorted(features.context)), (ONE, *sorted(features.arm))
    listed = None if features.interactions is None else set(features.interactions)
    pairs = [
        (c, a)
        for c in contexts
        for a in arms
        if c == ONE or a == ONE or listed is None or (c, a) in listed
    ]
    return sorted((p for p in pairs if p not in old), key=lambda p: (_group(p), p))


def all_pairs(features: Features) -> list[Pair]:
    """Pairs in the order of their terms: what grew later comes later."""
    return ([] if features.base is None else all_pairs(features.base)) + new_pairs(features)


def _group(pair: Pair) -> int:
    """0 constant, 1 context, 2 arm, 3 products."""
    return (pair[0] != ONE) + 2 * (pair[1] != ONE)


def squares(features: Features) -> dict[int, float]:
    """Squared weight of a pair of columns, by group; growth leaves it as it is."""
    old = {} if features.base is None else squares(features.base)
    groups = Counter(_group(pair) for pair in new_pairs(features))
    parts = len(old) or len(groups)
    return {group: 1.0 / (parts * n) for group, n in groups.items()} | old


def _ordered(features: Features, side: str) -> list[str]:
    """Columns of a side, older first."""
    old = [] if features.base is None else _ordered(features.base, side)
    return old + sorted(set(getattr(features, side)) - set(old))


class EncodingPlan:
    """Tables over all pairs of coordinates: where a product goes and with which weight."""

    def __init__(self, features: Features) -> None:
        self.context = Side({n: features.context[n] for n in _ordered(features, "context")})
        self.arm = Side({n: features.arm[n] for n in _ordered(features, "arm")})
        self.pairs, square = all_pairs(features), squares(features)
        shape = len(self.context.coordinates), len(self.arm.coordinates)
        self._bucket, self._weight = np.zeros(shape, dtype=np.intp), np.zeros(shape)
        self.size = 0
        for pair in self.pairs:
            self._place(pair, math.sqrt(square[_group(pair)]))
        total = math.fsum(square[_group(pair)] for pair in self.pairs)
        self.norm = 1.0 if features.base is None else math.sqrt(total)
        self.exact = self.size
        if features.limit is not None and self.size > features.limit:
            self._fold(features.limit)

    def _place(self, pair: Pair, weight: float) -> None:
        """Give the products of two columns their coordinates, the next that are free."""
        rows, columns = self.context.block(pair[0]), self.arm.block(pair[1])
        block = np.s_[rows.start : rows.stop, columns.start : columns.stop]
        n = len(rows) * len(columns)
        self._bucket[block] = np.arange(self.size, self.size + n).reshape(len(rows), len(columns))
        self._weight[block] = weight
        self.size += n

    def _fold(self, dim: int) -> None:
        bucket, sign = fold(self.terms, dim)
        used = self._weight > 0.0
        self._weight[used] *= sign[self._bucket[used]]
        self._bucket[used] = bucket[self._bucket[used]]
        self.size = dim
        log.warning(
            "%d terms are folded into %d coordinates by signed hashing; pass dim='exact', or list "
            "the interactions, to keep each its own",
            self.exact,
            dim,
        )

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """Names of all terms, in the order of the coordinates where nothing is folded."""
        out: list[str] = []
        for c, a in self.pairs:
            left, right = self.context.block(c), self.arm.block(a)
            out += [
                label(self.context.coordinates[i], self.arm.coordinates[j])
                for i in left
                for j in right
            ]
        return tuple(out)

    @property
    def reach(self) -> Floats:
        """How large each coordinate of a row can be; of terms that share one, the largest."""
        out, used = np.zeros(self.size), self._weight != 0.0
        np.maximum.at(out, self._bucket[used], np.abs(self._weight[used]))
        return out

    @property
    def labels(self) -> list[str]:
        """What each coordinate stands for: a term, or all that share it."""
        names: list[list[str]] = [[] for _ in range(self.size)]
        places = fold(self.terms, self.size)[0] if self.size < self.exact else range(self.size)
        for place, term in zip(places, self.terms):
            names[place].append(term)
        return [" or ".join(each) for each in names]

    def products(self, context: Slots, arm: Slots) -> tuple[Ints, Floats]:
        """Coordinates and values of all products that are not zero, (slots, slots * N)."""
        (left, scale), (right, value) = context, arm
        if left.shape[1] == 1:  # one context: then long rows, with which NumPy is fastest
            cell = left * self._weight.shape[1] + right.reshape(-1)
            product = scale * value.reshape(-1)
        else:
            cell = ((left * self._weight.shape[1])[:, None] + right).reshape(len(left), -1)
            product = (scale[:, None] * value).reshape(len(left), -1)
        product *= self._weight.take(cell)
        return self._bucket.take(cell), product

    def rows(self, context: Slots, arm: Slots) -> Floats:
        """Rows (N, size); the context's slots are (slots, N), or (slots, 1) for all arms."""
        slots, n = arm[0].shape
        step = max(1, CHUNK // (len(context[0]) * slots))
        if n > step:
            parts = (slice(k, k + step) for k in range(0, n, step))
            return np.concatenate([self.rows(_cut(context, p), _cut(arm, p)) for p in parts])
        at, amount = self.products(context, arm)
        at += _offsets(slots, n, self.size)
        sums = np.bincount(at.reshape(-1), amount.reshape(-1), n * self.size)
        X = np.asarray(sums, dtype=np.float64).reshape(n, self.size)
        if self.size < self.exact:  # terms that are folded together may add up
            X /= self.stretch(X)[:, None]
        return X

    def stretch(self, X: Floats) -> Floats:
        """How much longer than 1 folded rows are."""
        return np.maximum(np.sqrt((X * X).sum(axis=1)), 1.0)

    def contributions(self, context: Slots, arm: Slots, theta: Floats) -> dict[str, float]:
        """x'theta of one row, by pairs of columns."""
        at, amount = self.products(context, arm)
        parts = amount * theta[at]
        if self.size < self.exact:
            sums: Any = np.bincount(at.reshape(-1), amount.reshape(-1), self.size)
            parts /= self.stretch(sums[None])[0]
        out = {label(*pair): 0.0 for pair in self.pairs}
        for c, row in zip(self.context.labels, parts.tolist()):
            for a, part in zip(self.arm.labels, row):
                if (name := label(c, a)) in out:
                    out[name] += part
        return out


def label(context: str, arm: str) -> str:
    """The name of a term, or of a pair of columns."""
    if context == ONE:
        return arm
    return context if arm == ONE else f"{context}*{arm}"


def _cut(slots: Slots, part: slice) -> Slots:
    """The slots of some rows; those of the only row serve all."""
    at, value = slots
    return slots if at.shape[1] == 1 else (at[:, part], value[:, part])


@lru_cache(maxsize=16)
def _offsets(slots: int, n: int, size: int) -> Ints:
    """Where the rows of N arms begin, for every slot."""
    return np.tile(np.arange(0, n * size, size), slots)
