"""Erasure: what was logged about a key leaves the log, the file, and the database's own copies.

Four steps. (1) With `relearn`, a learner that never saw the key is trained from the log, beside
decisions. (2) Between two groups of events, one transaction blanks the key's events, stores an
`erase` event and a checkpoint to go on from, and deletes what older checkpoints said. (3) The
database's copies are removed: the write-ahead log, free space. Decisions go on meanwhile. (4) If
that cannot be done now, because another connection reads, `erase` raises after `PATIENCE` seconds,
and a thread finishes it, also after a restart.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

from driftbandit.loop.errors import LedgerError, UnfinishedErasureError
from driftbandit.loop.runtime import Runtime
from driftbandit.loop.storage.events import LASTING, Erase, Event, encode
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import checkpoint, origin, unfold
from driftbandit.loop.training.trainer import CHUNK, Trainer
from driftbandit.loop.writing.pending import Pending

log = logging.getLogger("driftbandit.loop")

PATIENCE = 10.0  # seconds to wait for copies to go before `erase` raises
PAUSE = 0.05  # seconds between two attempts, while a caller waits
AGAIN = 2.0  # seconds between two attempts in the background


class Erasure(NamedTuple):
    """What an erasure has removed: `events` of which `decisions` were about the key. With
    `relearned` the learner is that of a log without them."""

    events: int
    decisions: int
    relearned: bool


def erase(runtime: Runtime, key: str, relearn: bool) -> Erasure:
    """Remove all events of a key; raise if copies of them are left in the database for now."""
    runtime.check_trains()
    with runtime.switching:
        fresh = Relearning(runtime, key) if relearn else None
        # not in the writer's time, in which no decision can be made:
        runtime.training.wait()
        last = runtime.ledger.last()
        compared = runtime.definition.now.declaration.learns_preferences
        known = runtime.ledger.about(key, compared=compared)
        last = max(last, *known[1]) if known[1] else last  # some may have come meanwhile
        found: list[Erasure] = []

        def work() -> None:
            with runtime.writer.turn(long=True):
                decisions, seqs = runtime.ledger.about(key, last, compared=compared)
                seqs = sorted({*known[1], *seqs})
                found.append(_blank(runtime, key, known[0] + decisions, seqs, fresh))

        runtime.writer.submit(Pending("", work=work))
    events = found[0].events
    log.info("loop %r has erased %d events", runtime.ledger.name, events)
    if left := purge(runtime, PATIENCE):
        finish_later(runtime)
        raise UnfinishedErasureError(
            f"{events} events are erased from the log, and no call shows them any more, but "
            f"{left}: the loop removes them as soon as it can"
        )
    return found[0]


def _blank(
    runtime: Runtime, key: str, decisions: int, seqs: list[int], fresh: Relearning | None
) -> Erasure:
    ledger, windows = runtime.ledger, runtime.windows
    gone = frozenset(seqs)
    runtime.training.wait()
    runtime.trainer.forget()
    done = Erasure(len(seqs), decisions, fresh is not None)
    said = Erase(done.events, done.relearned, seqs)
    event = Event(windows.seq + 1, "erase", 0.0, data=encode(said))
    if fresh:
        fresh.put_in()
    runtime.learner.drop(key)
    runtime.candidates.drop(key, gone)
    # It counts as an example: what was decided before was decided by another learner.
    runtime.learner.count(event)
    for id in [id for id, found in windows.open.items() if found.seq in gone]:
        windows.close(id)  # nothing is learnt from decisions that are blank
    windows.apply(event)
    text, numbers = checkpoint(runtime.learner, runtime.candidates, windows.mark())
    stored = Event(windows.seq + 1, "checkpoint", max(runtime.writer.clock, 0.0), data=text)
    windows.apply(stored)
    ledger.erase(seqs, [event, stored], [(stored, numbers)])
    return done


class Relearning:
    """A learner that never saw a key, trained from the log while decisions go on. It begins where
    the log begins, or with the checkpoint that stands for what retention has deleted."""

    def __init__(self, runtime: Runtime, key: str) -> None:
        self._runtime, self._ledger, self._key = runtime, runtime.ledger, key
        definition = runtime.reread()
        compared = definition.declaration.learns_preferences
        self._gone = frozenset(self._ledger.about(key, compared=compared)[1])
        start = beginning(self._ledger)
        self._state, changes = unfold(self._ledger, definition, start, self._gone)
        self._trainer = Trainer(
            self._state.learner, self._state.candidates, self._ledger, gone=self._gone
        )
        chunk = []
        for change in changes:
            chunk.append(change)
            if len(chunk) >= CHUNK:
                self._trainer.train(chunk)
                chunk = []
                time.sleep(0.0)  # gives up the GIL, which callers wait for
        self._trainer.train(chunk)
        self.catch_up()

    def catch_up(self) -> None:
        """Train what has come meanwhile, but nothing of the key."""
        windows = self._state.windows
        for event in self._ledger.read(windows.seq + 1, light=True):
            if event.kind in LASTING:
                self._state.candidates.definition.apply(event)
            own = event.seq in self._gone or event.key == self._key
            self._trainer.train(windows.apply(event.blank if own else event).changes)

    def put_in(self) -> None:
        """Let it take the place of the learner that acts; no decision is made meanwhile."""
        self.catch_up()
        learner, candidates = self._runtime.learner, self._runtime.candidates
        about, state = self._state.learner.state()
        about |= {"seq": learner.seq, "examples": learner.examples}
        with learner.lock:
            learner.load(about, state, self._state.learner.version)
            candidates.load(*self._state.candidates.state())


def beginning(ledger: Ledger) -> Event | None:
    """Return the checkpoint that a relearning begins with; None for the first event. Raise if what
    came before the log is known only by a checkpoint that has learnt from it and from the log."""
    if ledger.start == 1:
        return None
    start = origin(ledger)
    if start is not None:
        before = ledger.events([start.seq - 1]).get(start.seq - 1)
        if before is None or before.kind != "erase":
            return start
    raise LedgerError(
        "relearn is not possible: retention has deleted the beginning of the log, and an earlier "
        "erasure the checkpoint that stood for it; erase without relearn, or declare a new loop"
    )


def purge(runtime: Runtime, patience: float) -> str:
    """Remove the database's copies of what was erased; return "", or why some are left."""
    ledger, until = runtime.ledger, time.monotonic() + patience
    while (number := ledger.unpurged()) is not None:
        left = ledger.purge(number, runtime.closing.is_set)
        if not left:
            runtime.writer.submit(Pending("", work=lambda: ledger.purged(number)))
        elif time.monotonic() >= until or runtime.closing.is_set():
            return left
        else:
            time.sleep(PAUSE)
    return ""


def finish_later(runtime: Runtime) -> None:
    """Remove copies in the background, as soon as that can be done and as long as the loop is
    open."""
    name = "driftbandit eraser"
    if not any(each.name == name for each in runtime.helpers if each.is_alive()):
        thread = threading.Thread(target=_finish, args=(runtime,), name=name, daemon=True)
        runtime.helpers.append(thread)
        thread.start()


def _finish(runtime: Runtime) -> None:
    try:
        while not runtime.closing.wait(AGAIN):
            if not purge(runtime, 0.0):
                log.info("loop %r: no copies of what was erased are left", runtime.ledger.name)
                return
    except LedgerError as error:  # the loop has stopped; the next opening goes on
        log.warning("loop %r: copies of what was erased are left: %s", runtime.ledger.name, error)


def finish_earlier(runtime: Runtime) -> None:
    """Go on with an erasure that a process did not finish."""
    if runtime.ledger.lock.trains and runtime.ledger.unpurged() is not None:
        log.warning("loop %r: copies of what was erased are left", runtime.ledger.name)
        finish_later(runtime)
