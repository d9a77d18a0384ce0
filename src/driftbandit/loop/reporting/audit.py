"""Audits: any logged probability can be computed again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from driftbandit.loop.deciding.choose import decided
from driftbandit.loop.deciding.explain import reasons
from driftbandit.loop.deciding.payloads import answered, asked_for
from driftbandit.loop.deciding.slates import read_by, rows
from driftbandit.loop.deciding.types import View, Why
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import Definition
from driftbandit.loop.storage.events import Decide, Event
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import State, first, latest, origin, unfold
from driftbandit.loop.training.trainer import Trainer

CLOSE = 1e-9  # on another type of CPU
NEVER = (0.0,)  # how old a candidate was that had no vote


class Audit(NamedTuple):
    """A decision's probabilities as they were logged and as the log gives them again: of all arms,
    at one position of a slate after the other."""

    id: str
    logged: list[float]
    computed: list[float]
    whys: list[Why | None]  # for every position

    @property
    def why(self) -> Why | None:
        """Of the first position, or the only one."""
        return self.whys[0]

    @property
    def agrees(self) -> bool:
        pairs = zip(self.logged, self.computed)
        same = all(math.isclose(p, q, abs_tol=CLOSE) for p, q in pairs)
        return same and len(self.logged) == len(self.computed)


def audit(ledger: Ledger, definition: Definition, id: str) -> Audit:
    """Train the learner up to the point at which it decided, and decide again."""
    event = ledger.find(id)
    if event is None:
        raise ValueError(f"there is no decision {id!r} in the log: check the id")
    examples = event.read().learner[1]
    if _is_gone(ledger, examples):
        raise ValueError(
            f"decision {id!r} is older than the oldest checkpoint: it cannot be computed again"
        )
    return _audited(definition, event, latest(ledger, definition, examples))


def _is_gone(ledger: Ledger, examples: int) -> bool:
    start = origin(ledger)
    return start is not None and start.read().learner["examples"] > examples


def audit_all(ledger: Ledger, definition: Definition) -> Iterator[Audit]:
    """Audit all decisions that can be redone, in one pass over the examples."""
    state, changes = unfold(ledger, definition, origin(ledger))
    trainer = Trainer(state.learner, state.candidates, ledger)
    for examples, event in _in_order(ledger):
        if examples < state.learner.examples:
            continue  # decided before the oldest checkpoint
        trainer.train(list(first(changes, examples - state.learner.examples)))
        yield _audited(definition, event, state)


def _in_order(ledger: Ledger) -> Iterable[tuple[int, Event]]:
    decisions = (event for event in ledger.read(ledger.start) if event.kind == "decide")
    found = [(event.read().learner[1], event) for event in decisions]
    return sorted(found, key=lambda each: (each[0], each[1].seq))


def _audited(definition: Definition, event: Event, state: State) -> Audit:
    data: Decide = event.read()
    id, learner = str(event.id), state.learner
    request, answer = asked_for(event, data), answered(data)
    if not request.names:
        return Audit(id, [], [], [None for _ in answer.choices])
    seq, examples, aged = data.learner
    if (learner.seq, learner.examples) != (seq, examples):
        raise LedgerError(f"the log does not lead to decision {id!r}: restore it from a copy")
    features = definition.versions[data.version].features
    settings, seed = definition.settings[data.settings], definition.declaration.seed
    view, X = learner.seen(aged, event.key), rows(features, read_by(features, request))

    def seen(name: str, one: Learner) -> View:
        return one.seen(data.trial.get(name, NEVER)[0], event.key)

    votes = state.candidates.votes(settings, request, answer.role, seen)
    _, p = decided(settings, request, answer.role, seed, X, view, votes, answer.choices)
    whys = reasons(features, request, answer, view.bandit.theta)
    return Audit(id, [x for each in answer.p for x in each], p.ravel().tolist(), whys)
