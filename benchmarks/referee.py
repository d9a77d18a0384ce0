"""How often the referee errs: `make bench-referee`.

Three players in the environments of suite-3: AutoDOMD that explores a little; the same with other
random numbers, an equal; and one that explores more, so that it has about a tenth more regret. Each
plays 10 seeds. A match is a draw of as many seeds as the suite has, and of more if they do not
decide it, 1,000 times. Last, a tenth of a match with a real program is timed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from benchmarks.tables import Figure, report
from driftbandit import AutoDOMD, Policy, simulate
from driftbandit.lab.referee import (
    CANNOT_SAY,
    FLOOR,
    KEEP,
    KILL,
    LOOKS,
    Game,
    at_each_look,
    command_of,
    play_game,
    ratio_of_regrets,
    verdict_of,
)
from driftbandit.lab.run.suite import read_suite

SUITE, MATCHES, FIRST_SEED, MARGIN = "suite-3", 1000, 170_000, 0.05
EXPLORES, WORSE = 0.005, 0.015  # share of rounds in which a player plays an arm at random
PART = 10  # of the games of a match are timed
PROGRAM = Path(__file__).parent.parent / "examples" / "referee" / "linucb.py"


@dataclass(frozen=True, kw_only=True)
class Explorer(Policy):
    """AutoDOMD that plays a random arm in a share of the rounds; `salt` is another chance."""

    share: float
    salt: float = 0.0

    @property
    def noise_size(self) -> int:
        return 2

    def _base(self) -> AutoDOMD:
        return AutoDOMD(problem=self.problem)

    def init(self, n=1):
        return self._base().init(n)

    def choose(self, memory, arms, noise=None):
        u = (ndtr(noise) + self.salt) % 1.0
        at_random = (u[:, 1] * arms.shape[1]).astype(int)
        return np.where(u[:, 0] < self.share, at_random, self._base().choose(memory, arms))

    def update(self, memory, x, r, noise=None):
        return self._base().update(memory, x, r)


def played(seeds: int) -> dict[str, dict[str, np.ndarray]]:
    """Regrets of every player by environment, (seeds,) each."""
    suite = read_suite(SUITE)
    study, _ = suite.study([{"type": "Uniform"}], [])
    found: dict[str, dict[str, np.ndarray]] = {"one": {}, "equal": {}, "worse": {}}
    for label, world, _ in study.worlds():
        players = {
            "one": Explorer(problem=world.problem, share=EXPLORES),
            "equal": Explorer(problem=world.problem, share=EXPLORES, salt=0.5),
            "worse": Explorer(problem=world.problem, share=WORSE, salt=0.5),
        }
        for name, policy in players.items():
            run = simulate(policy, world, range(FIRST_SEED, FIRST_SEED + seeds))
            found[name][label] = run.total
    return found


def games(regrets: dict[str, np.ndarray]) -> dict:
    return {
        (label, k): Game(np.array([value]), np.zeros(1), 1.0)
        for label, values in regrets.items()
        for k, value in enumerate(values)
    }


def drawn(found: dict, player: str, size: int, rng: np.random.Generator) -> tuple[dict, dict]:
    """Regrets of two players on seeds drawn with replacement. Equals change places at random, so
    that neither is better by the chance of these seeds."""
    mine, theirs = {}, {}
    for label, values in found["one"].items():
        seeds = rng.integers(len(values), size=size)
        pair = found[player][label][seeds], values[seeds]
        swapped = rng.random(size) < (0.5 if player == "equal" else 0.0)
        mine[label], theirs[label] = np.where(swapped, pair[::-1], pair)
    return mine, theirs


def matches(found: dict, player: str, count: int) -> dict[str, float]:
    """How matches against the first player end, as shares, and the mean number of looks."""
    suite, rng = read_suite(SUITE), np.random.default_rng(0)
    floors = {label: FLOOR * value for label, value in suite.reference.items()}
    size = suite.study([{"type": "Uniform"}], [])[0].seeds
    ends = dict.fromkeys((KILL, KEEP, CANNOT_SAY, "looks"), 0.0)
    for _ in range(count):
        both = drawn(found, player, size * LOOKS, rng)
        for look in range(1, LOOKS + 1):
            some = (games({k: v[: look * size] for k, v in each.items()}) for each in both)
            verdict = verdict_of(ratio_of_regrets(*some, floors, at_each_look()), MARGIN)
            if verdict != CANNOT_SAY:
                break
        ends[verdict] += 1 / count
        ends["looks"] += look / count
    return ends


def figures(seeds: int, count: int):
    found = played(seeds)
    worse = [(found["worse"][k].mean() / v.mean()) for k, v in found["one"].items()]
    ratio = float(np.exp(np.log(worse).mean()))
    yield "regret of the worse player over the other's", ratio, "about 1.1", 1.05 < ratio < 1.15
    equal, worse_ends = (matches(found, player, count) for player in ("equal", "worse"))
    share = equal[KILL]
    yield "an equal player is killed: share of matches", share, "<= 0.05", share <= 0.05
    yield "an equal player is kept: share of matches", equal[KEEP], "", True
    share = worse_ends[KILL]
    yield "the worse player is killed: share of matches", share, ">= 0.95", share >= 0.95
    yield "the worse player: looks of a match, mean", worse_ends["looks"], "", True
    took = minutes_of_a_match()
    what = f"a match of examples/referee/linucb.py, from every {PART}th game: min"
    yield what, took, "<= 15", took <= 15


def minutes_of_a_match() -> float:
    """The time of a match with the suite's seeds, on all cores, from a part of its games."""
    study, _ = read_suite(SUITE).study([{"type": "AutoDOMD", "tuning": "practical"}], [])
    seeds = range(study.first_seed, study.first_seed + study.seeds)
    jobs = [(world, seed) for _, world, _ in study.worlds() for seed in seeds]
    command, tic = command_of(f'"{sys.executable}" "{PROGRAM}"'), time.perf_counter()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: play_game(command, *job), jobs[::PART]))
    games = (time.perf_counter() - tic) * len(jobs) / len(jobs[::PART])
    tic, worlds = time.perf_counter(), study.worlds()[::PART]
    for _, world, _ in worlds:
        simulate(AutoDOMD(problem=world.problem), world, seeds)
    reference = (time.perf_counter() - tic) * len(study.worlds()) / len(worlds)
    return (games + reference) / 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--matches", type=int, default=MATCHES)
    parser.add_argument("--csv", type=Path)
    args = parser.parse_args()
    rows: list[Figure] = list(figures(args.seeds, args.matches))
    return report("The referee", rows, args.csv)


if __name__ == "__main__":
    sys.exit(main())
