"""Many decide, one teaches: what the learner knows travels by snapshots.

Everybody reads the same log, so everybody knows which lessons there are and in which order. Who
teaches leaves the learner in the ledger twice a second. Others load it and let go of the lessons
that it knows; what waits with them is what they decide without. When the one who teaches dies,
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
    """Teaches where the lock says so, and follows the one who teaches elsewhere."""

    def __init__(self, learner: Learner, *args: Any) -> None:
        self._leads = False
        self._heard = learner.lessons  # all lessons that have come, those that wait among them
        self._published, self._again = learner.lessons, 0.0  # by snapshots; when to make the next
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
        """Load what the one who teaches has left; take its place if it is gone."""
        before = self.learner.lessons
        if found := self.ledger.snapshot(before, self._heard):
            load(self.learner, self.panel, json.loads(found[0]), found[1], self.versions)
            self._let_go(self.learner.lessons - before)
        if self.ledger.lock.teaches:
            self._leads = True
            log.info("loop %r is taught here from now on", self.ledger.name)

    def _let_go(self, lessons: int) -> None:
        """So many wait no longer, nor do checkpoints: they are made where the loop is taught."""
        with self._news:
            while lessons or (self._waiting and isinstance(self._waiting[0][1], Mark)):
                _, change = self._waiting.popleft()
                lessons -= not isinstance(change, Mark)
                self._taught += 1
            self._news.notify_all()

    def _publish(self) -> None:
        """Leave a snapshot, if there is something new and somebody follows."""
        lessons, now = self.learner.lessons, time.monotonic()
        if lessons == self._published or now < self._again:
            return
        size = 0
        if self.ledger.lock.followed():
            data, state = packed(self.learner, self.panel)
            lessons, size = data["learner"]["lessons"], len(state)
            self.ledger.publish(lessons, write(data), state)
        self._published, self._again = lessons, now + max(PAUSE, size / BYTES)
