"""What changed: terms of the estimate that moved by more than they are uncertain."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import Definition
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import latest, origin
from driftbandit.policies.base import Floats

LEVEL = 0.05  # chance that anything is named where nothing changed, at most


class Change(NamedTuple):
    """What a term adds to x'theta at its largest, before and now, and the deviation of the
    difference."""

    term: str
    before: float
    after: float
    deviation: float


def changes(ledger: Ledger, definition: Definition, learner: Learner, since: float) -> list[Change]:
    """The clearest first. Both estimates share what was learnt before, so their difference is less
    uncertain than assumed here: what is named has moved."""
    then = latest(ledger, definition, _examples(ledger, since)).learner
    if then.version.reign != learner.version.reign:
        raise ValueError("the live policy was promoted after that date: pass a later since=")
    with learner.lock:
        plan = learner.version.features.plan
        before, after = _estimate(then), _estimate(learner)
    n = len(before[0])  # columns that are newer have no before
    reach, labels = plan.reach[:n], plan.labels[:n]
    moved, deviation = after[0][:n] - before[0], np.hypot(before[1], after[1][:n])
    z = np.abs(moved) / deviation
    clear = NormalDist().inv_cdf(1.0 - 0.5 * LEVEL / n)
    return [
        Change(labels[j], *(float(reach[j] * v) for v in (before[0][j], after[0][j], deviation[j])))
        for j in np.argsort(-z, kind="stable")
        if z[j] > clear
    ]


def _examples(ledger: Ledger, since: float) -> int:
    """Return what the learner had learnt by then, as far back as the log goes."""
    start, event = origin(ledger), ledger.before(since)
    oldest = start.read().learner["examples"] if start else 0
    return max(oldest, event.read().learner[1] if event else 0)


def _estimate(learner: Learner) -> tuple[Floats, Floats]:
    """Theta and its deviations."""
    policy = learner.policy
    memory = policy.from_rows(learner.row[None])
    deviation = policy.deviation(memory, np.eye(policy.problem.dim)[None])
    assert deviation is not None
    return np.array(memory.theta[0]), deviation[0]
