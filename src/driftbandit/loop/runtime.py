"""Everything that runs while a loop is open: writer, trainer and learner, started and stopped
together. docs/design.md has a table of the threads and of what each lock guards."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from driftbandit import fork_safety
from driftbandit.estimators.leads import WORSE
from driftbandit.loop.candidates.comparison import Errors, lead
from driftbandit.loop.candidates.totals import Totals
from driftbandit.loop.config import Settings
from driftbandit.loop.errors import ConflictError, LedgerError
from driftbandit.loop.midst import Midst
from driftbandit.loop.state.definition import CurrentDefinition, Definition, defined
from driftbandit.loop.state.reward_windows import Mark
from driftbandit.loop.storage.events import DEFAULT, LIVE, Event, encode
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import checkpoint, known_examples, latest, most_examples
from driftbandit.loop.training.snapshots import Snapshots
from driftbandit.loop.training.trainer import Trainer
from driftbandit.loop.training.trainer_thread import InlineTraining, TrainerThread, Training
from driftbandit.loop.writing.pending import Pending
from driftbandit.loop.writing.writer import Writer
from driftbandit.validate import nearest, show

log = logging.getLogger("driftbandit.loop")

TRAINING = ("background", "inline")


class Runtime:
    """The parts of an open loop, each with one owner.

    `definition` is replaced by the writer, `windows` belong to the writer, `learner` and
    `candidates` change under the learner's lock, by the trainer alone.
    """

    def __init__(self, ledger: Ledger, definition: Definition, training: str) -> None:
        if training not in TRAINING:
            raise ValueError(f"training must be one of {TRAINING}, got {show(training)}")
        self.ledger, self.inline = ledger, training == "inline"
        self.helpers, self.closing = list[threading.Thread](), threading.Event()  # of `erasure`
        self.midst = Midst()  # threads that store events or train
        self.switching = threading.RLock()  # held from a check to the change that rests on it
        self.windows, self.learner, self.candidates = latest(ledger, definition)
        self.definition: CurrentDefinition = self.candidates.definition
        self.trainer = Trainer(self.learner, self.candidates, ledger, self._store_checkpoint)
        self.training: Training = self._training()
        now = time.time if definition.declaration.clock == "wall" else None
        self._stored = known_examples(ledger)  # by the newest checkpoint
        self.writer = Writer(
            ledger,
            self.windows,
            self.training.submit,
            self.definition.apply,
            self.midst,
            now,
            not self.inline,
            self.learner.examples - self._stored,
            most_examples(definition.declaration, self.learner),
        )
        self._open, self.candidates.on_look = True, self.demote_if_worse
        log.info("loop %r is open after %d events", ledger.name, self.windows.seq)
        self._discard_old_totals()

    def _discard_old_totals(self) -> None:
        """Let comparisons begin anew if a version compared them that asked candidates too late."""
        now = self.definition.now
        if now.asks.since is None and (now.asks.names or now.watched) and self.ledger.lock.trains:
            log.warning("loop %r: what version 0.2 compared is discarded", self.ledger.name)
            self.change("recount", {})

    def _training(self) -> Training:
        if self.inline:
            return InlineTraining(self.trainer)
        follow = None if self.ledger.lock.alone else Snapshots(self.trainer, self.ledger)
        return TrainerThread(self.trainer, self._training_stopped, self.midst, follow)

    def _training_stopped(self, error: Exception) -> None:
        """Refuse all calls from now on."""
        self.writer.error = LedgerError(f"training has stopped: {error}")

    def now(self) -> float:
        """Return the time of this machine."""
        return time.time()

    @property
    def settings(self) -> Settings:
        """How decisions are made now."""
        return self.definition.now.current[1]

    def check(self) -> None:
        """Raise if nothing can be stored or trained any more."""
        self.writer.check()
        self.training.check()

    def catch_up(self) -> None:
        """Close windows that are due, if callers wait for the training."""
        if self.inline and self.writer.due:
            self.writer.submit(Pending("advance"))

    def wait_until_trained(self, timeout: float | None = None) -> bool:
        """Close what is due and wait until it is trained. The writer may have closed windows and
        not handed them on yet, so it is waited for in any case."""
        due = self.writer.due
        self.writer.submit(Pending("advance") if due else Pending("", work=_nothing))
        return self.training.wait(timeout)

    def configure(self, chosen: Settings) -> None:
        """Decide this way from now on."""
        chosen.check_declaration(self.definition.now.declaration)
        if chosen.guard or chosen.budget or self.candidates.candidates:
            self.candidates.probe(chosen, self.learner)
        if chosen.mode == "apprentice" and not chosen.exploration.uniform:
            log.warning(
                "an apprentice without exploration: no other policy can be evaluated from its log; "
                "pass exploration=0.02"
            )
        self._warn_of_shares(chosen)
        if chosen != self.settings:
            self.writer.submit(Pending("configure", data=encode(chosen.to_dict())))
            seq, now = self.definition.now.current
            log.info("loop %r decides by %s from event %d on", self.ledger.name, now, seq)

    def _warn_of_shares(self, chosen: Settings) -> None:
        """Warn of shares of arms that the catalogue does not have; they may be added later."""
        catalogue = self.definition.now.catalogue
        if catalogue is None:
            return
        names = list(catalogue.arms)
        for name in [each for each in chosen.shares if each not in catalogue.arms]:
            known = nearest(name, names) if names else "it is empty"
            log.warning("shares name %r, which the catalogue does not have: %s", name, known)

    def change(self, kind: str, data: dict[str, Any]) -> None:
        """Store a change of the learners; it holds when this returns."""
        self.check_trains()
        self.writer.submit(Pending(kind, data=encode(data)))
        self.training.wait()
        log.info("loop %r: %s %s", self.ledger.name, kind, data.get("name", ""))

    def check_trains(self) -> None:
        """Raise if another process trains: only that one may change what is learnt from."""
        if not self.ledger.lock.trains:
            raise ConflictError(
                f"loop {self.ledger.name!r} is trained by another process: ask that one (its "
                "health says trains), or close the loop there"
            )

    def reread(self) -> Definition:
        """Return what the loop is now, as the log says."""
        self.writer.check()
        self.ledger.refresh()
        return defined(self.ledger)

    def demote_if_worse(self, totals: Totals) -> None:
        """Let the default take over if the live policy is worse; the event is not waited for."""
        guard, pair = self.settings.guard, (LIVE, DEFAULT, "")
        if guard is None or self.candidates.demoted or self.settings.mode != "active":
            return
        found = totals.evidence.get(pair)
        if found and found.alarm(WORSE) >= guard.run_length:
            self.candidates.on_look = None  # until a policy is promoted
            errors = Errors(1.0 - guard.level, 1.0 - guard.level)
            known = lead(totals, pair, self.definition.now.declaration.reward, errors)
            log.warning("loop %r: the default takes over, %s", self.ledger.name, known.words())
            evidence = known.to_dict() | {"run_length": guard.run_length}
            self.writer.put(Pending("demote", data=encode(evidence)))

    def _store_checkpoint(self, mark: Mark) -> None:
        """Store a checkpoint, without waiting for it."""
        data, numbers = checkpoint(self.learner, self.candidates, mark)
        self._stored = self.learner.examples
        log.info("loop %r has a checkpoint of %d examples", self.ledger.name, self._stored)
        self.writer.put(Pending("checkpoint", data=data, state=numbers))

    def close(self) -> None:
        """Stop when all is stored and trained, and leave a checkpoint for the next start."""
        if not self._open or fork_safety.process != self.writer.process:
            return
        self._open = False
        self.closing.set()
        for helper in self.helpers:
            helper.join()
        self.writer.close()
        try:
            if not self.writer.error and self.ledger.lock.trains:
                self._leave_checkpoint()
                self.writer.finish_retention()
        finally:
            self.training.close()
            self.ledger.close()
            log.info("loop %r is closed after %d events", self.ledger.name, self.windows.seq)

    def _leave_checkpoint(self) -> None:
        self.training.wait()
        with self.writer.turn():
            self.training.wait()  # what other processes have stored meanwhile
            if self.learner.examples > self._stored:
                data, numbers = checkpoint(self.learner, self.candidates, self.windows.mark())
                seq, at = self.windows.seq + 1, max(self.writer.clock, 0.0)
                event = Event(seq, "checkpoint", at, data=data)
                self.ledger.append([event], [(event, numbers)])


def _nothing() -> None:
    """Do nothing, between two groups of the writer."""
