"""Candidates: what would be played instead. Each gives a probability to every arm of every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from driftbandit import validate
from driftbandit.estimators.increments import LoggedArms
from driftbandit.evidence.log import Examples
from driftbandit.evidence.reading.chunk import Chunk, Floats
from driftbandit.evidence.trained_policy import TrainedPolicy
from driftbandit.policies.base import Policy
from driftbandit.policies.baselines import Uniform
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe


@dataclass(frozen=True)
class Always(Recipe):
    """Plays the arm with this name in every row; where it is not offered, all arms equally.

    >>> Always("a").to_dict()
    {'type': 'Always', 'arm': 'a'}
    """

    arm: str

    def __post_init__(self) -> None:
        if not isinstance(self.arm, (str, int)) or isinstance(self.arm, bool):
            raise ValueError(f"arm must be the name of an arm, got {validate.show(self.arm)}")
        self._set(arm=str(self.arm))


@dataclass(frozen=True)
class Default(Recipe):
    """Plays the default of every row; where it is not offered, all arms equally."""


@dataclass(frozen=True)
class Logged(Recipe):
    """Plays what the logged policy played: needs the probabilities of all arms."""


class Player(Protocol):
    """A candidate at work."""

    absent: int  # rows in which it could not play what it is

    def play(self, examples: Examples, arms: LoggedArms) -> Floats:
        """Probabilities (m,) of all arms, each row's before the row's reward is known."""


class Fixed:
    """Plays the same whatever happens."""

    def __init__(self, recipe: Any) -> None:
        self.recipe, self.absent = recipe, 0

    def play(self, examples: Examples, arms: LoggedArms) -> Floats:
        chunk = examples.chunk
        if isinstance(self.recipe, Logged):
            return self._logged(chunk, arms)
        equal = np.repeat(1.0 / chunk.sizes, chunk.sizes)
        return equal if isinstance(self.recipe, Uniform) else self._one(chunk, equal)

    def _one(self, chunk: Chunk, equal: Floats) -> Floats:
        """One arm of every row, by its name."""
        own = isinstance(self.recipe, Default)
        names: list[Any] = chunk.default if own else [self.recipe.arm] * len(chunk)
        place = np.array([menu.places.get(n, -1) for menu, n in zip(chunk.menus, names)])
        offered = place >= 0
        self.absent += int((~offered).sum())
        pi = np.where(np.repeat(offered, chunk.sizes), 0.0, equal)
        pi[(chunk.start + place)[offered]] = 1.0
        return pi

    def never_offered(self, names: Sequence[str]) -> str:
        """Return what is wrong if it is absent in all rows of a log with arms of these names."""
        if isinstance(self.recipe, Default):
            return "no row of the log names a default among its arms: use Always('a')"
        arm = self.recipe.arm
        return f"no row of the log offers an arm {arm!r}: {validate.nearest(arm, names)}"

    def _logged(self, chunk: Chunk, arms: LoggedArms) -> Floats:
        if not chunk.complete:
            raise ValueError(
                "Logged() needs the probabilities of all arms: name their column, "
                "columns={'probabilities': ...}"
            )
        return arms.h


def players(
    candidates: Any, problem: Problem, options: Mapping[str, Any]
) -> dict[str, Fixed | TrainedPolicy]:
    """Candidates by name, ready to play."""
    if not isinstance(candidates, Mapping) or not candidates:
        raise ValueError(
            "candidates must be a mapping such as {'new': AutoDOMD, 'default': Always('a')}, got "
            f"{validate.show(candidates)}"
        )
    return {str(name): _player(name, each, problem, options) for name, each in candidates.items()}


def _player(
    name: Any, given: Any, problem: Problem, options: Mapping[str, Any]
) -> Fixed | TrainedPolicy:
    if given is Uniform or isinstance(given, (Always, Default, Logged, Uniform)):
        return Fixed(Uniform() if given is Uniform else given)
    if given is Logged or given is Default:
        return Fixed(given())
    if isinstance(given, Policy) or (isinstance(given, type) and issubclass(given, Policy)):
        return TrainedPolicy(given, problem, **options)
    raise ValueError(
        f"candidate {name!r} must be a policy such as AutoDOMD, Always('a'), Default(), Uniform() "
        f"or Logged(), got {validate.show(given)}"
    )
