"""One contender plays streams, in its own environment: jobs come as lines of JSON on stdin.

Needs NumPy and the adapter's package, nothing of driftbandit.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
from pathlib import Path
from time import perf_counter_ns

import numpy as np

from benchmarks.peers import streams
from benchmarks.peers.learner import Learner, Task


def resident() -> int:
    """Bytes of memory that this process holds now, where the system says so."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def clock_cost() -> float:
    """Nanoseconds that reading the clock twice takes."""
    return float(np.median([-perf_counter_ns() + perf_counter_ns() for _ in range(1001)]))


def play(learner: Learner, stream: streams.Stream) -> dict[str, np.ndarray]:
    """Choices (T,), nanoseconds to choose and to update (T,), mean reward, cumulative regret."""
    T, outcomes = len(stream.arms), stream.rewards.tolist()
    choices, times = np.empty(T, dtype=np.int16), np.empty((2, T))
    for t, (arms, rewards) in enumerate(zip(list(stream.arms), outcomes)):
        tic = perf_counter_ns()
        arm = learner.choose(arms)
        toc = perf_counter_ns()
        reward = rewards[arm]
        tac = perf_counter_ns()
        learner.update(arms, arm, reward)
        times[:, t] = toc - tic, perf_counter_ns() - tac
        choices[t] = arm
    times -= clock_cost()
    rows = np.arange(T)
    return {
        "choices": choices,
        "choose_ns": times[0].astype(np.float32),
        "update_ns": times[1].astype(np.float32),
        "reward": stream.rewards[rows, choices].mean(),
        "regret": stream.regret[rows, choices].sum(),
    }


def task(stream: streams.Stream, seed: int) -> Task:
    rounds, count, dim = stream.arms.shape
    norm = round(float(np.linalg.norm(stream.arms, axis=2).max()), 9)  # 1 for unit vectors
    radius = None if np.isnan(stream.radius) else float(stream.radius)
    return Task(dim, count, radius, norm, seed, rounds)


def run(job: dict) -> None:
    """Play one job and store what came of it."""
    make = importlib.import_module(f"benchmarks.peers.{job['module']}").LEARNERS[job["learner"]]
    stream = streams.load(Path(job["stream"])).first(job["rounds"])
    before = resident()
    learner = make(task(stream, job["seed"]), **job["setting"])
    result = play(learner, stream)
    memory = {"bytes": learner.size(), "resident": resident() - before}
    streams.save(Path(job["out"]), **result, **memory, rounds=len(stream.arms))


if __name__ == "__main__":
    for line in sys.stdin:
        run(json.loads(line))
        print("done", flush=True)
