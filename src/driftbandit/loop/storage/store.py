"""Where ledgers are kept: what a database must offer, and which one a path names.

Another database is one Python file with a `Store`, and one folder of SQL: numbered migrations, and
`queries.sql` with the named queries. CONTRIBUTING says how to add one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from driftbandit import plugins
from driftbandit.loop.storage.sqlite import SQLite

URL = re.compile(r"([a-z][a-z0-9+-]+)://")  # a scheme has two letters or more: C: is a disk
POSTGRES = ("postgresql", "postgres")


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

    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Change something for each row of values."""

    def insert(self, rows: int, values: Sequence[Any]) -> None:
        """Store so many events with one statement; `values` are those of all their columns. Raise
        as `check_place` does."""

    def many(self, values: Sequence[int]) -> Any:
        """Return numbers as one parameter of a query."""

    def transaction(self) -> AbstractContextManager[None]:
        """Do all of what is inside, or nothing."""

    def check_place(self) -> None:
        """Raise if what is stored would be lost, because a file is no longer where it was."""

    def lock(self, name: str, *, alone: bool) -> WriterLock: ...
    def purge(self, unpurged: int, ended: Callable[[], bool]) -> str:
        """Remove copies of what was blanked, from any thread and without waiting for other
        connections, unless the loop has `ended`; return "", or why that cannot be done now."""

    def close(self) -> None: ...


def is_url(path: object) -> bool:
    """Return whether a path is the address of a database."""
    return isinstance(path, str) and URL.match(path) is not None


def connect(path: str | os.PathLike[str], *, write: bool) -> Store:
    """Open a store; with `write` its tables are made or brought up to date."""
    found = URL.match(path) if isinstance(path, str) else None
    if not isinstance(path, str) or found is None:
        return SQLite(path, write=write)
    if found[1] not in POSTGRES:
        kind: Any = plugins.offered_store(found[1])
        return kind(path, write=write)
    from driftbandit.loop.storage.postgres import Postgres  # imported lazily: needs psycopg

    return Postgres(path, write=write)
