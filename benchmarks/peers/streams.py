"""A stream on disk: what every contender meets on a seed of a world. Needs NumPy only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Stream(NamedTuple):
    """T rounds with logistic rewards."""

    arms: np.ndarray  # (T, N, d)
    theta: np.ndarray  # (T, d)  true parameters
    luck: np.ndarray  # (T,)    uniform numbers that decide the rewards
    radius: np.ndarray  # ()

    def means(self) -> np.ndarray:
        """Mean reward of every arm, (T, N)."""
        return 1.0 / (1.0 + np.exp(-np.einsum("tnd,td->tn", self.arms, self.theta)))

    def first(self, rounds: int) -> Stream:
        """The same stream, cut."""
        return Stream(self.arms[:rounds], self.theta[:rounds], self.luck[:rounds], self.radius)


def save(path: Path, **arrays) -> None:
    """Write arrays to one npz file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(half, **arrays)
    half.replace(path)


def load(path: Path) -> Stream:
    with np.load(path) as file:
        return Stream(**{name: file[name] for name in Stream._fields})
