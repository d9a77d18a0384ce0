"""Cells: the unit of work, of resuming and of storage. One policy, one environment, a few seeds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from driftbandit.lab.run.code_version import Versions
from driftbandit.lab.run.play import play
from driftbandit.lab.study.study_file import Study
from driftbandit.recipe import Recipe

FORMAT = 2  # part of every key: raise it when files of before cannot be read any more


@dataclass(frozen=True)
class Cell:
    """Everything that determines a result, as plain types; its key names its file."""

    environment_label: str
    policy_label: str
    environment: str  # JSON of the recipes, and of the values that the study sweeps
    policy: str
    swept: str
    seeds: tuple[int, ...]
    points: int
    code: str  # version of the sources of everything above

    @property
    def key(self) -> str:
        """Hash of everything that determines the stored file, labels included."""
        parts = [FORMAT, *asdict(self).values()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def cells_of(study: Study, block: int) -> list[Cell]:
    """The cells of a study, its seeds in blocks; the split changes no number."""
    first = study.first_seed
    found: dict[str, Cell] = {}
    versions = Versions()
    for world_label, world, world_options in study.worlds():
        for policy_label, policy, options, seeds in study.contests(world):
            last = first + seeds
            blocks = [tuple(range(k, min(k + block, last))) for k in range(first, last, block)]
            swept = {f"environment.{k}": v for k, v in world_options.items()}
            swept |= {f"policy.{k}": v for k, v in options.items()}
            recipes = _json(world.to_dict()), _json(policy.to_dict())
            code = versions.of(*recipes)
            for some in blocks:
                cell = Cell(
                    world_label, policy_label, *recipes, _json(swept), some, study.points, code
                )
                found[cell.key] = cell
    return list(found.values())


def run_cell(cell: Cell) -> pl.DataFrame:
    """Play a cell: what `play` records, with its labels."""
    policy = Recipe.from_dict(json.loads(cell.policy))
    world = Recipe.from_dict(json.loads(cell.environment))
    groups = [play(policy, world, some, cell.points) for some in world.together(cell.seeds)]
    return pl.concat(groups).select(
        pl.lit(cell.environment_label).alias("environment"),
        pl.lit(cell.policy_label).alias("policy"),
        pl.all(),
    )


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
