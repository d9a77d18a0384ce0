"""The chain of a ledger: every event carries a hash of itself and of all events before it.

    digest = H(salt; seq, kind, at, id, key, k, v, data)   what the event says
    link   = H(link of the event before; seq, at, digest)  the newest link is the head

An edit changes a digest, and a change of the order or a gap breaks the links. If you
keep the head elsewhere, you also see that a tail was cut off, or that all was computed anew.

- Erasure deletes the payload and the salt. The digest stays, so the links still hold, and without
  the salt it does not even tell whether a guess of the payload is right.
- Retention deletes whole events. An event `anchor` says in the same transaction which link the
  kept events go on from, and which lasting events are kept from before.
- A ledger of version 0.2 has no links. Its chain begins with an event `chain` at its first opening.

A seal is link, digest and salt in one value: erasure cuts it off after the digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256  # most processors have instructions for it
from struct import Struct
from typing import NamedTuple

from driftbandit.ids import BLOCK, random_block
from driftbandit.loop.storage.events import Event

SIZE, SALT = 32, BLOCK  # bytes of a hash, and of a salt
WITHOUT_SALT = 2 * SIZE
BEGINS = "chain"  # the kind of an event that begins the chain of an old ledger

_numbers = Struct("<qdqq")
_place = Struct("<qd")


class Head(NamedTuple):
    """Where a chain is: the seq and the link of its newest event. An event of version 0.2 has no
    link."""

    seq: int
    link: bytes | None

    def __str__(self) -> str:
        return "" if self.link is None else f"{self.seq}:{self.link.hex()}"


def sealed(head: Head, events: Iterable[Event]) -> tuple[list[bytes | None], Head]:
    """Return the seals of the events that follow, and the head after the last of them."""
    seq, link = head
    seals = list[bytes | None]()
    for event in events:
        seq, seal = event.seq, None
        if link is not None:
            salt = random_block()
            digest = digest_of(event, salt)
            link = link_of(link, event, digest)
            seal = link + digest + salt
        seals.append(seal)
    return seals, Head(seq, link)


def genesis(name: str) -> bytes:
    """Return what the first link of a loop goes on from."""
    return sha256(b"driftbandit chain 1 " + name.encode()).digest()


def digest_of(event: Event, salt: bytes) -> bytes:
    """Return the salted digest of an event. Each text has its length before it, so that two events
    that differ are never the same bytes; a salt has one length, or is empty in old ledgers."""
    k = -1 if event.k is None else event.k
    parts = [salt, _numbers.pack(event.seq, event.at, k, event.v)]
    for text in (event.kind, event.id, event.key, event.data):
        if text is None:
            parts.append(b"-")
        else:
            raw = text.encode()
            parts += (b"%d:" % len(raw), raw)
    return sha256(b"".join(parts)).digest()


def link_of(before: bytes, event: Event, digest: bytes) -> bytes:
    """Return the link of an event from the one before it. It covers `at`, which stays when an event
    is erased."""
    return sha256(before + _place.pack(event.seq, event.at) + digest).digest()


def split(seal: bytes | None) -> tuple[bytes | None, bytes, bytes]:
    """Return link, digest and salt; the salt of an erased event is empty."""
    if seal is None:
        return None, b"", b""
    return seal[:SIZE], seal[SIZE:WITHOUT_SALT], seal[WITHOUT_SALT:]


def kept_digest(rows: Iterator[tuple[Event, bytes]]) -> str:
    """Return one digest of events with their salts, in order."""
    whole = sha256()
    for event, salt in rows:
        whole.update(digest_of(event, salt))
    return whole.hexdigest()
