"""An append-only folder of Parquet files, one per cell, and where they came from.

study.toml          the study as it was last run
current.json        the cells of that study, with their labels, and what they were made by
cells/NAME.parquet  one file per finished cell, written to another name and renamed
cells/NAME.json     what the cell was, and the checksum of its file
runs.jsonl          one line per run: versions, machine, commit, engine

A file belongs to the study if its key does: with the seeds that the study has, under the labels
that the study gives them now. Other files stay, but are not part of the study any more.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from driftbandit.files import atomically
from driftbandit.html_table import table
from driftbandit.lab.run.cells import FORMAT, Cell
from driftbandit.lab.run.code_version import Versions, roots_of
from driftbandit.lab.run.provenance import provenance


class CellFile(NamedTuple):
    """A file that holds some seeds of a cell."""

    path: Path
    made_as: Cell  # with the labels of its time
    seeds: frozenset[int]


class StudyPlan(NamedTuple):
    """The study as it was last run."""

    cells: list[Cell]
    made_by: dict[str, dict[str, str]]  # by version of the code: modules and their folders


class RunStore:
    """The results of one study."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self._sound: dict[Path, tuple[tuple[int, int], Cell]] = {}  # checked files

    def __repr__(self) -> str:
        cells = self.current()
        worlds = {cell.environment_label for cell in cells}
        policies = {cell.policy_label for cell in cells}
        held = f"{len(worlds)} environments, {len(policies)} policies" if cells else "no results"
        return f"<RunStore {str(self.folder)!r}: {held}>"

    def _repr_html_(self) -> str:
        """Return the mean regret at the end of every policy and environment as a table."""
        cells = self.current()
        title, header = (
            f"Study {self.folder.name}",
            ("environment", "policy", "seeds", "mean regret"),
        )
        rows = [
            (cell.environment_label, cell.policy_label, len(cell.seeds), total / len(cell.seeds))
            for cell, total in zip(cells, self.final_regrets(cells))
        ]
        return table(title, header, rows, [] if rows else ["no results: run a study into it"])

    def keep(self, text: str, cells: Iterable[Cell]) -> None:
        """Note what the study is now: its text and its cells, which are what is shown."""
        cells = list(cells)
        samples = {cell.code: cell for cell in cells}
        made_by = {code: roots_of(c.environment, c.policy) for code, c in samples.items()}
        plan = {"format": FORMAT, "cells": [asdict(cell) for cell in cells], "made_by": made_by}
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

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return what of these cells is not stored yet, each with the seeds that it lacks.

        A cell that a study has under two labels is returned once. A warning names damaged files.
        """
        found: dict[str, Cell] = {}
        for cell, parts in self._parts(cells):
            stored = {seed for part in parts for seed in part.seeds}
            rest = tuple(seed for seed in cell.seeds if seed not in stored)
            if rest:
                lacking = replace(cell, seeds=rest)
                found.setdefault(lacking.name, lacking)
        return list(found.values())

    def add(self, cell: Cell, frame: pl.DataFrame) -> None:
        """Keep a finished cell: its description first, so that no result is without one."""
        path = self.cells / f"{cell.name}.parquet"
        with atomically(path) as temporary:
            frame.write_parquet(temporary)
            facts = asdict(cell) | {"crc32": zlib.crc32(temporary.read_bytes())}
            _write(path.with_suffix(".json"), json.dumps(facts).encode())

    def final_regrets(self, cells: Iterable[Cell]) -> list[float]:
        """Return the sum over seeds of the regret at the horizon, for each finished cell."""
        return [sum(_final_regret(part) for part in parts) for _, parts in self._parts(cells)]

    def scan(self) -> pl.LazyFrame:
        """Return the results of the study as it was last run, lazily."""
        plan = self._plan()
        found = [(cell, part) for cell, parts in self._parts(plan.cells) for part in parts]
        if not found:
            raise ValueError(
                f"{self.folder} holds no results: run a study into it first{self._hint()}"
            )
        self._warn_outdated(plan)
        as_they_are = [part.path for cell, part in found if not _changes(cell, part)]
        frames = [pl.scan_parquet(as_they_are)] if as_they_are else []
        frames += [_renamed(cell, part) for cell, part in found if _changes(cell, part)]
        return pl.concat(frames, how="vertical_relaxed")

    def scan_all(self) -> pl.LazyFrame:
        """Return everything that was ever stored, with what tells cells apart."""
        if old := self._old_files():
            warnings.warn(
                f"{self.folder}: {len(old)} files of version 0.2 are left out", stacklevel=1
            )
        current: dict[str, set[int]] = {}
        for cell in self.current():
            current.setdefault(cell.key, set()).update(cell.seeds)
        paths = [path for some in self._files().values() for path in some]
        found = {path: made for path in paths if (made := self._read(path)) is not None}
        if not found:
            raise ValueError(f"{self.folder} holds no results: run a study into it first")
        return pl.concat(
            pl.scan_parquet(path).with_columns(
                cell=pl.lit(path.stem),
                current=pl.col("seed").is_in(sorted(current.get(made.key, ()))),
                horizon=pl.lit(json.loads(made.environment).get("horizon"), pl.Int64),
                points=pl.lit(made.points, pl.Int64),
                code=pl.lit(made.code),
                environment_recipe=pl.lit(made.environment),
                policy_recipe=pl.lit(made.policy),
            )
            for path, made in found.items()
        )

    def current(self) -> list[Cell]:
        """Return the cells of the study as it was last run, with the seeds that are stored."""
        return [
            replace(cell, seeds=tuple(sorted(seed for part in parts for seed in part.seeds)))
            for cell, parts in self._parts(self._plan().cells)
            if parts
        ]

    def runs(self) -> list[dict[str, Any]]:
        """Return the provenance of every run, oldest first."""
        path, found = self.folder / "runs.jsonl", []
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            try:
                found.append(json.loads(line))
            except ValueError:
                warnings.warn(f"{path} has a damaged line, which is left out", stacklevel=1)
        return found

    def _hint(self) -> str:
        if any(self._files()):
            return "; load_results(folder, everything=True) gives what is there"
        if self._old_files():
            return (
                " again, because its files are of version 0.2 and this version does not read them; "
                "they stay where they are"
            )
        return ""

    def _plan(self) -> StudyPlan:
        path = self.folder / "current.json"
        try:
            plan = json.loads(path.read_bytes())
            if plan.get("format") != FORMAT and self._old_files():
                return StudyPlan([], {})
            return StudyPlan([_cell(facts) for facts in plan["cells"]], dict(plan["made_by"]))
        except FileNotFoundError:
            return StudyPlan([], {})
        except (ValueError, KeyError, TypeError, AttributeError):
            _warn_damaged(path)
            return StudyPlan([], {})

    def _files(self) -> dict[str, list[Path]]:
        """Return the files of finished cells, by key."""
        found: dict[str, list[Path]] = {}
        for path in sorted(self.cells.glob("*-*-*.parquet")):
            found.setdefault(path.stem.partition("-")[0], []).append(path)
        return found

    def _old_files(self) -> list[Path]:
        """Return files of version 0.2, whose names had no seeds."""
        return [path for path in self.cells.glob("*.parquet") if "-" not in path.stem]

    def _parts(self, cells: Iterable[Cell]) -> Iterator[tuple[Cell, list[CellFile]]]:
        """Give every cell with the sound files that hold its seeds, each seed once."""
        files = self._files()
        for cell in cells:
            wanted, parts = set(cell.seeds), []
            for path in files.get(cell.key, ()):
                first, last = map(int, path.stem.split("-")[1:])
                near = any(first <= seed <= last for seed in wanted)
                made_as = self._read(path) if near else None
                if made_as is not None and (here := wanted.intersection(made_as.seeds)):
                    parts.append(CellFile(path, made_as, frozenset(here)))
                    wanted -= here
            yield cell, parts

    def _read(self, path: Path) -> Cell | None:
        """Return what a stored cell is, or None if it is damaged."""
        stat = path.stat()
        stamp, cell = self._sound.get(path, (None, None))
        if stamp != (stat.st_mtime_ns, stat.st_size):
            cell = _verified(path)
            if cell is not None:
                self._sound[path] = (stat.st_mtime_ns, stat.st_size), cell
        return cell

    def _warn_outdated(self, plan: StudyPlan) -> None:
        """Say which results were made by other code than there is now."""
        versions = Versions()
        old = {
            code
            for code, roots in plan.made_by.items()
            if roots
            and all(not home or Path(home).is_dir() for home in roots.values())
            and versions.of_roots(roots) != code
        }
        policies = sorted({cell.policy_label for cell in plan.cells if cell.code in old})
        if policies:
            warnings.warn(
                f"{self.folder}: the code of {', '.join(policies)} has changed since these results "
                "were made; run the study again",
                stacklevel=1,
            )


def load_results(folder: str | os.PathLike[str], everything: bool = False) -> pl.DataFrame:
    """Return the results of a study in tidy form: a row per policy, environment, seed and round.

    The study is what was last run into the folder. An option that takes several values in it has a
    column of its own, such as "environment.radius" or "policy.discount". `everything=True` gives
    all that was ever stored there, with columns that tell cells of other horizons, seeds, recipes
    and code apart.
    """
    store = RunStore(folder)
    if everything:
        return store.scan_all().collect()
    frame, options = store.scan().collect(), _swept_options(store.current())
    return (
        frame if options is None else frame.join(options, on=["environment", "policy"], how="left")
    )


def _swept_options(cells: Iterable[Cell]) -> pl.DataFrame | None:
    """Return the options that take several values, a row per environment and policy."""
    rows = {(c.environment_label, c.policy_label): json.loads(c.swept) for c in cells}
    values: dict[str, set[str]] = {}
    for options in rows.values():
        for name, value in options.items():
            values.setdefault(name, set()).add(json.dumps(value))
    names = [name for name, found in values.items() if len(found) > 1]
    if not names:
        return None
    table: dict[str, list[Any]] = {
        name: [_plain(options.get(name)) for options in rows.values()] for name in names
    }
    labels = {side: [pair[k] for pair in rows] for k, side in enumerate(("environment", "policy"))}
    return pl.DataFrame(labels | table, strict=False)


def _plain(value: Any) -> Any:
    """Return a value that a column can hold: what is no number or word is JSON."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _cell(facts: dict[str, Any]) -> Cell:
    values = {field.name: facts[field.name] for field in fields(Cell)}
    return Cell(**values | {"seeds": tuple(values["seeds"])})


def _verified(path: Path) -> Cell | None:
    described = path.with_suffix(".json")
    try:
        facts = json.loads(described.read_bytes())
        cell = _cell(facts)
        if cell.name != path.stem:
            raise ValueError("it describes another cell")
    except (OSError, ValueError, KeyError, TypeError):
        _warn_damaged(described)
        return None
    if zlib.crc32(path.read_bytes()) != facts.get("crc32"):
        _warn_damaged(path)
        return None
    return cell


def _changes(cell: Cell, part: CellFile) -> bool:
    """Return whether a file has other labels than the study has now, or more seeds."""
    as_made = part.made_as.environment_label, part.made_as.policy_label
    asked = cell.environment_label, cell.policy_label
    return as_made != asked or part.seeds != set(part.made_as.seeds)


def _renamed(cell: Cell, part: CellFile) -> pl.LazyFrame:
    """Return the seeds of a file that a cell asks for, under the labels of the cell."""
    return (
        pl.scan_parquet(part.path)
        .filter(pl.col("seed").is_in(sorted(part.seeds)))
        .with_columns(environment=pl.lit(cell.environment_label), policy=pl.lit(cell.policy_label))
    )


def _final_regret(part: CellFile) -> float:
    frame = pl.read_parquet(part.path, columns=["seed", "round", "regret"])
    last = frame.filter(
        pl.col("seed").is_in(sorted(part.seeds)), pl.col("round") == pl.col("round").max()
    )
    return float(last["regret"].sum())


def _warn_damaged(path: Path) -> None:
    warnings.warn(
        f"{path} is damaged or of an older format, and left out: run the study again", stacklevel=1
    )


def _write(path: Path, data: bytes) -> None:
    with atomically(path) as temporary:
        temporary.write_bytes(data)
