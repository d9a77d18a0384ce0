"""Reward models: what a row's reward was expected to be before it was known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.estimators.increments import Arms
from driftbandit.evidence.candidates import Fixed
from driftbandit.evidence.log import Examples
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.trained_policy import Pupil
from driftbandit.problem import Problem

MEAN = "mean"


class Model:
    """The mean of all rewards so far, for every arm."""

    name = MEAN

    def __init__(self) -> None:
        self._n, self._total = 1.0, 0.5

    def predict(self, examples: Examples, arms: Arms, R: Floats) -> Floats:
        """Rewards (m,) from 0 to 1 that were to be expected of all arms."""
        before = (self._total + np.cumsum(R) - R) / (self._n + np.arange(len(R)))
        self._n, self._total = self._n + len(R), self._total + float(R.sum())
        return np.repeat(before, examples.chunk.sizes)


class Learnt(Model):
    """What a learner predicts before it is told."""

    def __init__(self, pupil: Pupil, name: str, plays: bool) -> None:
        self.pupil, self.name, self.plays = pupil, name, plays

    def predict(self, examples: Examples, arms: Arms, R: Floats) -> Floats:
        if not self.plays:  # a candidate has been asked already
            self.pupil.play(examples, arms)
        family = self.pupil.policy.problem.family
        means = (family.mu(self.pupil.z) - family.low) / family.range
        return np.clip(means, 0.0, 1.0)


def model_of(
    given: Any, playing: Mapping[str, Fixed | Pupil], problem: Problem, options: Mapping[str, Any]
) -> Model:
    """The model that was asked for; None is the first candidate that learns and predicts."""
    pupils = {n: p for n, p in playing.items() if isinstance(p, Pupil) and p.predicts}
    if given is None:
        given = next(iter(pupils), MEAN)
    if isinstance(given, str):
        if given in pupils:
            return Learnt(pupils[given], given, plays=True)
        if given == MEAN:
            return Model()
        raise ValueError(
            f"model must be 'mean', a policy, or a candidate that predicts ({', '.join(pupils)}), "
            f"got {validate.show(given)}"
        )
    pupil = Pupil(given, problem, **options)
    if not pupil.predicts:
        raise ValueError(f"{pupil.policy.name} predicts no rewards: use DOMD or AutoDOMD")
    return Learnt(pupil, pupil.policy.name, plays=False)
