"""Many worlds at once, as rliable does it: normalised regret, its middle, its tail, its profile.

A regret is divided by the mean regret of Uniform in the same world (or of the reference, where
no policy played at random): 0 is the oracle, 1 is guessing. Only policies played in every world are
compared, and all of them on the seeds that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from driftbandit.lab.report.figures import Emphasis, Width, blank, emphasis, finish, save
from driftbandit.lab.report.statistics import (
    Floats,
    interquartile_mean,
    optimality_gap,
    performance_profile,
    stratified_interval,
)

MANY = 5  # worlds from which on an average over them says something


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
    """Share of runs at or below each normalised regret, with its 95 % interval; thresholds end
    where the worst twentieth of all runs begins."""
    parts, every = [], np.concatenate([r.ravel() for r in runs.by_policy.values()])
    thresholds = np.linspace(0.0, float(np.quantile(every, 0.95)), 121)
    for policy, regrets in runs.by_policy.items():
        share = performance_profile(regrets, thresholds)
        low, high = stratified_interval(
            lambda some: performance_profile(some, thresholds), regrets, draws=500
        )
        columns = {"threshold": thresholds, "share": share, "low": low, "high": high}
        parts.append(pl.DataFrame(columns).with_columns(policy=pl.lit(policy)))
    return pl.concat(parts)


def draw_profiles(
    runs: Runs,
    folder: Path,
    width: str = "full",
    hero: str | None = None,
    focus: Sequence[str] = (),
) -> dict[str, Path]:
    """Performance profiles as profile.png, .svg and .pdf; higher is better, the best first."""
    frame = profiles(runs)
    how = emphasis(frame, hero, focus)
    best_first = sorted(runs.by_policy, key=lambda p: interquartile_mean(runs.by_policy[p]))
    return save("profile", folder, width, lambda size: _figure(frame, best_first, size, how, runs))


def _figure(
    frame: pl.DataFrame, best_first: list[str], width: Width, how: Emphasis, runs: Runs
) -> Any:
    figure = blank(width.inches, 0.3 * width.inches + 1.2)
    ax = figure.subplots()
    for policy in best_first:
        mine, style = frame.filter(pl.col("policy") == policy), how.line(policy)
        shown = policy if how.coloured(policy) else None
        ax.plot(
            mine["threshold"], mine["share"], label=shown and shown.replace("$", r"\$"), **style
        )
        if shown:
            band = {"color": style["color"], "alpha": 0.15, "lw": 0}
            ax.fill_between(mine["threshold"], mine["low"], mine["high"], **band)
    ax.set(xlim=(0, frame["threshold"].max()), ylim=(0, 1.02), ylabel="share of runs with less")
    ax.set_xlabel(f"regret over that of {runs.scale}".replace("$", r"\$"))
    ax.grid(alpha=0.25)
    figure.legend(loc="outside right upper", frameon=False, fontsize=width.size - 1.0)
    worlds, seeds = next(iter(runs.by_policy.values())).shape
    text = f"Runs: {worlds} environments, {seeds} seeds each; bands: 95 % stratified bootstrap."
    finish(figure, [], width.size - 1.0, width, text)
    return figure
