"""The proofs at work: `make bench-proof` checks every inequality in the paper's two worlds.

Writes docs/results/proof.csv, and draws the run with a change of sign as docs/results/proof.png,
and the orders of Table 1 as docs/results/orders.png.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from benchmarks import tables
from driftbandit import DOMD, Circle, Environment, SignFlip, simulate, theory

WORLDS = {"drift": Circle(horizon=2000), "sign flip": SignFlip(horizon=2000)}


def checked(world: Environment) -> theory.Proof:
    policy = DOMD.from_theory(world.problem, delta=0.01)
    return theory.check(simulate(policy, world, seeds=range(5)))


def draw_orders() -> None:
    """Table 1 against T, at d = 5 and S = 1, for one turn of theta or one change of its sign."""
    problem = replace(Circle().problem, change_points=1)
    horizons = [10**k for k in range(2, 11)]
    theory.plot_table_1(problem, horizons).savefig(tables.RESULTS / "orders.png", dpi=110)


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    proofs = {name: checked(world) for name, world in WORLDS.items()}
    lines = [{"world": name} | row for name, proof in proofs.items() for row in proof.rows()]
    tables.write("proof", lines, ".4g")
    proofs["sign flip"].plot().savefig(tables.RESULTS / "proof.png", dpi=110)
    draw_orders()
    print(*proofs.values(), sep="\n\n")
    if not all(proof.holds for proof in proofs.values()):
        sys.exit("a side has crossed")


if __name__ == "__main__":
    main()
