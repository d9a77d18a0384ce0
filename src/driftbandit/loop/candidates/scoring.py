"""Scoring: how each policy would have decided, as one comparison row.

`asked` collects votes when the trainer passes a decision: each policy knows the examples that were
closed before it. `score` makes a row of them once the reward is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from driftbandit.estimators.leads import Pace
from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.candidates.totals import Both, Outcome, Pair, Row, Totals
from driftbandit.loop.config import MODES, Settings
from driftbandit.loop.deciding import slates
from driftbandit.loop.deciding.choose import chances
from driftbandit.loop.deciding.payloads import answered, asked_for, voted
from driftbandit.loop.deciding.types import Answer, Request, Votes
from driftbandit.loop.exploration import Words, means
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
    seed: Words

    @property
    def not_comparable(self) -> str:
        """Why policies cannot be compared in it; "" if they can."""
        if self.answer.choices[0] is None:
            return "no arm"
        if self.request.k is not None:
            return "slate"
        return "" if self.answer.role in MODES else self.answer.role

    @property
    def splits(self) -> bool:
        """Whether the holdout was drawn for this decision alone, so that both sides of the draw
        compare the live policy with the default. A key is drawn once for all its decisions, which
        are no sample of all decisions."""
        drawn = self.settings.holdout > 0.0 and self.request.key is None
        both = self.settings.mode == "active" and self.answer.role in ("active", "holdout")
        return drawn and both and self.request.k is None

    @property
    def h(self) -> Floats:
        """Logged probabilities."""
        return np.array(self.answer.p[0])

    @property
    def chosen(self) -> int:
        """The arm that was played."""
        choice = self.answer.choices[0]
        assert choice is not None
        return choice

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
        definition.declaration.seed_words,
    )


class LivePolicy:
    """What the live policy thinks of a logged decision, with all that it knows now."""

    def __init__(self, learner: Learner, logged: LoggedDecision, at: float) -> None:
        self._logged, features = logged, learner.version.features
        self._X = slates.rows(features, slates.read_by(features, logged.request))[0]
        self._view = learner.exact(at, logged.request.key)

    @property
    def expects(self) -> Floats:
        """Rewards of all arms, from 0 to 1."""
        family = self._view.bandit.policy.problem.family
        return (means(self._view.bandit, self._X) - family.low) / family.range

    @property
    def vote(self) -> Floats:
        """What it would do."""
        logged, view = self._logged, self._view
        words, settings = (*logged.seed, logged.request.id, view.policy), logged.settings
        return chances(settings.exploration, settings, logged.request, view, self._X, words)


LEAST = 0.01  # of exploration, as far as the pace of rows goes
LOST = "lost: "  # before the reason, where metrics have their name

Ballot = dict[str, Floats]  # votes about one decision by name, (K,) each


def asked(
    logged: LoggedDecision, at: float, learner: Learner, candidates: Mapping[str, Candidate]
) -> Ballot:
    """Return the votes that the log does not have. Candidates and the live policy are asked at the
    same moment, so a candidate that equals the live policy differs from it in nothing."""
    found: Ballot = {}
    for name, one in candidates.items():
        X = None if name in logged.votes else one.rows(logged.request)
        if X is not None:
            found[name] = one.now(X[0], logged.settings, logged.request, at)
    if found or logged.answer.role != "active":
        found[LIVE] = LivePolicy(learner, logged, at).vote
    return found


def live_vote(logged: LoggedDecision, ballot: Ballot) -> Floats | None:
    """Return what the live policy did if it acted, and otherwise what it said when asked."""
    if LIVE in logged.votes:
        return logged.votes[LIVE].p
    return logged.h if logged.answer.role == "active" else ballot.get(LIVE)


def compared(logged: LoggedDecision, ballot: Ballot, live: Floats) -> dict[Pair, Both]:
    """Return who is compared with whom: candidates with the live policy as both were at the same
    moment, and all of them with the default."""
    trial = {name: vote.p for name, vote in logged.votes.items()}
    pairs: dict[Pair, Both] = {}
    for votes in (ballot, trial):
        pairs |= {(name, LIVE): (p, votes[LIVE]) for name, p in votes.items() if name != LIVE}
    if logged.default is not None:
        own = {LIVE: live} | {name: p for (name, _), (p, _) in pairs.items()}
        pairs |= {(name, DEFAULT): (p, logged.default) for name, p in own.items()}
    return pairs


def shares_of(logged: LoggedDecision, most_arms: int) -> Callable[[str], float]:
    """Return the share of decisions that a policy has: at least what exploration gives an arm."""
    trials = {name: logged.settings.trials.get(name, 0.0) for name in logged.votes}
    acts = LIVE if logged.answer.role == "active" else DEFAULT
    shares = {**trials, acts: 1.0 - math.fsum(trials.values())}
    least = max(logged.settings.exploration.uniform, LEAST) / most_arms
    return lambda name: max(shares.get(name, 0.0), least)


def score(
    logged: LoggedDecision,
    ballot: Ballot,
    live: Floats,
    outcomes: dict[str, Outcome],
    totals: Totals,
) -> Row:
    """Return a row that compares all policies by the arm that was drawn."""
    totals.most_arms = max(totals.most_arms, len(logged.h))
    pairs = compared(logged, ballot, live)
    values = {LIVE: live} | {name: p for (name, over), (p, _) in pairs.items() if over == LIVE}
    if logged.default is not None:
        values[DEFAULT] = logged.default
    if logged.splits:
        pairs.pop((LIVE, DEFAULT), None)
    share, paces = shares_of(logged, totals.most_arms), {}
    for (first, second), both in pairs.items():
        shares = share(first), share(second)
        paces[first, second] = totals.paced((first, second), shares, logged.h, both)
    spend = logged.request.spend or {}
    costs = {name: np.array(each.costs) / each.bound for name, each in spend.items()}
    return Row(logged.h, logged.chosen, outcomes, values, pairs, paces, costs)


def lost(logged: LoggedDecision, ballot: Ballot, why: str, totals: Totals) -> Row:
    """Return a row of a decision that gives no example. Whether it does must not depend on the
    arm: among all that are lost, each policy then has as many as it would have played."""
    live = live_vote(logged, ballot)
    pairs = {} if live is None else compared(logged, ballot, live)
    told = {pair: both for pair, both in pairs.items() if pair[1] == LIVE}
    share = shares_of(logged, totals.most_arms)
    paces = {pair: totals.pace(pair, (share(pair[0]), share(pair[1]))).weight for pair in told}
    nothing = Outcome(1.0, np.zeros(len(logged.h)))
    return Row(logged.h, logged.chosen, {LOST + why: nothing}, {}, told, paces)


def split(logged: LoggedDecision, outcomes: dict[str, Outcome]) -> Row:
    """Return a row that compares the live policy with the default by the draw of the holdout: what
    the loop did, exploration and trials included, against what the default did."""
    H = logged.settings.holdout
    both = {
        name: each._replace(expected=np.full(2, each.expected[0]))
        for name, each in outcomes.items()
    }
    pair, sides = (LIVE, DEFAULT), (np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    held = logged.answer.role == "holdout"
    return Row(
        np.array([1.0 - H, H]),
        int(held),
        both,
        {},
        {pair: sides},
        {pair: Pace((H, 1.0 - H)).weight},
    )


def part(reward: Reward, value: float) -> float:
    """Return a reward as a part of its range, 1 is best."""
    return reward.inside(value)[0] / (reward.range if reward.counts else 1.0)


def metrics(example: Example, logged: LoggedDecision, totals: Totals) -> dict[str, Outcome]:
    """Return the guarded metrics of an example, and what was to be expected of them."""
    said, found = dict(example.metrics), {}
    guarded = logged.settings.guard.metrics if logged.settings.guard else {}
    for name, metric in guarded.items():
        value = said.get(name, metric.missing)
        if value is not None:
            own = part(metric, value)
            found[name] = Outcome(own, np.full(len(logged.h), totals.expected(name, own)))
    return found


def reward_by_model(example: Example, logged: LoggedDecision, learner: Learner) -> Outcome:
    """Return the reward, and what the live learner expects: it knows all examples before."""
    expects = LivePolicy(learner, logged, example.at).expects
    return Outcome(part(learner.reward, example.value), expects)


def reward_by_mean(
    example: Example, logged: LoggedDecision, learner: Learner, totals: Totals
) -> Outcome:
    """Return the reward, and the mean of those before."""
    own = part(learner.reward, example.value)
    return Outcome(own, np.full(len(logged.h), totals.expected("", own)))
