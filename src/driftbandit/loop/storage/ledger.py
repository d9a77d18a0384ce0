"""The ledger: events of a loop in a database, appended and never reordered.

Each `append` is one transaction that has reached the disk when it returns (write-ahead log,
synchronous FULL). Nothing here knows what events mean.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from driftbandit.loop.storage.events import Event, LedgerError
from driftbandit.loop.storage.records import COLUMNS, LASTING, LIGHT, MOST, Records, marks
from driftbandit.loop.storage.store import Lock, connect

SWEEP = 200  # events deleted at once
AFTER = f"SELECT {LIGHT} FROM event WHERE loop = ? AND seq > ? ORDER BY seq"

States = Sequence[tuple[int, bytes]]  # the numbers of checkpoints, by the seq of their event


class Ledger(Records):
    """The events of one loop. With `write`, nobody else can write to it, unless it need not be
    `alone` and the store knows how to take turns."""

    def __init__(
        self, path: str | os.PathLike[str], name: str, *, write: bool = True, alone: bool = True
    ) -> None:
        store = connect(path, write=write)
        self._lock: Lock | None = None
        self._gate, self._readers = threading.Lock(), set[object]()
        try:
            if write:
                store.do("INSERT INTO loop (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
                self._lock = store.lock(name, alone=alone)
            super().__init__(store, name)
        except BaseException:
            store.close()
            if self._lock:
                self._lock.release()
            raise

    @property
    def lock(self) -> Lock:
        """Who writes, and who trains."""
        if self._lock is None:
            raise LedgerError(f"{self.path!r} was opened for reading only: open it for writing")
        return self._lock

    @contextmanager
    def turn(self, seq: int, *, long: bool = False) -> Iterator[list[Event]]:
        """Nobody else writes until the end, where all of it is stored. Gives what others have
        stored after the event `seq`."""
        with self.lock.turn(AFTER, (self._loop, seq), long=long) as rows:
            yield self._next(rows, seq)

    def after(self, seq: int) -> list[Event]:
        """The same without a turn."""
        return self._next(self.lock.read(AFTER, (self._loop, seq)), seq)

    def append(self, events: Sequence[Event], states: States = ()) -> None:
        """Store events, and the numbers of those that are checkpoints: all of it or nothing."""
        if not states and len(events) <= MOST:
            self._insert(events)  # alone in its transaction: one call, one wait for the disk
            return
        with self._base.transaction():
            self._insert_all(events, states)

    def _insert_all(self, events: Sequence[Event], states: States) -> None:
        for k in range(0, len(events), MOST):
            self._insert(events[k : k + MOST])
        for seq, state in states:
            self._base.do("INSERT INTO checkpoint VALUES (?, ?, ?)", (self._loop, seq, state))

    def _insert(self, events: Sequence[Event]) -> None:
        if events:
            rows = ",".join(["(?,?,?,?,?,?,?)"] * len(events))
            values = [v for event in events for v in (self._loop, *event)]
            self._base.do(f"INSERT INTO event (loop, {COLUMNS}) VALUES {rows}", values)

    def publish(self, examples: int, about: str, state: bytes) -> None:
        """Leave the learner to those who decide elsewhere; it never goes back."""
        new = "examples = excluded.examples, about = excluded.about, state = excluded.state"
        only = "WHERE snapshot.examples < excluded.examples RETURNING examples"
        query = f"INSERT INTO snapshot VALUES (?, ?, ?, ?) ON CONFLICT (loop) DO UPDATE SET {new}"
        self._ask(f"{query} {only}", examples, about, state)

    def keep(self, seq: int, state: bytes) -> None:
        """Store numbers beside an event, once, where the loop is trained; they go with the
        checkpoints of their time."""
        if self._lock and self._lock.trains:
            new = "INSERT INTO checkpoint VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq"
            self._ask(new, seq, state)

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """Nothing that is kept is let go meanwhile: somebody reads all of it."""
        reader = object()
        with self._gate:
            self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)

    def erase(self, seqs: Sequence[int], events: Sequence[Event], states: States) -> None:
        """Blank what these events said, and append others. Older checkpoints go; the new one is
        where replays start from now on."""
        with self._base.transaction():
            for k in range(0, len(seqs), MOST):
                part = seqs[k : k + MOST]
                blank = "kind = 'erased', id = NULL, key = NULL, data = '{}'"
                where = f"WHERE loop = ? AND seq IN ({marks(part)})"
                self._base.do(f"UPDATE event SET {blank} {where}", (self._loop, *part))
            self._insert_all(events, states)
            self._rest_on(states[-1][0], self.start)
            self._base.do("DELETE FROM snapshot WHERE loop = ?", (self._loop,))

    def purge(self) -> None:
        """Leave no copy of what was erased."""
        self._base.purge()

    def rest_on(self, base: int, start: int) -> None:
        """Replays start from the checkpoint `base` from now on; older ones go. Events before
        `start` are not kept, and `sweep` deletes them. Another time, if somebody reads them."""
        with self._gate:
            if not self._readers:
                with self._base.transaction():
                    self._rest_on(base, start)

    def _rest_on(self, base: int, start: int) -> None:
        self._base.do("DELETE FROM checkpoint WHERE loop = ? AND seq < ?", (self._loop, base))
        values = base, start, self._loop
        self._base.do("UPDATE loop SET base = ?, start = ? WHERE id = ?", values)
        self.base, self.start = base, start

    def sweep(self) -> bool:
        """Delete some of the events that are not kept; False once none is left."""
        where = f"WHERE loop = ? AND seq < ? AND kind NOT IN ({LASTING}) LIMIT {SWEEP}"
        old = f"SELECT place FROM event {where}"
        deleted = f"DELETE FROM event WHERE place IN ({old})"
        return self._base.do(deleted, (self._loop, self.start)) > 0

    def close(self) -> None:
        self._base.close()
        if self._lock:
            self._lock.release()


def names(path: str | os.PathLike[str]) -> list[str]:
    """The loops that are declared in a store, which is made if there is none."""
    base = connect(path, write=True)
    declared = "SELECT 1 FROM event WHERE event.loop = loop.id AND event.seq = 1"
    query = f"SELECT name FROM loop WHERE EXISTS ({declared}) ORDER BY name"
    try:
        return [row[0] for row in base.ask(query, ())]
    finally:
        base.close()
