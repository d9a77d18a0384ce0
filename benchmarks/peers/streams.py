"""A stream on disk: what every contender meets on a seed of a world. Needs NumPy only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Stream(NamedTuple):
    """T rounds with what every arm would give."""

    arms: np.ndarray  # (T, N, d)
    rewards: np.ndarray  # (T, N)
    regret: np.ndarray  # (T, N)  how much better the best arm is in the mean
    radius: np.ndarray  # ()      bound of the true parameter's norm, NaN where nobody knows it

    def first(self, rounds: int) -> Stream:
        """The same stream, cut."""
        return Stream(*(each[:rounds] for each in self[:3]), self.radius)


def save(path: Path, **arrays) -> None:
    """Write arrays to one npz file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(half, **arrays)
    half.replace(path)


def load(path: Path) -> Stream:
    with np.load(path) as file:
        return Stream(**{name: file[name] for name in Stream._fields})
