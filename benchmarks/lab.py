"""The lab at full size: `make bench-lab`.

Time of `reproduce` on two cores, of a resumed run that has nothing to do, and of a report of 10^7
rows with its peak memory. Exit status 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from driftbandit.lab import RunStore
from driftbandit.lab.run.cells import Cell

CLI = [sys.executable, "-m", "driftbandit"]


def seconds(command: list[str]) -> float:
    tic = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - tic


def large_store(folder: Path, rows: int = 10_000_000, cells: int = 200) -> None:
    """A store of so many rows: 4 environments, 5 policies, 10 blocks of 10 seeds."""
    store, rng = RunStore(folder), np.random.default_rng(0)
    store.start({"study": "large"})
    rounds, stored = rows // cells // 10, []
    for k in range(cells):
        block, policy, world = k // 20, k % 5, k // 5 % 4
        seeds = tuple(range(10 * block, 10 * block + 10))
        names = f"world {world}", f"policy {policy}"
        recipes = [json.dumps({"name": name}) for name in (*names, "swept")]
        cell = Cell(*names, *recipes, seeds, rounds, "by hand")
        stored.append(cell)
        regret = rng.random((10, rounds)).cumsum(axis=1).ravel()
        columns = ("reward", "choose_us", "update_us", "error", "ratio")
        frame = pl.DataFrame(
            {
                "environment": [names[0]] * len(regret),
                "policy": [names[1]] * len(regret),
                "seed": np.repeat(seeds, rounds),
                "round": np.tile(np.arange(1, rounds + 1), 10),
                "regret": regret,
                **{name: rng.random(len(regret)) for name in columns},
                "bytes": np.full(len(regret), 248),
            }
        )
        store.add(cell, frame)
    store.keep("", stored)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="keep the results of reproduce in this new folder")
    kept = parser.parse_args().out
    if kept and Path(kept).exists():
        parser.error(f"{kept} exists: a resumed run would measure nothing")
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        out = ["--out", kept or f"{folder}/paper"]
        seconds([*CLI, "reproduce", "--out", f"{folder}/warm", "--horizon", "60", "--seeds", "2"])
        minutes = seconds([*CLI, "reproduce", *out]) / 60
        figures.append(("reproduce at full size, minutes", minutes, 12.0))
        figures.append(
            ("resumed with nothing to do, seconds", seconds([*CLI, "reproduce", *out]), 3.0)
        )
        large_store(Path(folder) / "large")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        took = seconds([*CLI, "report", f"{folder}/large"])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        figures.append(("report of 10^7 rows, seconds", took, 60.0))
        figures.append(
            ("its peak memory, GB (or that of a run before)", max(peak, before) / 1e6, 2.0)
        )
    table = Table("figure", "measured", "required", "reached", title="The lab")
    for what, measured, limit in figures:
        table.add_row(what, f"{measured:.3g}", f"< {limit:g}", "yes" if measured < limit else "NO")
    Console(width=110).print(table)
    return 0 if all(measured < limit for _, measured, limit in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
