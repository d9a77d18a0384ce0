"""Learners on disk: an SQLite file with a row per key."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from driftbandit.fleet.batch import Key

TABLES = """
CREATE TABLE IF NOT EXISTS fleet (recipe TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS learners (key PRIMARY KEY, memory BLOB NOT NULL) WITHOUT ROWID;
CREATE TEMP TABLE wanted (place INTEGER PRIMARY KEY, key);
"""


class Store:
    """What does not fit into memory; every write is one transaction, whole or not at all.

    A learner that comes back leaves its copy here: if the process is killed, that is what is
    left of it. SQLite tells 1, "1" and b"1" apart, so keys are stored as they are.
    """

    def __init__(self, path: str | os.PathLike[str], recipe: dict[str, Any], record: Any) -> None:
        self.path, self.record = os.fspath(path), record
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
            self.close()
            raise ValueError(
                f"store {self.path!r} holds learners of another recipe: name another file, or use "
                f"the policy and dtype it was made with: {found[0]}"
            )
        self.count: int = self._base.execute("SELECT COUNT(*) FROM learners").fetchone()[0]

    def write(self, keys: Sequence[Key], records: Any, copies: int) -> None:
        """Store these learners; so many of them were here before."""
        blob, size = memoryview(records.tobytes()), self.record.itemsize
        rows = ((key, blob[b * size : (b + 1) * size]) for b, key in enumerate(keys))
        with self._base:
            self._base.executemany("INSERT OR REPLACE INTO learners VALUES (?, ?)", rows)
        self.count += len(keys) - copies

    def read(self, keys: Sequence[Key]) -> tuple[list[int], Any]:
        """Places of the keys that are here, and their records, in one query."""
        with self._base:
            self._base.execute("DELETE FROM wanted")
            self._base.executemany("INSERT INTO wanted VALUES (?, ?)", enumerate(keys))
            found = self._base.execute(
                "SELECT place, memory FROM wanted CROSS JOIN learners USING (key)"
            ).fetchall()
        return [place for place, _ in found], self._records(memory for _, memory in found)

    def delete(self, key: Key) -> bool:
        """Whether it was here."""
        with self._base:
            gone = self._base.execute("DELETE FROM learners WHERE key = ?", (key,)).rowcount
        self.count -= gone
        return bool(gone)

    def pages(self, size: int) -> Iterator[tuple[list[Key], Any]]:
        """Every learner here, so many keys and records at a time."""
        query, last = "SELECT key, memory FROM learners {} ORDER BY key LIMIT ?", ()
        while page := self._base.execute(
            query.format("WHERE key > ?" if last else ""), (*last, size)
        ).fetchall():
            yield [key for key, _ in page], self._records(memory for _, memory in page)
            last = (page[-1][0],)  # type: ignore[assignment]

    def _records(self, memories: Any) -> Any:
        return np.frombuffer(b"".join(memories), dtype=self.record)

    def close(self) -> None:
        self._base.close()
