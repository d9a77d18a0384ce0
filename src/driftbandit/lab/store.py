"""An append-only folder of Parquet files, one per cell, and where they came from.

study.toml         the study as it was run
cells/KEY.parquet  one file per finished cell, written to another name and renamed
cells/KEY.json     what the cell was
runs.jsonl         one line per run: versions, machine, commit, engine
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import uuid
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from driftbandit.lab.cells import Cell


class Store:
    """The results of one study."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"

    def keep(self, text: str) -> None:
        """Note what the study is now; what is shown is what this text asks for."""
        path = self.folder / "study.toml"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            self.cells.mkdir(parents=True, exist_ok=True)
            _write(path, text.encode())

    def start(self, facts: dict[str, Any]) -> None:
        """Note that a run begins: its provenance."""
        self.cells.mkdir(parents=True, exist_ok=True)
        with (self.folder / "runs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(provenance() | facts) + "\n")

    def has(self, cell: Cell) -> bool:
        return (self.cells / f"{cell.key}.parquet").exists()

    def add(self, cell: Cell, frame: pl.DataFrame) -> None:
        """Keep a finished cell: its description first, so that no result is without one."""
        _write(self.cells / f"{cell.key}.json", json.dumps(asdict(cell)).encode())
        temporary = self.cells / f".{cell.key}.{uuid.uuid4().hex}.part"
        try:
            frame.write_parquet(temporary)
            os.replace(temporary, self.cells / f"{cell.key}.parquet")
        finally:
            temporary.unlink(missing_ok=True)

    def final_regret(self, cell: Cell) -> float:
        """Sum over seeds of a finished cell's regret at the horizon."""
        frame = pl.read_parquet(self.cells / f"{cell.key}.parquet", columns=["round", "regret"])
        return float(frame.filter(pl.col("round") == pl.col("round").max())["regret"].sum())

    def scan(self) -> pl.LazyFrame:
        """All results, lazily."""
        if not any(self.cells.glob("*.parquet")):
            raise ValueError(f"{self.folder} holds no results: run a study into it first")
        return pl.scan_parquet(self.cells / "*.parquet")

    def descriptions(self) -> list[dict[str, Any]]:
        """What every finished cell was."""
        paths = sorted(self.cells.glob("*.json"))
        return [json.loads(p.read_text()) for p in paths if p.with_suffix(".parquet").exists()]

    def runs(self) -> list[dict[str, Any]]:
        """Provenance of every run, oldest first."""
        path = self.folder / "runs.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def load_results(folder: str | os.PathLike[str]) -> pl.DataFrame:
    """The results of a study in tidy form: one row per policy, environment, seed and round."""
    return Store(folder).scan().collect()


def provenance() -> dict[str, Any]:
    """Versions, machine and commit of this run."""
    packages = ("driftbandit", "numpy", "scipy", "numba", "polars")
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "commit": _commit(),
        **{name: version(name) for name in packages},
    }


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    temporary.write_bytes(data)
    os.replace(temporary, path)
