"""Logs as files: Parquet with its declaration, or dsjson; whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit.evidence.reading import dsjson
from driftbandit.evidence.reading.chunk import Chunk
from driftbandit.evidence.reading.files import STORED, arrow
from driftbandit.files import atomically
from driftbandit.loop.storage.events import encode

if TYPE_CHECKING:
    from driftbandit.evidence.log import Log


def written(log: Log, path: str | os.PathLike[str]) -> Path:
    """Write all clean rows of a log, batch by batch."""
    path = Path(path)
    writers: dict[str, Callable[[Log, Path], None]] = {".parquet": _parquet}
    writers |= dict.fromkeys((".dsjson", ".json", ".jsonl"), _lines)
    if path.suffix not in writers:
        raise ValueError(f"{path.name!r} must end in {', '.join(writers)}: that says what to write")
    with atomically(path) as temporary:
        writers[path.suffix](log, temporary)
    return path


def _lines(log: Log, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for chunk in log.chunks():
            file.writelines(f"{line}\n" for line in dsjson.lines(chunk))


def _parquet(log: Log, path: Path) -> None:
    about = {"features": log._features, "reward": log._reward}
    stored = {name: recipe.to_dict() for name, recipe in about.items() if recipe is not None}
    schema = _schema().with_metadata({STORED: json.dumps(stored).encode()})
    with arrow("parquet").ParquetWriter(path, schema) as writer:
        for chunk in log.chunks():
            writer.write_table(arrow().table(_columns(chunk), schema=schema))


def _schema() -> Any:
    pa = arrow()
    text, number = pa.string(), pa.float64()
    columns = {"id": text, "key": text, "time": number, "context": text, "arms": text}
    columns |= {"names": pa.list_(text), "action": text, "probability": number}
    columns |= {"probabilities": pa.list_(number), "reward": number}
    return pa.schema(columns | {"default": text, "role": text, "spend": text})


def _columns(chunk: Chunk) -> dict[str, list[Any]]:
    known = np.split(chunk.h, chunk.start[1:])
    menus = {
        id(menu): json.dumps([json.loads(encode(a)) for a in menu.columns]) for menu in chunk.menus
    }
    return {
        "id": chunk.id,
        "key": chunk.key,
        "time": [None if np.isnan(at) else at for at in chunk.at.tolist()],
        "context": [encode(context) for context in chunk.context],
        "arms": [menus[id(menu)] for menu in chunk.menus],
        "names": [list(menu.names) for menu in chunk.menus],
        "action": [menu.names[k] for menu, k in zip(chunk.menus, chunk.action.tolist())],
        "probability": chunk.p.tolist(),
        "probabilities": [None if np.isnan(h).any() else h.tolist() for h in known],
        "reward": chunk.reward.tolist(),
        "default": chunk.default,
        "role": chunk.role,
        "spend": [encode(each) if each else None for each in chunk.spend],
    }
