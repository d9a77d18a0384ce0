"""The worlds of the contest, and their streams on disk."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.peers import streams
from driftbandit import Circle, Environment, FixedArms, SignFlip, Stream
from driftbandit.lab import read_study

MORE = ("walk, S = 1", "5 jumps, S = 3")  # of the study many-worlds
PRACTICE = 3000  # rounds of a stream on which settings are chosen


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


def practice(world: Environment) -> Environment:
    """Where settings are chosen: in the same world on other seeds, or, for a stream, in the window
    before the one that counts."""
    if not isinstance(world, Stream):
        return world
    chosen = replace(world, horizon=min(PRACTICE, world.horizon))
    return replace(chosen, start=world.rounds.start - chosen.window)


def stream(folder: Path, world: Environment, seed: int) -> Path:
    """The file of a seed's stream, drawn if it is not there."""
    path = folder / f"{digest(world.to_dict())}-{seed}.npz"
    if not path.exists():
        (block,) = world.blocks((seed,), world.horizon)
        arms = [np.array([arm]) for arm in range(world.n_arms)]
        played = np.array([[block.play(t, arm) for arm in arms] for t in range(len(block))])
        rewards, regret = played[..., 0].transpose(2, 0, 1)
        radius = np.array(getattr(world, "radius", np.nan))
        streams.save(path, arms=block.arms[:, 0], rewards=rewards, regret=regret, radius=radius)
    return path
