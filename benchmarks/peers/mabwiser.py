"""MABWiser: LinUCB, one ridge regression per arm index.

Every arm's features go in as a context of their own and each index is scored on its own row, so
it meets all the features there are; but what one index learns about them no other index knows.
"""

from __future__ import annotations

import pickle

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

from benchmarks.peers.learner import Task


class LinUCB:
    def __init__(self, task: Task, **setting):
        self.ids = range(task.count)
        self.mab = MAB(list(self.ids), LearningPolicy.LinUCB(**setting), seed=task.seed)
        self.mab.fit([0], [0.0], np.zeros((1, task.dim)))  # predicting needs a first fit

    def choose(self, arms):
        scores = self.mab.predict_expectations(arms)
        return max(self.ids, key=lambda arm: scores[arm][arm])

    def update(self, arms, arm, reward):
        self.mab.partial_fit([arm], [reward], arms[arm : arm + 1])

    def size(self):
        return len(pickle.dumps(self.mab))


LEARNERS = {"LinUCB": LinUCB}
