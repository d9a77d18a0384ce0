"""Cases: logged decisions about which everybody is asked again, before anybody is told."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from driftbandit.loop.config import MODES, Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.choose import Asked, words
from driftbandit.loop.deciding.mixture import Vote, Votes
from driftbandit.loop.deciding.payloads import answered, asked_for
from driftbandit.loop.deciding.types import Answer, Request
from driftbandit.loop.exploration import means
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.storage.events import LIVE, Event
from driftbandit.policies.base import Floats


class Case(NamedTuple):
    """A decision as it was logged; `version` is that of the policy that made it."""

    request: Request
    answer: Answer
    asked: Asked
    settings: Settings
    votes: Votes  # of a trial
    version: str

    @property
    def aside(self) -> str:
        """Why nobody can be compared in it; "" if they can."""
        if self.answer.choices[0] is None:
            return "no arm"
        if self.request.k is not None:
            return "slate"
        return "" if self.answer.role in MODES else self.answer.role

    @property
    def h(self) -> Floats:
        """Logged probabilities."""
        return np.array(self.answer.p[0])

    @property
    def default(self) -> Floats | None:
        """The default as probabilities of all arms."""
        if self.request.default is None:
            return None
        place = self.request.names.index(self.request.default)
        return np.eye(1, len(self.request.names), place)[0]


def case(event: Event, seed: int, settings: Mapping[int, Settings]) -> Case:
    data = event.read()
    voted = data.get("trial", {}).items()
    return Case(
        asked_for(data),
        answered(data),
        Asked(seed, str(event.id), event.key),
        settings[data["settings"]],
        {name: Vote(np.array(p), aged) for name, (aged, p) in voted},
        data["version"],
    )


class Live:
    """What the live policy thinks of a case now, knowing what candidates know."""

    def __init__(self, learner: Learner, case: Case, at: float) -> None:
        self._case, features = case, learner.version.features
        self._X = slates.rows(features, slates.read_by(features, case.request))[0]
        self._view = learner.exact(at, case.asked.key)

    @property
    def expects(self) -> Floats:
        """Rewards of all arms, from 0 to 1."""
        family = self._view.bandit.policy.problem.family
        return (means(self._view.bandit, self._X) - family.low) / family.range

    @cached_property
    def now(self) -> Floats:
        """What it would do now."""
        own = words(self._case.asked, self._view)
        return self._case.settings.exploration.probabilities(self._view.bandit, self._X, own)

    @property
    def then(self) -> Floats:
        """What it did, where it acted or voted; what it would do now where it did neither."""
        if LIVE in self._case.votes:
            return self._case.votes[LIVE].p
        return self._case.h if self._case.answer.role == "active" else self.now
