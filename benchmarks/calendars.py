"""Long calendars: `make bench-calendars` sets AutoDOMD against the best fixed half-life.

A world at rest for 100,000 rounds, and one that turns once in a million: a day of a busy site is no
more than that. The half-life is chosen on seeds that judge nobody, and nobody knows the
radius or the horizon.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from benchmarks.tables import stored, told
from benchmarks.worlds import interval, named, ratio
from driftbandit import DOMD, GLBOMD, AutoDOMD, Circle, Policy, Problem, Stationary, simulate
from driftbandit.environments import Simulated

HALF_LIVES = (300, 1_000, 3_000, 10_000, 30_000, None)  # None: never forgets
BONUSES = (1.0, 2.0)
CHOOSE, JUDGE = range(4), range(71_000, 71_010)
TOGETHER = 10  # seeds played side by side: more need more memory
AT_MOST = 1.05  # AutoDOMD over the best half-life where the world turns, over GLB-OMD at rest


def worlds(rounds: int) -> dict[str, Simulated]:
    """The world at rest, and one that turns."""
    return {
        f"at rest, {rounds // 10:,} rounds": Stationary(horizon=rounds // 10),
        f"one turn in {rounds:,} rounds": Circle(turns=1.0, horizon=rounds),
    }


def unknown(world: Simulated) -> Problem:
    """What practice knows of a world."""
    return Problem(dim=world.dim, family=world.family)


def totals(policy: Policy, world: Simulated, seeds: range) -> np.ndarray:
    """Regret of every seed."""
    parts = (seeds[k : k + TOGETHER] for k in range(0, len(seeds), TOGETHER))
    return np.concatenate([simulate(policy, world, part).total for part in parts])


def best_fixed(world: Simulated, seeds: range) -> tuple[DOMD, str]:
    """The setting with the least regret on these seeds, and what it is."""
    base, found = DOMD(problem=unknown(world), step=1.0), []
    for half_life, bonus in product(HALF_LIVES, BONUSES):
        memory = {"discount": 1.0} if half_life is None else {"half_life": half_life}
        name = f"{'never forgets' if half_life is None else half_life}, bonus {bonus:g}"
        policy = DOMD(problem=base.problem, step=1.0, bonus=bonus, **memory)
        found.append((float(totals(policy, world, seeds).mean()), name, policy))
    _, name, policy = min(found, key=lambda each: each[0])
    return policy, name


def lines(choose: range, judge: range, rounds: int) -> Iterator[dict[str, Any]]:
    for label, world in worlds(rounds).items():
        fixed, setting = best_fixed(world, choose)
        policies = AutoDOMD(problem=unknown(world)), fixed, GLBOMD(problem=unknown(world))
        auto, best, still = (totals(policy, world, judge) for policy in policies)
        line = {"world": label, "seeds": len(judge), "setting": setting}
        means = {"auto": auto.mean(), "fixed": best.mean(), "glbomd": still.mean()}
        pairs = np.stack([auto, best], axis=1)
        yield line | {k: float(v) for k, v in means.items()} | named("ratio", ratio(pairs[None]))


def row(line: dict[str, Any]) -> list[str]:
    """Cells of the table."""
    means = [f"{float(line[name]):.0f}" for name in ("auto", "fixed", "glbomd")]
    return [line["world"], *means, line["setting"], interval(line, "ratio")]


def table() -> str:
    """World by world, from what is stored."""
    head = ["world", "AutoDOMD", "best half-life", "GLB-OMD (practical)", "best half-life is"]
    head.append("AutoDOMD / best half-life [95 %]")
    rows = [head, ["---"] * len(head), *(row(line) for line in stored("calendars"))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def missed(found: list[dict[str, Any]]) -> list[str]:
    """What is not reached: as little regret as GLB-OMD at rest, as the best half-life elsewhere."""
    at_rest, *turning = found
    ratios = {at_rest["world"]: at_rest["auto"] / at_rest["glbomd"]}
    ratios |= {each["world"]: each["ratio"] for each in turning}
    return [f"{world}: {ratio:.2f}" for world, ratio in ratios.items() if ratio > AT_MOST]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=len(JUDGE), help="that judge")
    parser.add_argument("--choose", type=int, default=len(CHOOSE), help="seeds for the half-life")
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--store", action="store_true", help="into docs/results/calendars.csv")
    given = parser.parse_args()
    made = lines(CHOOSE[: given.choose], JUDGE[: given.seeds], given.rounds)
    found = told("calendars", made, row, given.store)
    if missed(found):
        sys.exit(f"not reached: {'; '.join(missed(found))}")


if __name__ == "__main__":
    main()
