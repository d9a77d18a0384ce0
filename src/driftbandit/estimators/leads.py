"""Leads: evidence that one policy is better than another, while their shares of decisions change.

`increments` gives the payoff phi of a row: at least -k, with mean nu = 1 + difference in [0, 2]. A
bet stakes theta lambda on it, and with b = 2 + k, l = theta lambda b < 1 and a forecast m of phi

    log E = sum theta lambda (phi - nu) - psi(l) ((phi - m)/b)^2,   psi(l) = -log(1 - l) - l,

never exceeds log(1/alpha) with probability 1 - alpha (Fan, Grama and Liu 2015; Ville). All of
lambda, theta, k and m must be known before the arm is drawn; they may differ from row to row.

lambda is the `pace` of a row: how much it tells. With mean reward v, the variance of phi is about v
times the sum of (pi - pi')^2/h over the arms; lambda is 1 over the mean of that sum, so rows that
tell little have little weight. The best stake against a gain v theta is the gain over the variance:
theta lambda. So theta is the relative gain, 0.1 for 10 % more reward, whatever the rewards and
shares are. A mixture of several stakes finds gains of all sizes, and most of it goes to the gain
that was planned, if one was.

What is bounded is the mean difference, in which rows count by their pace. It comes from the rows
before, as long as policies have had these shares of decisions, and not from the row's own context,
or a policy might be better only where it is easy to see.

Besides, each stake has a detector (Shiryaev and Roberts; Shin, Ramdas and Rinaldo 2024): the sum of
E over all rows at which it could have begun. As long as the difference is not positive, it takes c
rows on average, or more, until the mixture of detectors reaches c. It does not matter how good the
past was.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.estimators.increments import Floats, LoggedArms, Payoff, side

TOP = 2.0  # the largest mean of a payoff
GRID = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0)  # gains without a plan
SPREAD = (0.05, 0.1, 0.15, 0.2, 0.2, 0.15, 0.1, 0.05)  # of the mixture over them
USUAL = 0.1  # the gain that is planned for if none is
PLANNED, UNPLANNED = 0.6, 0.2  # the share of the mixture that goes to it
FASTEST, PRIOR = 0.25, 20  # the largest pace, and the rows that a guess by shares is worth
MOST, LEAST_DEPTH = 0.5, 1.0  # of l, if the depth k can be that small
LARGEST = 1e300
STEPS = 60  # bisections: to the last digit


class Stakes(NamedTuple):
    """Relative gains that are bet on, (T,), and how the capital is spread over them."""

    gains: Floats
    weights: Floats


def stakes(effect: float | None = None) -> Stakes:
    """Return stakes for a planned relative gain, or for any."""
    first, share = (USUAL, UNPLANNED) if effect is None else (min(effect, 1.0), PLANNED)
    weights = [share, *((1.0 - share) * each for each in SPREAD)]
    return Stakes(np.array([first, *GRID]), np.array(weights))


class Pace(NamedTuple):
    """How much rows tell of two policies with these shares of decisions: `rows` so far, and the sum
    of their variances, in units of the mean reward."""

    shares: tuple[float, float]
    rows: int = 0
    total: float = 0.0

    @property
    def weight(self) -> float:
        """The weight of the next row."""
        guess = 1.0 / self.shares[0] + 1.0 / self.shares[1]
        return min(FASTEST, (PRIOR + self.rows) / (PRIOR * guess + self.total))

    def after(self, h: Floats, pi: tuple[Floats, Floats]) -> Pace:
        """Return the pace after one more row with logged probabilities h (K,)."""
        gap = pi[0] - pi[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(gap == 0.0, 0.0, gap * gap / h)
        most = 2.0 / min(self.shares)
        return self._replace(rows=self.rows + 1, total=self.total + min(float(each.sum()), most))


class Bets(NamedTuple):
    """Payoffs (n, T), and the unit b (n, T) in which no surprise is below -1."""

    phi: Floats
    unit: Floats


def bets(payoff: Payoff, stake: Floats) -> Bets:
    """Return what stakes (n, T) make of payoffs (n,): forecasts are shrunk where they are larger
    than the stake can bear."""
    most, error = payoff.most[:, None], (payoff.forecast - payoff.mean)[:, None]
    depth = np.minimum(most, np.maximum(MOST / stake - TOP, LEAST_DEPTH))
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = np.where(most > depth, depth / most, 1.0)
    return Bets(payoff.payoff[:, None] - shrink * error, TOP + depth)


def penalty(stake: Floats, unit: Floats, surprise: Floats) -> Floats:
    """Return psi(stake unit) (surprise/unit)^2."""
    part = surprise / unit
    return psi(stake * unit) * part * part


def psi(x: Floats) -> Floats:
    """Return -log(1 - x) - x; small numbers by their series, which does not cancel."""
    series = x * x * (0.5 + x * (1.0 / 3.0 + x * (0.25 + 0.2 * x)))
    return np.where(x < 1e-3, series, -np.log1p(-x) - x)


def sides(
    arms: LoggedArms, pi: tuple[Floats, Floats], q: Floats, R: Floats
) -> tuple[Payoff, Payoff]:
    """Return payoffs that the first is better, and that the second is. Where both play alike, the
    payoff is their common probability, whatever the reward."""
    both = np.minimum(*pi)
    alike, rest = arms.total(both), (pi[0] - both, pi[1] - both)
    found = (side(arms, each, q, R) for each in (rest, rest[::-1]))
    better, worse = (each._replace(payoff=each.payoff + alike) for each in found)
    return better, worse


BETTER, WORSE = 0, 1


class Evidence:
    """Evidence about one difference, row after row. How rows are cut into calls changes nothing, to
    the last bit. Arrays are (2, T): for the first policy, and for the second."""

    def __init__(self, stakes: Stakes) -> None:
        self.stakes, T = stakes, len(stakes.gains)
        self.rows, self.pace, self.gap = 0, 0.0, 0.0  # gap: the difference of paces, summed
        self.phi, self.cost, self.recent = np.zeros((3, 2, T))

    def add(
        self, arms: LoggedArms, pi: tuple[Floats, Floats], q: Floats, R: Floats, paces: Floats
    ) -> None:
        """Add n rows in order; `paces` (n,) are known before their arms were drawn."""
        stake = paces[:, None] * self.stakes.gains
        made = [bets(each, stake) for each in sides(arms, pi, q, R)]
        phi, unit = np.stack([b.phi for b in made], 1), np.stack([b.unit for b in made], 1)
        before = np.cumsum(np.concatenate([[self.pace], paces]))
        sums = np.cumsum(np.concatenate([self.phi[None], paces[:, None, None] * phi]), axis=0)
        cost = penalty(stake[:, None], unit, phi - _forecast(sums[:-1], before[:-1], paces))
        self._detect(np.exp(stake[:, None] * (phi - 1.0) - cost))
        self.cost = np.cumsum(np.concatenate([self.cost[None], cost]), axis=0)[-1]
        self.gap = _last(self.gap, paces * robust(arms, pi[0] - pi[1], q, R))
        self.rows, self.pace, self.phi = self.rows + len(R), float(before[-1]), sums[-1]

    def _detect(self, factors: Floats) -> None:
        recent = self.recent
        for each in factors:
            recent = np.minimum((1.0 + recent) * each, LARGEST)
        self.recent = recent

    @property
    def value(self) -> float:
        """The mean difference, doubly robust."""
        return self.gap / self.pace if self.pace else 0.0

    def log_capital(self, which: int, mean: float = 1.0) -> float:
        """Return the log of what all bets have made of 1 if payoffs had this mean."""
        return float(log_capital(self.stakes, self.phi[which], self.cost[which], self.pace, mean))

    def lower(self, which: int, alpha: float) -> float:
        """Return a lower bound of how much one policy is better, at every moment at once."""
        low, high = 0.0, TOP
        if not self.rows:
            return -1.0
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            refuted = self.log_capital(which, middle) >= -math.log(alpha)
            low, high = (middle, high) if refuted else (low, middle)
        return low - 1.0

    def proves(self, which: int, alpha: float) -> bool:
        """Return whether one policy is better: the lower bound is above 0."""
        return bool(self.rows) and self.log_capital(which) >= -math.log(alpha)

    def alarm(self, which: int) -> float:
        """Return how strongly the latest rows speak for one policy: it takes c rows on average, or
        more, until this reaches c if that policy is never better."""
        return float(self.stakes.weights @ self.recent[which])

    def more(self, which: int, alpha: float) -> float:
        """Return how many more rows it takes if they are like those before."""
        growth = self.stakes.gains * (self.phi[which] - self.pace) - self.cost[which]
        return self.rows * (_until(growth, self.stakes.weights, -math.log(alpha)) - 1.0)

    def state(self) -> list[Any]:
        """Return all of it as JSON knows it."""
        arrays = [each.tolist() for each in (self.phi, self.cost, self.recent)]
        return [[each.tolist() for each in self.stakes], self.rows, self.pace, self.gap, *arrays]

    @classmethod
    def loaded(cls, state: list[Any]) -> Evidence:
        """Return what `state` has stored."""
        kept, rows, pace, gap, *arrays = state
        made = cls(Stakes(*map(np.array, kept)))
        made.rows, made.pace, made.gap = rows, pace, gap
        made.phi, made.cost, made.recent = map(np.array, arrays)
        return made


def log_capital(stakes: Stakes, phi: Floats, cost: Floats, pace: Any, mean: float = 1.0) -> Any:
    """Return the log of the mixture from sums (..., T) and (...) of paces."""
    each = stakes.gains * (phi - np.asarray(pace)[..., None] * mean) - cost
    return np.logaddexp.reduce(each + np.log(stakes.weights), axis=-1)


def robust(arms: LoggedArms, gap: Floats, q: Floats, R: Floats) -> Floats:
    """Return the doubly robust difference of each row."""
    A = arms.chosen
    return arms.total(gap * q) + gap[A] / arms.h[A] * (R - q[A])


def _forecast(sums: Floats, before: Floats, paces: Floats) -> Floats:
    """Return the mean of all payoffs before each row (n, 2, T), and 1 before the first."""
    n = (before + paces)[:, None, None]
    return np.clip((sums + paces[:, None, None]) / n, 0.0, TOP)


def _last(first: float, added: Floats) -> float:
    return float(np.cumsum(np.concatenate([[first], added]))[-1])


def _until(growth: Floats, weights: Floats, goal: float) -> float:
    """Return by which factor bets must grow until their mixture reaches a goal."""
    if growth.max() <= 0.0:
        return math.inf
    low, high = 0.0, (goal - math.log(float(weights.min()))) / float(growth.max())
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        enough = np.logaddexp.reduce(middle * growth + np.log(weights)) >= goal
        low, high = (low, middle) if enough else (middle, high)
    return high
