"""A fleet as one file: pages of keys and memories, so that neither way needs it all at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import files
from driftbandit.fleet.batch import Key, keys_of
from driftbandit.policies.policy import taken
from driftbandit.recipe import Recipe

if TYPE_CHECKING:
    from driftbandit.fleet.fleet import Fleet

PAGE = 1 << 16  # learners
KINDS = (int, str, bytes)


def pages(fleet: Fleet) -> Iterator[tuple[list[Key], Any]]:
    """Keys and records of all learners, those in memory and then the others."""
    keys, rows = fleet._index.items()
    for start in range(0, len(keys), PAGE):
        part = slice(start, start + PAGE)
        yield keys[part], fleet._rows.records(rows[part])
    if fleet._store is not None:
        for page, records in fleet._store.pages(PAGE):
            stale = fleet._index.find(keys_of(page))[0] > 0
            fresh = [key for key, old in zip(page, stale) if not old]
            yield fresh, records[~stale]


def save(fleet: Fleet, path: str | os.PathLike[str]) -> None:
    header = {
        "policy": fleet.policy.to_dict(),
        "dtype": fleet.dtype,
        "rng": fleet._rng.bit_generator.state,
    }
    files.write(path, "fleet", header, _columns(fleet))


def _columns(fleet: Fleet) -> Iterator[tuple[str, Any]]:
    number = 0
    for number, (keys, records) in enumerate(pages(fleet), start=1):
        for name, array in zip(("kinds", "ends", "keys"), packed(keys)):
            yield f"{name}.{number}", array
        for name in records.dtype.names:
            yield f"{name}.{number}", records[name]
    yield "pages", np.array(number)


def load(kind: type[Fleet], path: str | os.PathLike[str], **options: Any) -> Fleet:
    with files.opened(path, "fleet") as (header, archive):
        policy, dtype = Recipe.from_dict(header["policy"]), header["dtype"]
        state, count = header["rng"], int(archive["pages"])
    fleet = kind(policy, dtype=dtype, **options)
    if fleet._store is not None and fleet._store.count:
        fleet._store.close()
        raise ValueError(
            f"store {fleet._store.path!r} holds learners already, and {path} would mix with them: "
            "delete it or name another file"
        )
    with files.opened(path, "fleet") as (_, archive):
        fleet._rng.bit_generator.state = state
        for number in range(1, count + 1):
            _add(fleet, archive, number)
    return fleet


def _add(fleet: Fleet, archive: Any, number: int) -> None:
    keys = keys_of(unpacked(*(archive[f"{name}.{number}"] for name in ("kinds", "ends", "keys"))))
    names = fleet._rows.memory._fields
    columns = {name: archive[f"{name}.{number}"] for name in names}
    for name, array in columns.items():
        wanted = fleet._rows.record[name]
        if array.dtype != wanted.base or array.shape != (len(keys), *wanted.shape):
            raise ValueError(f"its array {name!r} is {array.dtype} {array.shape}")
    whole = taken(type(fleet._rows.memory)(**columns), np.arange(len(keys)))
    if not fleet.policy.sane(whole) or len(set(list(keys))) < len(keys):
        raise ValueError(f"no fleet of {fleet.policy.name} can have these memories")
    for part in fleet._parts(len(keys)):
        rows, unknown = fleet._index.find(keys[part])
        if unknown < len(rows):
            raise ValueError("it holds a key twice")
        fleet._tick += 1
        rows = fleet._make(keys[part])
        fleet._rows.fill(rows, {name: array[part] for name, array in columns.items()})


def packed(keys: list[Key]) -> tuple[Any, Any, Any]:
    """Keys as arrays: the kind of each, where it ends, and all their bytes."""
    parts = [_bytes(key) for key in keys]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    kinds = np.array([KINDS.index(type(key)) for key in keys], dtype=np.uint8)
    return kinds, ends, np.frombuffer(b"".join(parts), dtype=np.uint8)


def _bytes(key: Key) -> bytes:
    if isinstance(key, int):
        return key.to_bytes(8, "little", signed=True)
    return key.encode() if isinstance(key, str) else key


def unpacked(kinds: Any, ends: Any, blob: Any) -> list[Key]:
    """The keys that `packed` packed."""
    text, start, keys = blob.tobytes(), 0, []
    for kind, end in zip(kinds.tolist(), ends.tolist()):
        part, start = text[start:end], end
        keys.append(
            (int.from_bytes(part, "little", signed=True), part.decode(errors="replace"), part)[kind]
        )
    return keys
