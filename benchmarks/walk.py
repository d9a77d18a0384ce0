"""How far a decision walks: `make bench-walk` prints functions, files, changes of file and threads
of one call, counted by the profiler, and the CPU time of a decision with its reward and its
training next to version 0.2, both from one run.

Lambdas and comprehensions count as functions. What is counted: everything inside driftbandit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import driftbandit
from benchmarks.tables import report

ROOT = Path(__file__).parent.parent
HERE = os.path.dirname(driftbandit.__file__)
BEFORE = "5066766"  # the last commit of version 0.2
ROUNDS = 3  # of old and new, one after the other
PAIRS = [("age", "price"), ("country", "genre"), ("mobile", "price"), ("visits", "new")]


class Walk:
    """Counts calls inside the package while it is on."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.threads: set[str] = set()
        self.changes, self._last, self.on = 0, "", False

    def __call__(self, frame, event, _) -> None:
        code = frame.f_code
        if event != "call" or not self.on or not code.co_filename.startswith(HERE):
            return
        file = os.path.relpath(code.co_filename, HERE)
        self.calls[file, code.co_qualname] += 1
        self.threads.add(threading.current_thread().name)
        self.changes += file != self._last
        self._last = file

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.calls}


def walked(step, loop) -> Walk:
    """One call of many, so that nothing is made for the first time."""
    walk = Walk()
    threading.setprofile(walk)
    sys.setprofile(walk)
    try:
        with loop() as opened:
            for _ in range(5):
                step(opened)
            walk.on = True
            step(opened)
            walk.on = False
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return walk


def opened(folder: str):
    from benchmarks.features import COLUMNS
    from driftbandit import Features, Loop, Reward

    reward = Reward(0, 1, wait=1000, missing=0)
    features = Features(**COLUMNS, interactions=PAIRS)
    return Loop(f"{folder}/walk.db", features=features, reward=reward, exploration=0.05)


def decision(loop) -> None:
    from benchmarks.features import CONTEXT, arms

    loop.decide(CONTEXT, {f"arm {k}": arm for k, arm in enumerate(arms(20))})


# Runs with both versions; rewards come at once, so that every decision is trained.
CPU = """
import sys, tempfile, time
import numpy as np
from benchmarks.features import COLUMNS, CONTEXT, arms
from driftbandit import AutoDOMD, Features, Loop, Reward
features = Features(**COLUMNS, interactions={pairs!r}, dim=32)
given, n = {{f"arm {{k}}": arm for k, arm in enumerate(arms(20))}}, int(sys.argv[1])
options = {{sys.argv[2]: 0.05}}
with tempfile.TemporaryDirectory(dir=".") as folder:
    given_ = {{"features": features, "reward": Reward(0, 1), "policy": AutoDOMD}} | options
    loop = Loop(f"{{folder}}/a.db", **given_)
    rng = np.random.default_rng(0)
    for k in range(n + 200):
        if k == 200:
            tic = time.process_time()
        made = loop.decide(CONTEXT | {{"age": int(rng.integers(18, 90))}}, given)
        loop.reward(made.id, float(rng.random() < 0.3))
    getattr(loop, sys.argv[3])()
    print(1e6 * (time.process_time() - tic) / n)
    loop.close()
"""


def cpu(folder: Path, n: int, exploration: str, wait: str) -> float:
    """Microseconds of CPU time for a decision, its reward and its training, in a checkout."""
    paths = os.pathsep.join([str(folder / "src"), str(folder)])
    made = subprocess.run(
        [sys.executable, "-c", CPU.format(pairs=PAIRS), str(n), exploration, wait],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(made.stdout.split()[-1])


def before_and_after(n: int) -> tuple[float, float]:
    """The least of some runs of each, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        subprocess.run(
            ["git", "worktree", "add", "-q", "--detach", old, BEFORE], cwd=ROOT, check=True
        )
        try:
            runs = [
                (cpu(old, n, "floor", "settle"), cpu(ROOT, n, "exploration", "wait_until_trained"))
                for _ in range(ROUNDS)
            ]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", old], cwd=ROOT, check=True)
    return min(a for a, _ in runs), min(b for _, b in runs)


def figures(n: int):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        walk = walked(decision, lambda: opened(folder))
    inside = [file for file in walk.files if file.startswith("loop")]
    yield "Loop.decide: functions", len(walk.calls), "<= 55", len(walk.calls) <= 55
    yield "Loop.decide: files", len(walk.files), "<= 15", len(walk.files) <= 15
    yield "Loop.decide: files of loop/", len(inside), "", True
    yield "Loop.decide: changes of file", walk.changes, "", True
    yield "Loop.decide: threads", len(walk.threads), "", True
    if n:
        old, new = before_and_after(n)
        what = (
            "CPU of a decision with reward and training, AutoDOMD, 20 arms, 8 columns, d = 32: us"
        )
        yield what, new, "", True
        yield "the same in version 0.2: us", old, "", True
        yield "ratio to version 0.2", new / old, "<= 0.5", new / old <= 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=3000, help="0: count only")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    parser.add_argument("--list", action="store_true", help="print every function")
    options = parser.parse_args()
    if options.list:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            for (file, name), n in walked(decision, lambda: opened(folder)).calls.items():
                print(f"{n:4d}  {file}  {name}")
    return report("The walk of a decision", figures(options.decisions), options.csv)


if __name__ == "__main__":
    sys.exit(main())
