"""Where a run came from: versions, machine, and the state of the sources."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("driftbandit", "numpy", "scipy", "numba", "polars")


def provenance(plugins: Iterable[str] = ()) -> dict[str, Any]:
    """Versions, machine, commit of this package and of plug-ins, and whether they were edited."""
    found: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **checkout(Path(__file__).resolve().parents[2]),
        **{name: version(name) for name in PACKAGES},
    }
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in plugins}
    if files:
        found["plugins"] = {n: checkout(Path(f).resolve()) for n, f in files.items() if f}
    return found


def checkout(path: Path) -> dict[str, Any]:
    """The commit of a file or folder, and whether it has changes that are not committed; for what
    git does not keep, "unknown" and None."""
    if not _git(path, "ls-files", "--", path.name):
        return {"commit": "unknown", "dirty": None}
    commit = _git(path, "rev-parse", "--short", "HEAD")
    return {"commit": commit, "dirty": bool(_git(path, "status", "--porcelain", "--", path.name))}


def _git(path: Path, *command: str) -> str:
    words = ["git", "-C", str(path.parent), *command]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
