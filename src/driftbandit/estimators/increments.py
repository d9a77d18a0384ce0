"""Bets: what a row of a log says of a policy, in a form that confidence sequences can add up.

Rewards R are from 0 to 1. Arm a was logged with probability h(a), a candidate plays it with pi(a),
and w(a) = pi(a)/h(a). A side has weights (u, v), not negative, and the payoff

    u(A) R + v(A) (1 - R)   with mean   sum_a h(a) (u(a) r(a) + v(a) (1 - r(a))).

| weights (u, v) | the mean is |
|---|---|
| (w, 0) | the value of the candidate |
| (0, w) | 1 less its value |
| (w', w) | 1 plus the value of w' less that of w |

A reward model q, known before R is, gives the doubly robust payoff: its forecast
g(a) = u(a) q(a) + v(a) (1 - q(a)) is subtracted and its mean is added. Where forecasts are large
they are shrunk, so that no payoff is below -k, whatever the weights are (after Waudby-Smith, Wu,
Ramdas, Karampatziakis and Mineiro 2024, who cap each arm's). How much may only depend on what was
known before A, or the mean would be another. That is all `sequences` needs. A small k trusts
weights less, a large one the model more, so there are several, and the mixture decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEPTHS = (3.0, 30.0, 300.0, 3000.0)  # k: how far a payoff may fall below 0


class LoggedArms(NamedTuple):
    """The arms of n rows, laid out one row after the other, m arms in all."""

    start: Ints  # (n,)   where a row's arms begin
    chosen: Ints  # (n,)  which of the m was played
    h: Floats  # (m,)     probability of being logged; NaN where only that of the chosen is known
    least: float = 0.0  # what an unknown probability is at least

    def total(self, values: Floats) -> Floats:
        """Sums over the arms of each row, (n,)."""
        return np.asarray(np.add.reduceat(values, self.start))

    def largest(self, values: Floats) -> Floats:
        return np.asarray(np.maximum.reduceat(values, self.start))

    def bounds(self) -> Floats:
        """What each h was known to be at least before A was drawn, (m,). In a row where others are
        unknown the chosen one is, too: it is known only because it was drawn."""
        unknown = np.isnan(self.h)
        if not unknown.any():
            return self.h
        partly = np.logical_or.reduceat(unknown, self.start)
        sizes = np.diff(self.start, append=len(self.h))
        return np.where(np.repeat(partly, sizes), self.least, self.h)


class Payoff(NamedTuple):
    """Payoffs and forecasts of n rows."""

    payoff: Floats  # u(A) R + v(A) (1 - R)
    forecast: Floats  # g(A)
    mean: Floats  # of the forecast, over the logged probabilities
    most: Floats  # what no forecast is above, known before A; infinite where nothing is


def side(arms: LoggedArms, pi: tuple[Floats | None, Floats | None], q: Floats, R: Floats) -> Payoff:
    """The side (u, v) of candidates (pi_u, pi_v), None for no weight, and a model q (m,)."""
    mass = np.zeros_like(arms.h)
    payoff = np.zeros_like(R)
    for each, good, got in zip(pi, (q, 1.0 - q), (R, 1.0 - R)):
        if each is not None:
            mass += np.where(arms.h == 0.0, 0.0, each) * good  # what h never plays has no weight
            payoff += each[arms.chosen] / arms.h[arms.chosen] * got
    forecast = mass[arms.chosen] / arms.h[arms.chosen]
    with np.errstate(divide="ignore", invalid="ignore"):
        g = np.where(mass == 0.0, 0.0, mass / arms.bounds())
    return Payoff(payoff, forecast, arms.total(mass), arms.largest(g))


class Bettor:
    """Bets of one side, row after row: for each k the payoffs and their squared surprises.

    A surprise is the payoff less the mean of those before it, in units in which it is never below
    -1. `top` is the largest mean that a payoff can have. It may go on after `n` rows whose payoffs
    add up to `total`. How rows are cut into calls changes nothing, to the last bit.
    """

    def __init__(self, top: float, n: float = 0.0, total: Floats | None = None) -> None:
        self.top, self.units = top, scales(top)
        self._n, self._total = n, np.zeros(len(DEPTHS)) if total is None else total

    def take(self, side: Payoff) -> tuple[Floats, Floats]:
        """Payoffs (n, k) and squared surprises (n, k), to be summed over any stretch of rows."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shrink = np.minimum(1.0, np.array(DEPTHS) / side.most[:, None])  # 1 where most is 0
        shrink[side.most == 0.0] = 1.0
        error = side.forecast - side.mean
        phi = side.payoff[:, None] - shrink * error[:, None]
        surprise = (phi - self._forecasts(phi)) / self.units
        return phi, surprise * surprise

    def _forecasts(self, phi: Floats) -> Floats:
        """The mean of all payoffs before each, kept in the range that means have."""
        sums = np.cumsum(np.vstack([self._total, phi]), axis=0)
        n = self._n + np.arange(len(phi))
        self._n, self._total = self._n + len(phi), sums[-1]
        prior = 0.5 * self.top
        return np.clip((sums[:-1] + prior) / (n + 1.0)[:, None], 0.0, self.top)


def scales(top: float) -> Floats:
    """The unit of surprises, for each k."""
    return top + np.array(DEPTHS)
