"""A batch at the public door: what callers pass, as clean arrays, or an error that says why not."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

from driftbandit.core.layout import Floats, Ints
from driftbandit.validate import show

Key = int | str | bytes
Keys = Ints | list[Key]  # whole numbers alone are an array, which compiled code can look up

KEY = "a key is a whole number of 64 bits, a str or bytes"


def keys_of(given: Any) -> Keys:
    """One key per row."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ValueError(f"keys must be a sequence, one key per row, got {show(given)}")
    if not isinstance(given, np.ndarray):
        return _listed(list(given))
    if given.ndim != 1:
        raise ValueError(f"keys must have shape (B,), one key per row, got {given.shape}")
    if given.dtype.kind == "i":
        return np.ascontiguousarray(given, dtype=np.int64)
    return _listed(given.tolist())


def _listed(keys: list[Any]) -> Keys:
    if not set(map(type, keys)) - {int}:
        with suppress(OverflowError):
            return np.array(keys, dtype=np.int64)
    return [key_of(key) for key in keys]


def key_of(key: Any) -> Key:
    """`key`, if it can be one."""
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if -(2**63) <= int(key) < 2**63:
            return int(key)
        raise ValueError(f"{KEY}; {show(key)} is longer: use str(key)")
    if isinstance(key, bytes):
        return bytes(key)
    if not isinstance(key, str):
        raise ValueError(f"{KEY}, got {show(key)}: use str(key)")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{show(key)} is not valid Unicode: use bytes for such keys") from None
    return str(key)


def floats_of(name: str, given: Any, shape: tuple[Any, ...], meaning: str) -> Floats:
    """Real numbers of this shape, in which a string stands for any length, contiguous."""
    try:
        found = np.asarray(given)
        good = found.dtype.kind in "biuf" and found.ndim == len(shape)
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good or any(isinstance(n, int) and n != m for n, m in zip(shape, found.shape)):
        wanted = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        got = f"{found.dtype} {found.shape}" if isinstance(given, np.ndarray) else show(given)
        raise ValueError(f"{name} must be real numbers of shape {wanted}, {meaning}; got {got}")
    return np.require(found, np.float64, ["C", "W"])
