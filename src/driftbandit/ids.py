"""Ids of decisions, and the random bytes of ids and salts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

BLOCK = 16  # random bytes at a time
BLOCKS = 256  # asked of the system at once, because a call of it takes 3 us

_blocks: Iterator[bytes] = iter(())


def random_block() -> bytes:
    """Return 16 random bytes, which no other call gets, in this process or in a child of it."""
    global _blocks
    while True:
        try:
            return next(_blocks)  # in one step, so no two threads get the same
        except StopIteration:
            drawn = os.urandom(BLOCK * BLOCKS)
            _blocks = iter([drawn[k : k + BLOCK] for k in range(0, len(drawn), BLOCK)])


def new_id() -> str:
    """Return an id of its own. It begins with the time, so that neighbours are stored together."""
    return f"{time.time_ns() // 1_000_000:012x}{random_block()[:10].hex()}"


def _forget() -> None:
    """Leave the blocks to the parent of a fork."""
    global _blocks
    _blocks = iter(())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
