"""River: LinUCBDisjoint, one regression per arm index on one context for all arms.

`pull` takes a single context, so features of arms cannot reach it: it gets a constant, and learns
the mean reward of each index.
"""

from __future__ import annotations

import pickle

from river.bandit import LinUCBDisjoint

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


LEARNERS = {"LinUCBDisjoint": Disjoint}
