"""Nightly jobs: `make bench-nights` times batch decisions and their rewards, on the disk.

10 arms and 32 features, by `driftbandit decide` and `driftbandit reward` as a job runs them: with
the start of Python, reading and writing of Parquet, and training.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.tables import RESULTS, report
from driftbandit import Features, Loop, Reward, Vector

ARMS, DIM = 10, 32
DECIDE_SECONDS, REWARD_SECONDS, ROWS = 40.0, 20.0, 100_000  # required


def prepare(folder: Path, rows: int, seed: int = 1) -> None:
    """Declare a loop, and write the tables of a night."""
    rng = np.random.default_rng(seed)
    half = DIM // 2
    features = Features(
        context={"visitor": Vector(half)}, arm={"item": Vector(DIM - half)}, dim=DIM
    )
    arms = {f"item {k}": {"item": rng.normal(size=DIM - half).tolist()} for k in range(ARMS)}
    clicks = Reward(0, 1, wait="7d", missing=0)
    Loop(folder / "shop.db", features=features, arms=arms, reward=clicks).close()
    ids = pl.Series("id", [f"visit-{k}" for k in range(rows)])
    visitors = pl.Series("visitor", rng.normal(size=(rows, half)).tolist())
    pl.DataFrame([ids, visitors]).write_parquet(folder / "requests.parquet")
    clicked = pl.Series("reward", rng.integers(0, 2, rows))
    pl.DataFrame([ids, clicked]).write_parquet(folder / "rewards.parquet")


def seconds(folder: Path, *args: str) -> float:
    """Return how long a command takes."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "driftbandit", *args], cwd=folder, check=True)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--store", action="store_true", help="into docs/results/nights.csv")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, given.rows)
        decide = seconds(folder, "decide", "shop.db", "requests.parquet", "decisions.parquet")
        reward = seconds(folder, "reward", "shop.db", "rewards.parquet")
    found = [
        (f"{given.rows:,} decisions, s", decide, DECIDE_SECONDS),
        ("their rewards, s", reward, REWARD_SECONDS),
    ]
    rows = [(what, took, f"< {most:g}", took < most) for what, took, most in found]
    path = RESULTS / "nights.csv" if given.store else None
    sys.exit(report(f"A night: {ARMS} arms, d = {DIM}", rows, path))


if __name__ == "__main__":
    main()
