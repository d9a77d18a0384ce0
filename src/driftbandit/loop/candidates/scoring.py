"""Scoring: how each policy would have decided, as one comparison row, before any of them learns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.candidates.totals import Pair, Row, Totals
from driftbandit.loop.config import MODES, Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.choose import chances
from driftbandit.loop.deciding.payloads import answered, asked_for, voted
from driftbandit.loop.deciding.types import Answer, Request, Votes
from driftbandit.loop.exploration import means
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import Definition
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.events import DEFAULT, LIVE, Event
from driftbandit.policies.base import Floats
from driftbandit.reward import Reward


class LoggedDecision(NamedTuple):
    """A decision as it was logged; `version` is that of the policy that made it."""

    request: Request
    answer: Answer
    settings: Settings
    votes: Votes  # of a trial
    version: str
    seed: int

    @property
    def not_comparable(self) -> str:
        """Why policies cannot be compared in it; "" if they can."""
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


def logged_decision(event: Event, definition: Definition) -> LoggedDecision:
    data = event.read()
    return LoggedDecision(
        asked_for(event, data),
        answered(data),
        definition.settings[data.settings],
        voted(data),
        data.version,
        definition.declaration.seed,
    )


class LivePolicy:
    """What the live policy thinks of a logged decision now, knowing what candidates know."""

    def __init__(self, learner: Learner, logged: LoggedDecision, at: float) -> None:
        self._logged, features = logged, learner.version.features
        self._X = slates.rows(features, slates.read_by(features, logged.request))[0]
        self._view = learner.exact(at, logged.request.key)

    @property
    def expects(self) -> Floats:
        """Rewards of all arms, from 0 to 1."""
        family = self._view.bandit.policy.problem.family
        return (means(self._view.bandit, self._X) - family.low) / family.range

    @cached_property
    def now(self) -> Floats:
        """What it would do now."""
        logged, view = self._logged, self._view
        words, settings = (logged.seed, logged.request.id, view.policy), logged.settings
        return chances(settings.exploration, settings, logged.request, view, self._X, words)

    @property
    def then(self) -> Floats:
        """What it did, if it acted or voted; otherwise what it would do now."""
        if LIVE in self._logged.votes:
            return self._logged.votes[LIVE].p
        return self._logged.h if self._logged.answer.role == "active" else self.now


def score(
    example: Example,
    logged: LoggedDecision,
    learner: Learner,
    candidates: Mapping[str, tuple[Candidate, Floats]],
) -> Row:
    """Return a row from the live learner and candidates with their rows (K, size). A candidate and
    the live policy are compared as they were at the same moment."""
    live = LivePolicy(learner, logged, example.at)
    values, pairs = {LIVE: live.then}, dict[Pair, tuple[Floats, Floats]]()
    for name, (one, X) in candidates.items():
        if name in logged.votes:
            pairs[name, LIVE] = logged.votes[name].p, logged.votes[LIVE].p
        else:
            own = one.now(X, logged.settings, logged.request, example.at)
            pairs[name, LIVE] = own, live.now
        values[name] = pairs[name, LIVE][0]
    if logged.default is not None:
        pairs |= {(name, DEFAULT): (p, logged.default) for name, p in values.items()}
        values[DEFAULT] = logged.default
    choice = logged.answer.choices[0]
    assert choice is not None
    R = part(learner.reward, example.value)
    return Row(logged.h, choice, live.expects, R, values, pairs, {})


def part(reward: Reward, value: float) -> float:
    """Return a reward as a part of its range, 1 is best."""
    return reward.inside(value)[0] / (reward.range if reward.counts else 1.0)


def metrics(
    example: Example, logged: LoggedDecision, totals: Totals
) -> dict[str, tuple[float, float]]:
    """Return the guarded metrics of an example, and what was to be expected of them."""
    said, found = dict(example.metrics), {}
    guarded = logged.settings.guard.metrics if logged.settings.guard else {}
    for name, metric in guarded.items():
        value = said.get(name, metric.missing)
        if value is not None:
            own = part(metric, value)
            found[name] = own, totals.expected(name, own)
    return found
