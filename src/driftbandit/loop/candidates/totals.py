"""Totals of comparisons: running sums over examples, from which all bounds follow.

How examples are cut into groups changes nothing, to the last bit: sums go on row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from driftbandit.estimators.accumulators import Difference, Value
from driftbandit.estimators.increments import Arms, Floats

CLIP = 20.0  # of estimates that are not shown

Pair = tuple[str, str]
Both = tuple[Floats, Floats]  # probabilities of a pair, (K,) each
Key = tuple[str, str, str]  # who, over whom ("" for a value), and the metric ("" for the reward)


class Row(NamedTuple):
    """What each policy would have done in one decision, and what it gave, from 0 to 1."""

    h: Floats  # (K,) logged
    chosen: int
    q: Floats  # (K,) rewards that were to be expected
    R: float
    values: dict[str, Floats]  # (K,) by name
    pairs: dict[Pair, Both]  # both asked at the same moment
    metrics: dict[str, tuple[float, float]]  # what it gave, and what was to be expected


class Totals:
    """Sums by key."""

    def __init__(self) -> None:
        self.sums: dict[Key, Floats] = {}
        self._means: dict[str, tuple[float, float]] = {}  # of metrics: how many, and their sum

    def expected(self, metric: str, value: float) -> float:
        """The mean of a metric before this value."""
        n, total = self._means.get(metric, (1.0, 0.5))
        self._means[metric] = n + 1.0, total + value
        return total / n

    def add(self, rows: list[Row]) -> None:
        """Rows in order."""
        for name in dict.fromkeys(name for row in rows for name in row.values):
            own = [(row, row.values[name]) for row in rows if name in row.values]
            self._add((name, "", ""), own, Value(CLIP, self.sums.get((name, "", ""))).columns)
        for pair in dict.fromkeys(pair for row in rows for pair in row.pairs):
            both = [(row, row.pairs[pair]) for row in rows if pair in row.pairs]
            for metric in dict.fromkeys(["", *(name for row, _ in both for name in row.metrics)]):
                key = *pair, metric
                known = [each for each in both if not metric or metric in each[0].metrics]
                self._add(key, known, Difference(self.sums.get(key)).columns)

    def _add(self, key: Key, own: list[Any], columns: Callable[..., Floats]) -> None:
        """One stream: rows, each with the probabilities of one or of two."""
        rows, pi = [row for row, _ in own], [p for _, p in own]
        sizes = np.array([len(row.h) for row in rows])
        start = np.cumsum(sizes) - sizes
        arms = Arms(start, start + [row.chosen for row in rows], _laid(row.h for row in rows))
        both: Any = tuple(map(_laid, zip(*pi))) if key[1] else _laid(pi)
        found = columns(arms, both, *self._outcomes(rows, key[2]))
        before = self.sums.get(key, np.zeros(found.shape[1]))
        self.sums[key] = np.cumsum(np.vstack([before, found]), axis=0)[-1]

    @staticmethod
    def _outcomes(rows: list[Row], metric: str) -> tuple[Floats, Floats]:
        """What was to be expected of all arms, and what came."""
        if not metric:
            return _laid(row.q for row in rows), np.array([row.R for row in rows])
        q = _laid(np.full(len(row.h), row.metrics[metric][1]) for row in rows)
        return q, np.array([row.metrics[metric][0] for row in rows])

    def forget(self, *names: str) -> None:
        """Comparisons among these begin anew."""
        gone = [key for key in self.sums if {key[0], key[1] or key[0]} <= set(names)]
        for key in gone:
            del self.sums[key]

    def drop(self, name: str) -> None:
        """Forget one that is gone."""
        self.sums = {key: sums for key, sums in self.sums.items() if name not in key[:2]}

    def copy(self) -> Totals:
        """As it is now: sums are replaced, never changed."""
        other = Totals()
        other.sums = dict(self.sums)
        return other

    def state(self) -> dict[str, Any]:
        """As JSON."""
        sums = [[*key, total.tolist()] for key, total in self.sums.items()]
        return {"sums": sums, "means": self._means}

    def load(self, state: dict[str, Any]) -> None:
        self.sums = {tuple(key): np.array(total) for *key, total in state["sums"]}
        self._means = {name: tuple(mean) for name, mean in state["means"].items()}


def _laid(parts: Iterable[Floats]) -> Floats:
    return np.concatenate(list(parts))
