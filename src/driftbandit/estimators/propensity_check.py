"""Do the logged probabilities fit what was played? Wrong ones bias every estimate, unseen.

Where all probabilities of a row are known, an arm, or a range of probabilities, is played as often
as they add up to, but for a martingale's noise. Where only that of the played arm is known, 1/h(A)
is K in the mean, or less if some arms are never played; never more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftbandit.estimators.increments import Floats, Ints, LoggedArms

MOST = 64  # arms that are counted by name; those seen later are counted together
EDGES = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.999])
ENOUGH = 10.0  # variance from which on a count is nearly normal
DOUBTFUL = 0.001  # p-value below which probabilities are doubted


class Check(NamedTuple):
    """The largest deviation: p-value (for all counts together), and what deviates."""

    p: float
    what: str
    expected: float
    found: float

    @property
    def doubtful(self) -> bool:
        return self.p < DOUBTFUL


class Ratios:
    """Counts of what was played against what was to be expected."""

    def __init__(self) -> None:
        self._counts = np.zeros((MOST + len(EDGES) + 1, 3))  # found, expected, variance
        self._inverse = np.zeros(3)  # rows, sum and squares of 1/(K h(A))

    def add(self, arms: LoggedArms, codes: Ints) -> None:
        """Some rows; codes (m,) number the arms' names."""
        if not np.isnan(arms.h).any():
            named = np.minimum(codes, MOST - 1)
            for kind in np.unique(named):
                self._count(int(kind), arms, named == kind)
            ranges = np.searchsorted(EDGES, arms.h)
            for kind in np.unique(ranges):
                self._count(MOST + int(kind), arms, ranges == kind)
        sizes = np.diff(arms.start, append=len(arms.h))
        x = 1.0 / (sizes * arms.h[arms.chosen])
        self._inverse += len(x), x.sum(), (x * x).sum()

    def _count(self, kind: int, arms: LoggedArms, members: Floats) -> None:
        share = np.clip(arms.total(np.where(members, arms.h, 0.0)), 0.0, 1.0)
        found = members[arms.chosen].sum()
        self._counts[kind] += found, share.sum(), (share * (1.0 - share)).sum()

    def check(self, names: Sequence[str]) -> Check:
        """What fits least; `names` by code."""
        found, expected, variance = self._counts.T
        if not expected.any():
            return self._one_sided()
        known = variance >= ENOUGH
        z = np.zeros_like(found)
        z[known] = np.abs(found - expected)[known] / np.sqrt(variance[known])
        worst = int(np.argmax(z))
        p = min(1.0, 2.0 * max(1, int(known.sum())) * _tail(float(z[worst])))
        return Check(p, self._what(worst, names), float(expected[worst]), float(found[worst]))

    def _one_sided(self) -> Check:
        n, total, squares = self._inverse
        mean = total / n if n else 1.0
        deviation = np.sqrt(max(squares / n - mean**2, 0.0) / n) if n else 0.0
        z = (mean - 1.0) / deviation if deviation > 0.0 else 0.0
        return Check(_tail(float(z)), "mean of 1/(K probability)", 1.0, float(mean))

    def _what(self, kind: int, names: Sequence[str]) -> str:
        if kind == MOST - 1 and len(names) > MOST:
            return "times that other arms were played"
        if kind < MOST:
            return f"times that arm {names[kind]!r} was played" if kind < len(names) else "nothing"
        low, high = np.concatenate([[0.0], EDGES, [1.0]])[kind - MOST :][:2]
        return f"times that an arm of probability {low:g} to {high:g} was played"


def _tail(z: float) -> float:
    from scipy.special import ndtr

    return float(ndtr(-z))
