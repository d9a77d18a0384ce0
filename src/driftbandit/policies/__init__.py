"""Policies: frozen recipes over memories that are a few arrays."""

from driftbandit.policies.auto import AutoDOMD, Explanation
from driftbandit.policies.domd import DOMD, GLBOMD, Greedy
from driftbandit.policies.glm import (
    BVDGLMUCB,
    DGLUCB,
    GLMUCB,
    SCDGLUCB,
    SCSWGLUCB,
    SWGLUCB,
    GLBWeightUCB,
    RestartGLB,
    SCBPWWeightUCB,
    SCBWeightUCB,
)
from driftbandit.policies.gloc import GLOC
from driftbandit.policies.linear import DLinUCB, LBWeightUCB, LinUCB, SWLinUCB
from driftbandit.policies.master import MASTER
from driftbandit.policies.policy import Policy, Scores, memory_bytes
from driftbandit.policies.simple import Oracle, Uniform

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
    "AutoDOMD",
    "DLinUCB",
    "Explanation",
    "GLBWeightUCB",
    "Greedy",
    "LBWeightUCB",
    "LinUCB",
    "Oracle",
    "Policy",
    "RestartGLB",
    "SCBPWWeightUCB",
    "SCBWeightUCB",
    "SWLinUCB",
    "Scores",
    "Uniform",
    "memory_bytes",
]
