"""What estimators and sequences are asked, by seed: the same here and in an oracle's environment.

NumPy alone, because an oracle has nothing else of ours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

RHO = 10.0  # of the mixture, as in `estimators.sequences`
MOMENTS = [(S, V) for S in (0.0, 0.5, 3.0, 20.0, 100.0) for V in (0.01, 1.0, 40.0, 3000.0)]
BOUNDS = [(V, alpha) for V in (0.01, 1.0, 40.0, 3000.0) for alpha in (0.5, 0.05, 1e-6)]
STRENGTHS = (100.0, 30.0, 10.0, 3.0, 1.0)  # of smaller weights, as in `estimators.shrinkage`


class Rows(NamedTuple):
    """n decisions among K arms."""

    action: Any  # (n,)
    reward: Any  # (n,) from 0 to 1
    h: Any  # (n, K) logged probabilities
    pi: Any  # (n, K) those of the candidate
    q: Any  # (n, K) a reward model
    clip: float


def logs() -> dict[str, Rows]:
    """Small and long logs; in one the candidate never plays some arms."""
    sizes = {"3 arms": (200, 3, 1.5), "10 arms": (3000, 10, 5.0), "one arm": (500, 4, 20.0)}
    return {name: _rows(name, seed, *size) for seed, (name, size) in enumerate(sizes.items())}


def _rows(name: str, seed: int, n: int, K: int, clip: float) -> Rows:
    rng = np.random.default_rng(seed)
    h, pi = (raw / raw.sum(axis=1, keepdims=True) for raw in 0.02 + rng.random((2, n, K)) ** 3)
    if name == "one arm":
        pi = np.eye(K)[np.zeros(n, dtype=np.int64)]
    action = (rng.random((n, 1)) > np.cumsum(h, axis=1)).sum(axis=1).clip(0, K - 1)
    return Rows(action, rng.random(n), h, pi, rng.random((n, K)), clip)
