"""What is to be played, what is stored already, and the best setting of each contender."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.registry import Contender
from benchmarks.peers.venvs import FOLDER, ROOT, python_of
from benchmarks.peers.worlds import digest, practice, stream
from driftbandit import Environment

# Matrices of this size run several times slower on two threads than on one.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def job(contender: Contender, world: Environment, setting: dict, seed: int, **more) -> dict:
    """A line for `play`; the same question always has the same file for its answer."""
    question = {
        "module": contender.peer.module,
        "learner": contender.learner,
        "setting": setting,
        "seed": seed,
        "rounds": world.horizon,
    } | more
    name = digest([question, world.to_dict(), contender.peer.requirements])
    return question | {
        "stream": str(stream(FOLDER / "rounds", world, seed)),
        "out": str(FOLDER / "results" / contender.peer.name / f"{name}.npz"),
    }


def play(contender: Contender, jobs: Iterable[dict], done: Callable[[], Any]) -> None:
    """Play what is not stored yet, one after the other in one process of the peer."""
    missing = [line for line in jobs if not stored(line)]
    if not missing:
        return
    command = [python_of(contender.peer), "-W", "ignore", "-m", "benchmarks.peers.play"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | ONE_THREAD, **pipes) as process:
        process.stdin.write("".join(json.dumps(line) + "\n" for line in missing))
        process.stdin.close()
        for _ in process.stdout:
            done()
    if process.returncode:
        raise RuntimeError(f"{contender.label} failed: see its message above")


def play_all(work: list[tuple[Contender, list[dict]]], done: Callable[[], Any]) -> None:
    """Two contenders at a time."""
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(play, *item, done) for item in work]:
            future.result()


def tuning(contender: Contender, world: Environment) -> list[dict]:
    """Jobs that choose the setting; none where there is nothing to choose."""
    grid, room = contender.grid if len(contender.grid) > 1 else (), practice(world)
    return [job(contender, room, setting, seed) for setting in grid for seed in contender.tune]


def best(contender: Contender, world: Environment) -> dict:
    """The setting with the least regret in practice."""
    if len(contender.grid) == 1:
        return contender.grid[0]

    def regret(setting: dict) -> float:
        jobs = [job(contender, practice(world), setting, seed) for seed in contender.tune]
        return float(np.mean([result(line)["regret"] for line in jobs]))

    return min(contender.grid, key=regret)


def judging(contender: Contender, world: Environment) -> list[dict]:
    """Jobs with the best setting on the seeds that count."""
    setting = best(contender, world)
    return [job(contender, world, setting, seed) for seed in contender.judge]


def result(line: dict) -> dict[str, np.ndarray]:
    """What `play` stored for a job."""
    with np.load(line["out"]) as file:
        return dict(file)


def stored(line: dict) -> bool:
    return Path(line["out"]).exists()
