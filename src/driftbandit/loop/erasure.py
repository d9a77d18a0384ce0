"""Erasure: a person's payloads leave the file, and the learner goes on from a checkpoint."""

from __future__ import annotations

import logging

from driftbandit.loop.state.reward_windows import Book
from driftbandit.loop.storage.events import Event, write
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import Past, checkpoint, origin, replay
from driftbandit.loop.training.trainer import Trainer
from driftbandit.loop.writing.writer import Clerk

log = logging.getLogger("driftbandit.loop")


def erase(clerk: Clerk, trainer: Trainer, past: Past, key: str, relearn: bool) -> int:
    """Blank all events of a key; runs in the clerk's thread. Says how many there were."""
    with clerk.turn(long=True):
        blank = _blank(clerk, trainer, past, key, relearn)
    clerk.ledger.purge()
    return blank


def _blank(clerk: Clerk, trainer: Trainer, past: Past, key: str, relearn: bool) -> int:
    ledger, book = clerk.ledger, clerk.book
    seqs = ledger.about(key)
    trainer.wait_until_trained()
    trainer.forget()
    if relearn:
        _relearn(ledger, past, trainer, frozenset(seqs), book.seq + 1)
    trainer.learner.drop(key)
    trainer.panel.drop(key)
    _close(book, frozenset(seqs))
    event = Event(book.seq + 1, "erase", 0.0, data=write({"events": len(seqs), "relearn": relearn}))
    book.apply(event)
    text, state = checkpoint(trainer.learner, trainer.panel, clerk.mark())
    stored = Event(book.seq + 1, "checkpoint", max(clerk.clock, 0.0), data=text)
    book.apply(stored)
    ledger.erase(seqs, [event, stored], [(stored.seq, state)])
    return len(seqs)


def _close(book: Book, seqs: frozenset[int]) -> None:
    """Decisions that are blank train nothing."""
    for id in [id for id, found in book.open.items() if found.seq in seqs]:
        book.close(id)


def _relearn(ledger: Ledger, past: Past, trainer: Trainer, gone: frozenset[int], seq: int) -> None:
    """The learner that never saw these events, as far back as the log goes; event `seq` says so.

    That counts as a example: what was decided before was decided by another learner.
    """
    start = origin(ledger)
    if start:
        log.warning("what the oldest checkpoint learnt from the erased events stays in it")
    _, fresh, panel = replay(ledger, past, start, gone=gone)
    about, state = fresh.state()
    about |= {"seq": seq, "examples": trainer.learner.examples + 1}
    with trainer.learner.lock:
        trainer.learner.load(about, state, fresh.version)
        trainer.panel.load(*panel.state())
