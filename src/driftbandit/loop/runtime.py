"""The desk behind a loop: clerk, trainer and learner, started and stopped together."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

from driftbandit.loop.candidates.comparison import Lead, is_worse, lead
from driftbandit.loop.candidates.totals import Tally
from driftbandit.loop.config import Settings
from driftbandit.loop.deciding.choose import Choice
from driftbandit.loop.erasure import erase
from driftbandit.loop.reporting.health import as_json
from driftbandit.loop.storage.events import DEFAULT, LIVE, Event, slate_size, write
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import Past, checkpoint, known_examples, latest
from driftbandit.loop.training.replay import past as read_past
from driftbandit.loop.training.snapshots import Following
from driftbandit.loop.training.trainer import Trainer
from driftbandit.loop.training.trainer_thread import Background
from driftbandit.loop.writing.pending import Mark, Ticket
from driftbandit.loop.writing.writer import Clerk
from driftbandit.validate import show

log = logging.getLogger("driftbandit.loop")

TEACHING = ("background", "inline")


class ConflictError(ValueError):
    """What a loop does not allow as it stands now; where a proof is missing, `leads` are what is
    known about the two."""

    def __init__(self, words: str, leads: Sequence[Lead] = ()) -> None:
        super().__init__(words)
        self.leads = leads


class Desk:
    """Everything that runs while a loop is open."""

    def __init__(self, ledger: Ledger, past: Past, training: str) -> None:
        if training not in TEACHING:
            raise ValueError(f"training must be one of {TEACHING}, got {show(training)}")
        self.ledger, self.past, self._caller = ledger, past, training == "inline"
        self.switching = threading.RLock()  # held from a check to the change that rests on it
        book, self.learner, self.panel = latest(ledger, past)
        shared = Background if ledger.lock.alone else Following
        kind = Trainer if self._caller else shared
        self.trainer = kind(self.learner, self.panel, ledger, past.versions, self._store)
        self.current = next(reversed(past.settings.items()))  # settings, by the seq of their event
        now = time.time if past.declaration.clock == "wall" else None
        self._stored = known_examples(ledger)  # by the newest checkpoint
        replayed = self.learner.examples - self._stored
        auto = not self._caller
        self.clerk = Clerk(ledger, book, self.trainer.hand, now, auto, replayed, self._hear)
        self._open, self.panel.alarm = True, self.guard
        log.info("loop %r is open after %d events", ledger.name, book.seq)

    def check(self) -> None:
        """Raise if nothing can be stored or trained any more."""
        self.clerk.check()
        self.trainer.check()

    def submit(self, ticket: Ticket) -> Ticket:
        """Store an event."""
        self.trainer.check()
        return self.clerk.submit(ticket)

    def submit_all(self, tickets: Sequence[Ticket]) -> None:
        """Store many events; what is wrong with one is its `error`."""
        self.trainer.check()
        self.clerk.submit_all(tickets)

    def catch_up(self) -> None:
        """Where callers wait for the training, close windows before a decision."""
        self.clerk.check()
        if self._caller and self.clerk.due:
            self.submit(Ticket("advance"))

    def wait_until_trained(self, timeout: float | None) -> bool:
        """Close what is due and wait until it is trained."""
        self.clerk.check()
        if self.clerk.due:
            self.submit(Ticket("advance"))
        return self.trainer.wait_until_trained(timeout)

    def configure(self, chosen: Settings) -> None:
        """Decide this way from now on."""
        if chosen.guard:
            chosen.guard.check_wait(self.past.declaration.reward)
        if chosen.guard or self.panel.candidates:
            self.panel.probe(chosen, self.learner)
        if chosen.mode == "apprentice" and not chosen.exploration.uniform:
            log.warning(
                "an apprentice without exploration: no other policy can be evaluated "
                "from its log; pass exploration=0.02"
            )
        if chosen != self.current[1]:
            event = self.submit(Ticket("set", data=write(chosen.to_dict()))).event
            assert event is not None
            self._hear(event)

    def _hear(self, event: Event) -> None:
        """Somebody has said what the loop is, here or elsewhere."""
        found = _said(self.ledger)
        self.past.settings.update(found.settings)
        self.past.versions.update({**found.versions, **self.past.versions})
        self.past.shadows.update(found.shadows)
        if event.seq in found.settings and event.seq > self.current[0]:
            self.current = event.seq, found.settings[event.seq]
            told = self.ledger.name, self.current[1], event.seq
            log.info("loop %r decides by %s from event %d on", *told)

    @property
    def now(self) -> Past:
        """What the loop is now, as the log says."""
        self.clerk.check()
        self.ledger.refresh()
        return _said(self.ledger)

    def remember(self, ticket: Ticket, made: Choice) -> None:
        """Keep the row of a decision that was just stored: its example may come soon."""
        if ticket.event is None or self._caller:
            return
        alone = len(made.answer.choices) == 1 and not slate_size(ticket.event)
        for j, choice in enumerate(made.answer.choices):
            if choice is not None:
                row = ticket.event.seq, None if alone else j
                self.trainer.remember(row, made.X[j, choice].copy(), made.version)

    def change(self, kind: str, data: dict[str, Any], chosen: Settings | None = None) -> None:
        """A change that is no example, and the settings with it; it holds when this returns."""
        self.check_place()
        more = {} if chosen is None else {"settings": chosen.to_dict()}
        event = self.submit(Ticket(kind, data=write(data | more))).event
        assert event is not None
        self.trainer.wait_until_trained()
        log.info("loop %r: %s %s", self.ledger.name, kind, data.get("name", ""))
        self._hear(event)

    def check_place(self) -> None:
        """Raise where another process trains: only that one may change what is learnt from."""
        if not self.ledger.lock.trains:
            raise ConflictError(
                f"loop {self.ledger.name!r} is trained by another process: ask that one (its "
                "health says trains), or close the loop there"
            )

    def grow(self, features: Any) -> None:
        self.change("grow", {"features": features.to_dict()})
        log.info("loop %r has grown to %d coordinates", self.ledger.name, features.size)

    def erase(self, key: str, relearn: bool) -> int:
        """Runs between two groups of events, so that nothing comes in between."""
        self.check_place()
        self.trainer.wait_until_trained()  # not in the clerk's time, in which nobody can decide
        counts: list[int] = []
        now = self.now

        def work() -> None:
            counts.append(erase(self.clerk, self.trainer, now, key, relearn))

        self.clerk.submit(Ticket("", work=work))
        log.info("loop %r has erased %d events", self.ledger.name, counts[0])
        return counts[0]

    def guard(self, tally: Tally) -> None:
        """Hand a demotion in if the live policy is worse than the default; nobody waits for it."""
        guard, reward = self.current[1].guard, self.past.declaration.reward
        key = LIVE, DEFAULT, ""
        if guard is None or self.panel.demoted or self.current[1].mode != "active":
            return
        if is_worse(tally, key, 1.0 - guard.level):
            self.panel.alarm = None  # until somebody is promoted
            found = lead(tally, key, reward, 1.0 - guard.level)
            words = found.words(guard.level)
            log.warning("loop %r: the default takes over, %s", self.ledger.name, words)
            self.clerk.put(Ticket("demote", data=write(as_json(found))))

    def _store(self, mark: Mark) -> None:
        """Hand a checkpoint in; nobody waits for it."""
        data, state = checkpoint(self.learner, self.panel, mark)
        self._stored = self.learner.examples
        log.info("loop %r has a checkpoint of %d examples", self.ledger.name, self._stored)
        self.clerk.put(Ticket("checkpoint", data=data, state=state))

    def close(self) -> None:
        """Stop when all is stored and trained, and leave a checkpoint for the next start."""
        if not self._open or os.getpid() != self.clerk.process:
            return
        self._open = False
        self.clerk.close()
        try:
            if not self.clerk.error and self.ledger.lock.trains:
                self._leave()
        finally:
            self.trainer.close()
            self.ledger.close()
            log.info("loop %r is closed after %d events", self.ledger.name, self.clerk.book.seq)

    def _leave(self) -> None:
        self.trainer.wait_until_trained()
        with self.clerk.turn():
            self.trainer.wait_until_trained()  # what others have stored meanwhile
            if self.learner.examples > self._stored:
                data, state = checkpoint(self.learner, self.panel, self.clerk.mark())
                seq, at = self.clerk.book.seq + 1, max(self.clerk.clock, 0.0)
                self.ledger.append([Event(seq, "checkpoint", at, data=data)], [(seq, state)])


def _said(ledger: Ledger) -> Past:
    """What the log says of a loop that is declared."""
    found = read_past(ledger)
    assert found is not None
    return found
