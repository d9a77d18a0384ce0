"""One file format: an npz archive of plain arrays with a JSON header, never pickle."""

from __future__ import annotations

import json
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
VERSION = 1


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Any) -> Path:
    """Write atomically: a reader sees the old file or the new one, whole.

    `arrays` is a mapping, or pairs of a name and an array that are made one by one.
    """
    path = Path(path)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, **header}
    columns = arrays.items() if isinstance(arrays, Mapping) else arrays
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            _write_npz(file, chain(columns, [("header", np.array(json.dumps(head)))]))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def _write_npz(file: BinaryIO, columns: Iterable[tuple[str, Any]]) -> None:
    """What np.savez writes, one array after the other."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in columns:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a file of this kind, or a ValueError that says what is wrong with it."""
    with opened(path, kind) as (header, archive):
        return header, {name: archive[name] for name in archive.files if name != "header"}


@contextmanager
def opened(path: str | os.PathLike[str], kind: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Header of a file of this kind and its archive, whose arrays are read when asked for."""
    with _whole(path), open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        header = json.loads(str(archive["header"]))
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
    if version < 1:
        return f"claims format {version}, which never existed: it is damaged"
    return (
        f"was written in format {version}, this version reads up to {VERSION}: upgrade driftbandit"
    )
