"""Streams: what candidates and pairs of them add to the sums, row by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftbandit.estimators import ope
from driftbandit.estimators.increments import DEPTHS, Bettor, Floats, LoggedArms, Payoff, side
from driftbandit.estimators.sequences import lower

DEPTH = len(DEPTHS)


class Band(NamedTuple):
    """A confidence sequence at some moments: it holds at all of them at once."""

    low: Floats
    high: Floats


class Value:
    """The value of one candidate: sums of its estimates, and bets on both sides. It goes on from
    the sums of the rows before, if there are any."""

    def __init__(self, clip: float, before: Floats | None = None) -> None:
        self.clip, self.largest = clip, 0.0
        self._low, self._high = _bettors(1.0, len(ope.SUMS), before)

    def columns(self, arms: LoggedArms, pi: Floats, q: Floats, R: Floats) -> Floats:
        """What rows add, (n, SUMS and bets)."""
        self.largest = max(self.largest, float((pi[arms.chosen] / arms.h[arms.chosen]).max()))
        sums = ope.sums(arms, pi, q, R, self.clip)
        low, high = side(arms, (pi, None), q, R), side(arms, (None, pi), q, R)
        return np.hstack([sums, *self._low.take(low), *self._high.take(high)])

    @staticmethod
    def band(sums: Floats, alpha: float) -> Band:
        """The sequence from sums (..., columns)."""
        n, bets = sums[..., 0], sums[..., len(ope.SUMS) :]
        low = lower(n, bets[..., :DEPTH], bets[..., DEPTH : 2 * DEPTH], 0.5 * alpha, 1.0)
        rest = bets[..., 2 * DEPTH :]
        high = lower(n, rest[..., :DEPTH], rest[..., DEPTH:], 0.5 * alpha, 1.0)
        return Band(low, 1.0 - high)


class Difference:
    """The value of one candidate less that of another, on the same rows; goes on as a `Value`."""

    def __init__(self, before: Floats | None = None) -> None:
        self._low, self._high = _bettors(2.0, 3, before)

    def columns(self, arms: LoggedArms, pi: tuple[Floats, Floats], q: Floats, R: Floats) -> Floats:
        """What rows add, (n, 3 and bets): rows, paired differences and their squares."""
        d = _robust(arms, pi[0] - pi[1], q, R)
        own = np.stack([np.ones_like(d), d, d * d], axis=1)
        return np.hstack([own, *self._bets(arms, pi, q, R)])

    def _bets(
        self, arms: LoggedArms, pi: tuple[Floats, Floats], q: Floats, R: Floats
    ) -> tuple[Floats, ...]:
        """Where both play alike, the payoff is their common probability, whatever the reward: it is
        counted as it is, without weights."""
        both = np.minimum(*pi)
        alike, rest = arms.total(both), (pi[0] - both, pi[1] - both)
        low, high = (side(arms, each, q, R) for each in (rest, rest[::-1]))
        return *self._low.take(_plus(low, alike)), *self._high.take(_plus(high, alike))

    @staticmethod
    def bets(sums: Floats, better: bool) -> tuple[Floats, Floats]:
        """Sums of the bets that the first is better, or that it is worse."""
        first = 3 if better else 3 + 2 * DEPTH
        return sums[..., first : first + DEPTH], sums[..., first + DEPTH : first + 2 * DEPTH]

    @staticmethod
    def band(sums: Floats, alpha: float) -> Band:
        n = sums[..., 0]
        low, high = (
            lower(n, *Difference.bets(sums, better), 0.5 * alpha, 2.0) for better in (True, False)
        )
        return Band(low - 1.0, 1.0 - high)


def _bettors(top: float, first: int, before: Floats | None) -> tuple[Bettor, Bettor]:
    """Of both sides, whose columns begin at `first`: a bettor knows rows and payoffs so far."""
    if before is None:
        return Bettor(top), Bettor(top)
    low, high = (before[k : k + DEPTH] for k in (first, first + 2 * DEPTH))
    return Bettor(top, before[0], low), Bettor(top, before[0], high)


def _plus(side: Payoff, known: Floats) -> Payoff:
    return side._replace(payoff=side.payoff + known)


def _robust(arms: LoggedArms, gap: Floats, q: Floats, R: Floats) -> Floats:
    """The doubly robust difference of each row."""
    A = arms.chosen
    return arms.total(gap * q) + gap[A] / arms.h[A] * (R - q[A])
