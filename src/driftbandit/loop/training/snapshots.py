"""Many processes decide, one trains: what the learner knows travels by snapshots.

All processes read the same log, so all know which examples there are and in which order. The one
that trains leaves the learner in the ledger twice a second. Others load it and let go of the
examples that it knows; what waits with them is what they decide without. When the process that
trains dies, another goes on with exactly these.
"""

from __future__ import annotations

import json
import logging
import time

from driftbandit.loop.learning.learner import CHANGED, Packing
from driftbandit.loop.state.reward_windows import Change, Mark, counts
from driftbandit.loop.storage.events import encode
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.training.replay import load, packed
from driftbandit.loop.training.trainer import Trainer
from driftbandit.loop.training.trainer_thread import TrainerThread

log = logging.getLogger("driftbandit.loop")

PAUSE = 0.5  # seconds from one snapshot to the next
BYTES = 4_000_000  # of snapshots in a second, at most


class Snapshots:
    """Follows the process that trains, and publishes once this one does. The trainer thread calls
    it before each step."""

    def __init__(self, trainer: Trainer, ledger: Ledger) -> None:
        self._learner, self._candidates = trainer.learner, trainer.candidates
        self._ledger, self._trains = ledger, False
        self._published, self._again = self._learner.examples, 0.0  # when to make the next

    def __call__(self, thread: TrainerThread) -> bool:
        if not self._trains:
            self._listen(thread)
        if self._trains:
            self._publish()
        return self._trains

    def _listen(self, thread: TrainerThread) -> None:
        """Load what the process that trains has left; take over if it is gone."""
        before = self._learner.examples
        known = before + thread.lag.examples
        if found := self._ledger.snapshot(before, known):
            about = json.loads(found[0])
            load(self._ledger, self._learner, self._candidates, about, found[1])
            _drop(thread, self._learner.examples - before)
        if self._ledger.lock.trains:
            self._trains = True
            log.info("loop %r is trained here from now on", self._ledger.name)

    def _publish(self) -> None:
        """Leave a snapshot, if there is something new and other processes follow."""
        examples, now = self._learner.examples, time.monotonic()
        if examples == self._published or now < self._again:
            return
        size = 0
        if self._ledger.lock.followed():
            data, state = packed(self._learner, self._candidates, Packing(CHANGED))
            examples, size = data["learner"]["examples"], len(state)
            self._ledger.publish(examples, encode(data), state)
        self._published, self._again = examples, now + max(PAUSE, size / BYTES)


def _drop(thread: TrainerThread, examples: int) -> None:
    """Let go of so many changes, and of the checkpoints between and after them: they are made in
    the process that trains. Notes after them stay: being told twice changes nothing."""
    left = [examples]

    def is_known(change: Change) -> bool:
        if not counts(change):
            return left[0] > 0 or isinstance(change, Mark)
        left[0] -= 1
        return left[0] >= 0

    thread.drop(is_known)
