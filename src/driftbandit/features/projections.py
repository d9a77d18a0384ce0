"""Projections: many numbers, such as an embedding, to the few that are kept.

A vector is scaled to norm 1, projected, and shortened to norm 1 if it is longer. The projection is
learnt from a sample (the principal components around the sample's mean, scaled so that 95 % of the
sample stay as long as they are), or it is a fixed random one: columns of signs that are the same on
every machine. A learnt one is part of the declaration, as text that begins with its digest.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Projection = tuple[Floats, Floats]  # matrix (keep, size), and what is subtracted, (keep,)

SHORT = 0.95  # part of a sample that is not shortened
FEWEST = 10  # rows of a sample for every component: fewer fit the sample's noise


def principal(sample: Floats, keep: int) -> str:
    """Return the projection to the components in which a sample (n, size) varies most, as text."""
    if len(sample) < FEWEST * keep:
        raise ValueError(
            f"a projection to {keep} numbers needs a sample of {FEWEST * keep} vectors at least, "
            f"got {len(sample)}: keep fewer, or leave the sample out for a random projection"
        )
    rows = unit(np.ascontiguousarray(sample, dtype=np.float64))
    mean = rows.mean(axis=0)
    matrix = np.linalg.svd(rows - mean, full_matrices=False)[2][:keep]
    # The sign of a component is arbitrary: its largest number is positive.
    matrix *= np.sign(matrix[np.arange(len(matrix)), np.abs(matrix).argmax(axis=1)])[:, None]
    both = np.c_[matrix, matrix @ mean]
    long = np.quantile(np.linalg.norm(rows @ matrix.T - both[:, -1], axis=1), SHORT)
    if not long > 0.0:
        raise ValueError("the vectors of the sample are all the same: a projection needs others")
    return to_text(both / long)


def to_text(numbers: Floats) -> str:
    """Return numbers as text that begins with their digest."""
    data = numbers.astype("<f4").tobytes()
    return f"{_digest(data)}:{base64.b64encode(data).decode()}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


@lru_cache(maxsize=64)
def from_text(text: str, size: int, keep: int) -> Projection:
    """Return the projection that a declaration holds; raise if it is not whole."""
    digest, _, rest = text.partition(":")
    try:
        data = base64.b64decode(rest, validate=True)
    except binascii.Error:
        data = b""
    if len(data) != 4 * keep * (size + 1) or _digest(data) != digest:
        raise ValueError(
            f"this is no projection from {size} to {keep} numbers, or it is damaged: make it with "
            "Vector.fitted(sample, keep=...)"
        )
    numbers = np.frombuffer(data, dtype="<f4").astype(np.float64).reshape(keep, size + 1)
    if not np.isfinite(numbers).all():
        raise ValueError("a projection holds finite numbers: make it with Vector.fitted(...)")
    return np.ascontiguousarray(numbers[:, :-1]), numbers[:, -1].copy()


@lru_cache(maxsize=64)
def random_signs(size: int, keep: int) -> Projection:
    """Return the fixed random projection: signs from a hash, so inner products are kept on
    average (Achlioptas 2003)."""
    n = keep * size
    data = hashlib.shake_256(f"driftbandit {size} {keep}".encode()).digest(-(-n // 8))
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8))[:n]
    return (1.0 - 2.0 * bits).reshape(keep, size) / np.sqrt(keep), np.zeros(keep)


def project(rows: Floats, projection: Projection) -> Floats:
    """Return rows (n, size) projected to (n, keep), each by itself: the same bits alone and among
    others."""
    matrix, center = projection
    found = np.array([matrix @ row for row in rows]).reshape(len(rows), -1) - center
    return found / np.maximum(np.sqrt((found * found).sum(axis=1, keepdims=True)), 1.0)


def unit(rows: Floats) -> Floats:
    """Return rows scaled to norm 1, by their largest number first, so that no square overflows."""
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows = np.divide(rows, largest, where=largest > 0.0, out=np.zeros_like(rows))
    norm = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return np.divide(rows, norm, where=norm > 0.0, out=rows)
