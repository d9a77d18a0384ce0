"""Cells: the unit of work, of resuming and of storage. One policy, one environment, a few seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from driftbandit.lab.run.code_version import Versions
from driftbandit.lab.run.play import play
from driftbandit.lab.study.study_file import Study
from driftbandit.recipe import Recipe

FORMAT = 3  # part of every key: raise it when files of before cannot be read any more


@dataclass(frozen=True)
class Cell:
    """A policy, an environment and some seeds, as plain types."""

    environment_label: str  # labels say how a study calls it; they determine no result
    policy_label: str
    environment: str  # JSON of the recipes, and of the values that the study sweeps
    policy: str
    swept: str
    seeds: tuple[int, ...]
    points: int
    code: str  # version of the modules behind the recipes

    @property
    def key(self) -> str:
        """Hash of what determines the results of a seed. Labels are no part of it."""
        parts = [FORMAT, self.environment, self.policy, self.points, self.code]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """The name of its file: the key, and the first and the last seed."""
        return f"{self.key}-{self.seeds[0]}-{self.seeds[-1]}"


def cells_of(study: Study, block: int) -> list[Cell]:
    """Return the cells of a study, its seeds in blocks; the split changes no number."""
    found: dict[tuple[Any, ...], Cell] = {}
    for cell in _cells(study, block):
        found.setdefault((cell.environment_label, cell.policy_label, cell.name), cell)
    return list(found.values())


def _cells(study: Study, block: int) -> Iterator[Cell]:
    versions, first = Versions(), study.first_seed
    for world_label, world, world_options in study.worlds():
        for policy_label, policy, options, seeds in study.contests(world):
            swept = {f"environment.{k}": v for k, v in world_options.items()}
            swept |= {f"policy.{k}": v for k, v in options.items()}
            recipes = json_of(world), json_of(policy)
            labels, code = (world_label, policy_label), versions.of(*recipes)
            for start in range(first, first + seeds, block):
                some = tuple(range(start, min(start + block, first + seeds)))
                yield Cell(*labels, *recipes, _json(swept), some, study.points, code)


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


def json_of(recipe: Recipe) -> str:
    """Return a recipe as the text that its cell has of it."""
    return _json(recipe.to_dict())


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
