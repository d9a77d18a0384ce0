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

NOT_TEXT = "text that is not UTF-8"
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
            yield from mapped(map(_cells_of, read), columns, wanted)

    mapping(columns, found)  # says at once what is missing
    stored = json.loads(about) if about else {}
    return Source(batches, {name: Recipe.from_dict(each) for name, each in stored.items()})


def _needed(columns: Columns | None, found: Sequence[str]) -> set[str]:
    """Columns of a file that are read at all."""
    wanted = mapping(columns, found).values()
    names = {name for each in wanted for name in _listed(each)}
    return names | (set(FATE) if exported(found) else set())


def _listed(given: str | Sequence[str]) -> Sequence[str]:
    return [given] if isinstance(given, str) else given


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
    return mapped(map(_cells_of, cut), columns, names)


def _cells_of(batch: Any) -> dict[str, list[Any]]:
    """The columns of an Arrow batch. Arrow does not check that text is UTF-8, so one bad byte shows
    only here: then each row is taken on its own."""
    try:
        found: dict[str, list[Any]] = batch.to_pydict()
        return found
    except UnicodeDecodeError:
        rows = [_cells_of_one(batch.slice(k, 1)) for k in range(batch.num_rows)]
        return _columns(rows, batch.schema.names)


def _cells_of_one(row: Any) -> dict[str, Any]:
    try:
        return {name: cells[0] for name, cells in row.to_pydict().items()}
    except UnicodeDecodeError:
        return {BAD: NOT_TEXT}


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
        with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            reader = csv.reader(file)
            found = next(reader, [])
            rows = (row for each in _csv_rows(reader) for row in _cells(*each, found))
            yield from mapped(_cut(rows, found), columns, found, text=True)

    return Source(batches)


def _csv_rows(reader: Any) -> Iterator[tuple[int, list[str] | str]]:
    """Yield how many lines a row takes, and its cells, or why it cannot be read: the reader goes on
    with the line after it."""
    while True:
        before = reader.line_num
        try:
            cells: list[str] | str = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = f"a line that is no CSV: {error}"
        if cells:
            yield reader.line_num - before, cells


def _cells(lines: int, cells: list[str] | str, found: list[str]) -> list[dict[str, Any]]:
    """An empty cell is a missing value; a row of another length is bad. A quotation mark that is
    never closed swallows the lines after it: each of them is a bad row."""
    if isinstance(cells, str):
        return [{BAD: cells}] * lines
    if len(cells) != len(found):
        return [{BAD: "a line with too few or too many cells"}] * lines
    if not all(map(_is_text, cells)):
        return [{BAD: NOT_TEXT}]
    return [{name: cell if cell != "" else None for name, cell in zip(found, cells)}]


def _is_text(cell: str) -> bool:
    """Return False for a cell that holds bytes which are not UTF-8."""
    if cell.isascii():
        return True
    try:
        cell.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lines(path: Path, columns: Columns | None) -> Source:
    """JSON lines, or Vowpal Wabbit's dsjson, which is told by its names."""
    first = [line for line in islice(_objects(path), ROWS) if BAD not in line]
    if 2 * sum(map(dsjson.is_dsjson, first)) > len(first):
        return Source(lambda: _dsjson(path))
    found = _names(path, columns)

    def batches() -> Iterator[Batch]:
        return mapped(_cut(_objects(path), found), columns, found)

    return Source(batches)


def _names(path: Path, columns: Columns | None) -> list[str]:
    """The columns of JSON lines, of which any line may lack some: those of the first batch, and all
    of ours. Only if one is missing there, all lines are searched for it."""
    rows = _objects(path)
    found = dict.fromkeys(name for row in islice(rows, ROWS) for name in row if name != BAD)
    try:
        mapping(columns, list(found))
    except ValueError:
        found |= dict.fromkeys(name for row in rows for name in row if name != BAD)
        mapping(columns, list(found))  # says at once what is missing
    return list(found | dict.fromkeys(NAMES))


def _dsjson(path: Path) -> Iterator[Batch]:
    rows = map(dsjson.row, _objects(path))
    while part := list(islice(rows, ROWS)):
        yield _columns(part, [*NAMES, SKIP])


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file, as bytes: one that is not UTF-8 is a bad row, and not the end."""
    with path.open("rb") as file:
        yield from (_object(line) for line in file if line.strip())


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):  # a byte that is not UTF-8 is a ValueError, too
        found = None
    return found if isinstance(found, dict) else {BAD: "a line that is no JSON object"}


def _cut(rows: Iterator[dict[str, Any]], found: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    while part := list(islice(rows, ROWS)):
        yield _columns(part, found)


def _columns(rows: list[dict[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row.get(name) for row in rows] for name in (*names, BAD)}


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
