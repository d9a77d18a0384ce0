"""The teacher brings lessons to the learner, at once or in a thread of its own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from driftbandit.loop.book import Lesson
from driftbandit.loop.declaration import Version
from driftbandit.loop.events import Event, LedgerError
from driftbandit.loop.learner import Learner
from driftbandit.loop.ledger import Ledger
from driftbandit.loop.places import placed
from driftbandit.loop.tickets import Change, Mark
from driftbandit.policies.base import Floats

CHUNK = 256  # changes at a time
RECENT = 50_000  # rows of open decisions in memory; others are encoded again


Row = tuple[int, int | None]  # seq of a decision, and the position in a slate


class Lag(NamedTuple):
    """Lessons that wait to be taught, and for how many seconds the oldest has."""

    lessons: int
    seconds: float


class Teacher:
    """Teaches what it is handed before it returns; `store` is told of checkpoints."""

    def __init__(
        self,
        learner: Learner,
        ledger: Ledger,
        versions: dict[str, Version],
        store: Callable[[Mark], None] | None = None,
    ) -> None:
        self.learner, self.ledger, self.versions, self._store = learner, ledger, versions, store
        self._recent: OrderedDict[Row, Floats] = OrderedDict()
        self._turn = threading.Lock()

    def hand(self, changes: list[Change]) -> None:
        """Take changes that are stored."""
        self.teach(changes)

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until all that was handed in is taught; False on a timeout."""
        return True

    @property
    def lag(self) -> Lag:
        return Lag(0, 0.0)

    def check(self) -> None:
        """Raise if teaching has stopped."""

    def close(self) -> None:
        """Teach what waits, and stop."""

    def remember(self, row: Row, x: Floats) -> None:
        """Keep the row of a decision that was just made: its lesson may come soon."""
        with self._turn:
            self._recent[row] = x
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)

    def forget(self) -> None:
        """Rows are encoded again from the log."""
        with self._turn:
            self._recent.clear()

    def teach(self, changes: Sequence[Change]) -> None:
        """Lessons, growth and checkpoints in order."""
        rows = self._rows([c for c in changes if isinstance(c, Lesson)])
        for change in changes:
            if isinstance(change, Lesson):
                self.learner.teach(change, rows[change.decision, change.position])
            elif isinstance(change, Event):
                self.learner.grow(change)
                self.versions[self.learner.version.features.version] = self.learner.version
            elif self._store:
                self._store(change)

    def _rows(self, lessons: list[Lesson]) -> dict[Row, Floats | None]:
        """The row of each decision's arm: from memory, or encoded again from the log."""
        with self._turn:
            keys = [(each.decision, each.position) for each in lessons]
            rows = {key: self._recent.pop(key, None) for key in keys}
        missing = [key for key, row in rows.items() if row is None]
        events = self.ledger.events(list({seq for seq, _ in missing})) if missing else {}
        by_version: dict[str, list[tuple[Row, Any, Any]]] = {}
        for key in missing:
            self._find(key, _decision(events, key[0]), by_version)
        for version, parts in by_version.items():
            found, contexts, arms = zip(*parts)
            X = self.versions[version].features.encode_pairs(contexts, arms)
            rows |= zip(found, X)
        return rows

    def _find(self, key: Row, data: dict[str, Any], found: dict[str, Any]) -> None:
        """Context and arm of a lesson, if there was an arm."""
        choice = data["choice"] if key[1] is None else data["choice"][key[1]]
        if choice is not None:
            features = self.versions[data["version"]].features
            context, (arm,) = placed(features, data["context"], [data["arms"][choice]], key[1])
            found.setdefault(data["version"], []).append((key, context, arm))


def _decision(events: dict[int, Event], seq: int) -> dict[str, Any]:
    if seq not in events or events[seq].kind != "decide":
        raise LedgerError(f"decision {seq} is not in the ledger: restore it from a copy")
    return events[seq].read()
