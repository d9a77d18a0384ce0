"""Statistics of paired runs and of many worlds: pure functions on arrays.

An array holds one number per run. NaN marks a seed that was not played, and every comparison is on
the seeds that both sides have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

CONFIDENCE = 0.95
Floats = NDArray[np.float64]


class PairedDifference(NamedTuple):
    """Mean difference on n common seeds, its interval, and the p-value of the paired t test."""

    mean: float
    low: float
    high: float
    p: float
    n: int


def half_width(deviation: ArrayLike, n: ArrayLike) -> Any:
    """Half the 95 % interval of a mean of n numbers, by Student's t; NaN for n < 2."""
    s, n = np.asarray(deviation, dtype=float), np.asarray(n, dtype=float)
    degrees = np.where(n > 1, n - 1, np.nan)
    return stdtrit(degrees, 0.5 + CONFIDENCE / 2) * s / np.sqrt(n)


def paired_difference(mine: ArrayLike, base: ArrayLike) -> PairedDifference:
    """Mine minus base, seed by seed: both met the same contexts and noise."""
    gaps = np.asarray(mine, dtype=float) - np.asarray(base, dtype=float)
    gaps = gaps[~np.isnan(gaps)]
    n, nan = len(gaps), float("nan")
    if n < 2:
        return PairedDifference(float(gaps[0]) if n else nan, nan, nan, nan, n)
    mean, s = float(gaps.mean()), float(gaps.std(ddof=1))
    half = float(half_width(s, n))
    return PairedDifference(mean, mean - half, mean + half, _p_value(mean, s / np.sqrt(n), n), n)


def _p_value(mean: float, error: float, n: int) -> float:
    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2.0 * stdtr(n - 1, -abs(mean) / error))


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down correction: p-values that may be compared to a level all at once."""
    p = np.asarray(p, dtype=float)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])]
    raised = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1))
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def leaders(regrets: ArrayLike) -> NDArray[np.bool_]:
    """Return which rows of (policies, seeds) are best, or cannot be told from the best.

    The best row has the least mean on the seeds that all rows have. Another row is told from it if
    the paired test on their common seeds says so at 5 %, with Holm's correction over all rows. With
    fewer than two seeds that all have, no row is marked.
    """
    regrets = np.asarray(regrets, dtype=float)
    shared = regrets[:, ~np.isnan(regrets).any(axis=0)]
    if shared.shape[1] < 2:
        return np.zeros(len(regrets), dtype=bool)
    best = int(np.argmin(shared.mean(axis=1)))
    others = [k for k in range(len(regrets)) if k != best]
    marked = np.ones(len(regrets), dtype=bool)
    marked[others] = (
        holm([paired_difference(regrets[k], regrets[best]).p for k in others]) > 1.0 - CONFIDENCE
    )
    return marked


def interquartile_mean(runs: ArrayLike) -> float:
    """Mean of the middle half of all runs."""
    ordered = np.sort(np.asarray(runs, dtype=float), axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def optimality_gap(runs: ArrayLike, target: float = 0.0) -> float:
    """Mean excess of normalised regrets over a target; runs below the target do not make up for it.

    The target 0 is the oracle's regret; the gap is then the mean, which the worst worlds decide.
    """
    return float(np.maximum(np.asarray(runs, dtype=float) - target, 0.0).mean())


def performance_profile(runs: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Share of runs whose normalised regret is at most each threshold."""
    ordered = np.sort(np.asarray(runs, dtype=float), axis=None)
    return np.searchsorted(ordered, thresholds, side="right") / len(ordered)


def geometric_mean_of_ratios(pairs: ArrayLike) -> float:
    """Of (worlds, seeds, 2): the first's mean regret over the second's, averaged over worlds."""
    means = np.asarray(pairs, dtype=float).mean(axis=1)
    return float(np.exp(np.log(means[:, 0] / means[:, 1]).mean()))


def stratified_interval(
    statistic: Callable[[Floats], Any], runs: ArrayLike, draws: int = 2000, seed: int = 0
) -> tuple[Any, Any]:
    """95 % percentile interval of a statistic of (worlds, seeds, ...): seeds are drawn anew, with
    replacement, within each world."""
    runs = np.asarray(runs, dtype=float)
    worlds, seeds = runs.shape[:2]
    rng = np.random.default_rng(seed)
    row = np.arange(worlds)[:, None]
    found = [statistic(runs[row, rng.integers(seeds, size=(worlds, seeds))]) for _ in range(draws)]
    low, high = np.quantile(found, [(1.0 - CONFIDENCE) / 2, (1.0 + CONFIDENCE) / 2], axis=0)
    return low, high
