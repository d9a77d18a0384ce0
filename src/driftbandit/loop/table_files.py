"""Tables in files, as nightly jobs read and write them: Parquet, CSV, Arrow and JSON lines."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftbandit.loop.frames import polars

Reader = Callable[[Any, Path], Any]
READERS: dict[str, Reader] = {
    ".parquet": lambda pl, path: pl.read_parquet(path),
    # all cells stay text, which the features read: an id of 007 is not the number 7
    ".csv": lambda pl, path: pl.read_csv(path, infer_schema=False),
    ".arrow": lambda pl, path: pl.read_ipc(path),
    ".feather": lambda pl, path: pl.read_ipc(path),
    ".jsonl": lambda pl, path: pl.read_ndjson(path, infer_schema_length=None),
}
WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".csv": lambda frame, path: frame.write_csv(path),
    ".arrow": lambda frame, path: frame.write_ipc(path),
    ".feather": lambda frame, path: frame.write_ipc(path),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
}


def check_ending(path: Path) -> None:
    """Raise if a table cannot have this ending."""
    if path.suffix.lower() not in READERS:
        raise ValueError(
            f"{path.name!r} has an unknown ending: a table ends in {', '.join(READERS)}"
        )


def read(path: Path) -> Any:
    """Return the table of a file as a Polars frame."""
    check_ending(path)
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file: check the path")
    pl = polars()
    try:
        return READERS[path.suffix.lower()](pl, path)
    except pl.exceptions.PolarsError as error:
        why = str(error).strip().splitlines()[0]
        raise ValueError(f"{str(path)!r} cannot be read as {path.suffix}: {why}") from None


def write(frame: Any, path: Path) -> None:
    """Write a table, whole or not at all."""
    check_ending(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        WRITERS[path.suffix.lower()](frame, temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
