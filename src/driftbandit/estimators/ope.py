"""Values of a policy from a log, and intervals that hold for long logs at a time fixed before.

With weights w = pi(A)/h(A), rewards R from 0 to 1, and a reward model q:

| name | value | |
|---|---|---|
| ips | mean of w R | without bias |
| snips | sum of w R over sum of w | less variance, little bias |
| dm | mean of sum_a pi(a) q(a) | as good as the model; no interval |
| dr | mean of w (R - q(A)) + sum_a pi(a) q(a) | without bias, least variance |
| ips clipped, dr clipped | the same with min(w, clip) | see below |

Rewards are 0 to 1, so a clipped part is worth 0 to 1 each: the intervals of clipped estimates have
that as a margin. In logs whose probabilities and policies depend on the past, rows are no sample
but differences of a martingale, for which there is a central limit theorem, too.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from driftbandit.estimators.increments import Floats, LoggedArms

ESTIMATES = ("ips", "snips", "dm", "dr", "ips clipped", "dr clipped")
SUMS = (
    "n", "w", "ww", "wR", "wwR", "wwRR", "dm", "dr", "drdr",
    "ips_c", "ips_cc", "dr_c", "dr_cc", "over", "over_q", "support",
)  # fmt: skip


class Estimate(NamedTuple):
    """A value and its interval; NaN where there is none."""

    value: float
    low: float
    high: float


def sums(arms: LoggedArms, pi: Floats, q: Floats, R: Floats, clip: float) -> Floats:
    """What each row adds to the sums, (n, len(SUMS))."""
    w, qA = pi[arms.chosen] / arms.h[arms.chosen], q[arms.chosen]
    dm, kept = arms.total(pi * q), np.minimum(w, clip)
    dr, dr_c, ips_c, over = dm + w * (R - qA), dm + kept * (R - qA), kept * R, w - kept
    support = arms.total(np.where(arms.h == 0.0, 0.0, pi))
    columns = (
        np.ones_like(R), w, w * w, w * R, w * w * R, (w * R) ** 2, dm, dr, dr * dr,
        ips_c, ips_c**2, dr_c, dr_c**2, over, over * qA, support,
    )  # fmt: skip
    return np.stack(columns, axis=1)


def estimates(total: Floats, level: float) -> dict[str, Estimate]:
    """All estimates from sums (len(SUMS),)."""
    s = dict(zip(SUMS, total.tolist()))
    n, z = s["n"], NormalDist().inv_cdf(0.5 + 0.5 * level)
    mean, spread = snips(s["w"], s["ww"], s["wR"], s["wwR"], s["wwRR"])
    out = {
        "ips": _mean(n, s["wR"], s["wwRR"], z),
        "snips": _around(mean, z * np.sqrt(spread) / s["w"] if s["w"] else np.nan),
        "dm": _around(s["dm"] / n, np.nan),
        "dr": _mean(n, s["dr"], s["drdr"], z),
    }
    ips, dr = _mean(n, s["ips_c"], s["ips_cc"], z), _mean(n, s["dr_c"], s["dr_cc"], z)
    over, down = s["over"] / n, s["over_q"] / n
    out["ips clipped"] = ips._replace(high=ips.high + over)
    out["dr clipped"] = dr._replace(low=dr.low - down, high=dr.high + over - down)
    return out


def snips(w: float, ww: float, wR: float, wwR: float, wwRR: float) -> tuple[float, float]:
    """The self-normalized mean, and the sum of (w (R - mean))^2: by the delta method its deviation
    is the root of that over the sum of w."""
    mean = wR / w if w > 0.0 else np.nan
    return mean, max(wwRR - 2.0 * mean * wwR + mean**2 * ww, 0.0)


def difference(total: Floats, level: float) -> Estimate:
    """The mean of paired differences: how many, their sum and that of their squares."""
    n, d, dd = total.tolist()
    return _mean(n, d, dd, NormalDist().inv_cdf(0.5 + 0.5 * level))


def effective(total: Floats) -> float:
    """Effective sample size: the rows of a log by the policy itself that would tell as much."""
    s = dict(zip(SUMS, total.tolist()))
    return s["w"] ** 2 / s["ww"] if s["ww"] > 0.0 else 0.0


def _mean(n: float, total: float, squares: float, z: float) -> Estimate:
    mean = total / n
    variance = max(squares / n - mean * mean, 0.0) / (n - 1.0) if n > 1.0 else np.nan
    return _around(mean, z * float(np.sqrt(variance)))


def _around(value: float, half: float) -> Estimate:
    return Estimate(value, value - half, value + half)
