"""Randomness as tapes: one independent stream per seed and purpose.

Every policy that is played on a seed meets the same contexts and the same noise, and nothing
depends on how many seeds run together or on how many rounds are drawn at once.
"""

from __future__ import annotations

import numpy as np

from driftbandit import validate

PATH, ARMS, REWARDS, POLICY, LENGTHS, ROUNDS, DELAYS, ATTACKS = range(8)


def tape(seed: int, stream: int) -> np.random.Generator:
    """The generator of one purpose (`PATH`, `ARMS`, ...) of one seed."""
    seed = validate.count("seed", seed, "seeds are whole numbers", least=0)
    return np.random.default_rng(np.random.SeedSequence([seed, stream]))
