"""The tables of a store: numbered SQL files, each run once, in order."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def migrations(store: str) -> tuple[str, ...]:
    """The steps for "sqlite" or "postgres"; what a database has had is a count of them."""
    folder = resources.files("driftbandit.loop.storage") / "sql" / store
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".sql"))
    assert names == [f"{k:04d}.sql" for k in range(1, len(names) + 1)], "numbered without a gap"
    return tuple((folder / name).read_text(encoding="utf-8") for name in names)
