"""Training beside decisions: inline, in a thread, or in another process that is followed."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.midst import Midst
from driftbandit.loop.state.reward_windows import Change, counts
from driftbandit.loop.training.trainer import Lag, Trainer

CHUNK = 64  # changes at a time: short enough for callers to wait for
PATIENT = 0.25  # seconds behind up to which callers go first, and beyond which they wait
LOOK = 0.2  # seconds until snapshots are looked for
GATHER = 0.02  # seconds in which changes may gather: training several in a row takes less time


class Training(Protocol):
    """What a loop asks of training, wherever it happens."""

    def submit(self, changes: list[Change]) -> None:
        """Take changes that are stored."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all that was submitted is trained; return False on a timeout."""

    @property
    def lag(self) -> Lag: ...
    def check(self) -> None:
        """Raise if training has stopped."""

    def close(self) -> None:
        """Train what waits, and stop."""


class InlineTraining:
    """Trains what is submitted before `submit` returns."""

    lag = Lag(0, 0.0)

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    def submit(self, changes: list[Change]) -> None:
        self._trainer.train(changes)

    def wait(self, timeout: float | None = None) -> bool:
        return True

    def check(self) -> None:
        """Do nothing: errors reach the caller."""

    def close(self) -> None:
        """Do nothing: nothing waits."""


class TrainerThread:
    """Trains in a thread: what is submitted waits until its turn comes. `on_error` is told if that
    fails. If `follow` is given, other processes may train instead: it is called before each step,
    and returns whether this one does."""

    def __init__(
        self,
        trainer: Trainer,
        on_error: Callable[[Exception], None],
        midst: Midst,
        follow: Callable[[TrainerThread], bool] | None = None,
    ) -> None:
        self._trainer, self._on_error, self._follow = trainer, on_error, follow
        self._midst = midst
        self._waiting: deque[tuple[float, Change]] = deque()
        self._news, self._closed = threading.Condition(), False
        self._submitted = self._trained = self._wanted = 0  # wanted: up to here callers wait
        self._examples = 0  # of what waits, those that count
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="driftbandit trainer", daemon=True)
        self._thread.start()

    def submit(self, changes: list[Change]) -> None:
        if changes:
            now = time.monotonic()
            with self._news:
                idle = not self._waiting
                self._submitted += len(changes)
                self._examples += sum(map(counts, changes))
                self._waiting.extend((now, change) for change in changes)
                if idle or len(self._waiting) >= CHUNK:
                    self._news.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        with self._news:
            all_of_it = self._wanted = self._submitted  # what comes meanwhile is not waited for
            self._news.notify_all()
            done = self._news.wait_for(lambda: self._error or self._trained >= all_of_it, timeout)
        self.check()
        return bool(done)

    @property
    def lag(self) -> Lag:
        with self._news:
            waited = time.monotonic() - self._waiting[0][0] if self._waiting else 0.0
            return Lag(self._examples, waited)

    def check(self) -> None:
        if self._error:
            raise LedgerError(f"training has stopped: {self._error}") from self._error

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._thread.join()

    def drop(self, is_known: Callable[[Change], bool]) -> None:
        """Let go of what waits, from the oldest on, as long as another process has trained it."""
        with self._news:
            while self._waiting and is_known(self._waiting[0][1]):
                self._let_go()
            self._news.notify_all()

    def _let_go(self) -> None:
        """Let the oldest change go: it is trained."""
        self._examples -= counts(self._waiting.popleft()[1])
        self._trained += 1

    def _run(self) -> None:
        try:
            with self._midst:
                while self._step():
                    pass
        except Exception as error:
            try:
                self._on_error(error)
            finally:  # callers that wait must not wait forever
                with self._news:
                    self._error = error
                    self._news.notify_all()

    def _step(self) -> bool:
        """Train some of what waits, or wait; return False at the end."""
        trains = self._follow is None or self._follow(self)
        with self._news:
            if not (trains and self._waiting) and not self._closed:
                self._news.wait(None if self._follow is None else LOOK)
                if trains and self._waiting:
                    self._news.wait_for(self._is_enough, GATHER)
        if trains and self._waiting:
            self._next()
        return not self._closed or bool(trains and self._waiting)

    def _is_enough(self) -> bool:
        """Return whether there is no reason to wait for more."""
        hurried = self._closed or self._trained < self._wanted
        return hurried or len(self._waiting) >= CHUNK

    def _next(self) -> None:
        """Train what waits longest, and only then let it go: `wait` must not return too early."""
        with self._news:
            chunk = [change for _, change in islice(self._waiting, CHUNK)]
            begun = self._waiting[0][0]
        patient = time.monotonic() - begun < PATIENT
        self._trainer.train(chunk, holds=not patient)
        with self._news:
            for _ in chunk:
                self._let_go()
            self._news.notify_all()
        if patient:
            time.sleep(0.0)  # gives up the GIL, which callers wait for
