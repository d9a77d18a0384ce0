"""How often the referee errs: `make bench-referee`.

Three players in the environments of suite-3: AutoDOMD that explores a little; the same with other
random numbers, an equal; and one that explores more, so that it has about a tenth more regret. Each
plays many seeds. A match is a draw of as many seeds as the suite has, 2,000 times. Last, a match
with a real program is timed.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtr

from benchmarks.tables import Figure, report
from driftbandit import AutoDOMD, Policy, simulate
from driftbandit.lab.referee import FLOOR, KILL, Game, ratio_of_regrets, referee
from driftbandit.lab.run.suite import read_suite

SUITE, MATCHES, FIRST_SEED = "suite-3", 2000, 170_000
EXPLORES, WORSE = 0.005, 0.015  # share of rounds in which a player plays an arm at random
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


def games(regrets: dict[str, np.ndarray], drawn: dict[str, np.ndarray]) -> dict:
    return {
        (label, k): Game(values[[seed]], np.zeros(1), 1.0)
        for label, values in regrets.items()
        for k, seed in enumerate(drawn[label])
    }


def kills(found: dict, player: str, matches: int) -> float:
    """Share of matches in which the player is killed."""
    suite, rng = read_suite(SUITE), np.random.default_rng(0)
    floors = {label: FLOOR * value for label, value in suite.reference.items()}
    size = suite.study([{"type": "Uniform"}], [])[0].seeds
    killed = 0
    for _ in range(matches):
        drawn = {k: rng.choice(len(v), size, replace=False) for k, v in found["one"].items()}
        mine, theirs = games(found[player], drawn), games(found["one"], drawn)
        killed += ratio_of_regrets(mine, theirs, floors)[1] > 1.0
    return killed / matches


def figures(seeds: int, matches: int):
    found = played(seeds)
    worse = [(found["worse"][k].mean() / v.mean()) for k, v in found["one"].items()]
    ratio = float(np.exp(np.log(worse).mean()))
    yield "regret of the worse player over the other's", ratio, "about 1.1", 1.05 < ratio < 1.15
    share = kills(found, "equal", matches)
    yield "an equal player is killed: share of matches", share, "<= 0.05", share <= 0.05
    share = kills(found, "worse", matches)
    yield "the worse player is killed: share of matches", share, ">= 0.95", share >= 0.95
    tic = time.perf_counter()
    verdict = referee(f'"{sys.executable}" "{PROGRAM}"', "AutoDOMD", read_suite(SUITE)).verdict
    took = (time.perf_counter() - tic) / 60
    yield "a match of examples/referee/linucb.py: min", took, "<= 15", took <= 15
    yield "its verdict is KILL", float(verdict == KILL), ">= 1", verdict == KILL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--matches", type=int, default=MATCHES)
    parser.add_argument("--csv", type=Path)
    args = parser.parse_args()
    rows: list[Figure] = list(figures(args.seeds, args.matches))
    return report("The referee", rows, args.csv)


if __name__ == "__main__":
    sys.exit(main())
