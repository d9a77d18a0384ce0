"""Learners from the log: after a restart, for an audit, or from the very beginning."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.loop.candidates.candidate_set import Panel
from driftbandit.loop.learning.keyed import learner_for
from driftbandit.loop.learning.learner import Learner, fingerprint
from driftbandit.loop.state.definition import Past as Past
from driftbandit.loop.state.definition import past as past
from driftbandit.loop.state.reward_windows import Book
from driftbandit.loop.state.versions import Version
from driftbandit.loop.storage.events import Event, LedgerError, write
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.trainer import CHUNK, Trainer
from driftbandit.loop.writing.pending import Change, Mark

log = logging.getLogger("driftbandit.loop")


class State(NamedTuple):
    """Book, learner and panel after all events."""

    book: Book
    learner: Learner
    panel: Panel


def unfold(
    ledger: Ledger, past: Past, start: Event | None, gone: frozenset[int] = frozenset()
) -> tuple[State, Iterator[Change]]:
    """Book and learner at a checkpoint, or at the beginning, and all that the log does to the
    learner from there on, as if the events in `gone` were blank. The book goes on while the
    changes are read."""
    reward = past.declaration.reward
    book = Book(reward.wait, reward.missing, past.declaration.retention)
    learner = learner_for(past.declaration, next(iter(past.versions.values())))
    panel = Panel(past)
    mark = None if start is None else _load(ledger, past, start, learner, panel)
    return State(book, learner, panel), _changes(ledger, book, mark, gone)


def _changes(
    ledger: Ledger, book: Book, mark: Mark | None, gone: frozenset[int]
) -> Iterator[Change]:
    if mark and mark.since > mark.seq:
        _restore(book, mark)
    for event in ledger.read(mark.since if mark else 1, light=True):
        changes = book.apply(event.blank if event.seq in gone else event).changes
        if mark is None or event.seq > mark.seq:
            yield from changes
        elif event.seq == mark.seq:  # the learner knows what was before: only what is open matters
            _restore(book, mark)


def replay(
    ledger: Ledger,
    past: Past,
    start: Event | None,
    stop: int | None = None,
    gone: frozenset[int] = frozenset(),
) -> State:
    """Train from a checkpoint on, or from the beginning, until `stop` examples were trained."""
    state, changes = unfold(ledger, past, start, gone)
    trainer = Trainer(state.learner, state.panel, ledger, dict(past.versions), gone=gone)
    left = changes if stop is None else islice(changes, stop - state.learner.examples)
    while chunk := list(islice(left, CHUNK)):
        trainer.train(chunk)
    return state


def latest(ledger: Ledger, past: Past, stop: int | None = None) -> State:
    """The same from the newest checkpoint that is whole and not beyond `stop`."""
    for start in reversed(ledger.checkpoints()):
        about, mark = start.read()["learner"], start.read()["mark"]
        if stop is not None and about["examples"] > stop:
            continue
        if mark[0] < ledger.base != start.seq:
            continue  # it was under way when the base was stored, and knows what is gone
        try:
            state = replay(ledger, past, start, stop)
        except LedgerError as error:
            if start.seq == ledger.base:
                raise
            log.warning("checkpoint %d is left out: %s", start.seq, error)
            continue
        if about["fingerprint"] != fingerprint():
            log.info("the learner was trained elsewhere (%s)", about["fingerprint"])
        return state
    if ledger.base:
        raise LedgerError("what was before the oldest checkpoint is gone: it cannot be replayed")
    return replay(ledger, past, None, stop)


def known_examples(ledger: Ledger) -> int:
    """How many examples the newest checkpoint knows."""
    found = ledger.checkpoints()[-1:]
    return int(found[0].read()["learner"]["examples"]) if found else 0


def origin(ledger: Ledger) -> Event | None:
    """The checkpoint that replays start from, if there is one."""
    return ledger.events([ledger.base])[ledger.base] if ledger.base else None


def checkpoint(learner: Learner, panel: Panel, mark: Mark) -> tuple[str, bytes]:
    """The data of a checkpoint's event, and the learners' numbers."""
    data, state = packed(learner, panel)
    parts = [None if part in (math.inf, -math.inf) else part for part in mark]
    return write({"mark": parts, **data}), state


def packed(learner: Learner, panel: Panel) -> tuple[dict[str, Any], bytes]:
    """All that was learnt: what it is, and its numbers."""
    with learner.lock:
        (about, state), (beside, more) = learner.state(), panel.state()
    return {"learner": about, "panel": beside, "size": len(state)}, state + more


def load(
    learner: Learner, panel: Panel, data: dict[str, Any], state: bytes, known: dict[str, Version]
) -> None:
    """Go on with what was packed."""
    size = data.get("size", len(state))  # older checkpoints are the learner alone
    with learner.lock:
        learner.load(data["learner"], state[:size], known[data["learner"]["version"]])
        if "panel" in data:
            panel.load(data["panel"], state[size:])


def _load(ledger: Ledger, past: Past, start: Event, learner: Learner, panel: Panel) -> Mark:
    data = start.read()
    load(learner, panel, data, ledger.state(start.seq), past.versions)
    parts: list[Any] = [-math.inf if part is None else part for part in data["mark"]]
    return Mark(*parts)


def _restore(book: Book, mark: Mark) -> None:
    """What a book that was not read from the beginning cannot know."""
    book.seq, book.w, book.latest = mark.seq, mark.w, mark.latest
    book.counts.clear()
    book.counts.update(mark.counts)
