"""One writer for each loop of a file, and none that a fork has copied."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from driftbandit.loop.storage.events import LedgerError

_opened: dict[str, int] = {}  # files that a process has had open


class Alone:
    """What the only writer of a loop has: every turn is its own."""

    alone = trains = True

    def train(self) -> None:
        """It does."""

    def followed(self) -> bool:
        """Nobody else decides."""
        return False

    def read(self, query: str, values: Sequence[Any]) -> list[Any]:
        """Nobody else has stored anything."""
        return []

    @contextmanager
    def turn(self, query: str, values: Sequence[Any], *, long: bool) -> Iterator[list[Any]]:
        """Nobody else writes anyway."""
        yield []

    def release(self) -> None:
        """There is nothing to give back."""


class Lock(Alone):
    """Held until it is released or the process ends, even by kill -9.

    It is a transaction on an empty SQLite file beside the ledger: the operating system frees it, on
    every platform, and a child does not inherit it.
    """

    def __init__(self, path: str, name: str) -> None:
        remember(path)
        try:
            self._base = sqlite3.connect(
                f"{path}.{name}.lock", timeout=0.0, isolation_level=None, check_same_thread=False
            )
            self._base.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise LedgerError(_complaint(path, name, error)) from None

    def release(self) -> None:
        self._base.close()


def _complaint(path: str, name: str, error: sqlite3.Error) -> str:
    if "locked" in str(error):
        return (
            f"loop {name!r} of {path!r} is open already: close it there, or give this one "
            "another name"
        )
    return f"ledger {path!r}: {error}; its folder must exist and be writable"


def remember(path: str) -> None:
    """Note that this process opens a file, unless a process that it was forked from has done so:
    SQLite would take that one's locks for its own, and damage the file."""
    if _opened.setdefault(os.path.realpath(path), os.getpid()) != os.getpid():
        raise LedgerError(
            f"{path!r} was open when this process was forked: start the process with 'spawn', or "
            "open the loop after the fork only"
        )
