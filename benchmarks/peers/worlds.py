"""The worlds of the contest, and their streams on disk."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from benchmarks.peers import streams
from driftbandit import Circle, Environment, FixedArms, SignFlip
from driftbandit.lab import read_study

MORE = ("walk, S = 1", "5 jumps, S = 3")  # of the study many-worlds


def worlds() -> dict[str, Environment]:
    """The paper's four (section 5), two of them with arms that stay, and two of many-worlds."""
    found: dict[str, Environment] = {
        f"{name}, S = {radius:g}": kind(radius=radius)
        for name, kind in (("drift", Circle), ("flip", SignFlip))
        for radius in (1.0, 3.0)
    }
    found["drift, S = 3, fixed arms"] = Circle(radius=3.0, arms=FixedArms())
    found["flip, S = 3, fixed arms"] = SignFlip(radius=3.0, arms=FixedArms())
    study, _ = read_study("many-worlds")
    return found | {label: world for label, world, _ in study.worlds() if label in MORE}


def digest(data) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def stream(folder: Path, world: Environment, seed: int) -> Path:
    """The file of a seed's stream, drawn if it is not there."""
    path = folder / f"{digest(world.to_dict())}-{seed}.npz"
    if not path.exists():
        block = next(world.blocks((seed,), world.horizon))
        arrays = {"arms": block.arms[:, 0], "theta": block.theta[:, 0], "luck": block.luck[:, 0]}
        streams.save(path, **arrays, radius=np.array(world.radius))
    return path
