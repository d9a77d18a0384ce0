"""Learners of keys in memory: those that were used lately, and those that no checkpoint has yet.

All others are rows of the ledger's table, and are read when they are asked for. So memory does not
grow with all keys ever seen. A key that was trained stays in memory until a checkpoint that has it
is stored; the trainer hands the rows over, the writer stores them beside decisions, and says at
which checkpoint they are.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

import numpy as np

from driftbandit.bandit import Bandit
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.state.definition import Version
from driftbandit.loop.storage.key_rows import NEWEST, KeyRow, RowBatch, RowSum, RowTable
from driftbandit.policies.base import Floats
from driftbandit.policies.growth import grown_rows
from driftbandit.policies.rows import RowPolicy

MEMORY = 100_000_000  # bytes of rows in memory that could be read again
ABSENT = 100_000  # keys that are known to have no row
TRIES = 64  # rows that are looked at to find one that may go
UNKNOWN = b""  # stands for the digest of a row that a process has from another one


class StoredRows(NamedTuple):
    """Where rows of keys are read: at the checkpoint `at`, of any of the live `versions`."""

    table: RowTable
    at: int
    versions: Mapping[str, Version]


class KeyLearner:
    """The learner of one key. `stored` is the digest of its row in the table, None without one."""

    __slots__ = ("_bandit", "last", "policy", "row", "stored")

    def __init__(
        self, policy: RowPolicy, row: Floats, last: float, stored: bytes | None = None
    ) -> None:
        self.policy, self.row, self.last, self.stored = policy, row, last, stored
        self._bandit: Bandit | None = None

    @property
    def bandit(self) -> Bandit:
        if self._bandit is None:
            self._bandit = Bandit.from_row(self.policy, self.row)
        return self._bandit


class KeyCache:
    """The learners of the keys of one learner, which the table knows as `home`. It belongs to who
    holds the learner's lock."""

    def __init__(self, home: int, version: Version) -> None:
        self.home, self._lineage = home, [version]
        self._own: OrderedDict[str, KeyLearner] = OrderedDict()
        self._changed: dict[str, None] = {}  # since the latest batch, in order
        self._flying: deque[RowBatch] = deque()  # on their way to the table
        self._gone: set[str] = set()  # keys whose rows in the table are void
        self._absent: set[str] = set()
        self._sum, self._whole = RowSum(), True  # whole: what the table has of `home` is void
        self._table: RowTable | None = None
        self._at, self._stored_sum = 0, self._sum.state()

    @property
    def version(self) -> Version:
        return self._lineage[-1]

    # one key

    def get(self, key: str) -> KeyLearner | None:
        """Return the learner of a key, from memory or from the table; None if it has none."""
        own = self._own.get(key)
        if own is not None:
            self._own.move_to_end(key)
            return own
        self._settle()
        if self._table is None or key in self._absent or self._is_void(key):
            return None
        found = self._table.row(self.home, key, self._now)
        if found is None:
            if len(self._absent) >= ABSENT:
                self._absent.clear()
            self._absent.add(key)
            return None
        own = self._own[key] = self._read(found)
        self._trim()
        return own

    @property
    def _now(self) -> int:
        """The checkpoint to read. While batches are on their way, the keys that they change are in
        memory, and the newest rows of all others are right, whether or not they are stored."""
        return NEWEST if self._flying else self._at

    def _is_void(self, key: str) -> bool:
        """Return whether the row that the table has of a key is not to be read."""
        return key in self._gone or any(key in each.gone for each in self._flying)

    def put(self, key: str, own: KeyLearner) -> None:
        """Add the learner of a new key."""
        self._own[key], self._changed[key] = own, None
        self._absent.discard(key)
        self._trim()

    def change(self, key: str) -> None:
        """Take notice that the row of a key is another one."""
        self._changed[key] = None

    def drop(self, key: str) -> None:
        """Forget a key, also in the table."""
        own = self.get(key)
        if own is not None:
            if digest := self._digest(key, own):
                self._sum.take(digest)
            del self._own[key]
            self._changed.pop(key, None)
            self._gone.add(key)

    def _digest(self, key: str, own: KeyLearner) -> bytes | None:
        """Return the digest of the row that the table has, or will have once it is written."""
        if own.stored == UNKNOWN and self._table is not None:
            found = self._table.row(self.home, key, self._now)
            own.stored = found.digest if found else None
        return own.stored or None

    def _read(self, found: KeyRow) -> KeyLearner:
        """Return a stored learner, grown as the features have grown since."""
        row = np.frombuffer(found.row, dtype="<f8").astype(np.float64)
        known = [each.features.version for each in self._lineage]
        if found.features not in known:
            raise LedgerError(
                f"the learner of key {found.key!r} has features that the log does not know: "
                "restore the ledger from a copy"
            )
        place = known.index(found.features)
        for before, after in zip(self._lineage[place:], self._lineage[place + 1 :]):
            row = np.ascontiguousarray(grown_rows(before.policy, after.policy, row[None])[0])
        return KeyLearner(self.version.policy, row, found.last, found.digest)

    def _trim(self) -> None:
        """Let the learners go that were not used for longest and can be read again."""
        spare = len(self._own) - max(1, MEMORY // (8 * self.version.policy.row_size))
        if spare <= 0 or self._table is None:
            return
        self._settle()
        for key in [*islice(self._own, min(TRIES, len(self._own) - 1))]:
            if key in self._changed or any(key in each.keys for each in self._flying):
                continue
            del self._own[key]
            spare -= 1
            if spare <= 0:
                return

    def _settle(self) -> None:
        """Take notice of batches that are stored."""
        while self._flying and self._flying[0].seq is not None:
            batch = self._flying.popleft()
            assert batch.seq is not None
            self._table, self._at, self._stored_sum = batch.table, batch.seq, batch.sum

    # all keys

    def grow(self, larger: Version) -> None:
        """Rows in memory become longer now, others when they are read."""
        before = self.version.policy
        self._lineage.append(larger)
        if self._own:
            rows = grown_rows(before, larger.policy, np.array([o.row for o in self._own.values()]))
            for (key, own), row in zip([*self._own.items()], rows):
                self._own[key] = KeyLearner(larger.policy, row.copy(), own.last, own.stored)

    def promote(self, version: Version) -> None:
        """Belong to the live learner from now on."""
        self._lineage = [version]

    def all_keys(self) -> Iterator[str]:
        """Yield all keys, sorted."""
        self._settle()
        stored = self._table.keys(self.home, self._now) if self._table else iter(())
        others = (key for key in stored if key not in self._own and not self._is_void(key))
        return merge(sorted(self._own), others)

    def learners(self) -> Iterator[tuple[str, KeyLearner]]:
        """Yield all keys, sorted, and their learners, which are not kept in memory."""
        self._settle()
        stored = self._table.rows(self.home, self._now) if self._table else iter(())
        others = (
            (each.key, self._read(each))
            for each in stored
            if each.key not in self._own and not self._is_void(each.key)
        )
        return merge(sorted(self._own.items(), key=_key), others, key=_key)

    def read_all(self) -> None:
        """Bring all learners to memory: the table will not be there any more."""
        found = OrderedDict(self.learners())
        self.restore(found)

    def restore(self, own: OrderedDict[str, KeyLearner]) -> None:
        """Go on with these learners; whatever the table has is void."""
        for learner in own.values():
            learner.stored = None
        self._own, self._changed = own, dict.fromkeys(own)
        self._sum, self._whole, self._table = RowSum(), True, None
        for each in (self._flying, self._gone, self._absent):
            each.clear()

    # checkpoints and snapshots

    def batch(self) -> RowBatch:
        """Return what a checkpoint of this moment has to change in the table."""
        rows = [self._packed(key, self._own[key]) for key in self._changed]
        made = RowBatch(self.home, rows, sorted(self._gone), self._whole, self._sum.state())
        self._changed.clear()
        self._gone.clear()
        self._whole = False
        self._flying.append(made)
        return made

    def _packed(self, key: str, own: KeyLearner) -> KeyRow:
        if digest := self._digest(key, own):
            self._sum.take(digest)
        made = KeyRow.of(
            key, self.version.features.version, own.last, own.row.astype("<f8").tobytes()
        )
        self._sum.add(made.digest)
        own.stored = made.digest
        return made

    @property
    def sum(self) -> bytes:
        """The sum over all rows in the table, once all batches are stored."""
        return self._sum.state()

    def since_stored(self) -> tuple[int, bytes, list[str]] | None:
        """Return the checkpoint that the table has, the sum over its rows, and the keys that have
        changed since; None if the table has nothing."""
        self._settle()
        if self._table is None:
            return None
        return self._at, self._stored_sum, sorted(self._pending())

    def _pending(self) -> set[str]:
        """Return the keys in memory that the table does not have as they are."""
        keys = {*self._changed}.union(*(each.keys for each in self._flying))
        return {key for key in keys if key in self._own}

    def resume(
        self,
        home: int,
        stored: StoredRows,
        total: bytes,
        version: Version,
        changed: Mapping[str, KeyLearner],
    ) -> None:
        """Go on from rows in the table, and from those that have changed since."""
        then = home, stored.at, version.name
        same = self._table is not None and then == (self.home, self._at, self.version.name)
        pending, clean = self._pending(), self._own.items() if same else ()
        kept = ((key, own) for key, own in clean if key not in pending)
        self._own, self.home = OrderedDict(kept) | OrderedDict(changed), home
        self._changed, self._lineage = dict.fromkeys(changed), _lineage(stored, version)
        self._flying.clear()
        self._gone.clear()
        if not same:
            self._absent.clear()
        self._absent.difference_update(changed)
        self._sum, self._whole, self._stored_sum = RowSum(total), False, total
        self._table, self._at = stored.table, stored.at


def _lineage(stored: StoredRows, version: Version) -> list[Version]:
    """Return the versions that a learner had, from its first one to this."""
    found = [each for each in stored.versions.values() if each.reign == version.reign]
    names = [each.name for each in found]
    earlier = found[: names.index(version.name)] if version.name in names else []
    return [*earlier, version]


def _key(item: Sequence[object]) -> str:
    return str(item[0])
