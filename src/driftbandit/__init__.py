"""driftbandit: contextual bandits that keep up with a changing world, in constant time a round."""

from typing import TYPE_CHECKING, Any

from driftbandit import theory
from driftbandit.armset import ArmSet
from driftbandit.bandit import Bandit, Prediction
from driftbandit.environments import (
    Bursts,
    Circle,
    Environment,
    Fading,
    FixedArms,
    FreshArms,
    GivenArms,
    Jumps,
    OneCoordinate,
    RandomWalk,
    SignFlip,
    Stationary,
    Switching,
)
from driftbandit.families import Bernoulli, Binomial, Family, Gaussian, Poisson
from driftbandit.policies import (
    BVDGLMUCB,
    DGLUCB,
    DOMD,
    GLBOMD,
    GLMUCB,
    GLOC,
    MASTER,
    SCDGLUCB,
    SCSWGLUCB,
    SWGLUCB,
    AutoDOMD,
    DLinUCB,
    Explanation,
    GLBWeightUCB,
    Greedy,
    LBWeightUCB,
    LinUCB,
    Oracle,
    Policy,
    RestartGLB,
    SCBPWWeightUCB,
    SCBWeightUCB,
    Scores,
    SWLinUCB,
    Uniform,
    memory_bytes,
)
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe
from driftbandit.simulate import Run, simulate

if TYPE_CHECKING:
    from driftbandit.fleet import Fleet

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Fleets bring a database along, which who has one learner need not wait for."""
    if name == "Fleet":
        from driftbandit.fleet import Fleet

        return Fleet
    raise AttributeError(f"module 'driftbandit' has no attribute {name!r}")


__all__ = [
    "BVDGLMUCB",
    "DGLUCB",
    "DOMD",
    "GLBOMD",
    "GLMUCB",
    "GLOC",
    "MASTER",
    "SCDGLUCB",
    "SCSWGLUCB",
    "SWGLUCB",
    "ArmSet",
    "AutoDOMD",
    "Bandit",
    "Bernoulli",
    "Binomial",
    "Bursts",
    "Circle",
    "DLinUCB",
    "Environment",
    "Explanation",
    "Fading",
    "Family",
    "FixedArms",
    "Fleet",
    "FreshArms",
    "GLBWeightUCB",
    "Gaussian",
    "GivenArms",
    "Greedy",
    "Jumps",
    "LBWeightUCB",
    "LinUCB",
    "OneCoordinate",
    "Oracle",
    "Poisson",
    "Policy",
    "Prediction",
    "Problem",
    "RandomWalk",
    "Recipe",
    "RestartGLB",
    "Run",
    "SCBPWWeightUCB",
    "SCBWeightUCB",
    "SWLinUCB",
    "Scores",
    "SignFlip",
    "Stationary",
    "Switching",
    "Uniform",
    "memory_bytes",
    "simulate",
    "theory",
]
