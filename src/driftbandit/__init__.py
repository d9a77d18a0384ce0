"""driftbandit: contextual bandits that keep up with a changing world, in constant time a round."""

from driftbandit import theory
from driftbandit.bandit import Bandit, Prediction
from driftbandit.environments import (
    Circle,
    Environment,
    FixedArms,
    FreshArms,
    GivenArms,
    Jumps,
    RandomWalk,
    SignFlip,
    Stationary,
)
from driftbandit.families import Bernoulli, Binomial, Family, Gaussian, Poisson
from driftbandit.policies import (
    DOMD,
    GLBOMD,
    Greedy,
    Oracle,
    Policy,
    Scores,
    Uniform,
    memory_bytes,
)
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe
from driftbandit.simulate import Run, simulate

__version__ = "0.1.0"

__all__ = [
    "DOMD",
    "GLBOMD",
    "Bandit",
    "Bernoulli",
    "Binomial",
    "Circle",
    "Environment",
    "Family",
    "FixedArms",
    "FreshArms",
    "Gaussian",
    "GivenArms",
    "Greedy",
    "Jumps",
    "Oracle",
    "Poisson",
    "Policy",
    "Prediction",
    "Problem",
    "RandomWalk",
    "Recipe",
    "Run",
    "Scores",
    "SignFlip",
    "Stationary",
    "Uniform",
    "memory_bytes",
    "simulate",
    "theory",
]
