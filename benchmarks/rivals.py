"""What the rivals cost: `make bench-rivals`.

Seconds per seed of every maximum-likelihood rival at T = 5000, the time of the paper's whole
comparison on two cores, and how the cost of a round grows with t. Exit status 1 if a figure is
missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.console import Console
from rich.table import Table

from driftbandit import (
    BVDGLMUCB,
    DGLUCB,
    DOMD,
    GLBOMD,
    GLMUCB,
    GLOC,
    MASTER,
    SCDGLUCB,
    SCSWGLUCB,
    SWGLUCB,
    Circle,
    GLBWeightUCB,
    RestartGLB,
    SCBPWWeightUCB,
    SCBWeightUCB,
    SignFlip,
    simulate,
)

# The paper's figure: what it compares in each setting.
COMPARISON = {
    Circle: (DOMD, GLBOMD, RestartGLB, MASTER, BVDGLMUCB, SCBWeightUCB),
    SignFlip: (DOMD, GLBOMD, DGLUCB, MASTER, SCDGLUCB, SCBPWWeightUCB),
}
FLAT = (DOMD, GLBOMD, GLOC)
# Estimates that stay in the ball, so that a round is one fit: the cost grows with t.
GROWING = {Circle: (GLBWeightUCB, SCBWeightUCB), SignFlip: (SCDGLUCB, SCBPWWeightUCB)}
# Bounded histories, and rivals whose cost also depends on how often they have to project.
OTHERS = {Circle: (RestartGLB, GLMUCB, BVDGLMUCB, MASTER), SignFlip: (SWGLUCB, SCSWGLUCB, DGLUCB)}


def play(world, kind, radius, seeds, horizon):
    """One cell; returns its wall time and the cost of each round in microseconds."""
    environment = world(radius=radius, horizon=horizon)
    policy = kind.from_theory(environment.problem, scale=0.2, delta=0.01)
    tic = time.perf_counter()
    run = simulate(policy, environment, seeds)
    return time.perf_counter() - tic, (run.choose_ns + run.update_ns) / 1000.0


def growth(cost):
    """Cost of the last tenth of the rounds over that of the second tenth."""
    tenth = len(cost) // 10
    return float(np.median(cost[-tenth:]) / np.median(cost[tenth : 2 * tenth]))


def growth_of_the_past(cost):
    """The same of what a history adds to a round. What a round costs without one, as the first
    ones show, is left out: in NumPy it is most of the cost up to some thousand rounds."""
    tenth, fresh = len(cost) // 10, np.median(cost[10:60])
    return float((np.median(cost[-tenth:]) - fresh) / (np.median(cost[tenth : 2 * tenth]) - fresh))


def cost_table(horizon):
    """How the cost of a round grows; one seed at a time, nothing else running."""
    table = Table(
        "policy", "µs early", "µs late", "late / early", "s per seed", title="Cost of a round"
    )
    ratios, past, slowest = {}, {}, 0.0
    cells = [(Circle, kind) for kind in FLAT]
    for group in (GROWING, OTHERS):
        cells += [(world, kind) for world, kinds in group.items() for kind in kinds]
    for world, kind in cells:
        play(world, kind, 1.0, (0,), 60)  # compile
        seconds, cost = play(world, kind, 1.0, (0,), horizon)
        tenth, past[kind] = len(cost) // 10, growth_of_the_past(cost)
        ratios[kind] = growth(cost)
        early, late = np.median(cost[tenth : 2 * tenth]), np.median(cost[-tenth:])
        table.add_row(
            kind.__name__, f"{early:.1f}", f"{late:.1f}", f"{ratios[kind]:.2f}", f"{seconds:.2f}"
        )
        slowest = max(slowest, seconds)
    return table, ratios, past, slowest


def whole_comparison(seeds, horizon):
    """Wall time of 2 settings x 2 radii x 6 policies x seeds on two processes."""
    jobs = [
        (world, kind, radius, range(seeds), horizon)
        for radius in (1.0, 3.0)
        for world, kinds in COMPARISON.items()
        for kind in kinds
    ]
    tic = time.perf_counter()
    with ProcessPoolExecutor(2) as pool:
        for future in [pool.submit(play, *job) for job in jobs]:
            future.result()
    return time.perf_counter() - tic


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=20)
    args = parser.parse_args()
    console = Console(width=120)
    costs, ratios, past, slowest = cost_table(args.horizon)
    console.print(costs)
    minutes = whole_comparison(args.seeds, args.horizon) / 60
    flat = max(ratios[kind] for kind in FLAT)
    growing = min(past[kind] for kinds in GROWING.values() for kind in kinds)
    figures = [
        ("slowest rival, seconds per seed", slowest, "< 5", slowest < 5),
        ("the paper's comparison on two cores, minutes", minutes, "< 10", minutes < 10),
        ("largest growth of DOMD, GLB-OMD, GLOC", flat, "<= 1.2", flat <= 1.2),
        (
            "smallest growth of what the past costs discounted MLEs, unprojected",
            growing,
            ">= 2",
            growing >= 2,
        ),
    ]
    table = Table("figure", "measured", "required", "reached")
    for what, measured, required, ok in figures:
        table.add_row(what, f"{measured:.3g}", required, "yes" if ok else "NO")
    console.print(table)
    return 0 if all(ok for *_, ok in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
