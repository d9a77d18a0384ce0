"""Playing a policy in an environment, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from driftbandit.environments import Environment
from driftbandit.policies import Policy, memory_bytes
from driftbandit.simulation import simulate


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


def play(policy: Policy, world: Environment, seeds: Sequence[int], points: int) -> pl.DataFrame:
    """One row per seed and recorded round.

    regret and reward are cumulative; choose_us and update_us are means per round and seed since the
    recorded round before; error = ||theta_t - theta*_t||, ratio = that distance in the norm H_t
    over the width of the bonus.
    """
    rounds = np.unique(np.linspace(1, world.horizon, min(points, world.horizon)).astype(int))
    watch = _Watch(policy, rounds, len(seeds))
    run = simulate(policy, world, seeds, watch=watch)
    n, k = len(seeds), len(rounds)
    starts = np.concatenate([[0], rounds[:-1]])
    spans = rounds - starts

    def per_round(ns: Any) -> Any:
        return np.tile(np.add.reduceat(ns, starts) / spans / 1000.0, n)

    return pl.DataFrame(
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
