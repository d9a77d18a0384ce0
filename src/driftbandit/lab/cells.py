"""Cells: the unit of work, of resuming and of storage. One policy, one environment, a few seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from driftbandit.environments import Environment
from driftbandit.lab.spec import Study
from driftbandit.policies import Policy, memory_bytes
from driftbandit.recipe import Recipe
from driftbandit.simulation import simulate

FORMAT = 1  # part of every key: raise it when the same recipe would give other numbers


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

    @property
    def key(self) -> str:
        """Hash of everything that determines the stored file, labels included."""
        parts = [FORMAT, *asdict(self).values()]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def cells_of(study: Study, block: int) -> list[Cell]:
    """The cells of a study, its seeds in blocks; the split changes no number."""
    first = study.first_seed
    found: dict[str, Cell] = {}
    for world_label, world, world_options in study.worlds():
        for policy_label, policy, options, seeds in study.contests(world):
            last = first + seeds
            blocks = [tuple(range(k, min(k + block, last))) for k in range(first, last, block)]
            swept = {f"environment.{k}": v for k, v in world_options.items()}
            swept |= {f"policy.{k}": v for k, v in options.items()}
            recipes = _json(world.to_dict()), _json(policy.to_dict()), _json(swept)
            for some in blocks:
                cell = Cell(world_label, policy_label, *recipes, some, study.points)
                found[cell.key] = cell
    return list(found.values())


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class _Watch:
    """Tracking error, distance in the confidence set's own units, and memory, at some rounds."""

    def __init__(self, policy: Policy, rounds: Any, n: int) -> None:
        self.policy, self.rows = policy, {int(t): k for k, t in enumerate(rounds)}
        self.error = np.full((n, len(rounds)), np.nan)
        self.ratio = np.full((n, len(rounds)), np.nan)
        self.bytes = np.zeros(len(rounds), dtype=np.int64)

    def __call__(self, t: int, memory: Any, theta: Any) -> None:
        k = self.rows.get(t)
        if k is None:
            return
        self.bytes[k] = memory_bytes(memory) // len(theta)
        if hasattr(memory, "theta"):
            gap = memory.theta - theta
            self.error[:, k] = np.linalg.norm(gap, axis=1)
            if hasattr(self.policy, "width") and hasattr(memory, "H"):
                norm = np.sqrt(np.einsum("nd,nde,ne->n", gap, memory.H, gap))
                width = np.asarray(self.policy.width(memory))
                self.ratio[:, k] = norm / np.where(width > 0, width, np.nan)


def run_cell(cell: Cell) -> pl.DataFrame:
    """Play a cell: one row per seed and recorded round.

    regret and reward are cumulative; choose_us and update_us are means per round and seed since the
    recorded round before; error = ||theta_t - theta*_t||, ratio = that distance in the norm H_t
    over the width of the bonus.
    """
    policy: Policy = Recipe.from_dict(json.loads(cell.policy))
    world: Environment = Recipe.from_dict(json.loads(cell.environment))
    groups = [_played(cell, policy, world, group) for group in world.together(cell.seeds)]
    return pl.concat(groups)


def _played(cell: Cell, policy: Policy, world: Environment, seeds: Sequence[int]) -> pl.DataFrame:
    rounds = np.unique(np.linspace(1, world.horizon, min(cell.points, world.horizon)).astype(int))
    watch = _Watch(policy, rounds, len(seeds))
    run = simulate(policy, world, seeds, watch=watch)
    n, k = len(seeds), len(rounds)
    starts = np.concatenate([[0], rounds[:-1]])
    spans = rounds - starts

    def per_round(ns: Any) -> Any:
        return np.tile(np.add.reduceat(ns, starts) / spans / 1000.0, n)

    frame = pl.DataFrame(
        {
            "seed": np.repeat(np.array(seeds, dtype=np.int64), k),
            "round": np.tile(rounds.astype(np.int64), n),
            "regret": run.cumulative[:, rounds - 1].ravel(),
            "reward": np.cumsum(run.rewards, axis=1)[:, rounds - 1].ravel(),
            "choose_us": per_round(run.choose_ns),
            "update_us": per_round(run.update_ns),
            "error": watch.error.ravel(),
            "ratio": watch.ratio.ravel(),
            "bytes": np.tile(watch.bytes, n),
        }
    )
    return frame.select(
        pl.lit(cell.environment_label).alias("environment"),
        pl.lit(cell.policy_label).alias("policy"),
        pl.all(),
    )
