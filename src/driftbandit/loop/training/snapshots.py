"""Many decide, one trains: what the learner knows travels by snapshots.

Everybody reads the same log, so everybody knows which examples there are and in which order. Who
trains leaves the learner in the ledger twice a second. Others load it and let go of the examples
that it knows; what waits with them is what they decide without. When the one who trains dies,
another goes on with exactly these.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.storage.events import write
from driftbandit.loop.training.replay import load, packed
from driftbandit.loop.training.trainer_thread import Background
from driftbandit.loop.writing.pending import Change, Mark

log = logging.getLogger("driftbandit.loop")

PAUSE = 0.5  # seconds from one snapshot to the next
LOOK = 0.2  # seconds until somebody else's is seen
BYTES = 4_000_000  # of snapshots in a second, at most


class Following(Background):
    """Trains where the lock says so, and follows the one who trains elsewhere."""

    def __init__(self, learner: Learner, *args: Any) -> None:
        self._leads = False
        self._heard = learner.examples  # all examples that have come, those that wait among them
        self._published, self._again = learner.examples, 0.0  # by snapshots; when to make the next
        super().__init__(learner, *args)

    def hand(self, changes: list[Change]) -> None:
        super().hand(changes)
        self._heard += sum(not isinstance(change, Mark) for change in changes)

    def _step(self) -> bool:
        with self._news:
            busy = (lambda: self._waiting or self._closed) if self._leads else lambda: self._closed
            self._news.wait_for(busy, LOOK)
        if not self._leads:
            self._listen()
        elif self._waiting:
            self._next()
        if self._leads:
            self._publish()
        return not self._closed or bool(self._leads and self._waiting)

    def _listen(self) -> None:
        """Load what the one who trains has left; take its place if it is gone."""
        before = self.learner.examples
        if found := self.ledger.snapshot(before, self._heard):
            load(self.learner, self.panel, json.loads(found[0]), found[1], self.versions)
            self._let_go(self.learner.examples - before)
        if self.ledger.lock.trains:
            self._leads = True
            log.info("loop %r is trained here from now on", self.ledger.name)

    def _let_go(self, examples: int) -> None:
        """So many wait no longer, nor do checkpoints: they are made where the loop is trained."""
        with self._news:
            while examples or (self._waiting and isinstance(self._waiting[0][1], Mark)):
                _, change = self._waiting.popleft()
                examples -= not isinstance(change, Mark)
                self._trained += 1
            self._news.notify_all()

    def _publish(self) -> None:
        """Leave a snapshot, if there is something new and somebody follows."""
        examples, now = self.learner.examples, time.monotonic()
        if examples == self._published or now < self._again:
            return
        size = 0
        if self.ledger.lock.followed():
            data, state = packed(self.learner, self.panel)
            examples, size = data["learner"]["examples"], len(state)
            self.ledger.publish(examples, write(data), state)
        self._published, self._again = examples, now + max(PAUSE, size / BYTES)
