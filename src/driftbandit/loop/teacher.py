"""The teacher brings lessons to the learner, in a thread of its own or in the caller's."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from driftbandit.loop.book import Lesson
from driftbandit.loop.clerk import Change, Mark
from driftbandit.loop.declaration import Version
from driftbandit.loop.events import Event, LedgerError
from driftbandit.loop.learner import Learner
from driftbandit.loop.ledger import Ledger
from driftbandit.policies.base import Floats

CHUNK = 256  # changes at a time
RECENT = 50_000  # rows of open decisions in memory; others are encoded again


class Lag(NamedTuple):
    """Lessons that wait to be taught, and for how many seconds the oldest has."""

    lessons: int
    seconds: float


class Teacher:
    """Lessons wait in `_waiting`; `store` is told of checkpoints."""

    def __init__(
        self,
        learner: Learner,
        ledger: Ledger,
        versions: dict[str, Version],
        store: Callable[[Mark], None] | None = None,
    ) -> None:
        self.learner, self.ledger, self.versions, self._store = learner, ledger, versions, store
        self.error: Exception | None = None
        self._waiting: deque[tuple[float, Change]] = deque()
        self._recent: OrderedDict[int, Floats] = OrderedDict()
        self._news, self._turn = threading.Condition(), threading.Lock()
        self._teaching = threading.Lock()  # callers that teach take turns
        self._thread: threading.Thread | None = None
        self._closed = False

    def remember(self, seq: int, x: Floats) -> None:
        """Keep the row of a decision that was just made: its lesson may come soon."""
        with self._turn:
            self._recent[seq] = x
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)

    def forget(self) -> None:
        """Rows are encoded again from the log."""
        with self._turn:
            self._recent.clear()

    def hand(self, changes: list[Change]) -> None:
        """Take changes that are stored."""
        if changes:
            now = time.monotonic()
            with self._news:
                self._waiting.extend((now, change) for change in changes)
                self._news.notify_all()

    def start(self) -> None:
        """Teach in the background."""
        self._thread = threading.Thread(target=self._run, name="driftbandit teacher", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Teach what waits, and stop."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        if self._thread:
            self._thread.join()

    @property
    def lag(self) -> Lag:
        with self._news:
            waited = time.monotonic() - self._waiting[0][0] if self._waiting else 0.0
            return Lag(len(self._waiting), waited)

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until nothing waits, or teach here if there is no thread. False on a timeout."""
        if self._thread is None:
            with self._teaching:
                while self._waiting:
                    self._next()
            return True
        with self._news:
            done = self._news.wait_for(lambda: self.error or not self._waiting, timeout)
        if self.error:
            raise LedgerError(f"teaching has stopped: {self.error}") from self.error
        return bool(done)

    def _run(self) -> None:
        try:
            while self._wait():
                self._next()
        except Exception as error:
            with self._news:
                self.error = error
                self._news.notify_all()

    def _wait(self) -> bool:
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._closed)
        return bool(self._waiting)

    def _next(self) -> None:
        """Teach what waits longest, and only then let it go: nobody is told too early."""
        with self._news:
            chunk = [change for _, change in islice(self._waiting, CHUNK)]
        self.teach(chunk)
        with self._news:
            for _ in chunk:
                self._waiting.popleft()
            self._news.notify_all()

    def teach(self, changes: Sequence[Change]) -> None:
        """Lessons, growth and checkpoints in order."""
        rows = self._rows([c for c in changes if isinstance(c, Lesson)])
        for change in changes:
            if isinstance(change, Lesson):
                self.learner.teach(change, rows[change.decision])
            elif isinstance(change, Event):
                self.learner.grow(change)
                self.versions[self.learner.version.features.version] = self.learner.version
            elif self._store:
                self._store(change)

    def _rows(self, lessons: list[Lesson]) -> dict[int, Floats | None]:
        """The row of each decision's arm: from memory, or encoded again from the log."""
        rows: dict[int, Floats | None] = {}
        with self._turn:
            for lesson in lessons:
                rows[lesson.decision] = self._recent.pop(lesson.decision, None)
        missing = [seq for seq, row in rows.items() if row is None]
        events = self.ledger.events(missing) if missing else {}
        by_version: dict[str, list[tuple[int, Any, Any]]] = {}
        for seq in missing:
            data = _decision(events, seq)
            if data["choice"] is not None:
                arm = data["arms"][data["choice"]]
                by_version.setdefault(data["version"], []).append((seq, data["context"], arm))
        for version, parts in by_version.items():
            seqs, contexts, arms = zip(*parts)
            X = self.versions[version].features.encode_pairs(contexts, arms)
            rows |= zip(seqs, X)
        return rows


def _decision(events: dict[int, Event], seq: int) -> dict[str, Any]:
    if seq not in events or events[seq].kind != "decide":
        raise LedgerError(f"decision {seq} is not in the ledger: restore it from a copy")
    return events[seq].read()
