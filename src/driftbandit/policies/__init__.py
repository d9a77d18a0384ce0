"""Policies: frozen recipes over memories that are a few arrays."""

from driftbandit.policies.domd import DOMD, GLBOMD, Greedy
from driftbandit.policies.policy import Policy, Scores, memory_bytes
from driftbandit.policies.simple import Oracle, Uniform

__all__ = [
    "DOMD",
    "GLBOMD",
    "Greedy",
    "Oracle",
    "Policy",
    "Scores",
    "Uniform",
    "memory_bytes",
]
