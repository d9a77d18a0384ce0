"""What a fleet costs, as figures and ratios from one run. `make bench-fleet` prints the table."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks import yardstick
from benchmarks.tables import report
from driftbandit import DOMD, Fleet, Problem

POLICY = DOMD(problem=Problem(dim=5))
BATCH, N_ARMS = 10_000, 30


def directions(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


class Keyed:
    """A fleet behind the interface of the yardstick, which has no keys."""

    def __init__(self, dtype):
        self.fleet = Fleet(POLICY, dtype=dtype)
        self.keys = np.random.default_rng(1).integers(2**62, size=BATCH)

    def choose(self, arms):
        return self.fleet.choose(self.keys, arms)

    def update(self, x, r):
        self.fleet.update(self.keys, x, r)


def learner_rounds(rounds: int = 80, warm: int = 20) -> dict[str, float]:
    """Seconds of a learner-round, choose and update in batches; best round, taking turns, after
    the first ones, in which learners are new and nobody has to project."""
    rng, rows = np.random.default_rng(0), np.arange(BATCH)
    players = {"float64": Keyed("float64"), "float32": Keyed("float32")}
    if yardstick.compiler():
        players["C"] = yardstick.YardstickFleet(POLICY, BATCH)
    theta = 0.5 * directions(rng, BATCH, 5)
    best = dict.fromkeys(players, np.inf)
    for turn in range(rounds):
        arms, luck = directions(rng, BATCH, N_ARMS, 5), rng.random(BATCH)
        order = list(players.items())  # whoever comes first finds cold caches: all take turns
        for name, player in order[turn % len(order) :] + order[: turn % len(order)]:
            tic = time.perf_counter()
            choice = player.choose(arms)
            toc = time.perf_counter()
            x = arms[rows, choice]
            r = (luck < 1 / (1 + np.exp(-np.einsum("bd,bd->b", x, theta)))).astype(float)
            tac = time.perf_counter()
            player.update(x, r)
            spent = toc - tic + time.perf_counter() - tac
            best[name] = min(best[name], spent / BATCH if turn >= warm else np.inf)
    return best


def resident(field: str) -> int:
    """Bytes of this process, VmRSS now or VmHWM at its largest."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(field)) * 1024


def million(count: int, repeats: int = 5) -> tuple[float, float, float]:
    """Bytes that a fleet of so many learners adds to a process, seconds to create them and
    seconds of an update of them all."""
    rng, policy = np.random.default_rng(0), DOMD(problem=Problem(dim=8))
    warm = Fleet(policy)
    warm.update(np.arange(300), directions(rng, 300, 8), np.zeros(300))
    x, keys = directions(rng, count, 8), rng.integers(2**62, size=count)
    rewards = [(rng.random(count) < 0.5).astype(float) for _ in range(repeats)]
    del warm
    gc.collect()
    before, fleet, times = resident("VmRSS"), Fleet(policy), []
    for r in rewards:
        tic = time.perf_counter()
        fleet.update(keys, x, r)
        times.append(time.perf_counter() - tic)
    assert len(fleet) == len(np.unique(keys))
    return float(resident("VmHWM") - before), times[0], min(times[1:])


def figures(count: int):
    """(what, measured, required, reached) one by one."""
    best = learner_rounds()
    where = f"a learner-round in a batch of {BATCH}, d=5, {N_ARMS} arms"
    for name in ("float64", "float32"):
        yield f"{where}, {name}: ns", best[name] * 1e9, "", True
        if "C" in best:
            ratio = best[name] / best["C"]
            yield f"{where}, {name}, over C", ratio, "<= 1.5", ratio <= 1.5
    single, double = (Fleet(POLICY, dtype=t).bytes_per_learner for t in ("float32", "float64"))
    share = single / double
    yield "bytes of a learner, d=5, float32 over float64", share, "<= 0.52", share <= 0.52
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # its memory is its own
        size, create, update = pool.submit(million, count).result()
    yield f"{count} learners, d=8, float64: GB", size / 1e9, "<= 1.2", size <= 1.2e9
    yield f"{count} learners created and updated: s", create, "", True
    yield f"{count} updates: s", update, "<= 2", update <= 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int, default=1_000_000, help="size of the large fleet")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    return report("Fleets", figures(args.learners), args.csv)


if __name__ == "__main__":
    sys.exit(main())
