"""The writer puts events in order, in a thread of its own or in that of the caller.

Callers hand in pending events and wait. The writer gives them the next `seq`, enters them into the
reward windows, stores all that have come meanwhile in one transaction, and then lets their callers
go on. So an event is acknowledged when it is on the disk, one wait for the disk serves many
callers, and the learner is trained on nothing that could be lost.

One thread writes at a time: the one that holds `_working`. A caller that comes alone does it
itself, because a hand-over to the writer's thread and back takes longer than the work. If others
come meanwhile, the writer's thread goes on, and serves them together.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain

from driftbandit import fork_safety
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.midst import Midst
from driftbandit.loop.state.reward_windows import Change, Mark, RewardWindows, counts
from driftbandit.loop.storage.events import LASTING, Event
from driftbandit.loop.storage.key_rows import Numbers
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.writing.pending import Pending
from driftbandit.loop.writing.retention import Retention
from driftbandit.loop.writing.sequencer import Sequencer
from driftbandit.loop.writing.signals import in_main_thread, without_signals

GROUP = 500  # pending events in one transaction
MOST_LINGER = 0.002  # seconds to wait for callers that were served just now: they come together
PAUSE = 0.1  # seconds between two looks whether windows are to be closed
EVERY = 10_000  # examples from one checkpoint to the next
SWEEPS = 25  # deletions in a row while there is nothing else to do
FINISH = 5.0  # seconds for deletions when a loop is closed
LOOK = 0.25  # seconds until it is seen what other processes have stored, and that they are gone


class Writer:
    """`now` is the clock; without one, events are. With `threaded` it has a thread of its own, from
    `open` on, and windows close by themselves in the process that trains. Other processes that
    write to the same ledger take turns with it: it enters what they have stored.

    `most` are the examples from one checkpoint to the next, at most.
    `train` gets the changes of every group, `hear` every event that says what the loop is.
    Once something went wrong, every call is refused.
    """

    def __init__(
        self,
        ledger: Ledger,
        windows: RewardWindows,
        train: Callable[[list[Change]], None],
        hear: Callable[[Event], None],
        midst: Midst,
        now: Callable[[], float] | None,
        threaded: bool,
        examples: int = 0,
        most: int = EVERY,
    ) -> None:
        self.ledger, self.windows, self._train, self._hear = ledger, windows, train, hear
        self.sequencer = Sequencer(ledger, windows, now)
        self.error: BaseException | None = None
        self.process, self._threaded, self._closed = fork_safety.process, threaded, False
        self._waiting: deque[Sequence[Pending]] = deque()  # what each caller has handed in
        self._bell = threading.Lock()  # released when the thread is to look at it
        self._bell.acquire()
        self._callers = 1  # of the group that is being stored
        self._expected, self._linger = 1, 0.0  # callers that may come at once; how long to wait
        self._working = threading.Lock()  # held by the thread that writes
        self.midst = midst  # holds the same thread, from before it takes the lock
        self._wakes = math.inf  # when the thread looks what there is to do
        self._advanced = self._looked = 0.0
        self._examples = examples  # since the latest mark, also of processes that were killed
        self._most = most  # of them
        self._lock, self._retention = ledger.lock, Retention(ledger, windows)
        self._stale = ledger.start > 1  # whether there is something to delete, a little at a time
        if self._lock.trains:
            self._let_go()
        self._thread = threading.Thread(target=self._run, name="driftbandit writer", daemon=True)
        if threaded:
            self._thread.start()

    @property
    def clock(self) -> float:
        """What time it is for new decisions."""
        return self.sequencer.clock

    @property
    def reading(self) -> float:
        """What the machine's clock says, or the time of the log if events are the clock."""
        return self.sequencer.reading

    @property
    def believed(self) -> float:
        """The same, unless a machine's clock is too far ahead of the log."""
        return self.sequencer.believed

    @property
    def due(self) -> bool:
        """Whether a reading of the clock would have to be stored."""
        return self.sequencer.due

    # callers

    def submit(self, pending: Pending) -> Pending:
        """Wait until an event is stored; raise what is wrong with it."""
        self.check()
        pending.stored.acquire()
        self._hand_in((pending,))
        while not pending.stored.acquire(timeout=1.0):
            self._check_alive()
        if pending.error is not None:
            raise pending.error
        return pending

    def submit_all(self, group: Sequence[Pending]) -> None:
        """Wait until events are stored; what is wrong with one is its `error`."""
        self.check()
        for pending in group:
            pending.stored.acquire()
        for k in range(0, len(group), GROUP):
            self._hand_in(group[k : k + GROUP])
        for pending in group:
            while not pending.stored.acquire(timeout=1.0):
                self._check_alive()

    def _hand_in(self, group: Sequence[Pending]) -> None:
        """Let a group be stored: by this thread if no other caller is there, as that is faster.
        Ctrl-C waits meanwhile, so the main thread does not if other processes may be in the way."""
        leads = not self._waiting and self._expected <= 1 and not self._stale
        self._waiting.append(group)
        if not self._threaded:
            with self.midst, self._working:
                while self._waiting:
                    self._write()
            return
        if leads and group[0].work is None and (self._lock.alone or not in_main_thread()):
            without_signals(self._lead)
        if self._waiting or time.monotonic() + self._patience < self._wakes:
            self._ring()

    def _lead(self) -> None:
        """Store what waits in the thread of a caller, unless another one writes."""
        with self.midst:
            if self._working.acquire(blocking=False):
                try:
                    if not self._closed:
                        self._write()
                finally:
                    self._working.release()

    def _ring(self) -> None:
        """Wake the writer's thread."""
        with suppress(RuntimeError):  # it has been rung already
            self._bell.release()

    def _check_alive(self) -> None:
        if not self._thread.is_alive():
            self.check()
            raise LedgerError("the loop was closed meanwhile: open it again")

    def put(self, pending: Pending) -> None:
        """Hand an event in without waiting."""
        self._waiting.append((pending,))
        self._ring()

    def check(self) -> None:
        """Raise if nothing can be stored any more, or not by this thread now."""
        self.midst.check()
        if fork_safety.process != self.process:
            raise LedgerError(
                f"this loop was opened in process {self.process} and cannot be used after a fork: "
                "open loops after the fork only"
            )
        if self._closed:
            raise LedgerError("this loop is closed: open it again")
        if self.error is not None:
            raise LedgerError(f"this loop has stopped: {self.error}") from self.error

    def close(self) -> None:
        """Store what has been handed in, and stop."""
        if fork_safety.process != self.process:
            return
        with self._working:  # no caller writes from now on
            self._closed = True
        if self._threaded:
            self._ring()
            self._thread.join()
        while self._waiting:
            self._write()

    # the thread that writes

    def _run(self) -> None:
        with self.midst:
            while not self._closed:
                self._wait()
                with self._working:
                    self._write()

    def _wait(self) -> None:
        """Wait for events, or until there may be something to do that no caller asks for."""
        most, rung = 1.0 if self._lock.alone else LOOK, True
        while rung and not (self._waiting or self._closed):
            self._wakes = math.inf  # so a caller whose event comes now rings
            patience = min(most, self._patience)
            self._wakes = time.monotonic() + patience
            rung = self._bell.acquire(timeout=patience)

    @property
    def _patience(self) -> float:
        """Seconds until windows may have to be closed."""
        return max(PAUSE, self.windows.due - self.sequencer.clock)

    def _take(self) -> list[Pending]:
        """Return all events that wait. Callers that were served just now tend to come back
        together, so the writer's thread waits for those, but not for long."""
        taken, events = list[Sequence[Pending]](), 0
        until = time.monotonic() + self._linger if self._expected > 1 and self._waiting else 0.0
        while events < GROUP:
            while self._waiting and events < GROUP:
                taken.append(self._waiting.popleft())
                events += len(taken[-1])
            left = until - time.monotonic() if len(taken) < self._expected else 0.0
            if left <= 0.0 or not self._bell.acquire(timeout=left):
                break
        self._callers = len(taken)
        return [*chain.from_iterable(taken)]

    def _write(self) -> None:
        """Store what waits, and do what is to be done anyway."""
        group = self._take()
        try:
            self._store(group)
        except BaseException as error:  # Ctrl-C, too: the windows are ahead of the ledger
            self.error = error
            self._refuse(group)
            if not isinstance(error, Exception):
                raise

    def _refuse(self, group: list[Pending]) -> None:
        """Nothing of this group is stored, and nothing will be: the windows are ahead of it."""
        for pending in group:
            if pending.stored.locked():
                told = self.error if isinstance(self.error, Exception) else None
                pending.error = told or LedgerError("this loop was interrupted: open it again")
                pending.stored.release()

    def _store(self, group: list[Pending]) -> None:
        """Do what was asked for, and what is to be done anyway."""
        if self.error is not None:
            raise self.error
        lock, now = self._lock, time.monotonic()
        if not lock.trains and now - self._looked >= LOOK:
            lock.take_over()  # if the process that trains has gone away
            self._looked = now
        if self._threaded and lock.trains and now - self._advanced >= PAUSE:
            self._advanced = now
            if self.sequencer.due:
                group = [*group, Pending("advance")]
        if not group:  # otherwise the store looks when it inserts
            self.ledger.check_place()
        if lock.alone:
            changes = self._append(group, now)
        elif group:
            with self.turn():
                changes = self._append(group, now)
        else:  # only look: others would have to wait for a turn
            changes = self._follow(self.ledger.after(self.windows.seq))
        if changes:
            self._train(changes)
        for pending in group:
            if not pending.work and pending.stored.locked():  # a caller waits
                pending.stored.release()
        for pending in group:
            if pending.work:  # last: it may take long or fail, and the others are stored
                pending.work()
                pending.stored.release()
        if lock.trains and (self._stale or self.windows.retention is not None):
            self._retain(SWEEPS if not group and self._threaded else 1)

    def _retain(self, sweeps: int) -> None:
        """Make a checkpoint if one is due by time, and delete some of what is too old."""
        now = self.believed
        if self._retention.needs_mark(now):
            self._retention.marked(now)
            self._train([self.windows.mark()])
        self._let_go()
        while self._stale and sweeps > 0 and not self._waiting:
            self._stale, sweeps = self.ledger.sweep(), sweeps - 1

    def _let_go(self) -> None:
        """Look for events that are too old, once in a while."""
        if self._retention.due:
            with self.turn():
                self._stale |= self._retention.apply(self.believed)

    def finish_retention(self) -> None:
        """Delete what is too old before the loop is closed, for a few seconds at most."""
        until = time.monotonic() + FINISH
        while self._stale and time.monotonic() < until:
            self._stale = self.ledger.sweep()

    def _append(self, group: list[Pending], begun: float) -> list[Change]:
        """Give events their places and store them; return what there is to learn."""
        events, states, changes = list[Event](), list[tuple[Event, Numbers]](), list[Change]()
        lasting: list[Event] = []
        for pending in group:
            if pending.work:
                continue
            if pending.kind == "advance":
                self._advanced = begun
            try:
                pending.word, found = self.sequencer.enter(pending)
            except ValueError as error:
                pending.error = error
                continue
            if found:
                changes += found
                changes += self._marks(sum(map(counts, found)))
            if pending.event is not None:
                events.append(pending.event)
                if pending.state is not None:
                    states.append((pending.event, pending.state))
                if pending.kind in LASTING:
                    lasting.append(pending.event)
        if events:
            self.ledger.append(events, states)
            self.sequencer.stored()
            if self.windows.retention is not None:
                self._retention.note(events, self.windows.clock.time)
            if self._threaded:  # wait for callers at most half the time of a write
                self._linger = min(MOST_LINGER, 0.5 * (time.monotonic() - begun))
                self._expected = self._callers + len(self._waiting)
        for event in lasting:
            self._hear(event)
        if states:
            self._retention.look_again()
        return changes

    @contextmanager
    def turn(self, *, long: bool = False) -> Iterator[None]:
        """Keep other processes from writing; what they have stored is entered and trained on."""
        with self.ledger.turn(self.windows.seq, long=long) as others:
            self._train(self._follow(others))
            yield

    def _follow(self, events: Sequence[Event]) -> list[Change]:
        found: list[Change] = []
        for event in events:
            if event.kind in LASTING:
                self._hear(event)
            changes = self.sequencer.follow(event).changes
            found += [*changes, *self._marks(sum(map(counts, changes)))]
        return found

    def _marks(self, examples: int) -> list[Mark]:
        self._examples += examples
        if self._examples < min(EVERY, self._most):
            return []
        self._examples = 0
        return [self.windows.mark()]
