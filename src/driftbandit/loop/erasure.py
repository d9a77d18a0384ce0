"""Erasure: a person's payloads leave the file, and the learner goes on from a checkpoint."""

from __future__ import annotations

import logging

from driftbandit.loop.runtime import Runtime
from driftbandit.loop.state.definition import Definition
from driftbandit.loop.storage.events import Erase, Event, encode
from driftbandit.loop.training.replay import checkpoint, origin, replay
from driftbandit.loop.writing.pending import Pending

log = logging.getLogger("driftbandit.loop")


def erase(runtime: Runtime, key: str, relearn: bool) -> int:
    """Blank all events of a key, between two groups of events, so that nothing comes in between.
    Returns how many there were."""
    runtime.check_trains()
    runtime.training.wait()  # not in the writer's time, in which no decision can be made
    counts: list[int] = []
    definition = runtime.reread()

    def work() -> None:
        with runtime.writer.turn(long=True):
            counts.append(_blank(runtime, definition, key, relearn))
        runtime.ledger.purge()

    runtime.writer.submit(Pending("", work=work))
    log.info("loop %r has erased %d events", runtime.ledger.name, counts[0])
    return counts[0]


def _blank(runtime: Runtime, definition: Definition, key: str, relearn: bool) -> int:
    ledger, windows = runtime.ledger, runtime.windows
    seqs = ledger.about(key)
    gone = frozenset(seqs)
    runtime.training.wait()
    runtime.trainer.forget()
    if relearn:
        _relearn(runtime, definition, gone, windows.seq + 1)
    runtime.learner.drop(key)
    runtime.candidates.drop(key, gone)
    for id in [id for id, found in windows.open.items() if found.seq in gone]:
        windows.close(id)  # nothing is learnt from decisions that are blank
    event = Event(windows.seq + 1, "erase", 0.0, data=encode(Erase(len(seqs), relearn)))
    windows.apply(event)
    text, state = checkpoint(runtime.learner, runtime.candidates, windows.mark())
    stored = Event(windows.seq + 1, "checkpoint", max(runtime.writer.clock, 0.0), data=text)
    windows.apply(stored)
    ledger.erase(seqs, [event, stored], [(stored.seq, state)])
    return len(seqs)


def _relearn(runtime: Runtime, definition: Definition, gone: frozenset[int], seq: int) -> None:
    """Put in the learner that never saw these events, as far back as the log goes; event `seq`
    says so. That counts as an example: what was decided before was decided by another learner."""
    start = origin(runtime.ledger)
    if start:
        log.warning("what the oldest checkpoint learnt from the erased events stays in it")
    _, fresh, candidates = replay(runtime.ledger, definition, start, gone=gone)
    about, state = fresh.state()
    about |= {"seq": seq, "examples": runtime.learner.examples + 1}
    with runtime.learner.lock:
        runtime.learner.load(about, state, fresh.version)
        runtime.candidates.load(*candidates.state())
