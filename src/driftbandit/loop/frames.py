"""The log as a frame: a row for every decision, or position of a slate, with what became of it."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from driftbandit.loop.answers import positions
from driftbandit.loop.book import Book, Lesson
from driftbandit.loop.events import Event
from driftbandit.loop.ledger import Ledger
from driftbandit.loop.replay import Past
from driftbandit.loop.teacher import Row
from driftbandit.loop.waiting import Open

COLUMNS = (
    "seq", "id", "position", "at", "key", "role", "arm", "probability", "names", "probabilities",
    "default", "context", "arms", "version", "learner", "status", "reward", "late", "metrics",
)  # fmt: skip


def rows(ledger: Ledger, past: Past) -> list[dict[str, Any]]:
    """Decisions in order of seq, a row for each position of a slate. `reward` is the last word so
    far, or `missing` once that was taught; `status` is open, taught, missing (nothing came), or
    cancelled."""
    reward = past.declaration.reward
    book = Book(reward.wait, reward.missing, past.declaration.keep)
    found: dict[Row, dict[str, Any]] = {}
    for event in ledger.read(ledger.start):
        if event.kind == "decide":
            new = {(event.seq, row["position"]): row for row in _rows(event)}
            found |= new
        before = book.open.get(str(event.id))
        about = [(before.seq, place) for place in before.values] if before else []
        word, changes = book.apply(event)
        if event.kind == "decide":
            _cancelled(new, book.open.get(str(event.id)))
        elif event.kind in ("reward", "cancel", "metric"):
            _note(found, event, about, word)
        for change in changes:
            if isinstance(change, Lesson) and (change.decision, change.position) in found:
                own = found[change.decision, change.position]
                own |= {"status": "taught", "reward": change.value}
    _still_open(found, book)
    return list(found.values())


def _rows(event: Event) -> list[dict[str, Any]]:
    data = event.read()
    names = [str(name) for name in data["names"]]
    return [
        {
            "seq": event.seq,
            "id": event.id,
            "position": each.position,
            "at": event.at,
            "key": event.key,
            "role": data["role"],
            "arm": str(each.default) if each.choice is None else names[each.choice],
            "probability": 1.0 if each.choice is None else each.p[each.choice],
            "names": names,
            "probabilities": each.p,
            "default": None if each.default is None else str(each.default),
            "context": json.dumps(data["context"]),
            "arms": json.dumps(data["arms"]),
            "version": data["version"],
            "learner": data["learner"][0],
            "status": "missing",
            "reward": None,
            "late": 0,
            "metrics": [],
        }
        for each in positions(data)
    ]


def _cancelled(new: dict[Row, dict[str, Any]], left: Open | None) -> None:
    """What was cancelled before it was decided."""
    for (_, place), row in new.items():
        if left is None or place not in left.values:
            row["status"] = "cancelled"


def _note(found: dict[Row, dict[str, Any]], event: Event, about: list[Row], word: str) -> None:
    """What an event says of an earlier decision, whose positions `about` were open."""
    data = event.read()
    place = data.get("position")
    if event.kind == "cancel" and word == "cancelled":
        for row in about:
            if place is None or row[1] == place:
                found[row]["status"] = "cancelled"
        return
    row = (about[0][0] if about else data["of"] or 0), place
    if row in found and event.kind == "metric":
        found[row]["metrics"].append({"name": data["name"], "value": data["value"]})
    elif row in found and word == "late" and event.kind == "reward":
        found[row]["late"] += 1


def _still_open(found: dict[Row, dict[str, Any]], book: Book) -> None:
    for decision in book.open.values():
        for place, value in decision.values.items():
            found[decision.seq, place] |= {"status": "open", "reward": value}


def frame(ledger: Ledger, past: Past) -> Any:
    """As a Polars frame."""
    pl = _polars()
    numbers = {"seq": pl.Int64, "at": pl.Float64, "probability": pl.Float64, "learner": pl.Int64}
    numbers |= {"position": pl.Int64}
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
