"""Parquet, CSV, JSON lines, Arrow streams and frames, a batch at a time."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from driftbandit import validate
from driftbandit.evidence.reading import dsjson
from driftbandit.evidence.reading.chunk import BAD, NAMES, SKIP, Batch
from driftbandit.evidence.reading.columns import (
    FATE,
    ROWS,
    Columns,
    Once,
    Source,
    exported,
    mapped,
    mapping,
)
from driftbandit.recipe import Recipe

STORED = b"driftbandit"  # what Log.write leaves in a Parquet file's metadata


def opened(source: Any, columns: Columns | None) -> Source:
    """A path or a frame as a source of our columns."""
    if not isinstance(source, (str, os.PathLike)):
        return _frame(source, columns)
    path = Path(source)
    if not path.is_file():
        raise ValueError(f"{str(path)!r} is not a file: check the path of the log")
    kind = path.suffix.lower()
    if kind not in READERS:
        known = ", ".join(READERS)
        raise ValueError(f"{path.name!r} has an unknown ending: a log ends in {known}, or .db")
    return READERS[kind](path, columns)


def _parquet(path: Path, columns: Columns | None) -> Source:
    parquet = arrow("parquet")
    try:
        about = (parquet.read_schema(path).metadata or {}).get(STORED)
    except arrow().ArrowInvalid as error:
        raise ValueError(f"{str(path)!r} is not a Parquet file: {error}") from None
    found = parquet.read_schema(path).names

    def batches() -> Iterator[Batch]:
        with parquet.ParquetFile(path, pre_buffer=False) as file:  # True holds all of the file
            wanted = [c for c in found if c in _needed(columns, found)]
            read = file.iter_batches(ROWS, columns=wanted)
            yield from mapped((batch.to_pydict() for batch in read), columns, wanted)

    mapping(columns, found)  # says at once what is missing
    stored = json.loads(about) if about else {}
    return Source(batches, {name: Recipe.from_dict(each) for name, each in stored.items()})


def _needed(columns: Columns | None, found: Sequence[str]) -> set[str]:
    """Columns of a file that are read at all."""
    wanted = mapping(columns, found).values()
    names = {n for each in wanted for n in ([each] if isinstance(each, str) else each)}
    return names | (set(FATE) if exported(found) else set())


def _ipc(path: Path, columns: Columns | None) -> Source:
    def batches() -> Iterator[Batch]:
        with arrow().memory_map(str(path)) as data:
            yield from _stream(_reader(data), columns)

    return Source(batches)


def _reader(data: Any) -> Any:
    """An Arrow stream, or an Arrow file, which begins with its name."""
    ipc, magic = arrow("ipc"), data.read(6)
    data.seek(0)
    if magic != b"ARROW1":
        return ipc.open_stream(data)
    file = ipc.open_file(data)
    parts = (file.get_batch(k) for k in range(file.num_record_batches))
    return arrow().RecordBatchReader.from_batches(file.schema, parts)


def _stream(reader: Any, columns: Columns | None) -> Iterator[Batch]:
    names = reader.schema.names
    cut = (batch.slice(k, ROWS) for batch in reader for k in range(0, batch.num_rows, ROWS))
    return mapped((batch.to_pydict() for batch in cut), columns, names)


def _frame(frame: Any, columns: Columns | None) -> Source:
    """A frame in memory, through narwhals, or any Arrow stream."""
    if hasattr(frame, "columns"):
        from driftbandit.features.columns import Frame

        table = Frame("a log", frame)
        native = table._frame
        found = list(table.names)

        def batches() -> Iterator[Batch]:
            cut = (native[k : k + ROWS] for k in range(0, len(native), ROWS))
            raw = ({n: part[n].to_list() for n in found} for part in cut)
            return mapped(raw, columns, found)

        mapping(columns, found)
        return Source(batches)
    if hasattr(frame, "__arrow_c_stream__"):
        return Once(_stream(arrow().RecordBatchReader.from_stream(frame), columns))
    raise ValueError(
        "a log is a path, a frame of pandas, Polars or Arrow, or an Arrow stream, got "
        f"{validate.show(frame)}"
    )


def _csv(path: Path, columns: Columns | None) -> Source:
    def batches() -> Iterator[Batch]:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            found = list(reader.fieldnames or ())
            yield from mapped(_cut(map(_cells, reader), found), columns, found, text=True)

    return Source(batches)


def _cells(row: dict[Any, Any]) -> dict[str, Any]:
    """An empty cell is a missing value; a line of another length is a bad row."""
    odd = None in row or None in row.values()
    cells = {k: v if v != "" else None for k, v in row.items() if k is not None}
    return cells | ({BAD: "a line with too few or too many cells"} if odd else {})


def _lines(path: Path, columns: Columns | None) -> Source:
    """JSON lines, or Vowpal Wabbit's dsjson, which is told by its names."""
    with path.open(encoding="utf-8") as file:
        first = _object(next((line for line in file if line.strip()), ""))
    if dsjson.is_dsjson(first):
        return Source(lambda: _dsjson(path))

    def batches() -> Iterator[Batch]:
        with path.open(encoding="utf-8") as file:
            rows = (_object(line) for line in file if line.strip())
            found = [name for name in first if name != BAD]
            yield from mapped(_cut(rows, found), columns, found)

    mapping(columns, [name for name in first if name != BAD])
    return Source(batches)


def _dsjson(path: Path) -> Iterator[Batch]:
    with path.open(encoding="utf-8") as file:
        rows = (dsjson.row(_object(line)) for line in file if line.strip())
        names = [*NAMES, SKIP, BAD]
        while part := list(islice(rows, ROWS)):
            yield {name: [row.get(name) for row in part] for name in names}


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {BAD: "a line that is no JSON object"}


def _cut(rows: Iterator[dict[str, Any]], found: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    while part := list(islice(rows, ROWS)):
        yield {name: [row.get(name) for row in part] for name in (*found, BAD)}


def arrow(part: str = "") -> Any:
    """pyarrow, or one of its modules."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "Parquet and Arrow need pyarrow: install it with pip install 'driftbandit[evidence]'"
        ) from None
    return getattr(pyarrow, part) if part else pyarrow


READERS: dict[str, Callable[[Path, Columns | None], Source]] = {
    ".parquet": _parquet, ".csv": _csv, ".jsonl": _lines, ".ndjson": _lines, ".json": _lines,
    ".dsjson": _lines, ".arrow": _ipc, ".arrows": _ipc, ".ipc": _ipc, ".feather": _ipc,
}  # fmt: skip
