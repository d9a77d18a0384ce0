"""contextualbandits: LinUCB, one ridge regression per arm index.

As with MABWiser, each index is scored on its own arm's features.
"""

from __future__ import annotations

import cloudpickle
import numpy as np
from contextualbandits.online import LinUCB

from benchmarks.peers.learner import Task


class Disjoint:
    def __init__(self, task: Task, **setting):
        luck = task.seed + 1  # it takes no 0
        self.model = LinUCB(nchoices=task.count, random_state=luck, **setting)

    def choose(self, arms):
        return int(np.argmax(np.diagonal(self.model.decision_function(arms))))

    def update(self, arms, arm, reward):
        self.model.partial_fit(arms[arm : arm + 1], np.array([arm]), np.array([reward]))

    def size(self):
        return len(cloudpickle.dumps(self.model))  # plain pickle fails after partial_fit


LEARNERS = {"LinUCB": Disjoint}
