"""The events of a loop as they are stored, read in many ways. Nothing here knows what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from driftbandit.loop.storage.events import FOREVER, MARK, Event, LedgerError
from driftbandit.loop.storage.store import Store

MOST = 100  # rows in one statement
CHUNK = 2000  # events read at once
COLUMNS = "seq, kind, at, id, key, data"
PLAIN = f"kind = 'decide' AND substr(data, 1, {len(MARK)}) <> '{MARK}'"
LIGHT = f"seq, kind, at, id, key, CASE WHEN {PLAIN} THEN '{{}}' ELSE data END"
LASTING = ",".join(f"'{kind}'" for kind in FOREVER)


class Records:
    """All that can be asked of the ledger of one loop.

    `base` is the checkpoint that replays start from, or 0; `start` the first event that is kept.
    """

    def __init__(self, store: Store, name: str) -> None:
        self.name, self.path, self._base = name, store.path, store
        found = store.ask("SELECT id FROM loop WHERE name = ?", (name,))
        if not found:
            raise LedgerError(f"{self.path!r} has no loop {name!r}: check the name")
        self._loop = found[0][0]
        self.refresh()

    def refresh(self) -> None:
        """Where replays start may have been changed by another one."""
        self.base, self.start = self._ask("SELECT base, start FROM loop WHERE id = ?")[0]

    def last(self) -> int:
        """The seq of the newest event, 0 if there is none."""
        return int(self._ask("SELECT max(seq) FROM event WHERE loop = ?")[0][0] or 0)

    def read(self, since: int = 1, *, light: bool = False) -> Iterator[Event]:
        """Events from `since` on, in order; `light` leaves the data of decisions out, but for
        slates."""
        where = f"WHERE loop = ? AND seq >= ? ORDER BY seq LIMIT {CHUNK}"
        query = f"SELECT {LIGHT if light else COLUMNS} FROM event {where}"
        while chunk := self._ask(query, since):
            yield from self._next(chunk, since - 1)
            since += len(chunk)

    def declared(self) -> list[Event]:
        """What was declared, set and grown, in order."""
        return self._events(f"WHERE loop = ? AND kind IN ({LASTING}) ORDER BY seq")

    def events(self, seqs: Sequence[int]) -> dict[int, Event]:
        """These events by seq."""
        parts = (seqs[k : k + MOST] for k in range(0, len(seqs), MOST))
        found = (self._events(f"WHERE loop = ? AND seq IN ({marks(p)})", *p) for p in parts)
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
        return self._events(
            f"WHERE loop = ? AND kind = 'checkpoint' AND seq IN ({own}) ORDER BY seq"
        )

    def state(self, seq: int) -> bytes:
        """The numbers that are stored beside an event, as those of a checkpoint are."""
        found = self._ask("SELECT state FROM checkpoint WHERE loop = ? AND seq = ?", seq)
        return bytes(found[0][0]) if found else b""

    def snapshot(self, more: int, most: int) -> tuple[str, bytes] | None:
        """The learner that was left here, if it has learnt more examples than so many, and at most
        so many."""
        query = (
            "SELECT about, state FROM snapshot WHERE loop = ? AND examples > ? AND examples <= ?"
        )
        found = self._ask(query, more, most)
        return (found[0][0], bytes(found[0][1])) if found else None

    def _next(self, rows: list[Any], seq: int) -> list[Event]:
        """Events from rows that must go on after `seq` without a gap."""
        for k, row in enumerate(rows, start=seq + 1):
            if row[0] != k:
                raise LedgerError(
                    f"event {k} of {self.path!r} is missing: restore the ledger from a copy"
                )
        return [Event(*row) for row in rows]

    def _events(self, where: str, *values: object) -> list[Event]:
        return [Event(*row) for row in self._ask(f"SELECT {COLUMNS} FROM event {where}", *values)]

    def _ask(self, query: str, *values: object) -> list[Any]:
        return self._base.ask(query, (self._loop, *values))


def marks(values: Sequence[int]) -> str:
    """Placeholders for so many values."""
    return ",".join("?" * len(values))
