"""An append-only folder of Parquet files, one per cell, and where they came from.

study.toml         the study as it was last run
current.json       which cells that study consists of, and what they were made by
cells/KEY.parquet  one file per finished cell, written to another name and renamed
cells/KEY.json     what the cell was, and the checksum of its file
runs.jsonl         one line per run: versions, machine, commit, engine

Cells of other horizons, seeds or code stay, but are not part of the study any more.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import polars as pl

from driftbandit.files import write_whole
from driftbandit.lab.run.cells import Cell
from driftbandit.lab.run.code_version import Versions, roots_of
from driftbandit.lab.run.provenance import provenance


class Store:
    """The results of one study."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self._sound: dict[str, tuple[tuple[int, int], Cell]] = {}  # checked files, by key

    def keep(self, text: str, cells: Iterable[Cell]) -> None:
        """Note what the study is now: its text and its cells, which are what is shown."""
        cells = list(cells)
        samples = {cell.code: cell for cell in cells}
        made_by = {code: roots_of(c.environment, c.policy) for code, c in samples.items()}
        plan = {"cells": [cell.key for cell in cells], "made_by": made_by}
        self.cells.mkdir(parents=True, exist_ok=True)
        for name, said in (("study.toml", text), ("current.json", json.dumps(plan))):
            path = self.folder / name
            if not path.exists() or path.read_bytes() != said.encode():
                _write(path, said.encode())

    def start(self, facts: dict[str, Any], plugins: Iterable[str] = ()) -> None:
        """Note that a run begins: its provenance."""
        self.cells.mkdir(parents=True, exist_ok=True)
        with (self.folder / "runs.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(provenance(plugins) | facts) + "\n")

    def has(self, cell: Cell) -> bool:
        """Whether a cell is stored and whole; a warning names what is damaged."""
        return self._read(cell.key) is not None

    def add(self, cell: Cell, frame: pl.DataFrame) -> None:
        """Keep a finished cell: its description first, so that no result is without one."""
        path = self.cells / f"{cell.key}.parquet"
        with write_whole(path) as temporary:
            frame.write_parquet(temporary)
            facts = asdict(cell) | {"crc32": zlib.crc32(temporary.read_bytes())}
            _write(path.with_suffix(".json"), json.dumps(facts).encode())

    def final_regret(self, cell: Cell) -> float:
        """Sum over seeds of a finished cell's regret at the horizon."""
        frame = pl.read_parquet(self.cells / f"{cell.key}.parquet", columns=["round", "regret"])
        return float(frame.filter(pl.col("round") == pl.col("round").max())["regret"].sum())

    def scan(self) -> pl.LazyFrame:
        """The results of the study as it was last run, lazily."""
        found = self.current()
        if not found:
            raise ValueError(
                f"{self.folder} holds no results: run a study into it first{self._hint()}"
            )
        self._warn_outdated(found)
        return pl.scan_parquet([self.cells / f"{key}.parquet" for key in found])

    def scan_all(self) -> pl.LazyFrame:
        """Everything that was ever stored, with what tells cells apart."""
        current = self.current()
        keys = sorted(path.stem for path in self.cells.glob("*.parquet"))
        found = {key: cell for key in keys if (cell := self._read(key)) is not None}
        if not found:
            raise ValueError(f"{self.folder} holds no results: run a study into it first")
        return pl.concat(
            pl.scan_parquet(self.cells / f"{key}.parquet").with_columns(
                cell=pl.lit(key),
                current=pl.lit(key in current),
                horizon=pl.lit(json.loads(cell.environment).get("horizon"), pl.Int64),
                points=pl.lit(cell.points, pl.Int64),
                code=pl.lit(cell.code),
                environment_recipe=pl.lit(cell.environment),
                policy_recipe=pl.lit(cell.policy),
            )
            for key, cell in found.items()
        )

    def current(self) -> dict[str, Cell]:
        """The stored cells of the study as it was last run, by key and in its order."""
        found = {key: self._read(key) for key in self._plan()["cells"]}
        return {key: cell for key, cell in found.items() if cell is not None}

    def descriptions(self) -> list[dict[str, Any]]:
        """What every finished cell of the study was."""
        return [asdict(cell) for cell in self.current().values()]

    def runs(self) -> list[dict[str, Any]]:
        """Provenance of every run, oldest first."""
        path, found = self.folder / "runs.jsonl", []
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            try:
                found.append(json.loads(line))
            except ValueError:
                warnings.warn(f"{path} has a damaged line, which is left out", stacklevel=1)
        return found

    def _hint(self) -> str:
        stored = any(self.cells.glob("*.parquet"))
        return "; load_results(folder, everything=True) gives what is there" if stored else ""

    def _plan(self) -> dict[str, Any]:
        path = self.folder / "current.json"
        try:
            plan = json.loads(path.read_bytes())
            return {"cells": list(plan["cells"]), "made_by": dict(plan["made_by"])}
        except FileNotFoundError:
            return {"cells": [], "made_by": {}}
        except (ValueError, KeyError, TypeError):
            _warn_damaged(path)
            return {"cells": [], "made_by": {}}

    def _read(self, key: str) -> Cell | None:
        """What a stored cell is, or None if it is missing or damaged."""
        path = self.cells / f"{key}.parquet"
        if not path.exists():
            return None
        stat = path.stat()
        stamp, cell = self._sound.get(key, (None, None))
        if stamp != (stat.st_mtime_ns, stat.st_size):
            cell = self._verified(key, path)
            if cell is not None:
                self._sound[key] = (stat.st_mtime_ns, stat.st_size), cell
        return cell

    def _verified(self, key: str, path: Path) -> Cell | None:
        described = path.with_suffix(".json")
        try:
            facts = json.loads(described.read_bytes())
            facts["seeds"] = tuple(facts["seeds"])
            cell = Cell(**{field.name: facts[field.name] for field in fields(Cell)})
            if cell.key != key:
                raise ValueError("it describes another cell")
        except (OSError, ValueError, KeyError, TypeError):
            _warn_damaged(described)
            return None
        if zlib.crc32(path.read_bytes()) != facts.get("crc32"):
            _warn_damaged(path)
            return None
        return cell

    def _warn_outdated(self, cells: dict[str, Cell]) -> None:
        """Say which results were made by other code than there is now."""
        versions = Versions()
        old = {
            code
            for code, roots in self._plan()["made_by"].items()
            if roots
            and all(not home or Path(home).is_dir() for home in roots.values())
            and versions.of_roots(roots) != code
        }
        policies = sorted({c.policy_label for c in cells.values() if c.code in old})
        if policies:
            warnings.warn(
                f"{self.folder}: the code of {', '.join(policies)} has changed since these results "
                "were made; run the study again",
                stacklevel=1,
            )


def load_results(folder: str | os.PathLike[str], everything: bool = False) -> pl.DataFrame:
    """The results of a study in tidy form: one row per policy, environment, seed and round.

    The study is what was last run into the folder. `everything=True` gives all that was ever stored
    there, with columns that tell cells of other horizons, seeds, recipes and code apart.
    """
    store = Store(folder)
    return (store.scan_all() if everything else store.scan()).collect()


def _warn_damaged(path: Path) -> None:
    warnings.warn(
        f"{path} is damaged or of an older format, and left out: run the study again", stacklevel=1
    )


def _write(path: Path, data: bytes) -> None:
    with write_whole(path) as temporary:
        temporary.write_bytes(data)
