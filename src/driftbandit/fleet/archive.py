"""A fleet as one file: pages of keys and memories, so that neither way needs it all at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import files
from driftbandit.fleet.batch import Key, keys_of
from driftbandit.recipe import Recipe

if TYPE_CHECKING:
    from driftbandit.fleet.fleet import Fleet
    from driftbandit.fleet.residency import Members

KINDS = (int, str, bytes)


def save(fleet: Fleet, path: str | os.PathLike[str]) -> None:
    header = {
        "policy": fleet.policy.to_dict(),
        "dtype": fleet.dtype,
        "stream": fleet._stream.state,
    }
    files.write(path, "fleet", header, _columns(fleet))


def _columns(fleet: Fleet) -> Iterator[tuple[str, Any]]:
    number = 0
    for number, (keys, rows) in enumerate(fleet.pages(), start=1):
        for name, array in zip(("kinds", "ends", "keys"), packed(keys)):
            yield f"{name}.{number}", array
        yield f"rows.{number}", rows
    yield "pages", np.array(number)


def load(kind: type[Fleet], path: str | os.PathLike[str], **options: Any) -> Fleet:
    """All pages are checked before the first learner is made; what fails leaves nothing behind."""
    with files.opened(path, "fleet") as (header, archive):
        policy, pages = Recipe.from_dict(header["policy"]), int(archive.read("pages", np.int64, ()))
        if pages and archive.bytes < policy.least_bytes:
            raise ValueError(f"{archive.bytes} bytes are too few for dim={policy.problem.dim}")
        bare = kind(policy, dtype=header["dtype"])
        bare._stream.state = header["stream"]
        for number in range(1, pages + 1):
            _page(bare, archive, number)
    fleet = kind(bare.policy, dtype=bare.dtype, **options)
    members, fleet._stream.state = fleet._members, bare._stream.state
    if members.disk is not None and members.disk.count:
        members.disk.close()
        raise ValueError(
            f"store {members.disk.path!r} holds learners already, and those of {path} would mix "
            "with them: delete it or name another file"
        )
    try:
        with files.opened(path, "fleet") as (header, archive):
            for number in range(1, pages + 1):
                _add(members, *_page(fleet, archive, number))
    except BaseException:
        if members.disk is not None:
            members.disk.clear()
            members.disk.close()
        raise
    return fleet


def _page(fleet: Fleet, archive: Any, number: int) -> tuple[list[Key], Any]:
    """Keys and rows of one page, if they can be what `save` wrote."""
    fresh, policy = fleet._members.table.rows[0], fleet.policy
    kinds = archive.read(f"kinds.{number}", np.uint8, (0,), free=(0,))
    ends = archive.read(f"ends.{number}", np.int64, (len(kinds),))
    letters = archive.read(f"keys.{number}", np.uint8, (0,), free=(0,))
    keys = unpacked(kinds, ends, letters)
    rows = archive.read(f"rows.{number}", fresh.dtype, (len(keys), fresh.size))
    if not policy.sane(policy.from_rows(rows)):
        raise ValueError(f"no {policy.name} can have these memories")
    return keys, rows


def _add(members: Members, keys: list[Key], rows: Any) -> None:
    for part in members.parts(len(keys)):
        batch = keys_of(keys[part])
        if members.find(batch).any() or len(set(keys[part])) < len(batch):
            raise ValueError("it holds a key twice")
        places = members.make(batch)
        members.table.rows[places] = rows[part]


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
