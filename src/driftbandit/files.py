"""One file format: an npz archive of plain arrays with a JSON header, never pickle."""

from __future__ import annotations

import json
import math
import os
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

FORMAT = "driftbandit"
VERSION = 4
LONGEST = 1 << 22  # bytes of a header


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Any) -> Path:
    """Write atomically: a reader sees the old file or the new one, whole.

    `arrays` is a mapping, or pairs of a name and an array that are made one by one.
    """
    path = Path(path)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, **header}
    columns = arrays.items() if isinstance(arrays, Mapping) else arrays
    with atomically(path) as temporary, temporary.open("xb") as file:
        _write_npz(file, chain(columns, [("header", np.array(json.dumps(head)))]))
        file.flush()
        os.fsync(file.fileno())
    return path


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, which takes its place at the end unless there is an
    error: a reader sees the old file or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_npz(file: BinaryIO, columns: Iterable[tuple[str, Any]]) -> None:
    """What np.savez writes, one array after the other."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in columns:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


class Archive:
    """The arrays of a file: each is read only if it is what the reader expects."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file)
        self.bytes = file.seek(0, os.SEEK_END)  # of the file, and so at most of all its arrays

    def read(self, name: str, dtype: Any, shape: Any, free: Any = ()) -> Any:
        """The array of this name, type and shape; the axes in `free` may have any length."""
        found, member = self._open(name)
        wanted = tuple(n if k in free else m for k, (m, n) in enumerate(zip(shape, found[0])))
        if len(found[0]) != len(shape) or found[0] != wanted or found[1] or found[2] != dtype:
            raise ValueError(f"its array {name!r} is {found[2]} {found[0]}")
        count = math.prod(found[0])
        data = np.frombuffer(member.read(count * found[2].itemsize), dtype=dtype)
        return data.reshape(found[0]).copy()

    def text(self, name: str) -> str:
        """An array that is one string."""
        found, member = self._open(name)
        if found[2].kind != "U" or found[0] != () or found[2].itemsize > LONGEST:
            raise ValueError(f"its {name} is {found[2]} {found[0]}")
        return str(np.frombuffer(member.read(found[2].itemsize), dtype=found[2])[0])

    def any(self, name: str) -> Any:
        """The array of this name, whatever it is."""
        (shape, _, dtype), _ = self._open(name)
        return self.read(name, dtype, shape)

    def _open(self, name: str) -> tuple[Any, Any]:
        """Shape, order and type of an array, and the file that goes on with its numbers."""
        info = self._zip.getinfo(f"{name}.npy")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > self.bytes:
            raise ValueError(f"its array {name!r} is compressed, which nothing here writes")
        member = self._zip.open(info)
        version = np.lib.format.read_magic(member)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
        if header is None:
            raise ValueError(f"its array {name!r} is in npy format {version}")
        return header(member), member


def read(
    path: str | os.PathLike[str], kind: str, names: Iterable[str]
) -> tuple[Any, dict[str, Any]]:
    """Header and these arrays of a file of this kind, of any shape and type."""
    with opened(path, kind) as (header, archive):
        return header, {name: archive.any(name) for name in names}


@contextmanager
def opened(path: str | os.PathLike[str], kind: str) -> Iterator[tuple[dict[str, Any], Archive]]:
    """Header of a file of this kind and its archive, whose arrays are read when asked for.

    Whatever the block raises becomes a ValueError that says that the file is to blame.
    """
    with _whole(path), open(path, "rb") as file:
        archive = Archive(file)
        header = json.loads(archive.text("header"))
        found = header["format"], header["kind"], int(header["version"])
        if found == (FORMAT, kind, VERSION):
            yield header, archive
            return
    raise ValueError(f"{path} {_complaint(kind, *found)}")


@contextmanager
def _whole(path: str | os.PathLike[str]) -> Iterator[None]:
    """What a damaged archive raises depends on where it is damaged: here it is a ValueError."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:
        raise ValueError(
            f"{path} is not a whole driftbandit file ({type(error).__name__}: {error}): it is "
            "damaged or something else; restore it from a copy"
        ) from None


def _complaint(wanted: str, form: Any, kind: Any, version: int) -> str:
    if (form, kind) != (FORMAT, wanted):
        return f"holds a {form} {kind}, not a {FORMAT} {wanted}"
    if version > VERSION:
        return f"was written in format {version}, this version reads {VERSION}: upgrade driftbandit"
    return f"was written in format {version}, this version reads {VERSION}: start anew"
