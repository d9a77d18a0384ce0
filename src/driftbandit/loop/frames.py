"""Whole frames of requests and rewards: batch decisions, as nightly jobs make them.

Rows go through the same calls as single decisions, some hundred at a time. Every row has an id, so
a job that was interrupted can run again: rows that are stored already give the answers of before.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from driftbandit import validate
from driftbandit.features import Category, Feature
from driftbandit.loop.deciding.types import Decision
from driftbandit.progress import rounds_bar
from driftbandit.validate import nearest

ROWS = 500  # that wait for the disk together
REQUEST = ("id", "context", "arms", "default", "key", "at")
REWARD = ("id", "reward", "position", "at")

Columns = Mapping[str, str | Sequence[str]]
Row = Mapping[str, Any]
Submit = Callable[[Sequence[tuple[str, Mapping[str, Any]]]], list[Any]]


class Batch(NamedTuple):
    """What became of the rows of a frame. `done` has a row for each that was accepted: its id and
    the answer. `refused` has the others: the row from 0, its id, and the reason. Both are Polars
    frames."""

    done: Any
    refused: Any

    @property
    def reasons(self) -> dict[str, int]:
        """The number of rows that were refused, by reason, the most frequent first."""
        return dict(Counter(self.refused["reason"].to_list()).most_common())


def decide_frame(
    submit: Submit,
    declared: Mapping[str, Feature],
    frame: Any,
    columns: Columns | None = None,
    progress: Any = False,
) -> Batch:
    """Decide for every row; `declared` are the columns of the context."""
    table = as_polars(frame)
    wanted = _mapping(columns, REQUEST, table.columns)
    if "context" not in wanted:
        wanted["context"] = _context_columns(declared, table.columns)
    _check_times(table, wanted)

    def read(row: Row) -> dict[str, Any]:
        plain = {name: row[theirs] for name, theirs in wanted.items() if isinstance(theirs, str)}
        given = {name: value for name, value in plain.items() if value is not None}
        return given | _read_request(given, row, wanted["context"], declared)

    with rounds_bar("decisions", len(table), progress) as bar:
        answers = _submitted(submit, "decide", table, read, bar)
    return _batch(table, wanted["id"], answers, _decided)


def reward_frame(
    submit: Submit, frame: Any, columns: Columns | None = None, progress: Any = False
) -> Batch:
    """Give the rewards of all rows."""
    table = as_polars(frame)
    wanted = _mapping(columns, REWARD, table.columns)
    if "reward" not in wanted:
        raise _no_column("reward", table.columns)
    _check_times(table, wanted)

    def read(row: Row) -> dict[str, Any]:
        given = {name: row[str(theirs)] for name, theirs in wanted.items()}
        if given["reward"] is None:
            raise ValueError("there is no reward: leave the row out")
        position = given.get("position")
        place = {} if position is None else {"position": _number(position)}
        value = _amount(given["reward"])
        return {"id": _id("id", given["id"]), "value": value} | place | _time(given)

    with rounds_bar("rewards", len(table), progress) as bar:
        answers = _submitted(submit, "reward", table, read, bar)
    return _batch(table, wanted["id"], answers, lambda word: {"result": word})


def as_polars(frame: Any) -> Any:
    """Return a frame of Polars, pandas or Arrow, or a result of DuckDB, as a Polars frame."""
    pl = polars()
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if not (hasattr(frame, "columns") or hasattr(frame, "__arrow_c_stream__")):
        raise ValueError(f"pass a frame of Polars, pandas or Arrow, got {validate.show(frame)}")
    return frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)


def polars() -> Any:
    """Return the package, which only frames need."""
    try:
        import polars
    except ImportError:
        raise ImportError(
            "frames and tables need Polars: install it with pip install 'driftbandit[lab]'"
        ) from None
    return polars


def _mapping(
    given: Columns | None, names: Sequence[str], found: Sequence[str]
) -> dict[str, str | Sequence[str]]:
    """Return which columns to read, by our names; several make a context."""
    wanted = {name: name for name in names if name in found} | dict(given or {})
    for name, theirs in wanted.items():
        if name not in names:
            raise ValueError(f"there is no {name!r} to read: {nearest(name, names)}")
        if name != "context" and not isinstance(theirs, str):
            raise ValueError(f"{name} is one column, got {validate.show(theirs)}")
        for each in [theirs] if isinstance(theirs, str) else theirs:
            if each not in found:
                raise ValueError(f"there is no column {each!r} for {name}: {nearest(each, found)}")
    if "id" not in wanted:
        raise _no_column("id", found)
    return wanted


def _no_column(name: str, found: Sequence[str]) -> ValueError:
    return ValueError(
        f"no column is called {name!r}: map one with columns={{{name!r}: ...}}, or --column "
        f"{name}=..., one of {', '.join(found)}"
    )


def _context_columns(declared: Mapping[str, Feature], found: Sequence[str]) -> list[str]:
    """Return the declared columns. All of them must be there: a column with another name would
    otherwise be a missing value in every row."""
    if lost := [name for name in declared if name not in found]:
        raise ValueError(
            f"there is no column {lost[0]!r}, which the loop's features declare: add it, or name "
            "the columns of the context with columns={'context': [...]}, or --column context=a,b"
        )
    return list(declared)


def _check_times(table: Any, wanted: Columns) -> None:
    """Refuse times without a zone at once, which would otherwise be the fault of every row."""
    kind = table.schema[wanted["at"]] if "at" in wanted else None
    if str(kind).startswith("Datetime") and kind.time_zone is None:  # type: ignore[union-attr]
        raise ValueError(
            f"the times in {wanted['at']!r} have no time zone: add one, as with TIMESTAMPTZ in "
            "SQL or replace_time_zone('UTC') in Polars"
        )


def _read_request(
    given: Row, row: Row, context: str | Sequence[str], declared: Mapping[str, Feature]
) -> dict[str, Any]:
    """Return the parts of a request that need reading."""
    found: dict[str, Any] = {"id": _id("id", given.get("id"))} | _time(given)
    if "key" in given:
        found["key"] = _id("key", given["key"])
    if "arms" in given:
        found["arms"] = _arms(_json("arms", given["arms"]))
    if isinstance(context, str):
        found["context"] = _json("context", row[context])
    else:
        found["context"] = {name: _cell(row[name], declared.get(name)) for name in context}
    return found


def _id(name: str, value: Any) -> str:
    """Return an id as text; whole numbers of a table's own ids are taken as their digits."""
    if value is None:
        raise ValueError(f"{name} is missing: every row needs one, so that it can be repeated")
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole else validate.text(name, value)


def _time(given: Row) -> dict[str, Any]:
    """Return the time of a row: a number, a moment, or text of either."""
    at = given.get("at")
    if isinstance(at, str) and isinstance(at := _number(at), str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            raise ValueError("at is no time: write 2026-11-18T12:00Z, or seconds") from None
    return {} if at is None else {"at": at}


def _json(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError(f"{name} is text that is no JSON") from None


def _arms(value: Any) -> Any:
    """Return arms without those that only other rows have: a struct has all names in every row."""
    if isinstance(value, Mapping):
        return {name: columns for name, columns in value.items() if columns is not None}
    return value


def _cell(value: Any, declared: Feature | None) -> Any:
    """Return the value of a column; text is a category, or a number or a vector in a CSV file."""
    if not isinstance(value, str) or isinstance(declared, Category):
        return value
    if value.startswith("["):
        return _json("a vector", value)
    return {"true": True, "false": False}.get(value.lower(), _number(value))


def _number(value: Any) -> Any:
    """Return the number that a text says, or the text."""
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else number


def _amount(value: Any) -> Any:
    """Return a reward as a number; SQL has truth and decimals, too."""
    found = _cell(value, None)
    return float(found) if isinstance(found, (bool, Decimal)) else found


def _submitted(
    submit: Submit,
    kind: str,
    table: Any,
    read: Callable[[Row], dict[str, Any]],
    bar: Callable[[int], None],
) -> list[Any]:
    """Return the answer of every row, or why it was refused."""
    found: list[Any] = []
    for part in table.iter_slices(ROWS):
        rows = [_tried(read, row) for row in part.iter_rows(named=True)]
        calls = [(kind, row) for row in rows if not isinstance(row, ValueError)]
        answers = iter(submit(calls))
        found += [row if isinstance(row, ValueError) else next(answers) for row in rows]
        bar(len(part))
    return found


def _tried(read: Callable[[Row], dict[str, Any]], row: Row) -> dict[str, Any] | ValueError:
    try:
        return read(row)
    except ValueError as error:
        return error


def _decided(answer: Decision) -> dict[str, Any]:
    arm = None if answer.arm is None else str(answer.arm)
    return {"arm": arm, "probability": answer.probability, "role": answer.role}


def _batch(
    table: Any, id: Any, answers: Sequence[Any], told: Callable[[Any], dict[str, Any]]
) -> Batch:
    """Sort answers from refusals."""
    pl = polars()
    done, refused = [], []
    for row, (own, answer) in enumerate(zip(table[id].to_list(), answers)):
        name = None if own is None else str(own)
        if isinstance(answer, Exception):
            refused.append({"row": row, "id": name, "reason": str(answer)})
        else:
            done.append({"id": name} | told(answer))
    schema = {"row": pl.Int64, "id": pl.String, "reason": pl.String}
    kinds = {"id": pl.String, "arm": pl.String, "probability": pl.Float64, "role": pl.String}
    if told is not _decided:
        kinds = {"id": pl.String, "result": pl.String}
    return Batch(pl.DataFrame(done, schema=kinds), pl.DataFrame(refused, schema=schema))
