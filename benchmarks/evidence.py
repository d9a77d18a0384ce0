"""A log of 10 arms and 20 coordinates, written, read and evaluated on one core.

    python -m benchmarks.evidence [--rows 1000000]

Prints seconds and peak memory for DOMD, Always and Uniform by DR, with curve and report.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ARMS, BATCH, FLOOR = 10, 50_000, 0.2
COLUMNS = ("age", "income", "visits", "hour")


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


def main() -> None:
    from driftbandit import DOMD, Always, Features, Log, Number, Reward, Uniform, Vector, evaluate

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    features = Features(
        context={name: Number(0, 1, required=True) for name in COLUMNS},
        arm={"taste": Vector(3, required=True)},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        write_log(path, rows)
        size, before = path.stat().st_size / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        log = Log.read(path, {"context": list(COLUMNS)}, features=features, reward=Reward(0, 1))
        DOMD(problem=log.problem).warm()  # compilation is not timed
        begin, cpu = time.perf_counter(), time.process_time()
        candidates = {"new": DOMD, "default": Always("arm 0"), "uniform": Uniform()}
        found = evaluate(log, candidates, window="1d")
        found.write(folder)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{rows:,} rows, {ARMS} arms, d = {features.size}, a file of {size:.0f} MB")
    print(f"{seconds:.1f} s, {cpu:.1f} s of them on the core, {1e6 * cpu / rows:.1f} us a row")
    print(f"peak memory {peak / 1024:.0f} MB (before: {before / 1024:.0f} MB)")
    print(found.verdict)


if __name__ == "__main__":
    main()
