"""Reward models: what a row's reward was expected to be before it was known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.estimators.increments import LoggedArms
from driftbandit.evidence.candidates import Fixed
from driftbandit.evidence.log import Examples
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.trained_policy import TrainedPolicy
from driftbandit.problem import Problem

MEAN = "mean"


class Model:
    """The mean of all rewards so far, for every arm."""

    name = MEAN

    def __init__(self) -> None:
        self._n, self._total = 1.0, 0.5

    def predict(self, examples: Examples, arms: LoggedArms, R: Floats) -> Floats:
        """Rewards (m,) from 0 to 1 that were to be expected of all arms."""
        before = (self._total + np.cumsum(R) - R) / (self._n + np.arange(len(R)))
        self._n, self._total = self._n + len(R), self._total + float(R.sum())
        return np.repeat(before, examples.chunk.sizes)


class Learnt(Model):
    """What a learner predicts before it is told."""

    def __init__(self, trained: TrainedPolicy, name: str, plays: bool) -> None:
        self.trained, self.name, self.plays = trained, name, plays

    def predict(self, examples: Examples, arms: LoggedArms, R: Floats) -> Floats:
        if not self.plays:  # a candidate has been asked already
            self.trained.play(examples, arms)
        family = self.trained.policy.problem.family
        means = (family.mu(self.trained.z) - family.low) / family.range
        return np.clip(means, 0.0, 1.0)


def model_of(
    given: Any,
    playing: Mapping[str, Fixed | TrainedPolicy],
    problem: Problem,
    options: Mapping[str, Any],
) -> Model:
    """The model that was asked for; None is the first candidate that learns and predicts."""
    candidates = {n: p for n, p in playing.items() if isinstance(p, TrainedPolicy) and p.predicts}
    if given is None:
        given = next(iter(candidates), MEAN)
    if isinstance(given, str):
        if given in candidates:
            return Learnt(candidates[given], given, plays=True)
        if given == MEAN:
            return Model()
        raise ValueError(
            "model must be 'mean', a policy, or a candidate that predicts "
            f"({', '.join(candidates)}), got {validate.show(given)}"
        )
    trained = TrainedPolicy(given, problem, **options)
    if not trained.predicts:
        raise ValueError(f"{trained.policy.name} predicts no rewards: use DOMD or AutoDOMD")
    return Learnt(trained, trained.policy.name, plays=False)
