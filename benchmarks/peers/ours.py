"""driftbandit, through `Bandit`."""

from __future__ import annotations

import pickle

import driftbandit
from benchmarks.peers.learner import Task
from driftbandit import Bandit, Problem


class Ours:
    def __init__(self, policy):
        self.bandit = Bandit(policy)
        self.choose = self.bandit.choose

    def update(self, arms, arm, reward):
        self.bandit.update(arms[arm], reward)

    def size(self):
        return len(pickle.dumps(self.bandit))


def maker(kind):
    """Learners of a policy class in the plain, practical constructor."""

    def make(task: Task, **setting):
        problem = Problem(dim=task.dim, radius=task.radius, context_norm=task.norm)
        return Ours(kind(problem=problem, **setting))

    return make


def theorist(kind):
    """Learners of a policy class as its paper tunes it; what nobody knows is in the setting."""

    def make(task: Task, radius: float, path_length=None, change_points=None, **setting):
        problem = Problem(
            dim=task.dim,
            context_norm=task.norm,
            horizon=task.rounds,
            radius=radius,
            path_length=path_length,
            change_points=change_points,
        )
        return Ours(kind.from_theory(problem, **setting))

    return make


# AutoDOMD is asked for by name: the contest goes on without it where it does not exist.
KINDS = (getattr(driftbandit, name, None) for name in ("DOMD", "AutoDOMD", "Uniform"))
LEARNERS = {kind.__name__: maker(kind) for kind in KINDS if kind is not None}
THEORY = (
    *("DOMD", "GLBOMD", "GLOC", "LinUCB", "DLinUCB", "LBWeightUCB"),
    *("GLMUCB", "RestartGLB", "SWGLUCB", "SCBWeightUCB"),
)
LEARNERS |= {f"{name} by theory": theorist(getattr(driftbandit, name)) for name in THEORY}
