"""A learner for each key: `make bench-keys` prints what many keys cost in time and memory.

Ledgers with few and with many keys on the disk are opened by processes of their own, which decide
for the same number of active keys. The rows of the other keys are put into the table directly:
each is a learner that has just begun. `driftbandit verify` would notice that no checkpoint has
them; decisions, checkpoints and starts do not. The second part plays visits of users whose learners
are all trained, as they come.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.tables import report
from driftbandit import DOMD, Category, Features, Loop, Number, Reward
from driftbandit.loop.storage import sqlite
from driftbandit.loop.storage.key_rows import KeyRow, RowBatch
from driftbandit.loop.storage.ledger import Ledger

NAMES = [f"arm {k}" for k in range(4)]
FEATURES = Features(
    context={f"column {k}": Number(0, 1) for k in range(6)}, arm={"name": Category(NAMES)}, dim=32
)
ARMS = {name: {"name": name} for name in NAMES}
DECLARED = {"features": FEATURES, "reward": Reward(0, 1), "key": "user_id", "policy": DOMD}
MEMORY, FILL = 500.0, 2000  # MB; rows in one transaction
TOGETHER = 20  # visits that are served at once


def filled(path: str, keys: int) -> None:
    """Make a ledger with rows of so many keys."""
    with mock.patch.object(sqlite, "SYNCHRONOUS", "OFF"):
        with Loop(path, training="inline", **DECLARED) as loop:
            visit(loop, np.zeros(1, dtype=int))
            row, features = loop.runtime.learner.newborn().tobytes(), loop.features.version
        ledger = Ledger(path, "loop")
        seq = ledger.checkpoints()[-1].seq
        for first in range(1, keys, FILL):
            some = range(first, min(first + FILL, keys))
            rows = [KeyRow.of(named(k), features, 0.0, row) for k in some]
            ledger.rows.save(seq, 0, [RowBatch(0, rows)])
        ledger.close()


def named(user: int) -> str:
    return f"user {user:07d}"


def visit(loop: Loop, users: np.ndarray) -> None:
    """Decide and reward once for each of these users, some at a time."""
    rng = np.random.default_rng(0)
    for first in range(0, len(users), TOGETHER):
        contexts = rng.random((TOGETHER, 6)).tolist()
        calls = []
        for user, columns in zip(users[first : first + TOGETHER].tolist(), contexts):
            context = dict(zip(FEATURES.context, columns))
            calls.append(("decide", {"context": context, "arms": ARMS, "key": named(user)}))
        made = loop.submit_many(calls)
        values = (rng.random(len(made)) < 0.3).astype(float).tolist()
        told = [("reward", {"id": each.id, "value": value}) for each, value in zip(made, values)]
        loop.submit_many(told)
    loop.wait_until_trained()


def told(path: str, keys: int, active: int, visits: int) -> dict[str, float]:
    """What a process measures that opens a ledger and serves some of its keys."""
    saved, append = [], Ledger.append

    def timed(ledger: Ledger, events: Any, states: Any = ()) -> None:
        tic = time.perf_counter()
        append(ledger, events, states)
        if states:
            saved.append(time.perf_counter() - tic)

    rng = np.random.default_rng(1)
    chosen = rng.choice(keys, active, replace=False) if keys > active else np.arange(active)
    tic = time.perf_counter()
    with mock.patch.object(Ledger, "append", timed), Loop(path, **DECLARED) as loop:
        opened = time.perf_counter() - tic
        loop.decide(dict.fromkeys(FEATURES.context, 0.5), ARMS, key=named(0))  # all is loaded
        before, tic = peak(), time.perf_counter()
        visit(loop, rng.choice(chosen, visits))
        spent = time.perf_counter() - tic
    return {
        "start": opened,
        "seconds": spent,
        "checkpoint": float(np.median(saved)),
        "before": before,
        "memory": peak(),
    }


def peak() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def apart(*given: object) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.keys", "--tell", *map(str, given)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3600)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def figures(
    keys: int, active: int, visits: int, users: int, folder: str | None
) -> Iterator[tuple[str, float, str, bool]]:
    with tempfile.TemporaryDirectory(dir=folder or ".") as place:
        found = {}
        for n in (active, keys):
            filled(f"{place}/{n}.db", n)
            found[n] = apart(f"{place}/{n}.db", n, active, visits)
        few, many = found[active], found[keys]
        memory = many["memory"]
        what = f"{keys:,} keys on the disk, {active:,} active, d = 32"
        yield f"{what}: most memory, MB", memory, f"<= {MEMORY:g}", memory <= MEMORY
        yield f"{what}: of that before the first visit, MB", many["before"], "", True
        for name, unit in (("start", "start"), ("checkpoint", "a checkpoint, median")):
            yield f"{active:,} keys on the disk: {unit}, s", few[name], "", True
            least = 2.0 * few[name] + 0.05
            yield (
                f"{keys:,} keys on the disk: {unit}, s",
                many[name],
                f"<= {least:.2g}",
                (many[name] <= least),
            )
        yield f"{what}: visits per second", visits / many["seconds"], "", True
        played = apart(f"{place}/visits.db", 0, users, 4 * users)
        what = f"{4 * users:,} visits of {users:,} users"
        yield f"{what}: s (538 with one value for all keys)", played["seconds"], "", True
        yield f"{what}: most memory, MB (469 with one value)", played["memory"], "", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--active", type=int, default=10_000)
    parser.add_argument("--visits", type=int, default=20_000)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--folder", help="where ledgers are made, about 9 GB for 10^6 keys")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    parser.add_argument("--tell", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.tell:
        path, *numbers = args.tell
        print(json.dumps(told(path, *map(int, numbers))))
        return 0
    found = figures(args.keys, args.active, args.visits, args.users, args.folder)
    return report("A learner for each key", found, args.csv)


if __name__ == "__main__":
    sys.exit(main())
