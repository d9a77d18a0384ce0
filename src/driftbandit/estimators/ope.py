"""Values of a policy from a log, and intervals for one look, at a time fixed before.

With weights w = pi(A)/h(A), rewards R from 0 to 1, and a reward model q:

| name | value | |
|---|---|---|
| ips | mean of w R | without bias |
| snips | sum of w R over sum of w | less variance, little bias |
| dm | mean of sum_a pi(a) q(a) | as good as the model; no interval |
| dr | mean of w (R - q(A)) + sum_a pi(a) q(a) | without bias; varies less the better q is |
| ips clipped, dr clipped | the same with min(w, clip) | see below |

`shrinkage` has two more.

Rewards are 0 to 1, so a clipped part is worth 0 to 1 each: the intervals of clipped estimates have
that as a margin, by what could have been drawn. In logs whose probabilities and policies depend on
the past, rows are no sample but differences of a martingale, for which there is a central limit
theorem, too. `overlap` says how intervals stay honest where few rows carry an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from driftbandit.estimators.increments import Floats, LoggedArms
from driftbandit.estimators.overlap import Estimate, Overlap, interval, variance_of_mean

ESTIMATES = ("ips", "snips", "dm", "dr", "ips clipped", "dr clipped")
ENOUGH, FEW = 100.0, 10.0  # effective rows and events below which intervals are rough
SUMS = (
    "n", "w", "ww", "wR", "wwR", "wwRR", "dm", "dr", "drdr",
    "ips_c", "ips_cc", "dr_c", "dr_cc", "over", "over_q", "support",
)  # fmt: skip


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


def estimates(total: Floats, seen: Overlap, level: float, clip: float) -> dict[str, Estimate]:
    """All estimates from sums (len(SUMS),) and the overlap of the same rows."""
    s = dict(zip(SUMS, total.tolist()))
    n, event = s["n"], seen.heaviest / s["n"]
    q = s["dm"] / n
    surprise = max(q, 1.0 - q)  # the most that a reward can differ from what was expected
    ips, dr = s["wR"] / n, s["dr"] / n
    squares = s["wwRR"] / s["ww"] if s["ww"] > 0.0 else 1.0  # the mean of R^2 where w^2 is
    floor = (squares * seen.second / n - ips**2) / n
    out = {
        "ips": interval(ips, max(variance_of_mean(n, s["wR"], s["wwRR"]), floor), event, level),
        "snips": snips([s[name] for name in ("w", "ww", "wR", "wwR", "wwRR")], seen, level),
        "dm": Estimate(q, math.nan, math.nan),
        "dr": interval(
            dr,
            max(variance_of_mean(n, s["dr"], s["drdr"]), seen.noise(seen.second)),
            surprise * event,
            level,
        ),
    }
    event, over, down = min(seen.heaviest, clip) / n, seen.over / n, seen.over_q / n
    cut = interval(s["ips_c"] / n, variance_of_mean(n, s["ips_c"], s["ips_cc"]), event, level)
    out["ips clipped"] = cut._replace(high=min(cut.high + over, 1.0))
    variance = max(variance_of_mean(n, s["dr_c"], s["dr_cc"]), seen.noise(seen.kept))
    cut = interval(s["dr_c"] / n, variance, surprise * event, level)
    ends = max(cut.low - down, 0.0), min(cut.high + over - down, 1.0)
    out["dr clipped"] = Estimate(cut.value, *ends)
    return out


def snips(sums: Sequence[float], seen: Overlap, level: float) -> Estimate:
    """The self-normalized mean, from the sums of w, w^2, w R, w^2 R and w^2 R^2. By the delta
    method its variance is the sum of (w (R - mean))^2 over the square of the sum of w."""
    w, ww, wR, wwR, wwRR = sums
    if w <= 0.0:
        return interval(math.nan, math.nan, math.nan, level)
    mean = wR / w
    spread = max(wwRR - 2.0 * mean * wwR + mean**2 * ww, 0.0)
    variance = max(spread / w**2, spread / ww * seen.second / seen.n**2)
    return interval(mean, variance, max(mean, 1.0 - mean) * seen.heaviest / seen.n, level)


def difference(total: Floats, seen: Overlap, level: float) -> Estimate:
    """The mean of paired differences: how many, their sum and that of their squares; and the
    overlap of the difference of both policies."""
    n, d, dd = total.tolist()
    if seen.second == 0.0:  # they never differ
        return Estimate(0.0, 0.0, 0.0)
    variance = max(variance_of_mean(n, d, dd), seen.noise(seen.second))
    return interval(d / n, variance, seen.heaviest / n, level, low=-1.0)


def events(total: Floats) -> float:
    """Rows with the best reward or with the worst, whichever are fewer, that carry the estimates:
    rewards between count as parts of both, and heavy rows as fewer rows."""
    s = dict(zip(SUMS, total.tolist()))
    good = _ratio(s["wR"] ** 2, s["wwRR"])
    bad = _ratio((s["w"] - s["wR"]) ** 2, s["ww"] - 2.0 * s["wwR"] + s["wwRR"])
    return min(good, bad)


def rough(total: Floats, seen: Overlap) -> bool:
    """Whether too few rows or events carry the estimates for intervals of one look."""
    return seen.effective < ENOUGH or events(total) < FEW


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0.0 else 0.0
