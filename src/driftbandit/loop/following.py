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

from driftbandit.loop.background import Background
from driftbandit.loop.events import write
from driftbandit.loop.learner import Learner
from driftbandit.loop.replay import past
from driftbandit.loop.tickets import Mark

log = logging.getLogger("driftbandit.loop")

PAUSE = 0.5  # seconds from one snapshot to the next
LOOK = 0.2  # seconds until somebody else's is seen
BYTES = 4_000_000  # of snapshots in a second, at most


class Following(Background):
    """Teaches where the lock says so, and follows the one who teaches elsewhere."""

    def __init__(self, learner: Learner, *args: Any) -> None:
        self._leads, self._known = False, learner.lessons  # lessons before the first that waits
        self._published, self._again = learner.lessons, 0.0  # by snapshots; when to make the next
        super().__init__(learner, *args)

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
        """Take over what the one who teaches has left, and its place if it is gone."""
        found = self.ledger.snapshot(self.learner.lessons)
        if found:
            about = json.loads(found[0])
            if about["version"] not in self.versions:  # it has grown
                now = past(self.ledger)
                self.versions.update(now.versions if now else {})
            self.learner.load(about, found[1], self.versions[about["version"]])
        if self._let_go() and self.ledger.lock.teaches:
            self._leads = True
            log.info("loop %r is taught here from now on", self.ledger.name)

    def _let_go(self) -> bool:
        """Lessons that the learner knows wait no longer; False if there are more to come."""
        with self._news:
            while self._waiting and (self._is_mark or self._known < self.learner.lessons):
                self._known += not self._is_mark
                self._taught += 1
                self._waiting.popleft()
            self._news.notify_all()
        return self._known == self.learner.lessons

    @property
    def _is_mark(self) -> bool:
        """Whether a checkpoint is next: they are made where the loop is taught."""
        return isinstance(self._waiting[0][1], Mark)

    def _publish(self) -> None:
        """Leave a snapshot, if there is something new and somebody follows."""
        lessons, now = self.learner.lessons, time.monotonic()
        if lessons == self._published or now < self._again:
            return
        size = 0
        if self.ledger.lock.followed():
            about, state = self.learner.state()
            self.ledger.publish(about["lessons"], write(about), state)
            lessons, size = about["lessons"], len(state)
        self._published, self._again = lessons, now + max(PAUSE, size / BYTES)
