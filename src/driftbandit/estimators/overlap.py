"""Overlap: how much a log tells about a policy, and how far an estimate may be off for it.

A weight w = pi(A)/h(A) is drawn together with the arm, so weights that happened to be drawn hide
those that were not: a policy that plays arms of tiny probability looks well covered until one of
them comes up. What could have been drawn is known from the probabilities of all arms:

    second = sum over rows and arms of pi^2/h       the mean of w^2
    third  = sum over rows and arms of pi^3/h^2     the mean of w^3

The log tells as much as n_eff = n^2/second rows of the policy's own would. The rows that decide how
far an estimate is off weigh third/second each.

The usual interval is the estimate and z standard deviations to both sides. It fails if few rows
carry the estimate, because they carry the estimate of the deviation, too: without a click, the
deviation is 0. Two things mend that.

- The variance is at least what the design makes of it: the variance of rewards, over n_eff.
- It is as if (log(2/alpha)/z)^2 more events had been seen, 3.5 for 95 %, each in a row of weight
  third/second. If no event was seen at all, the interval then ends where the exact one of a
  binomial does, at log(2/alpha)/n_eff: the rule of three for two sides.

In long logs neither makes a difference.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from driftbandit.estimators.increments import Floats, LoggedArms


class Overlap(NamedTuple):
    """Sums over n rows. They add up, so that a log can be read in parts."""

    n: float = 0.0
    second: float = 0.0  # of pi^2/h over all arms
    third: float = 0.0  # of pi^3/h^2
    drawn: float = 0.0  # of w^2
    residual: float = 0.0  # of w^2 (R - q(A))^2
    kept: float = 0.0  # of h min(pi/h, clip)^2: second, where weights are clipped
    over: float = 0.0  # of pi - h min(pi/h, clip): what clipping takes away
    over_q: float = 0.0  # of the same times q

    def plus(self, other: Overlap) -> Overlap:
        return Overlap(*(a + b for a, b in zip(self, other)))

    @property
    def effective(self) -> float:
        """Rows of a log by the policy itself that would tell as much."""
        return self.n**2 / self.second if self.second > 0.0 else 0.0

    @property
    def heaviest(self) -> float:
        """The weight of rows that decide how far an estimate is off."""
        return self.third / self.second if self.second > 0.0 else math.inf

    def noise(self, second: float) -> float:
        """The variance that the design makes of what the model did not predict; `second` is that of
        all weights, or `kept` of clipped ones."""
        variance = self.residual / self.drawn if self.drawn > 0.0 else 1.0
        return variance * second / self.n**2


def overlap(arms: LoggedArms, pi: Floats, q: Floats, R: Floats, clip: float = math.inf) -> Overlap:
    """Of some rows; pi (m,) may be the difference of two policies. Where probabilities of arms that
    were not played are unknown, the weights that were drawn have to do."""
    A, pi = arms.chosen, np.abs(pi)
    w = pi[A] / arms.h[A]
    ww = w * w
    if np.isnan(arms.h).any():
        weights, h, means = w, np.ones_like(w), q[A]
    else:
        weights = np.divide(pi, arms.h, out=np.zeros_like(pi), where=arms.h > 0.0)
        h, means = arms.h, q
    mass = h * weights
    second, third = _dot(mass, weights), _dot(mass * weights, weights)
    kept, over, over_q = second, 0.0, 0.0
    if weights.max(initial=0.0) > clip:
        cut = np.minimum(weights, clip)
        kept, gone = _dot(h * cut, cut), h * (weights - cut)
        over, over_q = float(gone.sum()), _dot(gone, means)
    residual = _dot(ww, (R - q[A]) ** 2)
    return Overlap(float(len(R)), second, third, float(ww.sum()), residual, kept, over, over_q)


def _dot(a: Floats, b: Floats) -> float:
    """Return the inner product, in one thread: BLAS shares vectors of this length among threads
    that wait for each other busily, which takes many times as long on a busy machine."""
    return float(np.einsum("i,i->", a, b))


class Estimate(NamedTuple):
    """A value and its interval; NaN where there is none."""

    value: float
    low: float
    high: float


def interval(
    value: float, variance: float, event: float, level: float, low: float = 0.0
) -> Estimate:
    """The interval of a value from `low` to 1, whose estimate has this variance. One more event
    would move it by `event`. A value that is not known may be anything."""
    half = half_width(variance, event, level)
    if math.isnan(value + half):
        return Estimate(value, low, 1.0)
    return Estimate(value, *(min(max(end, low), 1.0) for end in (value - half, value + half)))


def half_width(variance: float, event: float, level: float) -> float:
    """Return how far an estimate with this variance may be off, if one more event would move it by
    `event`."""
    z = NormalDist().inv_cdf(0.5 + 0.5 * level)
    return math.sqrt(z * z * variance + (math.log(2.0 / (1.0 - level)) * event) ** 2)


def variance_of_mean(n: float, total: float, squares: float) -> float:
    """Return the variance of a mean of n terms, from their sum and that of their squares."""
    mean = total / n
    return max(squares / n - mean * mean, 0.0) / (n - 1.0) if n > 1.0 else math.nan
