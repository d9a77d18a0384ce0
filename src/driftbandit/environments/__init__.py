"""Environments: worlds whose truth moves, with the same contexts and luck for every policy."""

from driftbandit.environments.arms import Arms, FixedArms, FreshArms, GivenArms
from driftbandit.environments.environment import Block, Environment
from driftbandit.environments.paths import Circle, Jumps, RandomWalk, SignFlip, Stationary
from driftbandit.environments.regimes import Bursts, Fading, OneCoordinate, Switching

__all__ = [
    "Arms",
    "Block",
    "Bursts",
    "Circle",
    "Environment",
    "Fading",
    "FixedArms",
    "FreshArms",
    "GivenArms",
    "Jumps",
    "OneCoordinate",
    "RandomWalk",
    "SignFlip",
    "Stationary",
    "Switching",
]
