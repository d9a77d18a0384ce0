"""River: LinUCBDisjoint, one regression per arm index on one context for all arms; and the same
Bayesian regression once for all arms, scored on their own features (`Shared`).

LinUCBDisjoint's `pull` takes a single context, so features of arms cannot reach it: it gets a
constant, and learns the mean reward of each index.
"""

from __future__ import annotations

import pickle

from river.bandit import LinUCBDisjoint
from river.linear_model import BayesianLinearRegression

from benchmarks.peers.learner import Task

CONTEXT = {"constant": 1.0}


class Disjoint:
    def __init__(self, task: Task, **setting):
        self.policy, self.ids = LinUCBDisjoint(seed=task.seed, **setting), list(range(task.count))

    def choose(self, arms):
        return self.policy.pull(self.ids, context=CONTEXT)

    def update(self, arms, arm, reward):
        self.policy.update(arm, CONTEXT, reward)

    def size(self):
        return len(pickle.dumps(self.policy))


class Shared:
    """Upper confidence bounds from river's Bayesian linear regression; arms in disjoint blocks make
    it LinUCBDisjoint on their common context."""

    def __init__(self, task: Task, width: float, **setting):
        self.model, self.width = BayesianLinearRegression(**setting), width

    def choose(self, arms):
        self.rows = [{j: v for j, v in enumerate(row) if v} for row in arms.tolist()]
        spread = [self.model.predict_one(row, with_dist=True) for row in self.rows]
        upper = [each.mu + self.width * each.sigma for each in spread]
        return upper.index(max(upper))

    def update(self, arms, arm, reward):
        self.model.learn_one(self.rows[arm], reward)

    def size(self):
        return len(pickle.dumps(self.model))


LEARNERS = {"LinUCBDisjoint": Disjoint, "Shared": Shared}
