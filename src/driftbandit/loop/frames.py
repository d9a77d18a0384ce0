"""The log as a frame: a row for every decision, with what became of it."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from driftbandit.loop.book import Book, Lesson
from driftbandit.loop.events import Event
from driftbandit.loop.ledger import Ledger
from driftbandit.loop.replay import Past

COLUMNS = (
    "seq", "id", "at", "key", "role", "arm", "probability", "names", "probabilities", "default",
    "context", "arms", "version", "learner", "status", "reward", "late", "metrics",
)  # fmt: skip


def rows(ledger: Ledger, past: Past) -> list[dict[str, Any]]:
    """Decisions in order of seq. `reward` is the last word so far, or `missing` once that was
    taught; `status` is open, taught, missing (nothing came), or cancelled."""
    reward = past.declaration.reward
    book = Book(reward.wait, reward.missing, past.declaration.keep)
    found: dict[int, dict[str, Any]] = {}
    for event in ledger.read(ledger.start):
        if event.kind == "decide":
            found[event.seq] = _row(event)
        before = book.open.get(str(event.id))
        word, changes = book.apply(event)
        _note(found, event, before.seq if before else None, word)
        for change in changes:
            if isinstance(change, Lesson) and change.decision in found:
                found[change.decision] |= {"status": "taught", "reward": change.value}
    _still_open(found, book)
    return list(found.values())


def _row(event: Event) -> dict[str, Any]:
    data = event.read()
    choice = data["choice"]
    return {
        "seq": event.seq,
        "id": event.id,
        "at": event.at,
        "key": event.key,
        "role": data["role"],
        "arm": str(data["default"] if choice is None else data["names"][choice]),
        "probability": 1.0 if choice is None else data["p"][choice],
        "names": [str(name) for name in data["names"]],
        "probabilities": data["p"],
        "default": None if data["default"] is None else str(data["default"]),
        "context": json.dumps(data["context"]),
        "arms": json.dumps(data["arms"]),
        "version": data["version"],
        "learner": data["learner"][0],
        "status": "missing",
        "reward": None,
        "late": 0,
        "metrics": [],
    }


def _note(found: dict[int, dict[str, Any]], event: Event, seq: int | None, word: str) -> None:
    """What an event says of an earlier decision."""
    if event.kind not in ("reward", "cancel", "metric"):
        if event.kind == "decide" and word == "cancelled":
            found[event.seq]["status"] = "cancelled"
        return
    data = event.read()
    row = found.get(seq or data["of"] or 0)
    if row is None:
        return
    if event.kind == "metric":
        row["metrics"].append({"name": data["name"], "value": data["value"]})
    elif event.kind == "cancel" and word == "cancelled":
        row["status"] = "cancelled"
    elif event.kind == "reward" and word == "late":
        row["late"] += 1


def _still_open(found: dict[int, dict[str, Any]], book: Book) -> None:
    for decision in book.open.values():
        found[decision.seq] |= {"status": "open", "reward": decision.value}


def frame(ledger: Ledger, past: Past) -> Any:
    """As a Polars frame."""
    pl = _polars()
    numbers = {"seq": pl.Int64, "at": pl.Float64, "probability": pl.Float64, "learner": pl.Int64}
    numbers |= {"reward": pl.Float64, "late": pl.Int64, "names": pl.List(pl.String)}
    numbers |= {"probabilities": pl.List(pl.Float64)}
    pair = pl.Struct({"name": pl.String, "value": pl.Float64})
    numbers |= {"metrics": pl.List(pair)}
    schema = {name: numbers.get(name, pl.String) for name in COLUMNS}
    return pl.DataFrame(rows(ledger, past), schema=schema)


def export(ledger: Ledger, past: Past, path: str | os.PathLike[str]) -> Path:
    """As a Parquet file, whole or not at all."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        frame(ledger, past).write_parquet(temporary)
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
