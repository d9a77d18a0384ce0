"""Audits: any logged probability can be computed again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from driftbandit.loop.deciding.choose import Asked, decided
from driftbandit.loop.deciding.explain import reasons
from driftbandit.loop.deciding.payloads import answered, asked_for
from driftbandit.loop.deciding.slates import read_by, rows
from driftbandit.loop.deciding.types import Why
from driftbandit.loop.learning.learner import Learner, View
from driftbandit.loop.storage.events import Event, LedgerError
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import Past, State, latest, origin, unfold
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


def audit(ledger: Ledger, past: Past, id: str) -> Audit:
    """Train the learner up to the point at which it decided, and decide again."""
    event = ledger.find(id)
    if event is None:
        raise ValueError(f"there is no decision {id!r} in the log: check the id")
    examples = event.read()["learner"][1]
    if _is_gone(ledger, examples):
        raise ValueError(
            f"decision {id!r} is older than the oldest checkpoint: it cannot be computed again"
        )
    return _audited(past, event, latest(ledger, past, examples))


def _is_gone(ledger: Ledger, examples: int) -> bool:
    start = origin(ledger)
    return start is not None and start.read()["learner"]["examples"] > examples


def audit_all(ledger: Ledger, past: Past) -> Iterator[Audit]:
    """All decisions that can be redone, in one pass over the examples."""
    state, changes = unfold(ledger, past, origin(ledger))
    trainer = Trainer(state.learner, state.panel, ledger, dict(past.versions))
    for examples, event in _in_order(ledger):
        if examples < state.learner.examples:
            continue  # decided before the oldest checkpoint
        trainer.train(list(islice(changes, examples - state.learner.examples)))
        yield _audited(past, event, state)


def _in_order(ledger: Ledger) -> Iterable[tuple[int, Event]]:
    decisions = (event for event in ledger.read(ledger.start) if event.kind == "decide")
    found = [(event.read()["learner"][1], event) for event in decisions]
    return sorted(found, key=lambda each: (each[0], each[1].seq))


def _audited(past: Past, event: Event, state: State) -> Audit:
    data, id, learner = event.read(), str(event.id), state.learner
    request, answer = asked_for(data), answered(data)
    if not request.names:
        return Audit(id, [], [], [None for _ in answer.choices])
    seq, examples, aged = data["learner"]
    if (learner.seq, learner.examples) != (seq, examples):
        raise LedgerError(f"the log does not lead to decision {id!r}: restore it from a copy")
    features, settings = past.versions[data["version"]].features, past.settings[data["settings"]]
    view = learner.seen(aged, event.key)
    asked = Asked(past.declaration.seed, id, event.key)
    X, voted = rows(features, read_by(features, request)), data.get("trial", {})

    def seen(name: str, one: Learner) -> View:
        return one.seen(voted.get(name, NEVER)[0], event.key)

    votes = state.panel.votes(settings, request, answer.role, asked, seen)
    found = decided(settings, request, answer.role, asked, X, view, votes, answer.choices)
    whys = reasons(features, request, answer, view.bandit.theta)
    before = [p for each in answer.p for p in each]
    return Audit(id, before, found.probabilities.ravel().tolist(), whys)
