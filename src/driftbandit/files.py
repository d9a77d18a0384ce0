"""One file format: an npz archive of plain arrays with a JSON header, never pickle."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "driftbandit"
VERSION = 1


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Any) -> Path:
    """Write atomically: a reader sees the old file or the new one, whole."""
    path = Path(path)
    head = {"format": FORMAT, "version": VERSION, "kind": kind, **header}
    columns = dict(arrays) | {"header": np.array(json.dumps(head))}
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            np.savez(file, **columns)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a file of this kind, or a ValueError that says what is wrong with it."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            columns = {name: archive[name] for name in archive.files}
        header = json.loads(str(columns.pop("header")))
        found = header["format"], header["kind"], int(header["version"])
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # what a damaged archive raises depends on where it is damaged
        raise ValueError(
            f"{path} is not a whole driftbandit file ({type(error).__name__}: {error}): it is "
            "damaged or something else; restore it from a copy"
        ) from None
    if found[:2] != (FORMAT, kind):
        raise ValueError(f"{path} holds a {found[0]} {found[1]}, not a {FORMAT} {kind}")
    if found[2] < 1:
        raise ValueError(f"{path} claims format {found[2]}, which never existed: it is damaged")
    if found[2] > VERSION:
        raise ValueError(
            f"{path} was written in format {found[2]}, this version reads up to {VERSION}: "
            "upgrade driftbandit"
        )
    return header, columns
