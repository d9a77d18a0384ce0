"""Hearings: what everybody would have done in a decision, as a row of the tally."""

from __future__ import annotations

from collections.abc import Mapping

from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.candidates.scoring import Case, Live
from driftbandit.loop.candidates.totals import Pair, Row, Tally
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.waiting import Example
from driftbandit.loop.storage.events import DEFAULT, LIVE
from driftbandit.policies.base import Floats
from driftbandit.reward import Reward


def hear(
    example: Example,
    about: Case,
    learner: Learner,
    candidates: Mapping[str, tuple[Candidate, Floats]],
) -> Row:
    """A row from the live learner and candidates with their rows (K, size), before they are told.
    A candidate and the live policy are compared as they were at the same moment."""
    live = Live(learner, about, example.at)
    values, pairs = {LIVE: live.then}, dict[Pair, tuple[Floats, Floats]]()
    for name, (one, X) in candidates.items():
        if name in about.votes:
            pairs[name, LIVE] = about.votes[name].p, about.votes[LIVE].p
        else:
            pairs[name, LIVE] = one.now(X, about.settings, about.asked, example.at), live.now
        values[name] = pairs[name, LIVE][0]
    if about.default is not None:
        pairs |= {(name, DEFAULT): (p, about.default) for name, p in values.items()}
        values[DEFAULT] = about.default
    choice = about.answer.choices[0]
    assert choice is not None
    R = part(learner.reward, example.value)
    return Row(about.h, choice, live.expects, R, values, pairs, {})


def part(reward: Reward, value: float) -> float:
    """A reward as a part of its range, 1 is best."""
    return reward.inside(value)[0] / (reward.range if reward.counts else 1.0)


def recorded(example: Example, about: Case, tally: Tally) -> dict[str, tuple[float, float]]:
    """Guarded metrics of a example, and what was to be expected of them."""
    said, found = dict(example.metrics), {}
    metrics = about.settings.guard.metrics if about.settings.guard else {}
    for name, metric in metrics.items():
        value = said.get(name, metric.missing)
        if value is not None:
            own = part(metric, value)
            found[name] = own, tally.expected(name, own)
    return found
