"""The ledger: events of a loop in a database, appended and never reordered.

Each `append` is one transaction that has reached the disk when it returns (write-ahead log,
synchronous FULL). Nothing here knows what events mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from driftbandit.loop.events import FOREVER, MARK, Event, LedgerError
from driftbandit.loop.stores import Lock, connect

MOST = 100  # rows in one statement
CHUNK = 2000  # events read at once
SWEEP = 200  # events deleted at once
COLUMNS = "seq, kind, at, id, key, data"
PLAIN = f"kind = 'decide' AND substr(data, 1, {len(MARK)}) <> '{MARK}'"
LIGHT = f"seq, kind, at, id, key, CASE WHEN {PLAIN} THEN '{{}}' ELSE data END"
LASTING = ",".join(f"'{kind}'" for kind in FOREVER)

States = Sequence[tuple[int, bytes]]  # the numbers of checkpoints, by the seq of their event


class Ledger:
    """The events of one loop. With `write`, nobody else can write to it.

    `base` is the checkpoint that replays start from, or 0; `start` the first event that is kept.
    """

    def __init__(self, path: str | os.PathLike[str], name: str, *, write: bool = True) -> None:
        self.name, self._base = name, connect(path, write=write)
        self.path = self._base.path
        self._lock: Lock | None = None
        try:
            if write:
                new = "INSERT INTO loop (name) VALUES (?) ON CONFLICT DO NOTHING"
                self._base.do(new, (name,))
                self._lock = self._base.lock(name)
            found = self._base.ask("SELECT id, base, start FROM loop WHERE name = ?", (name,))
            if not found:
                raise LedgerError(f"{self.path!r} has no loop {name!r}: check the name")
        except BaseException:
            self.close()
            raise
        self._loop, self.base, self.start = found[0]

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

    def last(self) -> int:
        """The seq of the newest event, 0 if there is none."""
        return int(self._ask("SELECT max(seq) FROM event WHERE loop = ?")[0][0] or 0)

    def read(self, since: int = 1, *, light: bool = False) -> Iterator[Event]:
        """Events from `since` on, in order; `light` leaves the data of decisions out, but for
        slates."""
        where = f"WHERE loop = ? AND seq >= ? ORDER BY seq LIMIT {CHUNK}"
        query = f"SELECT {LIGHT if light else COLUMNS} FROM event {where}"
        while chunk := self._ask(query, since):
            for row in chunk:
                if row[0] != since:
                    raise LedgerError(
                        f"event {since} of {self.path!r} is missing: restore the file from a copy"
                    )
                since += 1
                yield Event(*row)

    def declared(self) -> list[Event]:
        """What was declared, set and grown, in order."""
        return self._events(f"WHERE loop = ? AND kind IN ({LASTING}) ORDER BY seq")

    def events(self, seqs: Sequence[int]) -> dict[int, Event]:
        """These events by seq."""
        parts = (seqs[k : k + MOST] for k in range(0, len(seqs), MOST))
        found = (self._events(f"WHERE loop = ? AND seq IN ({_marks(p)})", *p) for p in parts)
        return {event.seq: event for part in found for event in part}

    def find(self, id: str) -> Event | None:
        """The decision with this id."""
        found = self._events("WHERE loop = ? AND id = ? AND kind = 'decide'", id)
        return found[0] if found else None

    def before(self, at: float) -> Event | None:
        """The latest decision at this time or before it; reads all that came after."""
        found = self._events(
            "WHERE loop = ? AND kind = 'decide' AND at <= ? ORDER BY seq DESC LIMIT 1", at
        )
        return found[0] if found else None

    def about(self, key: str) -> list[int]:
        """All events of a key: its decisions, and what was said of them."""
        own = "SELECT id FROM event WHERE loop = ? AND key = ? AND kind = 'decide'"
        query = f"SELECT seq FROM event WHERE loop = ? AND id IN ({own}) ORDER BY seq"
        return [row[0] for row in self._ask(query, self._loop, key)]

    def checkpoints(self) -> list[Event]:
        """Events of the checkpoints that are kept, oldest first."""
        own = "SELECT seq FROM checkpoint WHERE checkpoint.loop = event.loop"
        return self._events(f"WHERE loop = ? AND seq IN ({own}) ORDER BY seq")

    def state(self, seq: int) -> bytes:
        """The learner's numbers of a checkpoint."""
        found = self._ask("SELECT state FROM checkpoint WHERE loop = ? AND seq = ?", seq)
        return bytes(found[0][0]) if found else b""

    def erase(self, seqs: Sequence[int], events: Sequence[Event], states: States) -> None:
        """Blank what these events said, and append others. Older checkpoints go; the new one is
        where replays start from now on."""
        with self._base.transaction():
            for k in range(0, len(seqs), MOST):
                part = seqs[k : k + MOST]
                blank = "kind = 'erased', id = NULL, key = NULL, data = '{}'"
                where = f"WHERE loop = ? AND seq IN ({_marks(part)})"
                self._base.do(f"UPDATE event SET {blank} {where}", (self._loop, *part))
            self._insert_all(events, states)
            self._rest_on(states[-1][0], self.start)
        self._base.purge()

    def rest_on(self, base: int, start: int) -> None:
        """Replays start from the checkpoint `base` from now on; older ones go. Events before
        `start` are not kept, and `sweep` deletes them."""
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

    def _events(self, where: str, *values: object) -> list[Event]:
        return [Event(*row) for row in self._ask(f"SELECT {COLUMNS} FROM event {where}", *values)]

    def _ask(self, query: str, *values: object) -> list[Any]:
        return self._base.ask(query, (self._loop, *values))


def names(path: str | os.PathLike[str]) -> list[str]:
    """The loops that are declared in a store, which is made if there is none."""
    base = connect(path, write=True)
    declared = "SELECT 1 FROM event WHERE event.loop = loop.id AND event.seq = 1"
    query = f"SELECT name FROM loop WHERE EXISTS ({declared}) ORDER BY name"
    try:
        return [row[0] for row in base.ask(query, ())]
    finally:
        base.close()


def _marks(values: Sequence[int]) -> str:
    return ",".join("?" * len(values))
