"""Learners from a log: a warm start from history, and an honest learning curve."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftbandit import validate
from driftbandit.bandit import Bandit
from driftbandit.evidence.reading.chunk import Floats
from driftbandit.evidence.reading.ledger import LedgerSource
from driftbandit.evidence.trained_policy import TrainedPolicy
from driftbandit.loop.exploration import Rule, draw
from driftbandit.loop.learning.keyed import Keyed
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.rows import RowPolicy

if TYPE_CHECKING:
    from driftbandit.evidence.log import Examples, Log


class Replay(NamedTuple):
    """A learner after all rows; `digest` is equal for learners that are equal bit for bit."""

    bandit: Bandit
    rows: int
    digest: str | None
    keys: Mapping[str, Bandit] = MappingProxyType({})  # learners of a keyed loop


class Rejection(NamedTuple):
    """A policy that learnt only from rows in which it would have done what was done.

    Accepted rows are as if it had played them itself, so their mean reward is its own while it
    learns. The price is the rows that are thrown away.
    """

    bandit: Bandit
    rows: int
    reward: Floats  # (accepted,) in the log's unit
    at: Floats  # (accepted,)

    @property
    def curve(self) -> Floats:
        """Mean reward up to each accepted row."""
        return np.asarray(np.cumsum(self.reward) / np.arange(1, len(self.reward) + 1))


def replayed(
    log: Log, policy: Any, half_life: Any, scheduler: str | None, workers: int | None
) -> Replay:
    """Train all of a log. A ledger is replayed as its loop trained it: without a `policy` the
    learner is the loop's own, bit for bit."""
    if workers is not None and scheduler is None:
        raise ValueError("workers are those of a cluster: pass scheduler='local', too")
    if isinstance(log.source, LedgerSource) and policy is None and half_life is not None:
        raise ValueError("the loop's own half-life is replayed: for another one pass policy=, too")
    if isinstance(log.source, LedgerSource) and (policy is None or _is_row(policy)):
        learner = log.source.replay(policy, half_life, scheduler, workers)
        keys = learner.bandits if isinstance(learner, Keyed) else {}
        return Replay(learner.bandit, learner.bandit.rounds, learner.digest, keys)
    if scheduler is not None:
        raise ValueError(
            "only the ledger of a loop with key= can be spread over workers: leave scheduler out"
        )
    trained = TrainedPolicy(
        AutoDOMD if policy is None else policy, log.problem, half_life=half_life
    )
    for examples in log.examples():
        trained.train(examples)
    return Replay(trained.bandit, trained.rows, trained.digest)


def _is_row(policy: Any) -> bool:
    return isinstance(policy, RowPolicy) or (
        isinstance(policy, type) and issubclass(policy, RowPolicy)
    )


def rejection(log: Log, policy: Any, exploration: Rule | None, seed: int) -> Rejection:
    """Rejection replay: a row is accepted with probability pi(A)/h(A) over the largest that ratio
    can be, and only then trains (after Li, Chu, Langford and Wang 2011, for any logged h)."""
    if policy is None:
        raise ValueError(
            "rejection replay asks a policy what it would have done: name one, such as "
            "policy=AutoDOMD, or --policy AutoDOMD"
        )
    least = log.least or _least(log)
    seed = validate.count("seed", seed, "of what is accepted", least=0)
    trained = TrainedPolicy(policy, log.problem, rule=exploration, seed=seed)
    kept = _Kept(least, seed)
    for examples in log.examples():
        for k in np.flatnonzero(~examples.chunk.aside).tolist():
            kept.consider(trained, examples, k)
    return Rejection(trained.bandit, kept.rows, np.array(kept.reward), np.array(kept.at))


def _least(log: Log) -> float:
    """The smallest probability with which anything was played."""
    drawn = (chunk.p[~chunk.aside] for chunk in log.chunks())
    return min((float(p.min()) for p in drawn if len(p)), default=1.0)


class _Kept:
    """Accepted rows so far."""

    def __init__(self, least: float, seed: int) -> None:
        self.least, self.seed, self.rows = least, seed, 0
        self.reward: list[float] = []
        self.at: list[float] = []

    def consider(self, trained: TrainedPolicy, examples: Examples, k: int) -> None:
        chunk, first = examples.chunk, int(examples.chunk.start[k])
        menu = examples.X[first : first + int(chunk.sizes[k])]
        own = trained.rule.probabilities(trained.bandit, menu, trained._words(chunk, k))
        chance = own[chunk.action[k]] * self.least / chunk.p[k]
        self.rows += 1
        if draw(self.seed, int(chunk.number[k]), "accept") < chance:
            trained.bandit.update(menu[chunk.action[k]], float(examples.r[k]))
            self.reward.append(float(chunk.reward[k]))
            self.at.append(float(chunk.at[k]))
