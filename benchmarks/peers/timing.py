"""All contenders in turns, one process at a time: what a round costs, and the ratios."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.progress import track
from rich.table import Table

from benchmarks import guard
from benchmarks.peers import contest
from benchmarks.peers.registry import Contender
from benchmarks.peers.venvs import FOLDER
from benchmarks.peers.worlds import worlds

WORLD, ROUNDS, REPEATS = "drift, S = 1", 600, 7
OURS = "driftbandit DOMD, defaults"
# (contender, how many times slower than ours it should at least be)
WANTED = (
    ("NumPy DOMD, naive", 30),
    ("vowpalwabbit ε-greedy, text twice", 100),
    ("vowpalwabbit ε-greedy", 100),
    ("bayesianbandits UCB", 300),
    ("bayesianbandits Thompson", 300),
)


class Speed(NamedTuple):
    """Of one round, in microseconds: the best median of the repeats, and its mean."""

    choose: float
    update: float
    mean: float
    bytes: int  # the learner as its package saves it
    resident: int  # growth of the process

    @property
    def round(self) -> float:
        return self.choose + self.update


def measure(contenders: list[Contender]) -> dict[str, Speed]:
    """Always anew: ratios are worth something only within one run."""
    shutil.rmtree(FOLDER / "results" / "timing", ignore_errors=True)
    results: dict[str, list] = {c.label: [] for c in contenders}
    world = worlds()[WORLD]
    for repeat in track(range(REPEATS), "timing"):
        for c in contenders:
            setting = c.grid[0] if c.timed_only else contest.best(c, world)
            line = contest.job(c, world, setting, 0, rounds=ROUNDS, repeat=repeat)
            line["out"] = str(FOLDER / "results" / "timing" / Path(line["out"]).name)
            contest.play(c, [line], lambda: None)
            results[c.label].append(contest.result(line))
    return {label: speed(found) for label, found in results.items()}


def speed(results: list[dict]) -> Speed:
    """The first hundred rounds, where kernels load and caches warm, count for no mean."""
    times = [
        (np.median(r["choose_ns"]), np.median(r["update_ns"]), mean(r, "choose_ns", "update_ns"))
        for r in results
    ]
    choose, update, average = np.array(min(times, key=lambda t: t[0] + t[1])) / 1000.0
    return Speed(choose, update, average, int(results[0]["bytes"]), int(results[0]["resident"]))


def mean(result: dict, *names: str) -> float:
    return sum(float(result[name][100:].mean()) for name in names)


def ratios(speeds: dict[str, Speed]) -> list[tuple[str, float, str]]:
    """(what, measured, wanted); the C yardstick is measured here and now, next to `Bandit`."""
    ours = speeds[OURS].round
    found = [
        (f"{label} over Bandit", speeds[label].round / ours, f">= {least}")
        for label, least in WANTED
        if label in speeds
    ]
    through_ctypes = min(guard.bandit_over_c() for _ in range(REPEATS))
    return [*found, ("Bandit over C through ctypes", through_ctypes, "<= 3")]


def shown(ratio: float) -> str:
    """Three digits, and none after the point of a large one."""
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:.0f}"


def table(rows: list[tuple[str, float, str]]) -> Table:
    found = Table("choose + update, d = 5, 30 arms", "measured", "wanted", title="Ratios")
    for what, measured, wanted in rows:
        found.add_row(what, shown(measured), wanted)
    return found
