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


# AutoDOMD is asked for by name: the contest goes on without it where it does not exist.
KINDS = (getattr(driftbandit, name, None) for name in ("DOMD", "AutoDOMD", "Uniform"))
LEARNERS = {kind.__name__: maker(kind) for kind in KINDS if kind is not None}
