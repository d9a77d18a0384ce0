"""Rounds with the outcome of every arm, and how raw features become contexts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HISTORY = 500  # rows before the first round, from which the scale of the features is learnt
CLIP = 3.0  # standard deviations
LONGEST = 0.95  # quantile of the norms that becomes 1


@dataclass(frozen=True, eq=False)
class Rounds:
    """A stream of rounds in order of time."""

    name: str
    start: int  # the first round, counted from the beginning of the file
    arms: Floats  # (T, N, d)
    rewards: Floats  # (T, N)         what each arm would have given
    times: NDArray[Any] | None  # (T,)  datetime64
    features: tuple[str, ...]  # names of the d features
    source: str
    licence: str
    checksum: str  # SHA-256 of the file it was made from

    def __post_init__(self) -> None:
        for array in (self.arms, self.rewards):
            array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.arms)

    def outcomes(self, count: int) -> str:
        """SHA-256 of what every arm would have given in the first `count` rounds.

        It is the same for all copies of the data, whole, cut or compressed, that give the same
        rounds. Contexts are left out: their last digits depend on the machine.
        """
        return hashlib.sha256(self.rewards[:count].astype("<f8").tobytes()).hexdigest()


def contexts(raw: Floats, start: int) -> Floats:
    """Features (R, N, p) of round `start` on as contexts (T, N, p + 1) of norm at most 1.

    z-scores by the 500 rows before, clipped; an intercept; divided by the 95 % quantile of the
    norms of those rows; what is still longer than 1 is shortened. The future trains nothing.
    """
    before = raw[:start].reshape(-1, raw.shape[2])[-HISTORY:]
    scale = before.std(axis=0)
    scale[scale < 1e-9] = 1.0  # a feature that has not moved yet keeps its unit
    scores = np.clip((raw - before.mean(axis=0)) / scale, -CLIP, CLIP)
    x = np.concatenate([scores, np.ones((*raw.shape[:2], 1))], axis=2)
    norms = np.linalg.norm(x, axis=2)
    x /= np.quantile(norms[:start].ravel()[-HISTORY:], LONGEST)
    x /= np.maximum(np.linalg.norm(x, axis=2, keepdims=True), 1.0)
    return x[start:]


def disjoint(x: Floats, classes: int) -> Floats:
    """One arm per class: the contexts (T, 1, p) in a block of its own, (T, classes, classes p)."""
    T, _, p = x.shape
    arms = np.zeros((T, classes, classes, p))
    for k in range(classes):
        arms[:, k, k] = x[:, 0]
    return arms.reshape(T, classes, classes * p)
