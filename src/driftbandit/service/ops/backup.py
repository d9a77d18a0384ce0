"""Copies of a ledger: a file, consistent at one moment, while services and loops run."""

from __future__ import annotations

import os
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

from driftbandit.loop.storage.store import connect, is_url

LEFT = ("-wal", "-shm", "-journal")  # files of SQLite beside a ledger


def backup(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
    """Copy a ledger to a new file, whole or not at all; return its size in bytes."""
    if is_url(source):
        raise ValueError(
            "PostgreSQL copies its databases itself: pg_dump --format=custom --file=copy.dump URL, "
            "and pg_restore to go back (docs/deployment.md)"
        )
    target = Path(target)
    if target.exists():
        raise ValueError(f"{str(target)!r} exists: name another file, or move it away first")
    for left in (target.with_name(target.name + end) for end in LEFT):
        if left.exists():  # SQLite would apply it to the copy, although it belongs to another file
            raise ValueError(
                f"{str(left)!r} is left from a ledger that is gone: move it away first, together "
                "with the ledger if you still have it"
            )
    if not Path(source).is_file():
        raise ValueError(f"{str(source)!r} is not a file: check the name")
    connect(source, write=False).close()  # refuses what holds no loops
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        _copy(Path(source), temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise ValueError(f"{str(target)!r} cannot be written: {error}") from None
    except sqlite3.Error as error:
        raise ValueError(f"{str(source)!r} cannot be copied: {error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return target.stat().st_size


def _copy(source: Path, temporary: Path) -> None:
    """In one step, which sees one moment of the ledger; writers do not wait for it."""
    with closing(sqlite3.connect(source)) as base, closing(sqlite3.connect(temporary)) as copy:
        base.backup(copy)
        (found,) = copy.execute("PRAGMA quick_check").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(found)
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
