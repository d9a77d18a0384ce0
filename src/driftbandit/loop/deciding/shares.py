"""Least and largest shares of arms: probabilities moved as little as it takes to keep them."""

from __future__ import annotations

import math

import numpy as np

from driftbandit.loop.exploration import completed
from driftbandit.policies.base import Floats

ANY_SHARE = (0.0, 1.0)


def within_shares(p: Floats, bounds: Floats, scores: Floats) -> Floats:
    """Return probabilities within `bounds` (2, K), the least and the largest share of each arm.

    What arms have above their largest share goes to the others in order of their `scores`, each up
    to its own. What arms lack of their least share is taken from all others in proportion. If
    bounds cannot be kept, as when only one arm is on offer, they count in proportion.
    """
    least, most = bounds
    if math.fsum(most) <= 1.0:
        q = most / math.fsum(most) if most.any() else np.full(len(p), 1.0 / len(p))
        return completed(q, int(np.argmax(q)))
    if math.fsum(least) >= 1.0:
        q = least / math.fsum(least)
        return completed(q, int(np.argmax(q)))
    q = np.clip(p, least, most)
    missing = 1.0 - math.fsum(q)
    if missing < 0.0:
        spare = q - least
        q += missing * spare / math.fsum(spare)
    for k in np.argsort(-scores, kind="stable"):
        if missing <= 0.0:
            break
        more = min(missing, most[k] - q[k])
        q[k], missing = q[k] + more, missing - more
    q = np.clip(q, least, most)
    room = np.minimum(q - least, most - q)  # rounding must not leave the bounds
    return completed(q, int(np.argmax(room)))
