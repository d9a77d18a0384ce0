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
from driftbandit.loop.deciding.payloads import answered, asked_for
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.state.definition import Past
from driftbandit.loop.state.reward_windows import Book, Example
from driftbandit.loop.state.versions import Shadow
from driftbandit.loop.storage.events import Event, LedgerError, decision_of, write
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.recipe import Recipe

log = logging.getLogger("driftbandit.loop")

CHUNK = 256  # examples at a time
BREATH = 8  # examples from one pause to the next: short enough for callers to wait for


class BusyError(ValueError):
    """What can be asked again later."""


class Pupil:
    """A candidate on its way through the log, as if the events in `gone` were blank."""

    def __init__(self, ledger: Ledger, past: Past, shadow: Shadow, gone: frozenset[int]) -> None:
        self.candidate = Candidate(0, shadow, past.declaration)
        self._ledger, self._gone, self._base = ledger, gone, ledger.base
        reward = past.declaration.reward
        self._book = Book(reward.wait, reward.missing, past.declaration.retention)
        self._book.seq = ledger.start - 1

    @property
    def stale(self) -> bool:
        """Whether the log is another one than when it began: somebody was erased."""
        return self._ledger.base != self._base

    def learn(self, end: int) -> None:
        """All examples that events before `end` train."""
        examples = self._examples(end)
        while chunk := list(islice(examples, CHUNK)):
            events = self._ledger.events([each.decision for each in chunk])
            if self.stale:
                return
            self._train(chunk, events)

    def _examples(self, end: int) -> Iterator[Example]:
        for event in self._ledger.read(self._book.seq + 1, light=True):
            if event.seq >= end:
                return
            changes = self._book.apply(event.blank if event.seq in self._gone else event).changes
            yield from (each for each in changes if isinstance(each, Example))

    def _train(self, examples: list[Example], events: dict[int, Event]) -> None:
        seq, X, choices = 0, None, list[int | None]()
        for k, example in enumerate(examples):
            if example.decision != seq:  # positions of a slate follow each other
                seq, data = example.decision, decision_of(events, example.decision).read()
                X, choices = self.candidate.rows(asked_for(data)), answered(data).choices
            self.candidate.train(example, X, choices[example.position or 0])
            if k % BREATH == 0:
                time.sleep(0.0)  # gives up Python's lock, which callers wait for


def trained(
    ledger: Ledger, past: Past, shadow: Shadow, end: int, gone: frozenset[int] = frozenset()
) -> Pupil:
    """A candidate that has learnt all that the log has before the event `end`."""
    begun, told = time.monotonic(), (ledger.name, shadow.name)
    with ledger.undivided():
        log.info("loop %r: %s learns what the log has, from event %d on", *told, ledger.start)
        pupil = Pupil(ledger, past, shadow, gone)
        pupil.learn(end)
    if pupil.stale:
        return trained(ledger, past, shadow, end, gone)
    examples, seconds = pupil.candidate.learner.examples, time.monotonic() - begun
    log.info("loop %r: %s has learnt %d examples in %.1f s", *told, examples, seconds)
    return pupil


class Newcomers:
    """Makes candidates when their events are trained; some have learnt the past before that."""

    def __init__(self, ledger: Ledger, past: Past, gone: frozenset[int]) -> None:
        self._ledger, self._past, self._gone = ledger, past, gone
        self._waiting: dict[str, Pupil] = {}
        self._busy = threading.Lock()

    @contextmanager
    def prepared(self, shadow: Shadow, live: Learner) -> Iterator[None]:
        """A candidate learns the past in this thread, and its event can be stored: training goes
        on, as do decisions."""
        if not shadow.history or shadow.version.is_like(live.version):
            yield
            return
        if not self._busy.acquire(blocking=False):
            raise BusyError("a candidate learns what the log has: ask again when it is there")
        try:
            with self._ledger.undivided():
                end = self._ledger.last() + 1
                self._waiting[shadow.name] = trained(self._ledger, self._past, shadow, end)
                yield
        finally:
            self._waiting.pop(shadow.name, None)
            self._busy.release()

    def made(self, event: Event, live: Learner) -> Candidate:
        """The candidate of an event. Who differs by its rule alone begins with what the live one
        knows, others with the past or with nothing."""
        shadow: Shadow = Recipe.from_dict(event.read())
        one = Candidate(event.seq, shadow, self._past.declaration)
        if shadow.version.is_like(live.version):
            one.learner.load(*live.state(), shadow.version)
        elif shadow.history and not self._is_kept(one):
            one = self._trained(event.seq, shadow)
        return one

    def _trained(self, seq: int, shadow: Shadow) -> Candidate:
        pupil = self._waiting.get(shadow.name)
        if pupil is None or pupil.stale:
            pupil = trained(self._ledger, self._past, shadow, seq, self._gone)
        else:
            pupil.learn(seq)
        one = pupil.candidate
        one.seq = seq
        if not self._gone:
            about, state = one.state()
            self._ledger.keep(seq, write(about).encode() + b"\n" + state)
        return one

    def _is_kept(self, one: Candidate) -> bool:
        """Whether its beginning is in the ledger, and read from there."""
        found = b"" if self._gone else self._ledger.state(one.seq)
        if not found:
            return False
        about, _, state = found.partition(b"\n")
        try:
            one.load(json.loads(about), state)
        except (ValueError, KeyError) as error:
            if self._ledger.base:  # what it learnt from may be gone
                raise LedgerError(
                    f"candidate {one.shadow.name!r} is damaged: restore the ledger from a copy"
                ) from error
            log.warning("candidate %r is trained again: %s", one.shadow.name, error)
            return False
        return True
