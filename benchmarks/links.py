"""What a reward family of one's own costs: `python -m benchmarks.links` prints it.

Rounds of the probit of docs/families.md, in Python and compiled, over rounds of `Bernoulli`.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from scipy import special

from benchmarks.roads import seconds
from benchmarks.tables import report
from driftbandit import DOMD, AutoDOMD, Bandit, Bernoulli, Family, Problem


@njit
def normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


@njit
def density(z: float) -> float:
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


@njit
def integral(z: float) -> float:
    return z * normal(z) + density(z)


@dataclass(frozen=True)
class TimedProbit(Family):
    """As on the page, with what AutoDOMD and a round need."""

    R = 1.0
    g = math.sqrt(math.pi / 8)
    quasi = True
    self_concordance = 3.0

    def m(self, z: Any) -> Any:
        return z * special.ndtr(z) + self.dmu(z)

    def mu(self, z: Any) -> Any:
        return special.ndtr(z)

    def dmu(self, z: Any) -> Any:
        return np.exp(-0.5 * np.square(z)) / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class TimedFastProbit(TimedProbit):
    def compiled(self) -> Any:
        return integral, normal, density


def figures():
    """(what, measured, required, reached) one by one."""
    families = Bernoulli(), TimedProbit(), TimedFastProbit()
    for policy, rounds in ((DOMD, 200), (AutoDOMD, 5)):
        players = [Bandit(policy(problem=Problem(dim=5, family=family))) for family in families]
        shipped, *own = seconds(players, 5, 30, rounds, 100)
        name = f"{policy.__name__}, d=5, 30 arms"
        for how, spent in zip(("in Python", "with compiled()"), own):
            yield f"{name}: probit {how} over Bernoulli", spent / shipped, "", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    return report("A family of one's own over a shipped one", figures(), args.csv)


if __name__ == "__main__":
    sys.exit(main())
