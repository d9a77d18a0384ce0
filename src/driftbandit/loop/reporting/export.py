"""The log as a frame: a row for every decision, or position of a slate, with what became of it."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from driftbandit.loop.reporting.outcomes import outcomes
from driftbandit.loop.state.definition import Definition
from driftbandit.loop.storage.ledger import Ledger

COLUMNS = (
    "seq", "id", "position", "at", "key", "role", "arm", "probability", "names", "probabilities",
    "mean", "default", "context", "arms", "version", "learner", "status", "reward", "late",
    "metrics", "spend",
)  # fmt: skip


def frame(ledger: Ledger, definition: Definition) -> Any:
    """As a Polars frame."""
    pl = _polars()
    numbers = {"seq": pl.Int64, "at": pl.Float64, "probability": pl.Float64, "learner": pl.Int64}
    numbers |= {"position": pl.Int64, "mean": pl.Float64}
    numbers |= {"reward": pl.Float64, "late": pl.Int64, "names": pl.List(pl.String)}
    numbers |= {"probabilities": pl.List(pl.Float64)}
    pair = pl.Struct({"name": pl.String, "value": pl.Float64})
    numbers |= {"metrics": pl.List(pair)}
    schema = {name: numbers.get(name, pl.String) for name in COLUMNS}
    rows = outcomes(ledger, definition, ledger.start).rows
    for row in rows:
        row |= {name: json.dumps(row[name]) for name in ("context", "arms")}
        row["spend"] = json.dumps(row["spend"]) if row["spend"] else None
    return pl.DataFrame(rows, schema=schema)


def export(ledger: Ledger, definition: Definition, path: str | os.PathLike[str]) -> Path:
    """As a Parquet file, whole or not at all."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        frame(ledger, definition).write_parquet(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _polars() -> Any:
    try:
        import polars  # imported lazily: only frames need it
    except ImportError:
        raise ImportError(
            "a log as a frame needs Polars: install it with pip install 'driftbandit[lab]'"
        ) from None
    return polars
