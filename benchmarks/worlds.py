"""How AutoDOMD compares in many worlds, as ratios: `make bench-worlds`.

Reads the stored results of the studies many-worlds, paper-figure and ablation; running a study
again runs only what is missing.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent.parent / "docs" / "results"
AUTO, FIXED, THEORY = "AutoDOMD", "best fixed", "DOMD-GLB"
NO_RIVAL = {AUTO, FIXED, THEORY, "DOMD-GLB (practical)", "Uniform", "Oracle", "Greedy"}
Regrets = dict[str, dict[str, dict[str, str]]]  # environment, policy, line of the results


def regrets(name: str) -> Regrets:
    """The lines of a study's final results."""
    found: Regrets = {}
    with (RESULTS / f"{name}.csv").open() as file:
        for line in csv.DictReader(file):
            found.setdefault(line["environment"], {})[line["policy"]] = line
    return found


def mean(lines: dict[str, dict[str, str]], policy: str) -> float:
    return float(lines[policy]["mean"])


def rivals(lines: dict[str, dict[str, str]]) -> dict[str, float]:
    return {policy: mean(lines, policy) for policy in lines if policy not in NO_RIVAL}


def ratios(worlds: Regrets, to: str) -> np.ndarray:
    return np.array([mean(lines, AUTO) / mean(lines, to) for lines in worlds.values()])


def geometric(values: np.ndarray) -> float:
    return float(np.exp(np.log(values).mean()))


def figures() -> list[tuple[str, float, float]]:
    """What, measured, at most."""
    worlds = regrets("many-worlds")
    fixed, theory = ratios(worlds, FIXED), ratios(worlds, THEORY)
    panels = {
        world: mean(lines, AUTO) / min(rivals(lines).values())
        for world, lines in regrets("paper-figure").items()
    }
    return [
        ("AutoDOMD / best fixed in hindsight, geometric mean", geometric(fixed), 1.1),
        ("AutoDOMD / best fixed in hindsight, worst world", fixed.max(), 1.75),
        ("AutoDOMD / theory-tuned DOMD, geometric mean", geometric(theory), 0.5),
        ("AutoDOMD / theory-tuned DOMD, worst world", theory.max(), 1.1),
        *((f"AutoDOMD / best rival, {world}", ratio, 1.0) for world, ratio in panels.items()),
    ]


def summary_table() -> str:
    rows = ["| figure | measured | at most |", "|---|---|---|"]
    rows += [f"| {name} | {value:.2f} | {bound:g} |" for name, value, bound in figures()]
    return "\n".join(rows)


def worlds_table() -> str:
    """World by world."""
    head = f"| world | {AUTO} | {FIXED} in hindsight | ratio | theory-tuned DOMD | best rival |"
    rows = [head, "|---" * 6 + "|"]
    for world, lines in regrets("many-worlds").items():
        best = min(rivals(lines), key=lambda policy: rivals(lines)[policy])
        auto, fixed = mean(lines, AUTO), mean(lines, FIXED)
        spread = float(lines[AUTO]["deviation"])
        rows.append(
            f"| {world} | {auto:.0f} ± {spread:.0f} | {fixed:.0f} | {auto / fixed:.2f} "
            f"| {mean(lines, THEORY):.0f} | {rivals(lines)[best]:.0f} ({best}) |"
        )
    return "\n".join(rows)


def ablation_table() -> str:
    """Regret of each variant over that of the default: geometric mean, best and worst world."""
    worlds = regrets("ablation")
    variants = [p for p in next(iter(worlds.values())) if p != AUTO]
    rows = ["| changed | geometric mean | best world | worst world |", "|---|---|---|---|"]
    for variant in variants:
        r = 1.0 / ratios(worlds, variant)
        worst = list(worlds)[int(r.argmax())]
        rows.append(f"| {variant} | {geometric(r):.2f} | {r.min():.2f} | {r.max():.2f} ({worst}) |")
    return "\n".join(rows)


def draw_memory() -> None:
    """What `plot_memory` shows where theta jumps three times."""
    import matplotlib.pyplot as plt

    from driftbandit import AutoDOMD, Bandit, Jumps

    world = Jumps(horizon=4000, jumps=3, radius=3.0)
    bandit, (block,) = Bandit(AutoDOMD(problem=world.problem)), world.blocks([2], 4000)
    for arms, theta, luck in zip(block.arms[:, 0], block.theta[:, 0], block.luck[:, 0]):
        x = arms[bandit.choose(arms)]
        bandit.update(x, float(world.family.draw(x @ theta, luck)))
    figure, ax = plt.subplots(figsize=(7.0, 2.6), layout="constrained")
    for t in np.flatnonzero(np.diff(block.theta[:, 0, 0])):
        ax.axvline(t, color="0.7", lw=1, ls="--")
    bandit.plot_memory(ax=ax)
    figure.savefig(RESULTS / "memory.png", dpi=150)


if __name__ == "__main__":
    draw_memory()
    print(worlds_table(), summary_table(), sep="\n\n")
    late = [name for name, value, bound in figures() if value > bound]
    if late:
        sys.exit(f"not reached: {', '.join(late)}")
