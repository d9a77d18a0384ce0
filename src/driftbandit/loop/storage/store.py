"""Where ledgers are kept: what a database must offer, and which one a path names.

Another database is one Python file with a `Store`, and one folder of SQL: numbered migrations, and
`queries.sql` with the named queries. CONTRIBUTING says how to add one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.sqlite import SQLite

URLS = ("postgresql://", "postgres://")


class WriterLock(Protocol):
    """Held by every process that writes to a loop. One of them trains. A process that is `alone`
    has the loop to itself."""

    alone: bool
    trains: bool

    def take_over(self) -> None:
        """Become the one that trains, if there is none."""

    def followed(self) -> bool:
        """Return whether other processes write, too."""

    def read(self, query: str, *values: Any) -> list[Any]:
        """Return what other processes have stored; raise if the lock is lost."""

    def turn(self, query: str, *values: Any, long: bool) -> AbstractContextManager[list[Any]]:
        """Keep other processes from writing; all of it is stored at the end. Gives what `query`
        finds. A turn that is `long` has no time limit."""

    def release(self) -> None: ...


class Store(Protocol):
    """A database of ledgers. Queries are names in its `queries.sql`."""

    path: str  # as messages name it

    def ask(self, query: str, *values: Any) -> list[Any]:
        """Return all rows."""

    def run(self, query: str, *values: Any) -> int:
        """Change something; return how many rows. Outside a transaction it has reached the disk
        when this returns."""

    def insert(self, loop: int, events: Sequence[Event], seals: Sequence[bytes | None]) -> None:
        """Store events and their seals in the chain with one statement."""

    def many(self, values: Sequence[int]) -> Any:
        """Return numbers as one parameter of a query."""

    def transaction(self) -> AbstractContextManager[None]:
        """Do all of what is inside, or nothing."""

    def check_place(self) -> None:
        """Raise if what is stored would be lost, because a file is no longer where it was."""

    def lock(self, name: str, *, alone: bool) -> WriterLock: ...
    def purge(self, unpurged: int) -> str:
        """Remove copies of what was blanked, from any thread and without waiting for other
        connections; return "", or why that cannot be done now."""

    def close(self) -> None: ...


def is_url(path: object) -> bool:
    """Return whether a path is the address of a database."""
    return isinstance(path, str) and path.startswith(URLS)


def connect(path: str | os.PathLike[str], *, write: bool) -> Store:
    """Open a store; with `write` its tables are made or brought up to date."""
    if isinstance(path, str) and is_url(path):
        from driftbandit.loop.storage.postgres import Postgres  # imported lazily: needs psycopg

        return Postgres(path, write=write)
    return SQLite(path, write=write)
