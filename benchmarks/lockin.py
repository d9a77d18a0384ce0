"""Lock-in: `make bench-lockin` counts runs that end up with a worse arm and stay with it.

Twenty arms that stay, a world at rest, 50,000 rounds. A run is locked in if it loses more than
0.005 a round over the last 1,000 rounds, although it has had all the time to find the best arm.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.tables import stored, told
from driftbandit import GLBOMD, AutoDOMD, FixedArms, Policy, Stationary, simulate

SEEDS = range(67_000, 67_120)
TOGETHER = 40  # seeds played side by side, for the sake of memory
LOSS, LAST = 0.005, 1000
AT_MOST = 2  # runs of 120 in any world
RADII = (1.0, 3.0)
HERO = "AutoDOMD"
BONUSES = (2.5, 3.5)  # what it would take, next to the default of 2


def policies(world: Stationary) -> dict[str, Policy]:
    """AutoDOMD as the world tells it, as in practice, and with a wider bonus; and a learner that
    never forgets."""
    unknown = type(world.problem)(dim=world.dim, family=world.family)
    wider = {f"the same, bonus {b:g}": AutoDOMD(problem=unknown, bonus=b) for b in BONUSES}
    return {
        HERO: AutoDOMD(problem=world.problem),
        "AutoDOMD, radius unknown": AutoDOMD(problem=unknown),
        **wider,
        "GLB-OMD (practical)": GLBOMD(problem=unknown),
    }


def losses(policy: Policy, world: Stationary, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Loss per round at the end, and all regret, of every run."""
    last, total = [], []
    for first in range(0, len(seeds), TOGETHER):
        run = simulate(policy, world, seeds[first : first + TOGETHER])
        last.append(run.regret[:, -LAST:].mean(axis=1))
        total.append(run.total)
    return np.concatenate(last), np.concatenate(total)


def lines(seeds: range, horizon: int) -> Iterator[dict[str, Any]]:
    for radius in RADII:
        world = Stationary(horizon=horizon, radius=radius, arms=FixedArms(20))
        for name, policy in policies(world).items():
            last, total = losses(policy, world, seeds)
            yield {
                "world": f"S = {radius:g}",
                "policy": name,
                "rounds": horizon,
                "runs": len(seeds),
                "locked": int((last > LOSS).sum()),
                "worst": float(last.max()),
                "regret": float(total.mean()),
            }


def row(line: dict[str, Any]) -> list[str]:
    """Cells of the table."""
    locked = f"{line['locked']} of {line['runs']}"
    worst, regret = f"{float(line['worst']):.3f}", f"{float(line['regret']):.0f}"
    return [line["world"], line["policy"], locked, worst, regret]


def table() -> str:
    """Locked runs of every policy, from what is stored."""
    head = ["world", "policy", "locked in", "worst loss a round", "mean regret"]
    rows = [head, ["---"] * len(head), *(row(line) for line in stored("lockin"))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=len(SEEDS))
    parser.add_argument("--rounds", type=int, default=50_000)
    parser.add_argument("--store", action="store_true", help="into docs/results/lockin.csv")
    given = parser.parse_args()
    found = told("lockin", lines(SEEDS[: given.runs], given.rounds), row, given.store)
    most = max(line["locked"] for line in found if line["policy"] == HERO)
    if most > AT_MOST:
        sys.exit(f"not reached: {most} runs are locked in where {AT_MOST} are allowed")


if __name__ == "__main__":
    main()
