"""The mean of a reward, its slope and its log likelihood, compiled and finite for every float.

q is a recipe: `q[LINK]` is the code of a shipped family, or the address of another (see
`custom_family`).
"""

from __future__ import annotations

import math

from driftbandit.core.compiled import inlined, kernel
from driftbandit.core.custom_family import value
from driftbandit.core.layout import HIGH, LINK, LOW, TRIALS, WHOLE, Floats
from driftbandit.families import IDENTITY, LARGEST_EXPONENT, LOG, LOGIT


@kernel
def mean_slope(q: Floats, z: float) -> tuple[float, float]:
    """mu(z) and mu'(z)."""
    if q[LINK] == LOGIT:
        e = math.exp(-abs(z))
        share = 1.0 / (1.0 + e)
        return q[TRIALS] * (share if z >= 0.0 else e * share), q[TRIALS] * (e * share * share)
    if q[LINK] == IDENTITY:
        return z, 1.0
    if q[LINK] == LOG:
        mean = math.exp(min(z, LARGEST_EXPONENT))
        return mean, mean
    return value(q[LINK], 1, z), value(q[LINK], 2, z)


@inlined
def log_likelihood(q: Floats, r: float, z: float) -> float:
    """r z - m(z): what g divides in the log likelihood, up to what does not depend on z."""
    if q[LINK] == LOGIT:
        return r * z - q[TRIALS] * (max(z, 0.0) + math.log1p(math.exp(-abs(z))))
    if q[LINK] == IDENTITY:
        return r * z - 0.5 * z * z
    if q[LINK] == LOG:
        return r * z - math.exp(min(z, LARGEST_EXPONENT))
    return r * z - value(q[LINK], 0, z)


@inlined
def possible(q: Floats, r: float) -> bool:
    """Whether r is a reward of this family."""
    return q[LOW] <= r <= q[HIGH] and (q[WHOLE] == 0.0 or r == math.floor(r))
