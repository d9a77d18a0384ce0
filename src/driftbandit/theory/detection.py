"""Constants of the rivals that look for changes: DAL and dLinUCB."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from driftbandit.theory.rivals import check_reading

# How large the statistic of a likelihood-ratio test must be: as one is run, or as one is proven.
READINGS = ("practical", "theorem")


def dal_share(directions: int, episode: int, horizon: float) -> float:
    """alpha_k = sqrt(k N_e log T / T), at most 1/2: the share of forced rounds in the k-th episode
    (Gerogiannis et al. 2025; our reading)."""
    return min(0.5, math.sqrt(episode * directions * math.log(max(horizon, 2.0)) / horizon))


def dal_period(directions: int, episode: int, horizon: float) -> int:
    """ceil(N_e / alpha_k): rounds from one sweep of forced exploration to the next."""
    return math.ceil(directions / dal_share(directions, episode, horizon))


def glr_threshold(n: int, delta: float, reading: str = "practical") -> float:
    """log(4 n^{3/2} / delta) for n rewards, as Besson et al. 2022 run such a test, or, proven, 6
    log(1 + log n) + (5/2) log(4 n^{3/2} / delta) + 11 (Huang and Veeravalli 2024; our reading)."""
    check_reading(reading, READINGS)
    logs = math.log(4.0 * n**1.5 / delta)
    if reading == "practical":
        return logs
    return 6.0 * math.log1p(math.log(n)) + 2.5 * logs + 11.0


def dlinucb_tolerance(deviation: float, delta: float) -> float:
    """epsilon = sqrt(2) sigma erfinv(1 - delta_1), which noise of deviation sigma exceeds with
    probability delta_1 (Wu, Iyer, Wang 2018, section 3.2)."""
    return deviation * NormalDist().inv_cdf(1.0 - delta / 2.0)


def dlinucb_doubt(n: Any, delta: float) -> Any:
    """d = sqrt(log(1/delta_2) / (2 n)), the error of a rate of failures after n rounds (Hoeffding;
    Wu, Iyer, Wang 2018, eq. 6), and 1/2 before any."""
    n = np.asarray(n, dtype=float)
    return np.where(n > 0.0, np.sqrt(math.log(1.0 / delta) / (2.0 * np.maximum(n, 1.0))), 0.5)
