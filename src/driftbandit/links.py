"""The cumulant m and its derivatives, compiled, finite and accurate for every float.

Compiled code knows a reward family as a `Link`: an integer code, the number of trials and g.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.compiled import inlined, kernel

Floats = NDArray[np.float64]

LOGIT, IDENTITY, LOG = 0, 1, 2
LARGEST_EXPONENT = 709.0  # exp overflows beyond; the log link saturates there instead


class Link(NamedTuple):
    """What a kernel needs to know of a family."""

    code: int
    trials: float
    g: float
    low: float  # smallest and largest reward, and whether rewards are whole numbers
    high: float
    whole: bool


@kernel
def possible(link: Link, r: float) -> bool:
    """Whether r is in the support."""
    return link.low <= r <= link.high and (not link.whole or r == math.floor(r))


@kernel
def m(link: Link, z: float) -> float:
    """Cumulant m(z)."""
    if link.code == LOGIT:
        return link.trials * (max(z, 0.0) + math.log1p(math.exp(-abs(z))))
    if link.code == IDENTITY:
        return 0.5 * z * z
    return math.exp(min(z, LARGEST_EXPONENT))


@inlined
def mu(link: Link, z: float) -> float:
    """Mean reward mu(z) = m'(z)."""
    if link.code == LOGIT:
        e = math.exp(-abs(z))
        return link.trials * ((1.0 if z >= 0.0 else e) / (1.0 + e))
    if link.code == IDENTITY:
        return z
    return math.exp(min(z, LARGEST_EXPONENT))


@inlined
def dmu(link: Link, z: float) -> float:
    """Slope mu'(z)."""
    if link.code == LOGIT:
        e = math.exp(-abs(z))
        return link.trials * (e / ((1.0 + e) * (1.0 + e)))
    if link.code == IDENTITY:
        return 1.0
    return math.exp(min(z, LARGEST_EXPONENT))


@kernel
def mu_dmu(link: Link, z: float) -> tuple[float, float]:
    """mu(z) and mu'(z) for the price of one exponential."""
    if link.code == LOGIT:
        e = math.exp(-abs(z))
        share = 1.0 / (1.0 + e)
        return link.trials * (share if z >= 0.0 else e * share), link.trials * (e * share * share)
    return mu(link, z), dmu(link, z)


@kernel
def d2mu(link: Link, z: float) -> float:
    """Second derivative mu''(z)."""
    if link.code == LOGIT:
        return -dmu(link, z) * math.tanh(0.5 * z)
    if link.code == IDENTITY:
        return 0.0
    return math.exp(min(z, LARGEST_EXPONENT))


@kernel
def tabulate(order: int, link: Link, z: Floats, out: Floats) -> None:
    """out = the derivative of m of this order at every z."""
    for j in range(z.size):
        if order == 0:
            out[j] = m(link, z[j])
        elif order == 1:
            out[j] = mu(link, z[j])
        elif order == 2:
            out[j] = dmu(link, z[j])
        else:
            out[j] = d2mu(link, z[j])
