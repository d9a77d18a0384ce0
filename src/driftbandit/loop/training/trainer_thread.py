"""Training in the background: decisions do not wait for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import islice
from typing import Any

from driftbandit.loop.storage.events import LedgerError
from driftbandit.loop.training.trainer import Lag, Trainer
from driftbandit.loop.writing.pending import Change

CHUNK = 8  # changes at a time: short enough for callers to wait for
PATIENT = 0.5  # seconds behind up to which callers go first


class Background(Trainer):
    """A trainer with a thread: what it is handed waits until its turn comes."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._waiting: deque[tuple[float, Change]] = deque()
        self._news, self._closed = threading.Condition(), False
        self._handed = self._trained = 0
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="driftbandit trainer", daemon=True)
        self._thread.start()

    def hand(self, changes: list[Change]) -> None:
        if changes:
            now = time.monotonic()
            with self._news:
                self._handed += len(changes)
                self._waiting.extend((now, change) for change in changes)
                self._news.notify_all()

    def wait_until_trained(self, timeout: float | None = None) -> bool:
        with self._news:
            all_of_it = self._handed  # what comes meanwhile is not waited for
            done = self._news.wait_for(lambda: self._error or self._trained >= all_of_it, timeout)
        self.check()
        return bool(done)

    @property
    def lag(self) -> Lag:
        with self._news:
            waited = time.monotonic() - self._waiting[0][0] if self._waiting else 0.0
            return Lag(len(self._waiting), waited)

    def check(self) -> None:
        if self._error:
            raise LedgerError(f"training has stopped: {self._error}") from self._error

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except Exception as error:
            with self._news:
                self._error = error
                self._news.notify_all()

    def _step(self) -> bool:
        """Train some of what waits, or wait; False at the end."""
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._closed)
        if self._waiting:
            self._next()
        return bool(self._waiting) or not self._closed

    def _next(self) -> None:
        """Train what waits longest, and only then let it go: nobody is told too early."""
        with self._news:
            chunk = [change for _, change in islice(self._waiting, CHUNK)]
        self.train(chunk)
        with self._news:
            self._trained += len(chunk)
            for _ in chunk:
                self._waiting.popleft()
            self._news.notify_all()
        if self.lag.seconds < PATIENT:
            time.sleep(0.0)  # gives up Python's lock, which callers wait for
