"""The ledger: events of a loop in a store, appended and never reordered.

Each `append` is one transaction that has reached the disk when it returns. Nothing here knows what
events mean.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.storage.chain import BEGINS, Head, genesis, kept_digest, sealed, split
from driftbandit.loop.storage.events import Anchor, Event, encode, event
from driftbandit.loop.storage.key_rows import Numbers, RowTable
from driftbandit.loop.storage.store import WriterLock, connect, is_url

MOST = 100  # rows in one statement
CHUNK = 2000  # events read at once
PIECE = 100_000_000  # bytes of a checkpoint in one value: databases allow some 10^9
SWEEP = 200  # events deleted at once

SHARED = 3  # newest checkpoints of keys that are kept where other processes may read them

States = Sequence[tuple[Event, Numbers]]  # the numbers of checkpoints, and their events


class Ledger:
    """The events of one loop. With `write`, no other process can write to it, unless it need not
    be `alone` and the store knows how to take turns.

    `base` is the checkpoint that replays start from, or 0; `start` the first event that is kept.
    `spacing` is the time between checkpoints of keys that are kept, None if only the newest is.
    """

    spacing: float | None = None

    def __init__(
        self, path: str | os.PathLike[str], name: str, *, write: bool = True, alone: bool = True
    ) -> None:
        store = connect(path, write=write)
        self.name, self.path, self._store = name, store.path, store
        self._lock: WriterLock | None = None
        self._pinning, self._pins = threading.Lock(), set[object]()
        try:
            if write:
                store.run("new_loop", name)
                self._lock = store.lock(name, alone=alone)
            found = store.ask("loop_id", name)
            if not found:
                raise LedgerError(f"{self.path!r} has no loop {name!r}: check the name")
            self._loop: int = found[0][0]
            self.rows = RowTable(store, self._loop)
            self._points: list[tuple[int, float]] | None = None  # checkpoints of keys, their times
            self.head = self.newest()  # as far as this process knows
            self.refresh()
        except BaseException:
            self.close()
            raise

    @property
    def lock(self) -> WriterLock:
        """Says which process writes, and which one trains."""
        if self._lock is None:
            raise LedgerError(f"{self.path!r} was opened for reading only: open it for writing")
        return self._lock

    def refresh(self) -> None:
        """Read where replays start: another process may have changed it."""
        self.base, self.start = self._ask("bounds")[0]

    # reading

    def last(self) -> int:
        """Return the seq of the newest event, 0 if there is none."""
        return int(self._ask("last_seq")[0][0] or 0)

    def newest(self) -> Head:
        """Return where the chain is now, whichever process has written last."""
        found = self._ask("newest_seal")
        return Head(found[0][0], split(found[0][1])[0]) if found else Head(0, genesis(self.name))

    def sealed(self, since: int) -> Iterator[tuple[Event, bytes | None]]:
        """Yield events from `since` on with their seals, in order; some may be missing."""
        while chunk := self._ask("sealed_events_from", since, CHUNK):
            yield from ((event(*row[:-1]), row[-1]) for row in chunk)
            since = chunk[-1][0] + 1

    def anchor(self) -> Event | None:
        """Return the newest event that says where the kept part of the chain begins."""
        return next((event(*row) for row in self._ask("newest_anchor")), None)

    def kept_digest(self, start: int) -> str:
        """Return the digest of the lasting events that are kept from before `start`."""
        rows = self._ask("sealed_lasting_events", start)
        return kept_digest((event(*row[:-1]), split(row[-1])[2]) for row in rows)

    def read(self, since: int = 1, *, light: bool = False) -> Iterator[Event]:
        """Yield events from `since` on, in order; `light` leaves the data of decisions out,
        unless they had a budget, which goes on from them."""
        query = "light_events_from" if light else "events_from"
        while chunk := self._ask(query, since, CHUNK):
            yield from self._next(chunk, since - 1)
            since += len(chunk)

    def lasting(self) -> list[Event]:
        """Return what was declared, configured and changed, in order."""
        return [event(*row) for row in self._ask("lasting_events")]

    def events(self, seqs: Sequence[int]) -> dict[int, Event]:
        """Return these events by seq."""
        rows = self._ask("events_at", self._store.many(seqs)) if seqs else []
        return {row[0]: event(*row) for row in rows}

    def decision(self, seq: int, events: dict[int, Event]) -> Event:
        """Return the decision with this seq, among events that were read; raise if it is gone."""
        if seq not in events or events[seq].kind != "decide":
            raise LedgerError(f"decision {seq} is not in the ledger: restore it from a copy")
        return events[seq]

    def find(self, id: str) -> Event | None:
        """Return the decision with this id."""
        return next((event(*row) for row in self._ask("decision", id)), None)

    def latest_of(self, key: str) -> Event | None:
        """Return the latest decision of a key."""
        return next((event(*row) for row in self._ask("latest_of_key", key)), None)

    def is_cancelled(self, id: str) -> bool:
        """Return whether the whole of a decision was cancelled."""
        said = (event(*row).read() for row in self._ask("cancels", id))
        return any(each.position is None for each in said)

    def before(self, at: float) -> Event | None:
        """Return the latest decision at this time or before it; reads all that came after."""
        return next((event(*row) for row in self._ask("decision_before", at)), None)

    def about(self, key: str, since: int = 0, *, compared: bool = False) -> tuple[int, list[int]]:
        """Return how many decisions a key has after the event `since`, and the seqs of these and of
        all that was said after it of any of its decisions. Reads all events after it. With
        `compared`, other decisions may have been preferred over them."""
        rows = self._ask("events_of_key", since, self._loop, key)
        more = self._ask("events_over_key", since, self._loop, key) if compared else []
        seqs = sorted({row[0] for row in [*rows, *more]})
        return sum(row[1] == "decide" for row in rows), seqs

    def checkpoints(self) -> list[Event]:
        """Return the events of the checkpoints that are kept, oldest first."""
        return [event(*row) for row in self._ask("checkpoints")]

    def decision_after(self, at: float) -> int:
        """Return the seq of the first decision that is kept and later than this; that of the next
        event if there is none. Reads all that came before it."""
        found = self._ask("decision_after", self.start, at)
        return int(found[0][0]) if found else self.last() + 1

    def checkpoint_before(self, at: float) -> int:
        """Return the seq of the newest checkpoint at this time or before it, whether or not its
        numbers are kept; 0 if there is none."""
        return int(self._ask("checkpoint_before", at)[0][0] or 0)

    def state(self, seq: int) -> bytes:
        """Return the numbers that are stored beside an event, as those of a checkpoint are."""
        found = self._ask("checkpoint_state", seq)
        return (
            b"".join(row[0] for row in [*found, *self._ask("checkpoint_pieces", seq)])
            if found
            else b""
        )

    def snapshot(self, more: int, most: int) -> tuple[str, bytes] | None:
        """Return the learner that another process left, if it has learnt more examples than `more`
        and at most `most`."""
        found = self._ask("snapshot", more, most)
        return (found[0][0], bytes(found[0][1])) if found else None

    # writing

    @contextmanager
    def turn(self, seq: int, *, long: bool = False) -> Iterator[list[Event]]:
        """Keep other processes from writing; all of it is stored at the end. Gives what they have
        stored after the event `seq`."""
        with self.lock.turn("light_events_after", self._loop, seq, long=long) as rows:
            yield self._others(rows, seq)

    def after(self, seq: int) -> list[Event]:
        """Return what other processes have stored after the event `seq`, without a turn."""
        return self._others(self.lock.read("light_events_after", self._loop, seq), seq)

    def _others(self, rows: list[Any], seq: int) -> list[Event]:
        """Return what other processes have stored; the chain goes on from there."""
        if rows:
            self.head = Head(rows[-1][0], split(rows[-1][-1])[0])
        return self._next([row[:-1] for row in rows], seq)

    def append(self, events: Sequence[Event], states: States = ()) -> None:
        """Store events, and the numbers of those that are checkpoints: all of it or nothing."""
        if not states and len(events) <= MOST:
            if events:  # alone in its transaction: one call
                self._insert(events)
            return
        with self._store.transaction():
            self._append(events, states)
        self._tell(states)

    def _append(self, events: Sequence[Event], states: States) -> None:
        for k in range(0, len(events), MOST):
            self._insert(events[k : k + MOST])
        for stored, numbers in states:
            if numbers.batches:
                self.rows.save(stored.seq, self._make_room(stored), numbers.batches)
            self._save(stored.seq, numbers.state)

    def _tell(self, states: States) -> None:
        """Tell learners that their rows are stored: they may read them from now on."""
        for stored, numbers in states:
            for batch in numbers.batches:
                batch.table, batch.seq = self.rows, stored.seq

    def _make_room(self, event: Event) -> int:
        """Let a checkpoint of keys go that no replay needs once `event` is stored; return the
        newest that is kept beside it, 0 if there is none."""
        points, place = self._kept_points(), 0
        points.append((event.seq, event.at))
        while place < len(points) - (1 if self.lock.alone else SHARED):
            if self._is_needed(place):
                place += 1
                continue
            seq, _ = points.pop(place)
            self._store.run("delete_checkpoint", self._loop, seq)
            self._store.run("delete_pieces", self._loop, seq)
            self.rows.let_go(seq, points[place][0], points[place - 1][0] if place else self.base)
        return points[-2][0] if len(points) > 1 else self.base

    def _kept_points(self) -> list[tuple[int, float]]:
        """Return the checkpoints with rows of keys that are kept, and their times."""
        if self._points is None:
            found = [each for each in self.checkpoints() if "rows" in each.read().learner]
            self._points = [(each.seq, each.at) for each in found]
        return self._points

    def _is_needed(self, place: int) -> bool:
        """Return whether a checkpoint of keys must stay although newer ones are there."""
        assert self._points is not None
        seq, at = self._points[place]
        if seq == self.base or self._pins:
            return True
        return self.spacing is not None and (
            place == 0 or at - self._points[place - 1][1] >= self.spacing
        )

    def _save(self, seq: int, state: bytes) -> None:
        """Store the numbers of a checkpoint. Its row comes last: without it the rest is nothing."""
        for k, place in enumerate(range(PIECE, len(state), PIECE), start=1):
            self._store.run("save_piece", self._loop, seq, k, state[place : place + PIECE])
        self._store.run("save_checkpoint", self._loop, seq, state[:PIECE])

    def _insert(self, events: Sequence[Event]) -> None:
        """Store events as the next ones of the chain."""
        before, head = events[0].seq - 1, self.head
        if head.seq != before:  # other processes have stored events that this one has replayed
            head = Head(before, self._link(before))
        if head.link is None and events[0].kind == BEGINS:
            head = Head(before, genesis(self.name))
        seals, head = sealed(head, events)
        values: list[Any] = []  # in the order of `insert_events`
        for e, seal in zip(events, seals):
            values += (self._loop, e.seq, e.kind, e.at, e.id, e.key, e.data, e.k, e.v, seal)
        self._store.insert(len(events), values)
        self.head = head

    def _link(self, seq: int) -> bytes | None:
        found = self._ask("seal_at", seq)
        return split(found[0][0])[0] if found else None

    def check_place(self) -> None:
        """Raise if the ledger is no longer where it was opened."""
        self._store.check_place()

    def publish(self, examples: int, about: str, state: bytes) -> None:
        """Leave the learner to processes that decide elsewhere; it never goes back."""
        self._store.run("publish_snapshot", self._loop, examples, about, state)

    def keep(self, seq: int, state: bytes) -> None:
        """Store numbers beside an event, once, in the process that trains; they go with the
        checkpoints of their time."""
        if self._lock and self._lock.trains:
            self._save(seq, state)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Delete nothing meanwhile: a reader needs all that is kept."""
        reader = object()
        with self._pinning:
            self._pins.add(reader)
        try:
            yield
        finally:
            self._pins.discard(reader)

    def erase(self, seqs: Sequence[int], events: Sequence[Event], states: States) -> None:
        """Blank what these events said, and append others. Older checkpoints go; the new one is
        where replays start from now on."""
        with self._store.transaction():
            self._store.run("blank_events", self._loop, self._store.many(seqs))
            self._append(events, states)
            self._rest_on(states[-1][0].seq, self.start)
            self._store.run("delete_snapshot", self._loop)
            self._store.run("set_unpurged", self._loop)
        self._tell(states)

    def unpurged(self) -> int | None:
        """Return the number of an erasure that copies are left of; None if there are none."""
        found = self._ask("unpurged")[0][0]
        return None if found is None else int(found)

    def purge(self, unpurged: int, ended: Callable[[], bool] = lambda: False) -> str:
        """Remove the database's own copies of what was erased, from any thread and until the loop
        has `ended`; return "", or why that cannot be done now."""
        return self._store.purge(unpurged, ended)

    def purged(self, unpurged: int) -> None:
        """Store that no copies are left, unless there was another erasure meanwhile."""
        self._store.run("set_purged", self._loop, unpurged)

    def rest_on(self, base: int, start: int, seq: int, at: float) -> Event | None:
        """Let replays start from the checkpoint `base` from now on; older ones go. Events before
        `start` are not kept, and `sweep` deletes them. Returns the anchor of the chain, which is
        the event `seq`, or None while a reader needs what is kept."""
        with self._pinning:
            if self._pins:
                return None
            made = Event(seq, "anchor", at, data=encode(self._anchor(start)))
            with self._store.transaction():
                self._rest_on(base, start)
                self._append([made], ())
            return made

    def _anchor(self, start: int) -> Anchor:
        link = self._link(start - 1)
        return Anchor(start, link.hex() if link else None, self.kept_digest(start))

    def _rest_on(self, base: int, start: int) -> None:
        self._store.run("blank_checkpoints_before", self._loop, base)
        self._store.run("delete_checkpoints_before", self._loop, base)
        self._store.run("delete_pieces_before", self._loop, base)
        self.rows.let_go(0, base, 0)
        self._points = None
        self._store.run("set_bounds", base, start, self._loop)
        self.base, self.start = base, start

    def sweep(self) -> bool:
        """Delete some of the events that are not kept; return False once none is left."""
        return self._store.run("delete_old_events", self._loop, self.start, SWEEP) > 0

    def close(self) -> None:
        self._store.close()
        if self._lock:
            self._lock.release()

    def _next(self, rows: list[Any], seq: int) -> list[Event]:
        """Return events from rows that must go on after `seq` without a gap."""
        for k, row in enumerate(rows, start=seq + 1):
            if row[0] != k:
                raise LedgerError(
                    f"event {k} of {self.path!r} is missing: restore the ledger from a copy"
                )
        return [event(*row) for row in rows]

    def _ask(self, query: str, *values: object) -> list[Any]:
        return self._store.ask(query, self._loop, *values)


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names a file that is there, or a database."""
    return is_url(path) or os.path.isfile(path)


def names(path: str | os.PathLike[str], *, write: bool = True) -> list[str]:
    """Return the loops that are declared in a store; with `write` it is made if there is none."""
    with closing(connect(path, write=write)) as store:
        return [row[0] for row in store.ask("declared_loops")]


def stored(path: str | os.PathLike[str]) -> list[str]:
    """Return the loops of which a store has events, whole or not."""
    with closing(connect(path, write=False)) as store:
        return [row[0] for row in store.ask("stored_loops")]
