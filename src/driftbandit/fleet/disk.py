"""Learners on disk: an SQLite file with a row per key."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from driftbandit import fork_safety
from driftbandit.fleet.batch import Key

TABLES = """
CREATE TABLE IF NOT EXISTS fleet (recipe TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS learners (
  key PRIMARY KEY, row BLOB NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TEMP TABLE wanted (place INTEGER PRIMARY KEY, key);
"""


class Disk:
    """What does not fit into memory; every write is one transaction, whole or not at all.

    A learner that comes back leaves its copy here: if the process is killed, that is what is
    left of it. SQLite tells 1, "1" and b"1" apart, so keys are stored as they are.
    """

    def __init__(
        self, path: str | os.PathLike[str], recipe: dict[str, Any], like: Any, sane: Any
    ) -> None:
        self.path, self._like, self._process = os.fspath(path), like, fork_safety.process
        self._sane, self.closed = sane, False
        text = json.dumps(recipe, sort_keys=True)
        try:
            self._open(text)
        except sqlite3.OperationalError as error:
            raise ValueError(
                f"store {self.path!r} cannot be opened ({error}): another fleet may be using it, "
                "or its folder does not exist; name another file"
            ) from None
        except sqlite3.DatabaseError as error:
            raise ValueError(
                f"store {self.path!r} is no fleet's ({error}): name another file"
            ) from None

    def _open(self, text: str) -> None:
        self._base = sqlite3.connect(self.path, timeout=0.2, check_same_thread=False)
        self._base.execute("PRAGMA locking_mode = EXCLUSIVE")  # no second fleet on the same file
        self._base.execute("PRAGMA journal_mode = WAL")  # whole after a crash, without waiting
        self._base.execute("PRAGMA synchronous = NORMAL")  # for the disk at every transaction
        self._base.execute("PRAGMA temp_store = MEMORY")
        self._base.executescript(TABLES)
        with self._base:
            self._base.execute("BEGIN IMMEDIATE")
            found = self._base.execute("SELECT recipe FROM fleet").fetchone()
            if found is None:
                self._base.execute("INSERT INTO fleet VALUES (?)", (text,))
        if found not in (None, (text,)):
            self._base.close()
            raise ValueError(
                f"store {self.path!r} holds learners of another recipe: name another file, or use "
                f"the policy and dtype it was made with: {found[0]}"
            )
        self.count: int = self._base.execute("SELECT COUNT(*) FROM learners").fetchone()[0]

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """What SQLite raises becomes an error that names the file and what to do."""
        if fork_safety.process != self._process:
            raise OSError(f"store {self.path!r} was opened before a fork: open a fleet of your own")
        try:
            with self._base:
                yield self._base
        except sqlite3.ProgrammingError as error:
            raise ValueError(f"this fleet is closed ({error}): open its store again") from None
        except sqlite3.Error as error:
            raise OSError(
                f"store {self.path!r} failed ({error}): free some disk space, or restore a copy"
            ) from None

    def write(self, keys: Sequence[Key], rows: Any, copies: int) -> None:
        """Store these learners; so many of them were here before."""
        blobs = (row.tobytes() for row in rows)
        lines = ((key, blob, zlib.crc32(blob)) for key, blob in zip(keys, blobs))
        with self._transaction() as base:
            base.executemany("INSERT OR REPLACE INTO learners VALUES (?, ?, ?)", lines)
        self.count += len(keys) - copies

    def read(self, keys: Sequence[Key]) -> tuple[list[int], Any]:
        """Places of the keys that are here, and their rows, in one query."""
        with self._transaction() as base:
            base.execute("DELETE FROM wanted")
            base.executemany("INSERT INTO wanted VALUES (?, ?)", enumerate(keys))
            found = base.execute(
                "SELECT place, row, checksum FROM wanted CROSS JOIN learners USING (key)"
            ).fetchall()
        return [place for place, *_ in found], self._rows(line[1:] for line in found)

    def delete(self, key: Key) -> bool:
        """Whether it was here."""
        with self._transaction() as base:
            gone = base.execute("DELETE FROM learners WHERE key = ?", (key,)).rowcount
        self.count -= gone
        return bool(gone)

    def clear(self) -> None:
        """Forget all learners."""
        with self._transaction() as base:
            base.execute("DELETE FROM learners")
        self.count = 0

    def pages(self, size: int) -> Iterator[tuple[list[Key], Any]]:
        """Every learner here, so many keys and rows at a time."""
        query, last = "SELECT key, row, checksum FROM learners {} ORDER BY key LIMIT ?", ()
        while True:
            with self._transaction() as base:
                ask = query.format("WHERE key > ?" if last else "")
                page = base.execute(ask, (*last, size)).fetchall()
            if not page:
                return
            yield [key for key, *_ in page], self._rows(line[1:] for line in page)
            last = (page[-1][0],)  # type: ignore[assignment]

    def _rows(self, lines: Any) -> Any:
        """Rows from blobs, if they are what was written."""
        blobs = []
        for blob, checksum in lines:
            whole = isinstance(blob, bytes) and len(blob) == self._like.nbytes
            if not whole or zlib.crc32(blob) != checksum:
                raise OSError(f"store {self.path!r} holds a damaged learner: restore a copy")
            blobs.append(blob)
        rows = np.frombuffer(b"".join(blobs), self._like.dtype).reshape(-1, self._like.size)
        if not self._sane(rows):
            raise OSError(f"store {self.path!r} holds a damaged learner: restore a copy")
        return rows

    def close(self) -> None:
        self._base.close()
        self.closed = True
