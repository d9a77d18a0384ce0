"""DOMD as one would first write it in NumPy, with the practical preset's numbers."""

from __future__ import annotations

import pickle

from benchmarks.numpy_domd import NumpyDOMD
from benchmarks.peers.learner import Task


class Naive(NumpyDOMD):
    def beta(self):
        return 1.0  # one posterior deviation, as DOMD(problem=...) has it

    def update(self, arms, arm, reward):
        super().update(arms[arm], reward)

    def size(self):
        return len(pickle.dumps(self))


def naive(task: Task, half_life: float):
    S, gamma, lam = task.radius, 2 ** (-1 / half_life), task.norm**2
    return Naive(task.dim, S=S, gamma=gamma, lam=lam, eta=2.0, delta=None, scale=1.0)


LEARNERS = {"DOMD": naive}
