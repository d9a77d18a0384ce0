"""Where ledgers are kept: an SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

URLS = ("postgresql://", "postgres://")


class Lock(Protocol):
    """Held by those who write to a loop. One of them trains; who is `alone` has it for itself."""

    alone: bool
    trains: bool

    def train(self) -> None: ...
    def followed(self) -> bool: ...
    def read(self, query: str, values: Sequence[Any]) -> list[Any]: ...
    def turn(
        self, query: str, values: Sequence[Any], *, long: bool
    ) -> AbstractContextManager[list[Any]]: ...
    def release(self) -> None: ...


class Store(Protocol):
    """What a ledger needs of a database. Statements have ? for values."""

    path: str  # as messages name it

    def ask(self, query: str, values: Sequence[Any]) -> list[Any]: ...
    def do(self, statement: str, values: Sequence[Any] = ()) -> int: ...
    def transaction(self) -> AbstractContextManager[None]: ...
    def lock(self, name: str, *, alone: bool) -> Lock: ...
    def purge(self) -> None: ...
    def close(self) -> None: ...


def is_url(path: object) -> bool:
    return isinstance(path, str) and path.startswith(URLS)


def connect(path: str | os.PathLike[str], *, write: bool) -> Store:
    """Open a store; with `write` its tables are made or brought up to date."""
    if isinstance(path, str) and is_url(path):
        from driftbandit.loop.storage.postgres import Postgres  # imported lazily: needs psycopg

        return Postgres(path, write=write)
    from driftbandit.loop.storage.sqlite import Database

    return Database(path, write=write)
