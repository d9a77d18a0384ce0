"""Verification: one pass over a ledger that finds edits, gaps and a tail that was cut or rewritten.

`storage/chain.py` says what the chain is. A person who can write the database can compute all
of it anew, so a rewritten ledger is only found by comparing it with a head that was kept elsewhere.
"""

from __future__ import annotations

import os
import re
from contextlib import closing
from typing import Any, NamedTuple

from driftbandit.loop.errors import LedgerError, ReplacedError
from driftbandit.loop.learning.learner import digest as state_digest
from driftbandit.loop.storage import ledger as ledgers
from driftbandit.loop.storage.chain import (
    BEGINS,
    SALT,
    digest_of,
    genesis,
    link_of,
    split,
)
from driftbandit.loop.storage.events import Anchor, Event
from driftbandit.loop.storage.key_rows import RowSum
from driftbandit.loop.storage.ledger import Ledger

HEAD = re.compile(r"(?:(\d+):)?([0-9a-f]{64})")
MOST = 20  # faults that are told one by one


class Verification(NamedTuple):
    """What was found in the ledger of one loop. The chain covers the events from `first` on, and
    `head` is its newest link, to be kept elsewhere."""

    loop: str
    events: int
    first: int | None
    head: str
    faults: list[str]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def __str__(self) -> str:
        begins = "" if self.first in (1, None) else f", the chain begins at event {self.first}"
        told = f"loop {self.loop!r}: {self.events} events{begins}, head {self.head or 'none'}"
        more = len(self.faults) - MOST
        lines = [*self.faults[:MOST], *([f"and {more} more"] if more > 0 else [])]
        return "\n".join([told, *(f"  {line}" for line in lines)]) + (
            "" if self.faults else "\n  every event is as it was stored"
        )


def verify(
    path: str | os.PathLike[str], name: str | None = None, head: str | None = None
) -> list[Verification]:
    """Return what is found in the loop `name`, or in all loops of a ledger. `head` is one that was
    kept elsewhere, for one loop."""
    if not ledgers.exists(path):
        raise ValueError(f"{os.fspath(path)!r} does not exist: check the name")
    kept = None if head is None else _kept(head)
    loops = ledgers.stored(path) if name is None else [name]
    if kept and len(loops) > 1:
        raise ValueError(f"a head belongs to one loop: name it, {', '.join(map(repr, loops))}")
    return [_verified(path, each, kept) for each in loops]


class KeptHead(NamedTuple):
    """A head that was kept elsewhere; without `seq`, the link may be anywhere."""

    seq: int | None
    link: bytes


def _kept(head: str) -> KeptHead:
    match = HEAD.fullmatch(head.strip().lower())
    if match is None:
        raise ValueError(f"a head looks like 1234:{'9f' * 2}..., as health shows it, got {head!r}")
    return KeptHead(int(match[1]) if match[1] else None, bytes.fromhex(match[2]))


def _verified(path: str | os.PathLike[str], name: str, kept: KeptHead | None) -> Verification:
    """Read the ledger of a loop; once more if events were let go meanwhile."""
    with closing(Ledger(path, name, write=False)) as ledger:
        while True:
            start, reader = ledger.start, ChainReader(ledger, kept)
            for event, seal in ledger.sealed(start):
                reader.read(event, seal)
            ledger.refresh()
            if ledger.start == start:
                return reader.end()


class ChainReader:
    """Goes along the chain. After a fault it goes on from what is stored, so that one edit is one
    fault."""

    def __init__(self, ledger: Ledger, kept: KeptHead | None) -> None:
        self._ledger, self._kept, self._met = ledger, kept, False
        self._start, self._anchor = ledger.start, ledger.anchor()
        self._seq, self._events = ledger.start - 1, 0
        self._link: bytes | None = None  # of the event before
        self._first: int | None = None
        self._blank: set[int] = set()  # erased events that no erasure has named yet
        self.faults: list[str] = []
        self._begin()

    def _begin(self) -> None:
        """Find out what the first event that is kept goes on from."""
        if self._start == 1:
            return
        said: Anchor | None = self._anchor.read() if self._anchor else None
        if said is None or said.start != self._start:
            return  # let go by version 0.2, or without a word: the first link will tell
        self._link = bytes.fromhex(said.link) if said.link else None
        if said.kept != self._ledger.kept_digest(self._start):
            self._fault(f"lasting events before event {self._start} were edited, or are missing")
        self._meet(self._start - 1, self._link)

    def read(self, event: Event, seal: bytes | None) -> None:
        """Check one event."""
        self._events += 1
        gap = event.seq != self._seq + 1
        if gap:
            self._fault(f"events {self._seq + 1} to {event.seq - 1} are missing")
        link, digest, salt = split(seal)
        if link is None:
            if self._first is not None:
                self._fault(f"event {event.seq} has no link: it was put in by hand")
        else:
            self._check_link(event, link, digest, gap)
            self._check_digest(event, digest, salt)
            self._first = event.seq if self._first is None else self._first
            self._link = link
            self._meet(event.seq, link)
        self._seq = event.seq

    def _check_link(self, event: Event, link: bytes, digest: bytes, gap: bool) -> None:
        before = self._before(event)
        if before is None:
            self._fault(f"the chain does not reach event {event.seq}: what was before is missing")
        elif not gap and link != link_of(before, event, digest):
            self._fault(f"event {event.seq} does not follow the events before it")

    def _check_digest(self, event: Event, digest: bytes, salt: bytes) -> None:
        if event.kind == "erased" and not salt:
            self._blank.add(event.seq)
        elif event.kind == "checkpoint" and not salt and event.seq < self._ledger.base:
            pass  # a cache that a later one has replaced, and blanked
        elif len(salt) != SALT or digest != digest_of(event, salt):
            self._fault(f"event {event.seq} was edited")
        elif event.kind == "erase":
            self._blank.difference_update(event.read().seqs)
        elif event.kind == "checkpoint":
            self._check_state(event)

    def _before(self, event: Event) -> bytes | None:
        if event.kind == BEGINS and self._first is None and self._link is None:
            return genesis(self._ledger.name)
        return genesis(self._ledger.name) if event.seq == 1 else self._link

    def _check_state(self, event: Event) -> None:
        """Check the numbers of a checkpoint, if they are kept: its payload has their digests."""
        state, said = self._ledger.state(event.seq), event.read()
        if not state:
            return
        fault = f"the learner beside checkpoint {event.seq} was edited"
        if state_digest(state) != said.whole:
            self._fault(fault)
            return
        learners = [said.learner, *(said.panel or {}).get("candidates", ())]
        try:
            if not all(
                self._has_rows(event.seq, each["rows"]) for each in learners if "rows" in each
            ):
                self._fault(fault)
        except ReplacedError:  # a newer checkpoint has the rows
            pass
        except LedgerError as error:
            self._fault(str(error))

    def _has_rows(self, seq: int, said: dict[str, Any]) -> bool:
        """Return whether the rows of all keys are those of a checkpoint."""
        total = RowSum()
        for row in self._ledger.rows.rows(said["learner"], seq):
            total.add(row.digest)
        return state_digest(total.state()) == said["sum"]

    def _meet(self, seq: int, link: bytes | None) -> None:
        kept = self._kept
        if kept and kept.link == link and kept.seq in (None, seq):
            self._met = True

    def end(self) -> Verification:
        """Return all that was found."""
        for seq in sorted(self._blank):
            self._fault(f"event {seq} is blank, and no erasure names it")
        if self._kept and not self._met:
            self._fault(self._unmet(self._kept))
        if self._first is None:
            self._fault("the ledger has no chain: open its loop once for writing")
        head = f"{self._seq}:{self._link.hex()}" if self._link else ""
        return Verification(self._ledger.name, self._events, self._first, head, self.faults)

    def _unmet(self, kept: KeptHead) -> str:
        if kept.seq is not None and kept.seq < self._start:
            return f"event {kept.seq} is older than what is kept: compare with a later head"
        if kept.seq is not None and kept.seq > self._seq:
            return f"the ledger ends at event {self._seq}: events to {kept.seq} were cut off"
        return "the head that was kept is not in this ledger: events up to it were rewritten"

    def _fault(self, words: str) -> None:
        self.faults.append(words)
