"""A fleet as one file: pages of keys and memories, so that neither way needs it all at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import files
from driftbandit.fleet.batch import Key, keys_of
from driftbandit.policies.policy import Policy, taken
from driftbandit.recipe import Recipe

if TYPE_CHECKING:
    from driftbandit.fleet.fleet import Fleet
    from driftbandit.fleet.members import Members

KINDS = (int, str, bytes)


def save(fleet: Fleet, path: str | os.PathLike[str]) -> None:
    header = {
        "policy": fleet.policy.to_dict(),
        "dtype": fleet.dtype,
        "rng": fleet._rng.bit_generator.state,
    }
    files.write(path, "fleet", header, _columns(fleet))


def _columns(fleet: Fleet) -> Iterator[tuple[str, Any]]:
    number = 0
    for number, (keys, records) in enumerate(fleet._members.pages(), start=1):
        for name, array in zip(("kinds", "ends", "keys"), packed(keys)):
            yield f"{name}.{number}", array
        for name in records.dtype.names:
            yield f"{name}.{number}", records[name]
    yield "pages", np.array(number)


def load(kind: type[Fleet], path: str | os.PathLike[str], **options: Any) -> Fleet:
    with files.opened(path, "fleet") as (header, archive):
        recipe = {"policy": Recipe.from_dict(header["policy"]), "dtype": header["dtype"]}
        kind(**recipe)._rng.bit_generator.state = header["rng"]
        count = int(archive["pages"])
    fleet = kind(**recipe, **options)
    members, store = fleet._members, fleet._members.store
    if store is not None and store.count:
        store.close()
        raise ValueError(
            f"store {store.path!r} holds learners already, and those of {path} would mix with "
            "them: delete it or name another file"
        )
    with files.opened(path, "fleet") as (header, archive):
        fleet._rng.bit_generator.state = header["rng"]
        for number in range(1, count + 1):
            _add(fleet.policy, members, archive, number)
    return fleet


def _add(policy: Policy, members: Members, archive: Any, number: int) -> None:
    """One page of learners, if they can be what `save` wrote."""
    memory, record = members.rows.memory, members.rows.record
    keys = unpacked(*(archive[f"{name}.{number}"] for name in ("kinds", "ends", "keys")))
    columns = {name: archive[f"{name}.{number}"] for name in memory._fields}
    for name, array in columns.items():
        if array.dtype != record[name].base or array.shape != (len(keys), *record[name].shape):
            raise ValueError(f"its array {name!r} is {array.dtype} {array.shape}")
    if not policy.sane(taken(type(memory)(**columns), np.arange(len(keys)))):
        raise ValueError(f"no {policy.name} can have these memories")
    for part in members.parts(len(keys)):
        batch = keys_of(keys[part])
        if members.find(batch).any() or len(set(keys[part])) < len(batch):
            raise ValueError("it holds a key twice")
        members.rows.fill(members.make(batch), {name: a[part] for name, a in columns.items()})


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
    text, starts = blob.tobytes(), [0, *ends.tolist()]
    return [_key(k, text[a:b]) for k, a, b in zip(kinds.tolist(), starts, starts[1:])]


def _key(kind: int, part: bytes) -> Key:
    if KINDS[kind] is int:
        return int.from_bytes(part, "little", signed=True)
    return part.decode() if KINDS[kind] is str else part
