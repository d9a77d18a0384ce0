"""One file, one name: an SQLite file that is open under another name is refused.

SQLite keeps a file's newest changes beside it, in a file that is called after it. Two programs that
open one file through two hard links, or through a bind mount of the file alone, each have such a
file of their own, and damage what they share. So every open file carries a lock on a byte that
stands for its name: its folder, as the system knows it, and its last part. Programs that use one
name share that byte; a lock on any other byte means that the file is open under another name.

The lock belongs to an open file description (Linux), not to the process: SQLite takes locks of the
process, and those would go if the process closed any descriptor of the file.
"""

from __future__ import annotations

import os
import struct
import threading
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from driftbandit.loop.errors import LedgerError

try:
    import fcntl
except ImportError:  # Windows: SQLite itself refuses a file that is open elsewhere to be linked
    fcntl = None  # type: ignore[assignment]

FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, process
FIRST, BYTES = 1 << 62, 1 << 61  # far from the bytes that SQLite locks
LOCKS = hasattr(fcntl, "F_OFD_SETLK") and struct.calcsize(FLOCK) == 32
Identity = tuple[int, int]  # device and inode


@dataclass
class OpenFile:
    """A file that this process has open, under the name that a byte stands for."""

    descriptor: int
    byte: int
    stores: int = 0  # that use it


_guard = threading.Lock()
_open: dict[Identity, OpenFile] = {}


def identity(path: str) -> Identity | None:
    """Return which file a path names now, None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def hold(path: str) -> Identity | None:
    """Take the name of an open file, shared with others that use it; raise if the file is open
    under another name. Returns what `release` needs."""
    own = identity(path)
    if own is None or not LOCKS:
        return own
    try:
        alone = _alone(path, own)
    except OSError:  # no such locks on this file system, or no right to read: SQLite will tell
        return own
    if not alone:
        release(own)
        raise LedgerError(
            f"{path!r} is open under another name, a link or a mount: use that name everywhere"
        )
    return own


def _alone(path: str, own: Identity) -> bool:
    """Take the name of a file; return whether no other name of it is in use."""
    byte = _byte(path)
    with _guard:
        if own not in _open:
            _open[own] = OpenFile(_opened(path), byte)
        held = _open[own]
        held.stores += 1
        _lock(fcntl.F_OFD_SETLK, held.descriptor, fcntl.F_RDLCK, held.byte, 1)
        return held.byte == byte and not _others(held)


def _opened(path: str) -> int:
    """Return a descriptor for reading and, if that is allowed, for writing: another one could not
    be closed while SQLite uses the file."""
    try:
        return os.open(path, os.O_RDWR)
    except PermissionError:
        return os.open(path, os.O_RDONLY)


def descriptor_of(own: Identity) -> int | None:
    """Return the descriptor of an open file; None on systems without such locks."""
    with _guard:
        held = _open.get(own)
        return held.descriptor if held else None


def release(own: Identity | None) -> None:
    """Give the name back; the last store of this process that uses the file closes it."""
    with _guard:
        held = _open.get(own) if own else None
        if own and held:
            held.stores -= 1
            if held.stores == 0:
                os.close(held.descriptor)
                del _open[own]


def _byte(path: str) -> int:
    """Return the byte that stands for the name of a file."""
    folder, last = os.path.split(os.path.realpath(path))
    found = os.stat(folder)
    whole = sha256(f"{found.st_dev} {found.st_ino} {last}".encode()).digest()
    return FIRST + int.from_bytes(whole[:8], "big") % BYTES


def _others(held: OpenFile) -> bool:
    """Return whether another process has locked the byte of another name."""
    parts = (FIRST, held.byte - FIRST), (held.byte + 1, FIRST + BYTES - held.byte - 1)
    return any(
        _lock(fcntl.F_OFD_GETLK, held.descriptor, fcntl.F_WRLCK, *part) != fcntl.F_UNLCK
        for part in parts
        if part[1] > 0
    )


def _lock(command: int, descriptor: int, kind: int, start: int, size: int) -> int:
    """Set or ask for a lock; returns the kind of what is in the way."""
    asked = struct.pack(FLOCK, kind, os.SEEK_SET, start, size, 0)
    found: Any = fcntl.fcntl(descriptor, command, asked)
    return int(struct.unpack(FLOCK, found)[0])


def _forget() -> None:
    """Close what a child has inherited: a lock must end with the process that has taken it."""
    for held in _open.values():
        os.close(held.descriptor)
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
