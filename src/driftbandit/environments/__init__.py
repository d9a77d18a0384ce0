"""Environments: worlds whose truth moves, with the same contexts and luck for every policy."""

from driftbandit.environments.arms import Arms, FixedArms, FreshArms, GivenArms
from driftbandit.environments.environment import Block, Environment
from driftbandit.environments.paths import Circle, Jumps, RandomWalk, SignFlip, Stationary

__all__ = [
    "Arms",
    "Block",
    "Circle",
    "Environment",
    "FixedArms",
    "FreshArms",
    "GivenArms",
    "Jumps",
    "RandomWalk",
    "SignFlip",
    "Stationary",
]
