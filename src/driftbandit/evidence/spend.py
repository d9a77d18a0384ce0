"""Spend: what candidates would have spent of a loop's budgets, from the same log as their rewards.

A decision of a loop with budgets logs what every arm was expected to cost, c, and the price at
which it was made. Candidates that learn decide at the same price. What a candidate would have spent
in a row is doubly robust, as its reward is:

    sum_a pi(a) c(a) + w (bill - c(A)),    w = pi(A)/h(A)

A decision whose bill never came counts with c(A). The interval is for one look.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from driftbandit.estimators.increments import LoggedArms
from driftbandit.estimators.spend import Spent, spent
from driftbandit.evidence.reading.chunk import Chunk, Floats


class SpendSums:
    """Sums over the rows of a log by candidate and budget: rows, spend, its square, bounds."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], Floats] = {}

    def add(self, chunk: Chunk, arms: LoggedArms, pi: Mapping[str, Floats]) -> None:
        """Add rows that were decided with a budget."""
        for budget in dict.fromkeys(name for row in chunk.spend for name in row):
            rows = np.array([budget in row for row in chunk.spend])
            costs, bill, bound = _costs(chunk, budget)
            for name, own in pi.items():
                w = own[arms.chosen] / arms.h[arms.chosen]
                s = (arms.total(own * costs) + w * (bill - costs[arms.chosen]))[rows]
                new = np.array([len(s), s.sum(), s @ s, bound[rows].sum()])
                self._sums[name, budget] = self._sums.get((name, budget), 0.0) + new

    def found(self, name: str, level: float) -> dict[str, Spent]:
        """Return what a candidate would spend, by budget."""
        found = {}
        for (own, budget), sums in self._sums.items():
            if own == name:
                n, total, squares, bounds = sums.tolist()
                found[budget] = spent(n, total, squares, bounds / n, level)
        return found


def _costs(chunk: Chunk, budget: str) -> tuple[Floats, Floats, Floats]:
    """Expected costs of all arms (m,), and bills and bounds of rows (n,); 0 without a budget."""
    rows = [row.get(budget) for row in chunk.spend]
    costs = [
        np.zeros(size) if row is None else np.array(row.costs)
        for row, size in zip(rows, chunk.sizes.tolist())
    ]
    places = chunk.action.tolist()
    bill = [
        0.0 if row is None else row.costs[k] if row.bill is None else row.bill
        for row, k in zip(rows, places)
    ]
    bound = [0.0 if row is None else row.bound for row in rows]
    return np.concatenate(costs), np.array(bill), np.array(bound)
