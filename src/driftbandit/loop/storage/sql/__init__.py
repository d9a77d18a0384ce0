"""SQL by database: numbered migrations, each run once, and named queries."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources


@cache
def migrations(store: str) -> tuple[str, ...]:
    """Return the steps for "sqlite" or "postgres": numbered SQL files, each run once, in order."""
    folder = resources.files("driftbandit.loop.storage") / "sql" / store
    names = sorted(each.name for each in folder.iterdir() if re.match(r"\d", each.name))
    assert names == [f"{k:04d}.sql" for k in range(1, len(names) + 1)], "numbered without a gap"
    return tuple((folder / name).read_text(encoding="utf-8") for name in names)


@cache
def queries(store: str) -> dict[str, str]:
    """Return the queries for "sqlite" or "postgres" by name."""
    folder = resources.files("driftbandit.loop.storage") / "sql" / store
    text = (folder / "queries.sql").read_text(encoding="utf-8")
    parts = re.split("^-- name: ", text, flags=re.MULTILINE)[1:]
    return {name.strip(): text.strip() for name, _, text in (p.partition("\n") for p in parts)}
