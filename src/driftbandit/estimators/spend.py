"""What a policy would spend of a budget, with an interval for one look."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

KEPT = 1.05  # of a budget: what a policy may spend and is still said to keep it


class Spent(NamedTuple):
    """What a policy would spend for a decision, with an interval, and the `bound` on that."""

    value: float
    low: float
    high: float
    bound: float = 1.0

    @property
    def keeps(self) -> bool | None:
        """Whether it keeps the bound, but for 5 %; None if the interval leaves that open."""
        most = KEPT * self.bound
        return True if self.high <= most else False if self.low > most else None

    def words(self) -> str:
        """Return how much of the bound it is."""
        value, low, high = (f"{100.0 * each / self.bound:.0f} %" for each in self[:3])
        return f"{value} ({low} to {high})"


def spent(
    n: float, total: float, squares: float, bound: float, level: float, rows: float | None = None
) -> Spent:
    """Return the mean of `n` terms from their sum and that of their squares; if they are weighted,
    `rows` is as many as they count for."""
    mean, rows = total / n, n if rows is None else rows
    variance = max(squares / n - mean * mean, 0.0) / (rows - 1.0) if rows > 1.0 else math.inf
    wide = NormalDist().inv_cdf(0.5 + 0.5 * level) * math.sqrt(variance)
    return Spent(mean, max(0.0, mean - wide), mean + wide, bound)
