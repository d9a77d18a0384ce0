"""A hash that never changes, and signed hashing: many terms folded into few coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray


def stable(text: str) -> int:
    """64 bits of BLAKE2b. Python's own hash() differs from process to process."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@lru_cache(maxsize=1 << 14)  # of a pure function: popular values are hashed once
def bucket(text: str, size: int) -> int:
    """The coordinate of a hashed category."""
    return stable(text) % size


def fold(terms: Sequence[str], dim: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Coordinate and sign of every term.

    With random signs, terms that share a coordinate do not add up on average: inner products are
    kept in expectation (Weinberger et al. 2009).
    """
    hashes = np.array([stable(term) for term in terms], dtype=np.uint64)
    sign = 1.0 - 2.0 * (hashes & np.uint64(1)).astype(np.float64)
    return ((hashes >> np.uint64(1)) % np.uint64(dim)).astype(np.intp), sign
