"""Learners from the log: after a restart, for an audit, or from the very beginning."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.loop.book import Book
from driftbandit.loop.declaration import Declaration, Settings, Version, versions
from driftbandit.loop.events import Event, LedgerError, write
from driftbandit.loop.keyed import learner_for
from driftbandit.loop.learner import Learner, fingerprint
from driftbandit.loop.ledger import Ledger
from driftbandit.loop.teacher import CHUNK, Teacher
from driftbandit.loop.tickets import Change, Mark
from driftbandit.recipe import Recipe

log = logging.getLogger("driftbandit.loop")


class Past(NamedTuple):
    """What a ledger says a loop is."""

    declaration: Declaration
    settings: dict[int, Settings]  # by the seq of their event
    versions: dict[str, Version]


class State(NamedTuple):
    """Book and learner after all events."""

    book: Book
    learner: Learner


def past(ledger: Ledger) -> Past | None:
    """What was declared; None for a new loop."""
    events = ledger.declared()
    if not events:
        return None
    declaration: Declaration = Recipe.from_dict(events[0].read())
    settings = {e.seq: Recipe.from_dict(e.read()) for e in events if e.kind == "set"}
    return Past(declaration, settings, versions(declaration, events))


def unfold(
    ledger: Ledger, past: Past, start: Event | None, gone: frozenset[int] = frozenset()
) -> tuple[State, Iterator[Change]]:
    """Book and learner at a checkpoint, or at the beginning, and all that the log does to the
    learner from there on, as if the events in `gone` were blank. The book goes on while the
    changes are read."""
    reward = past.declaration.reward
    book = Book(reward.wait, reward.missing, past.declaration.keep)
    learner = learner_for(past.declaration, next(iter(past.versions.values())))
    mark = None if start is None else _load(ledger, past, start, learner)
    return State(book, learner), _changes(ledger, book, mark, gone)


def _changes(
    ledger: Ledger, book: Book, mark: Mark | None, gone: frozenset[int]
) -> Iterator[Change]:
    if mark and mark.since > mark.seq:
        _restore(book, mark)
    for event in ledger.read(mark.since if mark else 1, light=True):
        blank = event.seq in gone
        changes = book.apply(Event(event.seq, "erased", event.at) if blank else event).changes
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
    """Teach from a checkpoint on, or from the beginning, until `stop` lessons were taught."""
    state, changes = unfold(ledger, past, start, gone)
    teacher = Teacher(state.learner, ledger, dict(past.versions))
    left = changes if stop is None else islice(changes, stop - state.learner.lessons)
    while chunk := list(islice(left, CHUNK)):
        teacher.teach(chunk)
    return state


def latest(ledger: Ledger, past: Past, stop: int | None = None) -> State:
    """The same from the newest checkpoint that is whole and not beyond `stop`."""
    for start in reversed(ledger.checkpoints()):
        about, mark = start.read()["learner"], start.read()["mark"]
        if stop is not None and about["lessons"] > stop:
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
            log.info("the learner was taught elsewhere (%s)", about["fingerprint"])
        return state
    if ledger.base:
        raise LedgerError("what was before the oldest checkpoint is gone: it cannot be replayed")
    return replay(ledger, past, None, stop)


def known_lessons(ledger: Ledger) -> int:
    """How many lessons the newest checkpoint knows."""
    found = ledger.checkpoints()[-1:]
    return int(found[0].read()["learner"]["lessons"]) if found else 0


def origin(ledger: Ledger) -> Event | None:
    """The checkpoint that replays start from, if there is one."""
    return ledger.events([ledger.base])[ledger.base] if ledger.base else None


def checkpoint(learner: Learner, mark: Mark) -> tuple[str, bytes]:
    """The data of a checkpoint's event, and the learner's numbers."""
    data, state = packed(learner)
    parts = [None if part in (math.inf, -math.inf) else part for part in mark]
    return write({"mark": parts, **data}), state


def packed(learner: Learner) -> tuple[dict[str, Any], bytes]:
    """All that was learnt: what it is, and its numbers."""
    about, state = learner.state()
    return {"learner": about}, state


def load(learner: Learner, data: dict[str, Any], state: bytes, known: dict[str, Version]) -> None:
    """Go on with what was packed."""
    learner.load(data["learner"], state, known[data["learner"]["version"]])


def _load(ledger: Ledger, past: Past, start: Event, learner: Learner) -> Mark:
    data = start.read()
    load(learner, data, ledger.state(start.seq), past.versions)
    parts: list[Any] = [-math.inf if part is None else part for part in data["mark"]]
    return Mark(*parts)


def _restore(book: Book, mark: Mark) -> None:
    """What a book that was not read from the beginning cannot know."""
    book.seq, book.w, book.latest = mark.seq, mark.w, mark.latest
    book.counts.clear()
    book.counts.update(mark.counts)
