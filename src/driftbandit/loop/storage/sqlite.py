"""An SQLite file of ledgers: its tables, connections to write and read, and the writer's lock."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from driftbandit.loop.errors import LedgerError
from driftbandit.loop.storage.free_space import PageFile
from driftbandit.loop.storage.one_name import descriptor_of, hold, identity, release
from driftbandit.loop.storage.sql import migrations, queries

MEMORY = ":memory:"
SYNCHRONOUS = "FULL"  # what is stored survives a power cut
# Pages of the write-ahead log that go into the file at once. A write waits for that: with ten times
# as many, decisions beside large ones took ten times as long as alone, and no others were faster.
WRITTEN_BACK = 400
LOOK = 1024  # pages that are looked at from one stop of writers to the next, at least
STEP = 64  # pages that are overwritten while writers wait
BREATH = 8  # pages from one pause to the next: short enough for callers to wait for
PAUSE = 0.02  # seconds for writers between two steps
CLOSED = "the loop was closed meanwhile"
TRIES = 20  # of a step that another connection is in the way of
APPLICATION = 0x64726966  # "drif": whose file it is
ROW = "(?,?,?,?,?,?,?,?,?,?)"

_opened: dict[str, int] = {}  # files that a process has had open


class SQLite:
    """A store in a file. What SQLite raises becomes a `LedgerError` that names the file and the
    remedy."""

    def __init__(self, path: str | os.PathLike[str], *, write: bool) -> None:
        self.path = os.fspath(path)
        if self.path != MEMORY:
            _check_fork(self.path)
        self._queries = queries("sqlite")
        self._reading = threading.RLock()  # readers share one connection; a finalizer may read, too
        self._purging = threading.Lock()
        self._file = None if self.path == MEMORY else hold(self.path)
        with self._translated():
            try:
                self._writer = self._reader = self._connect(write)
            except BaseException:
                release(self._file)
                raise
            try:
                self._number("user_version")  # SQLite makes a new file when it is first read
                if self._file is None and self.path != MEMORY:
                    self._file = hold(self.path)
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
        base.execute(f"PRAGMA wal_autocheckpoint = {WRITTEN_BACK}")
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
        if self._number("user_version") == len(steps):
            return
        if not write:
            raise LedgerError(
                f"{self.path!r} was written by an older version: open a loop of it once with this "
                "version, which brings its tables up to date"
            )
        base.execute("PRAGMA journal_mode = WAL")
        with self.transaction():
            for step in steps[self._number("user_version") :]:
                for statement in filter(str.strip, step.split(";")):
                    base.execute(statement)
            base.execute(f"PRAGMA user_version = {len(steps)}")
            base.execute(f"PRAGMA application_id = {APPLICATION}")

    def _number(self, pragma: str) -> int:
        return int(self._writer.execute(f"PRAGMA {pragma}").fetchone()[0])

    def ask(self, query: str, *values: Any) -> list[Any]:
        with self._translated(), self._reading:
            return self._reader.execute(self._queries[query], values).fetchall()

    def run(self, query: str, *values: Any) -> int:
        with self._translated():
            return self._writer.execute(self._queries[query], values).rowcount

    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._translated():
            self._writer.executemany(self._queries[query], rows)

    def insert(self, rows: int, values: Sequence[Any]) -> None:
        self.check_place()
        marks = ",".join([ROW] * rows)
        try:
            self._writer.execute(f"{self._queries['insert_events']} {marks}", values)
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {self.path!r}: {error}; {_remedy(error)}") from None

    def many(self, values: Sequence[int]) -> str:
        return json.dumps(list(values))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._translated():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.rollback()
                raise

    def lock(self, name: str, *, alone: bool) -> OnlyWriter:
        """Take the loop for this process, whether it wants to be alone or not."""
        return OnlyWriter() if self.path == MEMORY else FileLock(self.path, name)

    def purge(self, unpurged: int, ended: Callable[[], bool]) -> str:
        """Overwrite what is free in the file, and empty the write-ahead log. Writers wait for a few
        milliseconds at a time."""
        if self.path == MEMORY:
            return ""
        with self._translated(), self._purging:
            if self._file is None:
                return CLOSED
            descriptor = descriptor_of(self._file)
            try:
                if descriptor is None:
                    return self._rewritten()
                return self._overwritten(descriptor, ended)
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                return "other connections write to the file"

    def _overwritten(self, descriptor: int, ended: Callable[[], bool]) -> str:
        """Look for free space that is not zero beside writers, and overwrite it in their pauses."""
        if left := self._emptied():
            return left  # what is in the write-ahead log would come over what is done
        place, found = 1, list[int]()
        file = PageFile.of(descriptor)
        while place <= file.pages:
            if ended():
                return CLOSED
            unused = file.unused()
            for number in range(place, min(place + LOOK, file.pages + 1)):
                if file.free(number, unused):
                    found.append(number)
                if number % BREATH == 0:
                    time.sleep(0.0)  # gives up the GIL, which callers wait for
            place += LOOK
            while found and (place > file.pages or len(found) >= STEP):
                if left := self._step(descriptor, found[:STEP]):
                    return left
                del found[:STEP]
                time.sleep(PAUSE)
        return self._emptied()

    def _step(self, descriptor: int, numbers: Sequence[int]) -> str:
        """Overwrite the free space of some pages while no connection writes."""
        left = ""
        for _ in range(TRIES):
            if left := self._emptied():
                continue
            with closing(sqlite3.connect(self.path, timeout=1.0, isolation_level=None)) as base:
                base.execute("BEGIN IMMEDIATE")
                if os.path.getsize(f"{self.path}-wal") > 0:  # another connection was faster
                    continue
                file = PageFile.of(descriptor)
                unused = file.unused()
                for number in numbers:
                    if number <= file.pages:
                        file.overwrite(number, unused)
                os.fsync(descriptor)
                base.execute(self._queries["touch"])  # others forget the pages in their memory
                base.execute("COMMIT")
                return ""
        return left or "other connections write to the file"

    def _emptied(self) -> str:
        """Bring the write-ahead log into the file; return why that cannot be done now."""
        with closing(sqlite3.connect(self.path, timeout=0.0, isolation_level=None)) as base:
            for _ in range(TRIES):
                base.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()  # most, beside writers
                busy, _, _ = base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return ""
                time.sleep(PAUSE / 4)
        reader = "another connection reads the file (a backup, or an open sqlite3 shell)"
        return f"{reader}, so {self.path}-wal has copies"

    def _rewritten(self) -> str:
        """Rewrite the file, where its free space cannot be overwritten: writers wait for all of
        it."""
        with closing(sqlite3.connect(self.path, timeout=0.0, isolation_level=None)) as base:
            base.execute("VACUUM")
        return self._emptied()

    def check_place(self) -> None:
        """Raise if the file is no longer where it was opened: what is stored would be lost."""
        if self._file is not None and identity(self.path) != self._file:
            raise LedgerError(
                f"{self.path!r} was moved, deleted or replaced while it was open: put it back, or "
                "restore a copy, and open the loop again"
            )

    def close(self) -> None:
        with self._purging:  # which writes to the file
            self._reader.close()
            self._writer.close()
            release(self._file)
            self._file = None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(f"ledger {self.path!r}: {error}; {_remedy(error)}") from None


class OnlyWriter:
    """The lock of a process that is the only writer: every turn is its own."""

    alone = trains = True

    def take_over(self) -> None:
        """Do nothing: this process trains."""

    def followed(self) -> bool:
        return False

    def read(self, query: str, *values: Any) -> list[Any]:
        return []

    @contextmanager
    def turn(self, query: str, *values: Any, long: bool) -> Iterator[list[Any]]:
        yield []

    def release(self) -> None:
        """Do nothing: there is no lock."""


class FileLock(OnlyWriter):
    """Held until it is released or the process ends, even by kill -9.

    It is a transaction on an empty SQLite file beside the ledger: the operating system frees it, on
    every platform, and a child process does not inherit it.
    """

    def __init__(self, path: str, name: str) -> None:
        _check_fork(path)
        try:
            self._base = sqlite3.connect(
                f"{os.path.realpath(path)}.{name}.lock",  # one lock, also through a symbolic link
                timeout=0.0,
                isolation_level=None,
                check_same_thread=False,
            )
            self._base.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise LedgerError(_locked(path, name, error)) from None

    def release(self) -> None:
        self._base.close()


def _locked(path: str, name: str, error: sqlite3.Error) -> str:
    if "locked" in str(error):
        return (
            f"loop {name!r} of {path!r} is open already: close it there, or give this one "
            "another name"
        )
    return f"ledger {path!r}: {error}; its folder must exist and be writable"


def _check_fork(path: str) -> None:
    """Raise if a process that this one was forked from had the file open: SQLite would take that
    one's locks for its own, and damage the file."""
    if _opened.setdefault(os.path.realpath(path), os.getpid()) != os.getpid():
        raise LedgerError(
            f"{path!r} was open when this process was forked: start the process with 'spawn', or "
            "open the loop after the fork only"
        )


def _escaped(path: str) -> str:
    """Return a path as it stands in a URI."""
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
    return "unexpected database error; restore a backup only if the file is damaged"
