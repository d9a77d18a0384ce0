"""Rows of keys: the table that holds a learner for each key, and which of its versions are kept.

A checkpoint writes the rows that have changed, not all. Each row says from which checkpoint on it
holds, and until which, so a reader at a checkpoint finds the rows of that time. A checkpoint that
no replay needs is let go together with the versions that only it needed: what is kept is the
checkpoint that replays start from, the newest ones, and with a retention some in between.

A checkpoint's event has a digest of all rows of that time, changed or not. It is a sum over rows,
so that it follows from those that have changed (Bellare and Micciancio's incremental hash, with
1024 numbers of 16 bits). So the chain of the ledger covers the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, shake_128
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from driftbandit.loop.errors import LedgerError, ReplacedError

PAGE = 500  # rows read at once
NUMBERS = 1024  # of a sum, 16 bits each
SUM = 2 * NUMBERS  # bytes of it
NEWEST = 1 << 62  # stands for the newest checkpoint


class KeyRow(NamedTuple):
    """The learner of one key: the version of its features, when it was trained, its numbers."""

    key: str
    features: str
    last: float  # -inf for never
    digest: bytes
    row: bytes

    @staticmethod
    def of(key: str, features: str, last: float, row: bytes) -> KeyRow:
        return KeyRow(key, features, last, _digest(key, features, last, row), row)


def _digest(key: str, features: str, last: float, row: bytes) -> bytes:
    whole = blake2b(row, digest_size=32)
    for text in (key.encode(), features.encode(), last.hex().encode()):
        whole.update(b"%d:" % len(text) + text)
    return whole.digest()


class RowSum:
    """A digest of a set of rows, from which rows can be taken away again."""

    def __init__(self, state: bytes = bytes(SUM)) -> None:
        self._sum: NDArray[np.uint16] = np.frombuffer(state, dtype="<u2").copy()

    def add(self, digest: bytes) -> None:
        self._sum += _expanded(digest)

    def take(self, digest: bytes) -> None:
        self._sum -= _expanded(digest)

    def state(self) -> bytes:
        return self._sum.tobytes()


def _expanded(digest: bytes) -> NDArray[np.uint16]:
    return np.frombuffer(shake_128(digest).digest(SUM), dtype="<u2")


class Queries(Protocol):
    """What the table needs of a store."""

    def ask(self, query: str, *values: Any) -> list[Any]: ...
    def run(self, query: str, *values: Any) -> int: ...
    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None: ...


@dataclass
class RowBatch:
    """What a checkpoint changes for one learner. With `whole`, all that is stored of the learner
    ends; `gone` are keys of which nothing may stay. `seq` is the checkpoint, once it is stored."""

    learner: int
    rows: Sequence[KeyRow] = ()
    gone: Sequence[str] = ()
    whole: bool = False
    sum: bytes = b""  # of all rows, after this
    seq: int | None = None
    table: RowTable | None = None
    keys: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.keys = frozenset(each.key for each in self.rows)


class Numbers(NamedTuple):
    """The numbers of a checkpoint: of what is small, in one value, and rows that have changed."""

    state: bytes
    batches: Sequence[RowBatch] = ()


class RowTable:
    """The rows of a loop's keys. `kept` are the checkpoints that can be read, oldest first, and
    their times; the process that trains is the only one that changes it."""

    def __init__(self, store: Queries, loop: int) -> None:
        self._store, self._loop = store, loop

    # reading, at a checkpoint

    def row(self, learner: int, key: str, at: int) -> KeyRow | None:
        """Return the row of a key; None if it has none."""
        found = self._store.ask("key_row", self._loop, learner, key, at, at)
        if found:
            return _checked(found[0])
        self.check(at)
        return None

    def rows(self, learner: int, at: int) -> Iterator[KeyRow]:
        """Yield all rows of a learner, sorted by key."""
        for page in self._pages("key_rows_after", learner, at):
            yield from map(_checked, page)

    def keys(self, learner: int, at: int) -> Iterator[str]:
        """Yield all keys of a learner, sorted."""
        for page in self._pages("keys_after", learner, at):
            yield from (found[0] for found in page)

    def _pages(self, query: str, learner: int, at: int) -> Iterator[list[Any]]:
        key = ""
        while page := self._store.ask(query, self._loop, learner, key, at, at, PAGE):
            yield page
            key = page[-1][0]
        self.check(at)

    def check(self, at: int) -> None:
        """Raise if rows of this checkpoint may have been replaced."""
        if at != NEWEST and not self._store.ask("checkpoint_kept", self._loop, at):
            raise ReplacedError(f"checkpoint {at} was replaced while it was read: ask again")

    # writing, in the transaction of a checkpoint

    def save(self, seq: int, before: int, batches: Iterable[RowBatch]) -> None:
        """Store the rows of the checkpoint `seq`; `before` is the one that is kept before it."""
        for batch in batches:
            place = self._loop, batch.learner
            if batch.whole:
                self._store.run("end_learner", seq, *place, seq)
            self._store.run_many("delete_key_rows", [(*place, key) for key in batch.gone])
            rows = [(*each[1:2], _stored(each.last), each.digest, each.row) for each in batch.rows]
            where = [(*place, each.key) for each in batch.rows]
            replaced = [(seq, *row, *own, before) for row, own in zip(rows, where)]
            self._store.run_many("replace_key_row", replaced)
            if before or batch.whole:
                self._store.run_many("end_key_row", [(seq, *own, seq) for own in where])
            self._store.run_many(
                "new_key_row", [(*own, seq, *row) for row, own in zip(rows, where)]
            )
        self.let_go(seq - 1, seq, before)

    def let_go(self, replaced: int, after: int, before: int) -> None:
        """Delete rows that only checkpoints after `before` and up to `replaced` needed, where
        `after` is the next one that is kept."""
        self._store.run("delete_key_rows_between", self._loop, replaced, after, before)


def _checked(found: Any) -> KeyRow:
    key, features, last, digest, row = found
    made = KeyRow.of(key, features, -math.inf if last is None else last, bytes(row))
    if made.digest != bytes(digest):
        raise LedgerError(f"the learner of key {key!r} is damaged: restore the ledger from a copy")
    return made


def _stored(last: float) -> float | None:
    return None if last == -math.inf else last
