"""A declaration, compiled: terms and their weights, and rows from the slots of both sides.

The row of an arm is w (1, c) x (1, a): constant, context c, arm a, and their products. Constant,
context, arm and products each get the same part of the squared norm, shared equally among the
columns (or pairs of columns) in them. A column's own block has norm at most 1, so a row has, too.
An item has a part of its own and no products: behind its weight stands the number of its name,
which a learner turns into a slot (`policies.items`), so it has no weight and no length.

If that is more than the limit, the terms of the context alone go first: all arms share them, so
they cannot change which one is best. If it is still too much, the constant, the terms of the arm
and the smallest products keep coordinates of their own, and all others are folded into the rest.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit.features.columns import Columns, Frame
from driftbandit.features.declarations import Item
from driftbandit.features.encoders import ONE, Floats, Ints, Side, Slots, fold

if TYPE_CHECKING:
    from driftbandit.features.features import Features

Pair = tuple[str, str]  # of a context column and an arm column; ONE stands for none

SHARED = 1  # the group of the context's own terms
FOLDED = 0.25  # part of the coordinates that folded terms share, at least
NAMED = 12  # pairs of columns that a summary names
CHUNK = 1 << 15  # products at once: as many as fit into a core's cache
log = logging.getLogger("driftbandit.features")


def new_pairs(features: Features) -> list[Pair]:
    """Pairs of columns that `base` did not have, by name: their order in dicts does not matter."""
    old = set() if features.base is None else set(all_pairs(features.base))
    contexts, arms = (ONE, *sorted(features.context)), (ONE, *sorted(features.arm))
    listed, items = features.interactions, items_of(features)
    pairs = [
        (c, a)
        for c in contexts
        for a in arms
        if a not in items
        if c == ONE or a == ONE or listed is None or (c, a) in listed
    ]
    if not has_shared_terms(features):
        pairs = [pair for pair in pairs if _group(pair) != SHARED]
    return sorted((p for p in pairs if p not in old), key=lambda p: (_group(p), p))


def items_of(features: Features) -> list[str]:
    """Return the columns of arms that name an item: one, or none."""
    return [name for name, each in features.arm.items() if isinstance(each, Item)]


def room(features: Features) -> int | None:
    """Return how many coordinates there are for what is no item; None for no limit."""
    if features.limit is None:
        return None
    return features.limit - sum(features.arm[name].width for name in items_of(features))


def has_shared_terms(features: Features) -> bool:
    """Return whether the terms of the context alone are in the row; growth leaves that as it is."""
    if features.base is not None:
        return has_shared_terms(features.base)
    limit = room(features)
    if features.encoding == 1 or limit is None:
        return True
    items = items_of(features)
    context, arm = (
        {ONE: 1} | {name: each.width for name, each in side.items() if name not in items}
        for side in (features.context, features.arm)
    )
    listed = features.interactions
    products = itertools.product([*context][1:], [*arm][1:]) if listed is None else listed
    terms = sum(context.values()) + sum(arm.values()) - 1
    return terms + sum(context[c] * arm[a] for c, a in products) <= limit


def all_pairs(features: Features) -> list[Pair]:
    """Pairs in the order of their terms: what grew later comes later."""
    return ([] if features.base is None else all_pairs(features.base)) + new_pairs(features)


def _group(pair: Pair) -> int:
    """0 constant, 1 context (`SHARED`), 2 arm, 3 products."""
    return (pair[0] != ONE) + 2 * (pair[1] != ONE)


def squares(features: Features) -> dict[int, float]:
    """Squared weight of a pair of columns, by group; growth leaves it as it is."""
    old = {} if features.base is None else squares(features.base)
    groups = Counter(_group(pair) for pair in new_pairs(features))
    parts = len(old) or len(groups) + len(items_of(features))
    return {group: 1.0 / (parts * n) for group, n in groups.items()} | old


def _ordered(features: Features, side: str) -> list[str]:
    """Columns of a side, older first."""
    old = [] if features.base is None else _ordered(features.base, side)
    return old + sorted(set(getattr(features, side)) - set(old))


class EncodingPlan:
    """Tables over all pairs of coordinates: where a product goes and with which weight."""

    def __init__(self, features: Features) -> None:
        self.context, self.arm = (
            Side({n: declared[n] for n in _ordered(features, side)}, features.encoding)
            for side, declared in (("context", features.context), ("arm", features.arm))
        )
        self.pairs, square, limit = all_pairs(features), squares(features), room(features)
        shape = len(self.context.coordinates), len(self.arm.coordinates)
        self._bucket, self._weight = np.zeros(shape, dtype=np.intp), np.zeros(shape)
        self.size = 0
        for pair in self.pairs:
            self._place(pair, math.sqrt(square[_group(pair)]))
        total = math.fsum(square[_group(pair)] for pair in self.pairs)
        self.items: tuple[int, int] | None = None  # coordinate of a new item, and slots
        self.item = ""  # its column
        self.own = 0  # coordinates that belong to one term, though others fold
        self.norm = 1.0 if features.base is None else math.sqrt(total)
        self.exact, self.shared = self.size, has_shared_terms(features)
        self.kept: list[
            Pair
        ] = []  # pairs whose terms have coordinates of their own though others fold
        self._place_of: Ints = np.arange(self.size)
        if limit is not None and self.size > limit:
            self._fold(limit, features.encoding)
        for name in items_of(features):
            self._place_item(name, math.sqrt(1.0 - total))

    def _place(self, pair: Pair, weight: float) -> None:
        """Give the products of two columns their coordinates, the next that are free."""
        rows, columns = self.context.block(pair[0]), self.arm.block(pair[1])
        block = np.s_[rows.start : rows.stop, columns.start : columns.stop]
        n = len(rows) * len(columns)
        self._bucket[block] = np.arange(self.size, self.size + n).reshape(len(rows), len(columns))
        self._weight[block] = weight
        self.size += n

    def _place_item(self, name: str, weight: float) -> None:
        """Give an item its coordinates, at the end of the row; its name is no length."""
        start, n = self.arm.block(name).start, len(self.arm.block(name))
        self._bucket[0, start : start + 2] = self.size, self.size + 1
        self._weight[0, start : start + 2] = weight, 1.0
        self.pairs.append((ONE, name))
        self._place_of = np.append(self._place_of, np.arange(self.size, self.size + n))
        self.items, self.item = (self.size, n - 1), name
        self.own += n
        self.size += n
        self.exact += n

    def _fold(self, dim: int, encoding: int) -> None:
        """Let terms share coordinates; each gets a sign."""
        place, sign = self._places(dim, encoding)
        used = self._weight > 0.0
        self._weight[used] *= sign[self._bucket[used]]
        self._bucket[used] = place[self._bucket[used]]
        self.size, self._place_of = dim, place
        _warn_once(self.summary)

    def _places(self, dim: int, encoding: int) -> tuple[Ints, Floats]:
        """Return the coordinate and the sign of every term."""
        if encoding == 1:
            return fold(self.terms, dim)
        sizes = [self._count(pair) for pair in self.pairs]
        order = sorted(range(len(sizes)), key=lambda k: (_group(self.pairs[k]) > 2, sizes[k]))
        own, room = np.zeros(len(self.terms), dtype=bool), dim - math.ceil(FOLDED * dim)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        for k in order:
            if sizes[k] <= room:
                own[starts[k] : starts[k + 1]] = True
                self.kept.append(self.pairs[k])
                room -= sizes[k]
        left = self.own = int(own.sum())
        place, sign = fold(self.terms, dim - left)
        place += left
        place[own], sign[own] = np.arange(left), 1.0
        return place, sign

    def _count(self, pair: Pair) -> int:
        """Return how many terms a pair of columns has."""
        return len(self.context.block(pair[0])) * len(self.arm.block(pair[1]))

    @property
    def summary(self) -> str:
        """What the row keeps, what it leaves out and what it folds, in words."""
        words = [f"{self.exact} terms"]
        if not self.shared and self.context.names:
            words.append("without those of the context alone, which all arms share")
        if self.size < self.exact:
            kept = [label(*pair) for pair in self.kept]
            others = [label(*p) for p in self.pairs if p not in self.kept and p[1] != self.item]
            words.append(f"folded into {self.size} coordinates")
            if kept:
                words.append(f"of which {_listed(kept)} have their own")
                words.append(f"and {_listed(others)} share {self.size - self.own} by hashing")
            else:
                words.append("by hashing")
        return ", ".join(words)

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
        if self.items is not None:  # a slot is another item's after a while
            out[self.items[0] :] = 0.0
        return out

    @property
    def labels(self) -> list[str]:
        """What each coordinate stands for: a term, or all that share it."""
        names: list[list[str]] = [[] for _ in range(self.size)]
        for place, term in zip(self._place_of.tolist(), self.terms):
            names[place].append(term)
        return [" or ".join(each) for each in names]

    def encode(self, context: Any, arms: Any) -> Floats:
        """Return a row for every arm, (N, size), from raw values by name."""
        left = self.context.row(context)
        if left is not None:
            return self.rows(left, self.arm.encode(self.arms(arms)))
        # Something is missing, odd or wrong: names are looked at first, then values.
        own, others = self.context.read("the context", (context,)), self.arms(arms)
        return self.rows(self.context.encode(own), self.arm.encode(others))

    def arms(self, arms: Any) -> Columns:
        """Return the columns of arms: mappings by name or in a list, or a frame."""
        if type(arms) is list and arms:
            return self.arm.read("an arm", arms)
        if isinstance(arms, Mapping):
            arms = list(arms.values())
        if not isinstance(arms, (list, tuple)):
            columns: Columns = Frame("arms that are no list of mappings", arms, self.arm.names)
        else:
            columns = self.arm.read("an arm", arms)
        if columns.size == 0:
            raise ValueError("there is no arm to encode: pass at least one")
        return columns

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
            shrink = self.stretch(X)[:, None]
            if self.items is None:
                X /= shrink
            else:  # but not the number of a name
                X[:, : self.items[0] + 1] /= shrink
        return X

    def stretch(self, X: Floats) -> Floats:
        """How much longer than 1 folded rows are."""
        if self.items is not None:
            X = np.delete(X, self.items[0] + 1, axis=1)
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


def _listed(names: list[str]) -> str:
    """Names as text; of very many, the first."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


@lru_cache(maxsize=1024)
def _warn_once(summary: str) -> None:
    """Say that terms are folded, the first time that such features are compiled."""
    log.warning("%s; pass dim='exact', or list the interactions, to keep each its own", summary)


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
