"""coba: LinUCB on the features of the actions, one model for all of them."""

from __future__ import annotations

import coba

from benchmarks.peers.learner import Task


class LinUCB:
    def __init__(self, task: Task, alpha: float):
        self.learner = coba.LinUCBLearner(alpha=alpha, features=[1, "a"], seed=task.seed)

    def choose(self, arms):
        actions = [tuple(row) for row in arms.tolist()]
        self.action, self.probability = self.learner.predict([], actions)[:2]
        return actions.index(self.action)

    def update(self, arms, arm, reward):
        self.learner.learn([], self.action, reward, self.probability)

    def size(self):
        # Pickling fails, the learner holds a module: what it learnt, with no way to save it.
        return self.learner._theta.nbytes + self.learner._A_inv.nbytes


LEARNERS = {"LinUCB": LinUCB}
