"""Candidates that know the past: they learn what the log still has before they are compared.

A candidate declared with `history` is what it would be had it been declared at the first event that
is kept. The program that declares it trains it in its own thread; when the event is stored, the
trainer adds the few examples that have come meanwhile. What it is then stays in the ledger beside
the event: replays read it there, also when the events that it learnt from are gone, or learn it
once more.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.deciding.payloads import asked_for
from driftbandit.loop.errors import BusyError, LedgerError
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import CurrentDefinition, Definition, Shadow
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.storage.events import Event, encode
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.recipe import Recipe

log = logging.getLogger("driftbandit.loop")

CHUNK = 256  # examples at a time
BREATH = 8  # examples from one pause to the next: short enough for callers to wait for


class PastLearner:
    """A candidate on its way through the log, as if the events in `gone` were blank."""

    def __init__(
        self, ledger: Ledger, definition: Definition, shadow: Shadow, gone: frozenset[int]
    ) -> None:
        self.candidate = Candidate(0, shadow, definition.declaration)
        self._ledger, self._gone, self._base = ledger, gone, ledger.base
        self._windows = definition.windows()
        self._windows.seq = ledger.start - 1

    @property
    def stale(self) -> bool:
        """Whether the log is another one than when it began: a key was erased."""
        return self._ledger.base != self._base

    def learn(self, end: int) -> None:
        """Learn all examples of events before `end`."""
        examples = self._examples(end)
        while chunk := list(islice(examples, CHUNK)):
            events = self._ledger.events([each.decision for each in chunk])
            if self.stale:
                return
            self._train(chunk, events)

    def _examples(self, end: int) -> Iterator[Example]:
        for event in self._ledger.read(self._windows.seq + 1, light=True):
            if event.seq >= end:
                return
            blank = event.blank if event.seq in self._gone else event
            changes = self._windows.apply(blank).changes
            yield from (each for each in changes if isinstance(each, Example))

    def _train(self, examples: list[Example], events: dict[int, Event]) -> None:
        seq, X, choices = 0, None, list[int | None]()
        for k, example in enumerate(examples):
            if example.decision != seq:  # positions of a slate follow each other
                seq, event = example.decision, self._ledger.decision(example.decision, events)
                data = event.read()
                X, choices = self.candidate.rows(asked_for(event, data)), data.choices
            self.candidate.train(example, X, choices[example.position or 0])
            if k % BREATH == 0:
                time.sleep(0.0)  # gives up the GIL, which callers wait for


def learn_past(
    ledger: Ledger,
    definition: Definition,
    shadow: Shadow,
    end: int,
    gone: frozenset[int] = frozenset(),
) -> PastLearner:
    """Return a candidate that has learnt all that the log has before the event `end`."""
    begun, told = time.monotonic(), (ledger.name, shadow.name)
    with ledger.pinned():
        log.info("loop %r: %s learns what the log has, from event %d on", *told, ledger.start)
        learner = PastLearner(ledger, definition, shadow, gone)
        learner.learn(end)
    if learner.stale:
        return learn_past(ledger, definition, shadow, end, gone)
    examples, seconds = learner.candidate.learner.examples, time.monotonic() - begun
    log.info("loop %r: %s has learnt %d examples in %.1f s", *told, examples, seconds)
    return learner


class Backfill:
    """Makes candidates when their events are trained; some have learnt the past before that."""

    def __init__(self, ledger: Ledger, definition: CurrentDefinition, gone: frozenset[int]) -> None:
        self._ledger, self._definition, self._gone = ledger, definition, gone
        self._ready: dict[str, PastLearner] = {}
        self._busy = threading.Lock()

    @contextmanager
    def prepared(self, shadow: Shadow, live: Learner) -> Iterator[None]:
        """Let a candidate learn the past in this thread, so that its event can be stored; training
        goes on meanwhile, as do decisions."""
        if not shadow.history or shadow.version.is_like(live.version):
            yield
            return
        if not self._busy.acquire(blocking=False):
            raise BusyError("a candidate learns what the log has: ask again when it is there")
        try:
            with self._ledger.pinned():
                end, now = self._ledger.last() + 1, self._definition.now
                self._ready[shadow.name] = learn_past(self._ledger, now, shadow, end)
                yield
        finally:
            self._ready.pop(shadow.name, None)
            self._busy.release()

    def candidate(self, event: Event, live: Learner) -> Candidate:
        """Return the candidate of an event. One that differs in its exploration alone begins with
        what the live learner knows, others with the past or with nothing."""
        shadow: Shadow = Recipe.from_dict(event.read())
        one = Candidate(event.seq, shadow, self._definition.now.declaration)
        if shadow.version.is_like(live.version):
            one.learner.load(*live.state(), shadow.version)
        elif shadow.history and not self._is_stored(one):
            one = self._learnt(event.seq, shadow)
        return one

    def _learnt(self, seq: int, shadow: Shadow) -> Candidate:
        learner = self._ready.get(shadow.name)
        if learner is None or learner.stale:
            learner = learn_past(self._ledger, self._definition.now, shadow, seq, self._gone)
        else:
            learner.learn(seq)
        one = learner.candidate
        one.declared_by(seq)
        if not self._gone:
            about, state = one.state()
            self._ledger.keep(seq, encode(about).encode() + b"\n" + state)
        return one

    def _is_stored(self, one: Candidate) -> bool:
        """Read its beginning from the ledger; return whether it is there."""
        found = b"" if self._gone else self._ledger.state(one.seq)
        if not found:
            return False
        text, _, state = found.partition(b"\n")
        try:
            about = json.loads(text)
            about.setdefault("examples", about.get("lessons"))  # as version 0.2 stored it
            one.load(about, state)
        except (ValueError, KeyError) as error:
            if self._ledger.base:  # what it learnt from may be gone
                raise LedgerError(
                    f"candidate {one.shadow.name!r} is damaged: restore the ledger from a copy"
                ) from error
            log.warning("candidate %r is trained again: %s", one.shadow.name, error)
            return False
        return True
