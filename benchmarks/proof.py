"""The proofs at work: `make bench-proof` checks every inequality in the paper's two worlds.

Writes docs/results/proof.csv, and draws the run with a change of sign as docs/results/proof.svg,
and the orders of Table 1 as docs/results/orders.svg.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from benchmarks import tables, themed
from driftbandit import DOMD, Circle, Environment, SignFlip, simulate, theory

WORLDS = {"drift": Circle(horizon=2000), "sign flip": SignFlip(horizon=2000)}


def checked(world: Environment) -> theory.Proof:
    policy = DOMD.from_theory(world.problem, delta=0.01)
    return theory.check(simulate(policy, world, seeds=range(5)))


def draw_orders() -> None:
    """Table 1 against T, at d = 5 and S = 1, for one turn of theta or one change of its sign."""
    problem = replace(Circle().problem, change_points=1)
    horizons = [10**k for k in range(2, 11)]
    themed.save(theory.plot_table_1(problem, horizons), tables.RESULTS / "orders.svg")


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    proofs = {name: checked(world) for name, world in WORLDS.items()}
    lines = [{"world": name} | row for name, proof in proofs.items() for row in proof.rows()]
    tables.write("proof", lines, ".4g")
    themed.save(proofs["sign flip"].plot(), tables.RESULTS / "proof.svg")
    draw_orders()
    print(*proofs.values(), sep="\n\n")
    if not all(proof.holds for proof in proofs.values()):
        sys.exit("a side has crossed")


if __name__ == "__main__":
    main()
