"""One gamma for drift and for jumps: what it costs not to know which of the two a world does.

The paper says that the same algorithm handles both kinds of worlds without knowing which. But the
gamma of Theorem 2 needs the path length and that of Theorem 3 the number of changes. `make
bench-one-discount` plays DOMD-GLB with each of them in the paper's four panels, and with one number
for all panels. That number is chosen on seeds 0 to 19; seeds 71000 to 71039 judge.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.tables import stored, told
from driftbandit import DOMD, Circle, SignFlip, Simulated, simulate, theory
from driftbandit.lab.report.statistics import half_width
from driftbandit.theory.domd import clip_discount, forgetting_drifting, forgetting_piecewise

CHOOSE, JUDGE = range(20), range(71_000, 71_040)
GRID = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999)
OWN, PATH, CHANGES, MISTAKEN, ONE = "own", "path", "changes", "mistaken", "one"
RULES = {
    OWN: "each panel's own theorem: the kind of world is known",
    PATH: "Theorem 2 everywhere: P_T is known, not the kind",
    CHANGES: "Theorem 3 everywhere: Gamma_T is known, not the kind",
    MISTAKEN: "the gamma of the other kind's panel at the same S: the kind is mistaken",
    ONE: "one number for all four panels",
}
WORLDS: dict[str, Simulated] = {
    f"{kind}, S = {S:g}": world(radius=S)
    for kind, world in (("drifting", Circle), ("piecewise-stationary", SignFlip))
    for S in (1.0, 3.0)
}


def regrets(world: Simulated, gamma: float, seeds: range) -> Any:
    """Of DOMD-GLB with radii / 5, as in the paper's figure, (seeds,)."""
    policy = DOMD.from_theory(world.problem, discount=gamma, scale=0.2)
    return simulate(policy, world, seeds=seeds).total


def changes(world: Simulated) -> int:
    """Gamma_T as the paper defines it: theta moves in every round of a drifting world."""
    known = world.problem.change_points
    return world.horizon - 1 if known is None else known


def discounts(world: Simulated, one: float) -> dict[str, float]:
    """The gamma of each rule."""
    problem, T = replace(world.problem, change_points=changes(world)), world.horizon
    by_path = clip_discount(forgetting_drifting(problem), T)
    by_changes = clip_discount(forgetting_piecewise(problem), T)
    own = theory.discount(world.problem)
    other = theory.discount(
        (SignFlip if isinstance(world, Circle) else Circle)(radius=world.radius, horizon=T).problem
    )
    return {OWN: own, PATH: by_path, CHANGES: by_changes, MISTAKEN: other, ONE: one}


def bound(world: Simulated, gamma: float) -> float:
    """The better of the explicit bounds of Theorems 2 and 3 at this gamma; both hold."""
    problem = replace(world.problem, change_points=changes(world))
    theorems = theory.regret_bound_drifting, theory.regret_bound_piecewise
    return min(theorem(problem, gamma=gamma, delta=0.01) for theorem in theorems)


def best_for_all() -> float:
    """The number of the grid whose worst ratio to the best of its panel is least."""
    means = np.array(
        [[regrets(w, gamma, CHOOSE).mean() for gamma in GRID] for w in WORLDS.values()]
    )
    return GRID[int(np.argmin((means / means.min(axis=1, keepdims=True)).max(axis=0)))]


def lines(one: float) -> Iterator[dict[str, Any]]:
    for name, world in WORLDS.items():
        own = regrets(world, discounts(world, one)[OWN], JUDGE)
        for rule, gamma in discounts(world, one).items():
            found = regrets(world, gamma, JUDGE)
            apart = found - own
            yield {
                "world": name,
                "rule": rule,
                "gamma": gamma,
                "seeds": len(JUDGE),
                "mean": float(found.mean()),
                "deviation": float(found.std(ddof=1)),
                "difference": float(apart.mean()),
                "half": float(half_width(apart.std(ddof=1), len(JUDGE))),
                "bound": bound(world, gamma),
            }


def row(line: dict[str, str]) -> list[str]:
    return [line[k] for k in ("world", "rule", "gamma", "mean", "difference", "half", "bound")]


def table() -> str:
    """Rules down, panels across: mean regret, gamma and explicit bound."""
    found = {(line["rule"], line["world"]): line for line in stored("one-discount")}
    rows = ["| gamma from | " + " | ".join(WORLDS) + " |", "|---" * (len(WORLDS) + 1) + "|"]
    for rule, words in RULES.items():
        cells = [_cell(found[rule, world]) for world in WORLDS]
        rows.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _cell(line: dict[str, str]) -> str:
    gamma, mean, bound = (float(line[k]) for k in ("gamma", "mean", "bound"))
    return f"{mean:.0f} ± {float(line['deviation']):.0f}, gamma {gamma:.4f}, bound {bound:,.0f}"


def ratios(rule: str, kind: str) -> str:
    """The regret of a rule over that of the panel's own theorem, in the panels of one kind."""
    found = {(line["rule"], line["world"]): float(line["mean"]) for line in stored("one-discount")}
    shares = [found[rule, w] / found[OWN, w] for w in WORLDS if w.startswith(kind)]
    return " and ".join(f"{share:.2f}" for share in shares)


def bounds(rule: str, kind: str) -> str:
    """The explicit bound of a rule over that of the panel's own theorem."""
    found = {(line["rule"], line["world"]): float(line["bound"]) for line in stored("one-discount")}
    shares = [found[rule, w] / found[OWN, w] for w in WORLDS if w.startswith(kind)]
    return " and ".join(f"{share:.1f}" for share in shares)


def number() -> str:
    """The one number, as it was chosen."""
    return f"{float(next(x for x in stored('one-discount') if x['rule'] == ONE)['gamma']):g}"


SAYS = {
    "onenumber": number,
    "onepath": lambda: ratios(PATH, "piecewise"),
    "onechanges": lambda: ratios(CHANGES, "drifting"),
    "changesbound": lambda: bounds(CHANGES, "drifting"),
    "pathbound": lambda: bounds(PATH, "piecewise"),
    "mistakendrift": lambda: ratios(MISTAKEN, "drifting"),
    "mistakenjump": lambda: ratios(MISTAKEN, "piecewise"),
    "onedrift": lambda: ratios(ONE, "drifting"),
    "onejump": lambda: ratios(ONE, "piecewise"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true", help="into docs/results/one-discount.csv")
    told("one-discount", lines(best_for_all()), row, parser.parse_args().store)


if __name__ == "__main__":
    main()
