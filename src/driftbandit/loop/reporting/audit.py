"""Audits: any logged probability can be computed again, and the draw that was made from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from driftbandit.loop.deciding.choose import decided, drawn, possible_roles
from driftbandit.loop.deciding.explain import reasons
from driftbandit.loop.deciding.payloads import answered, asked_for
from driftbandit.loop.deciding.pricing import spends
from driftbandit.loop.deciding.slates import read_by, rows
from driftbandit.loop.deciding.types import View, Why
from driftbandit.loop.errors import LedgerError, reading
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import Definition
from driftbandit.loop.storage.events import SPENT, Decide, Event, Spend
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import State, applied, first, latest, marked, origin, unfold
from driftbandit.loop.training.trainer import Trainer

CLOSE = 1e-9  # on another type of CPU
NEVER = (0.0,)  # how old a candidate was that had no vote


class Audit(NamedTuple):
    """A decision's probabilities as they were logged and as the log gives them again: of all arms,
    at one position of a slate after the other. `chosen` are the arms that were logged, by their
    place, and `drawn` those that seed, id and logged probabilities give; `role_agrees` says whether
    the settings and the holdout give the role."""

    id: str
    logged: list[float]
    computed: list[float]
    whys: list[Why | None]  # for every position
    logged_prices: Sequence[float] = ()  # of budgets: price, bound, and the costs of all arms
    computed_prices: Sequence[float] = ()
    chosen: Sequence[int | None] = ()
    drawn: Sequence[int | None] = ()
    role_agrees: bool = True

    @property
    def why(self) -> Why | None:
        """Of the first position, or the only one."""
        return self.whys[0]

    @property
    def agrees(self) -> bool:
        prices = all(map(_is_close, self.logged_prices, self.computed_prices))
        same = all(math.isclose(*both, abs_tol=CLOSE) for both in zip(self.logged, self.computed))
        same = same and prices and len(self.logged) == len(self.computed)
        return same and self.chosen == self.drawn and self.role_agrees


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
    state = latest(ledger, definition, examples)
    return _audited(definition, event, state, _prices(ledger, definition, [event]))


def _is_gone(ledger: Ledger, examples: int) -> bool:
    start = origin(ledger)
    return start is not None and start.read().learner["examples"] > examples


def audit_all(ledger: Ledger, definition: Definition) -> Iterator[Audit]:
    """Audit all decisions that can be redone, in one pass over the examples."""
    state, changes = unfold(ledger, definition, origin(ledger))
    trainer, decisions = Trainer(state.learner, state.candidates, ledger), _in_order(ledger)
    prices = _prices(ledger, definition, [event for _, event in decisions])
    for examples, event in decisions:
        if examples < state.learner.examples:
            continue  # decided before the oldest checkpoint
        trainer.train(list(first(changes, examples - state.learner.examples)))
        yield _audited(definition, event, state, prices)


def _prices(
    ledger: Ledger, definition: Definition, decisions: Sequence[Event]
) -> dict[int, dict[str, Spend]]:
    """Return what budgets had to do with decisions, by seq, from the log alone; not of decisions
    whose prices follow from events that are gone."""
    asked: dict[int, list[Event]] = {}
    for event in decisions:
        if event.data.startswith(SPENT):
            asked.setdefault(event.read().priced, []).append(event)
    if not asked:
        return {}
    starts = [each for each in ledger.checkpoints() if marked(each).seq <= min(asked)]
    mark = marked(starts[-1]) if starts else None
    windows = definition.windows(mark.since if mark else 1)
    found: dict[int, dict[str, Spend]] = {}
    seqs = chain([mark.seq if mark else 0], (seq for seq, _ in applied(ledger, windows, mark)))
    if mark is None and ledger.base:
        return {}
    for seq in seqs:
        if mark and seq == mark.seq:
            windows.accounts.load(mark.accounts)
        for event in asked.pop(seq, ()):
            data = event.read()
            at = next((each.at for each in data.spend.values() if each.at is not None), event.at)
            settings = definition.settings[data.settings]
            found[event.seq] = spends(asked_for(event, data), settings, windows.accounts, at)
        if not asked:
            break
    return found


def _numbers(spend: Mapping[str, Spend]) -> list[float]:
    return [x for each in spend.values() for x in (each.price, each.bound, *each.costs)]


def _is_close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=CLOSE)


def _in_order(ledger: Ledger) -> list[tuple[int, Event]]:
    decisions = (event for event in ledger.read(ledger.start) if event.kind == "decide")
    found = [(event.read().learner[1], event) for event in decisions]
    return sorted(found, key=lambda each: (each[0], each[1].seq))


def _audited(
    definition: Definition, event: Event, state: State, prices: Mapping[int, dict[str, Spend]]
) -> Audit:
    with reading(f"decision {event.id!r}"):
        return _decided_again(definition, event, state, prices)


def _decided_again(
    definition: Definition, event: Event, state: State, prices: Mapping[int, dict[str, Spend]]
) -> Audit:
    data: Decide = event.read()
    id, learner = str(event.id), state.learner
    request, answer = asked_for(event, data), answered(data)
    if not request.names:
        return Audit(id, [], [], [None for _ in answer.choices])
    seq, examples, aged = data.learner
    if (learner.seq, learner.examples) != (seq, examples):
        raise LedgerError(f"the log does not lead to decision {id!r}: restore it from a copy")
    features = definition.versions[data.version].features
    settings, seed = definition.settings[data.settings], definition.declaration.seed_words
    view, X = learner.seen(aged, event.key), rows(features, read_by(features, request))

    def seen(name: str, one: Learner) -> View:
        return one.seen(data.trial.get(name, NEVER)[0], event.key)

    votes = state.candidates.votes(settings, request, answer.role, seen)
    pairs = definition.declaration.learns_preferences
    _, p = decided(settings, request, answer.role, seed, X, view, votes, answer.choices, pairs)
    whys = reasons(features, request, answer, view.bandit.estimate, view.bandit, pairs)
    logged, known = _numbers(data.spend), prices.get(event.seq, data.spend)
    p_logged = [x for each in answer.p for x in each]
    return Audit(
        id,
        p_logged,
        p.ravel().tolist(),
        whys,
        logged,
        _numbers(known),
        [*answer.choices],
        [*drawn(request, seed, view.policy, answer.p)],
        answer.role in possible_roles(settings, request, seed),
    )
