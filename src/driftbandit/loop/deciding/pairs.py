"""Pairs: two arms of which a person says which one is better. They are shown side by side in one
decision, or were played by two.

The model is that of Bradley and Terry: the arm w is preferred to l with probability
mu((x_w - x_l)'theta). So only differences of rows mean anything. The first arm is ranked by its row
less the mean of all rows, the second one by its row less that of the first: its exploration bonus
is then how uncertain the comparison is that will be seen.
"""

from __future__ import annotations

import numpy as np

from driftbandit.families import Family
from driftbandit.policies.base import Floats

SIZE = 2  # arms of a pair


def relative(X: Floats, first: Floats | None = None) -> Floats:
    """Return rows X (K, dim) less what they are compared with: the row of the `first` arm, or their
    own mean if there is none yet."""
    return X - (X.mean(axis=0) if first is None else first)


def expected(values: Floats, family: Family) -> list[float | None]:
    """Return with which probability each arm of a pair is preferred to the other, from the values
    x'theta of the arms that were chosen; nothing is expected of what is no pair."""
    if len(values) != SIZE:
        return [None for _ in values]
    means: list[float | None] = np.atleast_1d(family.mu(values - values[::-1])).tolist()
    return means


def difference(first: Floats | None, second: Floats | None) -> Floats | None:
    """Return what is learnt from of a pair: its first row less its second one; None if a decision
    had no arms."""
    return None if first is None or second is None else first - second
