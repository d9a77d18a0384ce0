"""An SQLite file of ledgers: its tables, and connections to write and to read."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from driftbandit.loop.storage.events import LedgerError
from driftbandit.loop.storage.lock import Alone, Lock, remember
from driftbandit.loop.storage.migrations import migrations

MEMORY = ":memory:"
SYNCHRONOUS = "FULL"  # what is stored survives a power cut
APPLICATION = 0x64726966  # "drif": whose file it is


class Database:
    """What SQLite raises becomes a `LedgerError` that names the file and the remedy."""

    def __init__(self, path: str | os.PathLike[str], *, write: bool) -> None:
        self.path = os.fspath(path)
        if self.path != MEMORY:
            remember(self.path)
        self._turn = threading.Lock()  # readers share one connection
        with self.told():
            self._writer = self._connect(write)
            self._reader = self._writer
            try:
                self._migrate(write)
                if self.path != MEMORY:
                    self._reader = self._connect(write=False)
            except BaseException:
                self.close()
                raise

    def _connect(self, write: bool) -> sqlite3.Connection:
        where = self.path if write else f"file:{_escaped(self.path)}?mode=rw"  # WAL needs rw
        base = sqlite3.connect(
            where, timeout=30.0, isolation_level=None, check_same_thread=False, uri=not write
        )
        base.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        base.execute("PRAGMA wal_autocheckpoint = 4000")  # pages: seconds, not moments, apart
        base.execute("PRAGMA secure_delete = ON")  # what is erased leaves the file
        return base

    def _migrate(self, write: bool) -> None:
        """Bring the tables up to date, one numbered step after the other."""
        base, steps = self._writer, migrations("sqlite")
        empty = base.execute("SELECT 1 FROM sqlite_master").fetchone() is None
        if self._number("application_id") != APPLICATION and not (write and empty):
            raise LedgerError(f"{self.path!r} holds no loops: name another file")
        if self._number("user_version") > len(steps):
            raise LedgerError(f"{self.path!r} was written by a newer version: upgrade driftbandit")
        if not write or self._number("user_version") == len(steps):
            return
        base.execute("PRAGMA journal_mode = WAL")
        with self.transaction():
            for step in steps[self._number("user_version") :]:
                for statement in filter(str.strip, step.split(";")):
                    base.execute(statement)
            base.execute(f"PRAGMA user_version = {len(steps)}")
            base.execute(f"PRAGMA application_id = {APPLICATION}")

    def _number(self, pragma: str) -> int:
        return int(self._writer.execute(f"PRAGMA {pragma}").fetchone()[0])

    def ask(self, query: str, values: Sequence[Any]) -> list[Any]:
        """All rows of an answer."""
        with self.told(), self._turn:
            return self._reader.execute(query, values).fetchall()

    def do(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run one statement, which says how many rows it changed. Outside a transaction it has
        reached the disk when this returns."""
        with self.told():
            return self._writer.execute(statement, values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done inside, or nothing."""
        with self.told():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.rollback()
                raise

    def lock(self, name: str, *, alone: bool) -> Alone:
        """So that nobody else writes to this loop, whether it wants to be alone or not."""
        return Alone() if self.path == MEMORY else Lock(self.path, name)

    def purge(self) -> None:
        """What was erased is not left in the write-ahead log either."""
        self.do("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {self.path!r}: {error}; {_remedy(error)}") from None


def _escaped(path: str) -> str:
    """A path inside a URI."""
    from urllib.parse import quote  # imported lazily: 5 ms

    return quote(os.path.abspath(path))


def _remedy(error: sqlite3.Error) -> str:
    text = str(error)
    if "full" in text or "I/O" in text:
        return "make room on the disk and open the loop again"
    if "unable to open" in text or "readonly" in text:
        return "its folder must exist and be writable"
    if "locked" in text:
        return "another program keeps the file locked: close it there"
    if "closed" in text:
        return "the loop is closed: open it again"
    return "the file is damaged or something else: restore it from a copy"
