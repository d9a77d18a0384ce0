"""A single learner's time, as the paper reports it: `make bench-runtime`.

Every policy of the paper's four panels, and ours, plays alone: one learner, one process, one core,
one thread for linear algebra, kernels compiled beforehand. Mean and deviation over seeds of the
time to choose and to update, per round and for the whole horizon.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.claims import OURS, PAPER
from benchmarks.tables import write_rows
from driftbandit import simulate
from driftbandit.lab import read_study

HEAD = (
    *("environment", "policy", "seeds", "horizon"),
    *("mean_us", "deviation_us", "mean_s", "deviation_s"),
)


def contests(horizon: int):
    """(panel, policy's label), world and policy, as the study of the figure has them."""
    study = read_study("paper-figure")[0].model_copy(update={"horizon": horizon})
    return {
        (panel, label): (world, policy)
        for panel, world, _ in study.worlds()
        for label, policy, *_ in study.contests(world)
        if label in PAPER + OURS
    }


def seconds(world, policy, seed: int) -> float:
    """What one learner spends on choosing and updating."""
    run = simulate(policy, world, (seed,))
    return float((run.choose_ns + run.update_ns).sum()) / 1e9


def measure(seeds: int, horizon: int):
    """Seconds by cell and seed; policies take turns, so that a busy minute hits all of them."""
    cells = contests(horizon)
    for world, policy in cells.values():
        simulate(policy, replace(world, horizon=min(60, horizon)), (0,))  # compile
    spent = {cell: [] for cell in cells}
    for seed in track(range(seeds), "seeds", console=Console(stderr=True)):
        for cell, (world, policy) in cells.items():
            spent[cell].append(seconds(world, policy, seed))
    return spent


def lines(spent, horizon: int):
    """Rows of the CSV file."""
    for (panel, label), values in spent.items():
        mean, deviation = np.mean(values), np.std(values, ddof=1)
        numbers = mean * 1e6 / horizon, deviation * 1e6 / horizon, mean, deviation
        yield panel, label, len(values), horizon, *(f"{number:.4g}" for number in numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="2 or more; default 20")
    parser.add_argument("--horizon", type=int, default=5000, help="rounds; default 5000")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    if args.seeds < 2 or args.horizon < 2:
        parser.error("a deviation needs 2 seeds or more, a tuned discount 2 rounds or more")
    if args.csv and not args.csv.parent.is_dir():
        parser.error(f"{args.csv.parent} is no folder: make it first")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with threadpool_limits(1):
        found = list(lines(measure(args.seeds, args.horizon), args.horizon))
    write_rows(args.csv, [HEAD, *found])
    table = Table(*HEAD, title="One learner, alone on a core")
    for line in found:
        table.add_row(*map(str, line))
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
