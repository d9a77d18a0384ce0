"""Environments: simulated worlds whose truth moves, and streams of real data.

Every policy that is played on a seed meets the same contexts and the same noise.
May import recipes, problems, families and datasets, and no policy.
"""

from driftbandit.environments.arms import Arms, FixedArms, FreshArms, GivenArms
from driftbandit.environments.composite import Composite, random_environment
from driftbandit.environments.delay import Delay
from driftbandit.environments.environment import Block, Environment
from driftbandit.environments.levels import Levels
from driftbandit.environments.paths import Circle, Jumps, RandomWalk, SignFlip, Stationary
from driftbandit.environments.poison import Poison
from driftbandit.environments.regimes import Bursts, Fading, OneCoordinate, Switching
from driftbandit.environments.simulated import Simulated
from driftbandit.environments.stream import Stream

__all__ = [
    "Arms",
    "Block",
    "Bursts",
    "Circle",
    "Composite",
    "Delay",
    "Environment",
    "Fading",
    "FixedArms",
    "FreshArms",
    "GivenArms",
    "Jumps",
    "Levels",
    "OneCoordinate",
    "Poison",
    "RandomWalk",
    "SignFlip",
    "Simulated",
    "Stationary",
    "Stream",
    "Switching",
    "random_environment",
]
