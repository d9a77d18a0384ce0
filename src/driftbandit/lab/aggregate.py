"""Many worlds at once, as rliable does it: normalised regret, its middle, its tail, its profile.

A regret is divided by the mean regret of Uniform in the same world (or of the reference, where
nobody played at random): 0 is the oracle, 1 is guessing. Only policies played in every world are
compared, and all of them on the seeds that they share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from driftbandit.lab.statistics import (
    Floats,
    interquartile_mean,
    optimality_gap,
    performance_profile,
    stratified_interval,
)

MANY = 5  # worlds from which on an average over them says something
THRESHOLDS = np.linspace(0.0, 1.2, 121)


class Runs(NamedTuple):
    """Normalised regrets (worlds, seeds) by policy."""

    scale: str
    by_policy: dict[str, Floats]
    left_out: int  # policies that some world lacks


def normalised_runs(regrets: pl.DataFrame, reference: str) -> Runs | None:
    """From final regrets, one row per environment, policy and seed; None for a few worlds."""
    worlds = regrets["environment"].n_unique()
    played = regrets.group_by("policy").agg(pl.col("environment").n_unique())
    everywhere = played.filter(pl.col("environment") == worlds)["policy"].sort().to_list()
    scale = "Uniform" if "Uniform" in everywhere else reference
    if worlds < MANY or scale not in everywhere:
        return None
    kept = _on_shared_seeds(regrets.filter(pl.col("policy").cast(pl.String).is_in(everywhere)))
    found = {
        policy: kept.filter(pl.col("policy") == policy)["regret"].to_numpy().reshape(worlds, -1)
        for policy in everywhere
    }
    unit = found[scale].mean(axis=1, keepdims=True) if kept.height else np.zeros((1, 1))
    if not (unit > 0.0).all():
        return None  # no seed in common, or a world without regret: no scale
    return Runs(scale, {p: r / unit for p, r in found.items()}, played.height - len(everywhere))


def _on_shared_seeds(regrets: pl.DataFrame) -> pl.DataFrame:
    """The rows of seeds that all policies have, as many in each world, sorted."""
    seeds = (
        regrets.group_by("environment", "seed")
        .agg(pl.len())
        .filter(pl.col("len") == regrets["policy"].n_unique())
        .sort("environment", "seed")
    )
    counts = seeds["environment"].value_counts()
    enough = counts.height == regrets["environment"].n_unique()
    least = min(counts["count"].to_list()) if enough else 0
    first = seeds.group_by("environment", maintain_order=True).head(least)
    return regrets.join(first, on=["environment", "seed"], how="semi").sort("environment", "seed")


def aggregates(runs: Runs) -> pl.DataFrame:
    """Interquartile mean and optimality gap of every policy, each with its 95 % interval."""
    lines = []
    for policy, regrets in runs.by_policy.items():
        iqm = stratified_interval(interquartile_mean, regrets)
        gap = stratified_interval(optimality_gap, regrets)
        lines.append(
            {
                "policy": policy,
                "worlds": len(regrets),
                "seeds": regrets.shape[1],
                **dict(zip(("iqm", "iqm_low", "iqm_high"), (interquartile_mean(regrets), *iqm))),
                **dict(zip(("gap", "gap_low", "gap_high"), (optimality_gap(regrets), *gap))),
            }
        )
    return pl.DataFrame(lines).sort("iqm")


def profiles(runs: Runs) -> pl.DataFrame:
    """Share of runs at or below each normalised regret, with its 95 % interval."""
    parts = []
    for policy, regrets in runs.by_policy.items():
        share = performance_profile(regrets, THRESHOLDS)
        low, high = stratified_interval(
            lambda some: performance_profile(some, THRESHOLDS), regrets, draws=500
        )
        columns = {"threshold": THRESHOLDS, "share": share, "low": low, "high": high}
        parts.append(pl.DataFrame(columns).with_columns(policy=pl.lit(policy)))
    return pl.concat(parts)
