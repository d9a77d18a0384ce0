"""Who writes to a loop in PostgreSQL, and who trains it.

All who write have a place, which is a shared advisory lock, or have the loop for themselves. One of
them also holds the lock of the one who trains. Both belong to the very connection that writes:
where it is lost, so are they, and nothing can be written any more. PostgreSQL frees them when
somebody dies, and another one may train.

Writers take turns: who has locked the row of the loop reads what others have stored, and goes on
from there. So events have one order without a gap, the order in which they were committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from driftbandit.loop.storage.events import LedgerError

if TYPE_CHECKING:
    from driftbandit.loop.storage.postgres import Postgres

PLACE = 0x64726966  # "drif": the first half of our locks; the other half is the loop
TEACHER = PLACE + 1
LOOP = "(SELECT id FROM loop WHERE name = ?)"
HERE = "(SELECT oid FROM pg_database WHERE datname = current_database())"
PLACES = (
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted "
    f"AND database = {HERE} AND classid = ? AND objid = {LOOP}"
)


class Advisory:
    """Locks that live as long as the connection that writes."""

    def __init__(self, store: Postgres, name: str, alone: bool) -> None:
        self._store, self._name = store, name
        self.alone, self.trains = alone, False
        if not self._try(PLACE, "" if alone else "_shared"):
            raise LedgerError(
                f"loop {name!r} of {store.path!r} is open already: close it there, or give this "
                "one another name"
            )
        self.train()

    def train(self) -> None:
        """Become the one who trains, if there is none."""
        if not self.trains:
            self.trains = self.alone or self._try(TEACHER)

    def followed(self) -> bool:
        """Whether others have a place, too."""
        return bool(self._store.ask(PLACES, (PLACE, self._name))[0][0] > 1)

    def read(self, query: str, values: Sequence[Any]) -> list[Any]:
        """What others have stored; who has lost its locks hears of that here."""
        return [] if self.alone else self._store.own(query, values)

    @contextmanager
    def turn(self, query: str, values: Sequence[Any], *, long: bool) -> Iterator[list[Any]]:
        """Nobody else writes until the end, where all of it is stored. Gives what a query finds.
        Who takes `long` is not thrown out."""
        if self.alone:
            yield []
            return
        with self._store.transaction():
            if long:
                self._store.do("SET LOCAL idle_in_transaction_session_timeout = 0")
            self._store.own("SELECT 1 FROM loop WHERE name = ? FOR UPDATE", (self._name,))
            yield self.read(query, values)

    def release(self) -> None:
        """They go with the connection, which its store closes."""

    def _try(self, half: int, kind: str = "") -> bool:
        query = f"SELECT pg_try_advisory_lock{kind}(?, {LOOP})"
        return bool(self._store.own(query, (half, self._name))[0][0])
