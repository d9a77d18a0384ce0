"""A log of 10 arms and 20 coordinates, written, read and evaluated on one core.

    python -m benchmarks.evidence [--rows 1000000] [--stream 10000000] [--csv FILE]

Seconds and peak memory for DOMD, Always and Uniform by DR, with curve and report, and for reading
a file that is ten times as long. Exit status 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import report

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ARMS, BATCH, FLOOR = 10, 50_000, 0.2
COLUMNS = ("age", "income", "visits", "hour")
SECONDS, MEGABYTES = 60.0, 1000.0  # allowed


def write_log(path: Path, rows: int, seed: int = 0) -> None:
    """Decisions a second apart of a live policy that explores in one of five, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    taste = rng.normal(size=(ARMS, 3))
    arms = json.dumps({f"arm {k}": {"taste": taste[k].tolist()} for k in range(ARMS)})
    writer = None
    for first in range(0, rows, BATCH):
        n = min(BATCH, rows - first)
        x = rng.random((n, len(COLUMNS)))
        h = np.full((n, ARMS), FLOOR / ARMS)
        h[np.arange(n), rng.integers(ARMS, size=n)] += 1.0 - FLOOR
        action = (rng.random((n, 1)) > np.cumsum(h, axis=1)).sum(axis=1).clip(0, ARMS - 1)
        value = 0.05 + 0.05 * ((x[:, 0] > 0.5) == (action % 2 == 0))
        table = pa.table(
            dict(zip(COLUMNS, x.T))
            | {
                "arms": pa.array([arms] * n).dictionary_encode(),
                "action": [f"arm {k}" for k in action],
                "probability": h[np.arange(n), action],
                "probabilities": pa.FixedSizeListArray.from_arrays(h.ravel(), ARMS),
                "reward": (rng.random(n) < value).astype(float),
                "time": 1.7e9 + np.arange(first, first + n),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def features() -> Any:
    from driftbandit import Features, Number, Vector

    return Features(
        context={name: Number(0, 1, required=True) for name in COLUMNS},
        arm={"taste": Vector(3, required=True)},
    )


def opened(path: Path) -> Any:
    from driftbandit import Log, Reward

    columns = {"context": list(COLUMNS)}
    return Log.read(path, columns, features=features(), reward=Reward(0, 1))


def evaluated(path: Path) -> float:
    """Seconds on the core for values, curve and report; compilation is not timed."""
    from driftbandit import DOMD, Always, Uniform, evaluate

    log = opened(path)
    DOMD(problem=log.problem).warm()
    begin = time.process_time()
    candidates = {"new": DOMD, "default": Always("arm 0"), "uniform": Uniform()}
    found = evaluate(log, candidates, window="1d")
    found.write(path.parent)
    print(found.verdict)
    return time.process_time() - begin


def streamed(path: Path) -> tuple[int, float]:
    """Clean rows of a file, and seconds on the core."""
    begin = time.process_time()
    return sum(len(chunk) for chunk in opened(path).chunks()), time.process_time() - begin


def peak() -> float:
    """The most memory so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def figures(rows: int, stream: int) -> Iterator[tuple[str, float, str, bool]]:
    allowed, most = SECONDS * rows / 1e6, f"<= {MEGABYTES:g}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        write_log(path, rows)
        spent = evaluated(path)
        what = f"{rows:,} rows, {ARMS} arms, d = {features().size}, evaluated with report"
        yield f"{what}: s on one core", spent, f"<= {allowed:g}", spent <= allowed
        yield "peak memory: MB", peak(), most, peak() <= MEGABYTES
        write_log(path, stream)
        found, spent = streamed(path)
        size = path.stat().st_size / 1e6
        yield f"{stream:,} rows, a file of {size:,.0f} MB, read: s", spent, "", found == stream
        yield "peak memory after that: MB", peak(), most, peak() <= MEGABYTES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--stream", type=int, default=10_000_000, help="rows that are only read")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    return report("Evidence from a log", figures(given.rows, given.stream), given.csv)


if __name__ == "__main__":
    sys.exit(main())
