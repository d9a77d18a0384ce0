"""bayesianbandits: a logit GLM shared by all arms, with stabilised forgetting.

One Laplace step an update (its default is up to five): the fastest it offers.
"""

from __future__ import annotations

import pickle

import numpy as np
from bayesianbandits import (
    Arm,
    ArmFeaturizer,
    BayesianGLM,
    LaplaceApproximator,
    LipschitzContextualAgent,
    StabilizedForgetting,
    ThompsonSampling,
    UpperConfidenceBound,
)

from benchmarks.peers.learner import Task


class OwnFeatures(ArmFeaturizer):
    """The context is the features of all arms in a row; each arm takes its own."""

    def __init__(self, dim):
        self.dim = dim

    def transform(self, X, *, action_tokens):
        features = np.asarray(X).reshape(len(X), -1, self.dim)
        return np.concatenate([features[:, arm] for arm in action_tokens])


class Shared:
    def __init__(self, task: Task, policy, rate: float):
        model = BayesianGLM(
            alpha=1.0,
            link="logit",
            forgetting=StabilizedForgetting(rate),
            approximator=LaplaceApproximator(n_iter=1),
        )
        arms, features = [Arm(index) for index in range(task.count)], OwnFeatures(task.dim)
        self.agent = LipschitzContextualAgent(arms, policy, features, model, random_seed=task.seed)

    def choose(self, arms):
        (arm,) = self.agent.pull(arms.reshape(1, -1))
        return arm

    def update(self, arms, arm, reward):
        self.agent.select_for_update(arm).update(arms.reshape(1, -1), np.array([reward]))

    def size(self):
        return len(pickle.dumps(self.agent))


LEARNERS = {
    "UCB": lambda task, rate, quantile: Shared(task, UpperConfidenceBound(alpha=quantile), rate),
    "Thompson": lambda task, rate: Shared(task, ThompsonSampling(), rate),
}
