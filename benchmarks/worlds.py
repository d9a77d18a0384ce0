"""How AutoDOMD compares in many worlds, as ratios on common seeds: `make bench-worlds`.

Seeds 1000 to 2100 and 81000 to 83119 designed AutoDOMD, and seeds 0 to 19 chose `best fixed` in
each world; many-worlds judges on seeds from 5000 on, ablation on seeds from 8000 on,
whole-catalogue (the paper's four settings, every policy of the catalogue) on seeds from 9000 on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks import stored_studies, tables, themed
from benchmarks.stored_studies import BUDGET, CATALOGUE, Runs
from benchmarks.tables import Line, stored, write

AUTO, FIXED, THEORY = "AutoDOMD", "best fixed", "DOMD-GLB"
# "best fixed" is chosen in hindsight and "Oracle" is told theta; everything else is a rival, the
# paper's method and our other presets among them.
NO_RIVAL = {AUTO, FIXED, "Oracle"}
# Where the best rival is chosen: tuned by its paper, and tuned on other seeds. And what is stored.
PANELS = {CATALOGUE: "panels", BUDGET: "budget-panels"}
Regrets = dict[str, dict[str, dict[str, str]]]  # environment, policy, line of the stored results


def regrets(name: str) -> Regrets:
    """The lines of a study's final results."""
    found: Regrets = {}
    for line in stored(name):
        found.setdefault(line["environment"], {})[line["policy"]] = line
    return found


def mean(lines: dict[str, dict[str, str]], policy: str) -> float:
    return float(lines[policy]["mean"])


def collect(results: Path) -> None:
    """Store what the documents quote of many-worlds; settings come from the folder of results."""
    from driftbandit.lab import RunStore
    from driftbandit.lab.report.aggregate import aggregates, normalised_runs
    from driftbandit.lab.report.summary import chosen

    found = chosen(RunStore(results / "many-worlds"))
    settings = {x["world"]: x["chosen"] for x in stored("worlds")}
    settings |= {world: text for (world, policy), text in found.items() if policy == FIXED}
    worlds = stored_studies.runs("many-worlds")
    write("worlds", [world_line(w, runs, settings.get(w, "")) for w, runs in worlds.items()])
    write("auto", figures(worlds))
    together = normalised_runs(stored_studies.regrets("many-worlds"), THEORY)
    if together:
        aggregates(together).write_csv(tables.RESULTS / "together.csv", float_precision=4)


def collect_panels(study: str) -> None:
    """Store AutoDOMD next to the best rival of a study, in the paper's settings."""
    panels = stored_studies.runs(study)
    write(PANELS[study], [panel_line(panel, runs) for panel, runs in panels.items()])


def panel_line(panel: str, runs: dict[str, dict[int, float]]) -> Line:
    """Compare AutoDOMD with the rival of least regret, on common seeds."""
    rival = best_rival(runs)
    both = pairs(runs, rival)
    auto, other = both[0].mean(axis=0)
    facts = {"panel": panel, "seeds": both.shape[1], "rivals": len(runs.keys() - NO_RIVAL)}
    return {**facts, "auto": auto, "rival": rival, "regret": other, **named("ratio", ratio(both))}


def pairs(runs: dict[str, dict[int, float]], policy: str) -> np.ndarray:
    """(1, seeds, 2): regrets of AutoDOMD and of another policy on the seeds that both have."""
    mine, other = runs[AUTO], runs[policy]
    return np.array([[(mine[s], other[s]) for s in sorted(mine) if s in other]])


def ratio(stack: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean over worlds of the ratio of means, with its 95 % interval."""
    from driftbandit.lab.report.statistics import geometric_mean_of_ratios, stratified_interval

    low, high = stratified_interval(geometric_mean_of_ratios, stack)
    return geometric_mean_of_ratios(stack), float(low), float(high)


def best_rival(runs: dict[str, dict[int, float]]) -> str:
    """The rival with the least regret, each compared to AutoDOMD on common seeds."""
    rivals = [policy for policy in runs if policy not in NO_RIVAL]
    return max(rivals, key=lambda policy: advantage(pairs(runs, policy)[0]))


def advantage(both: np.ndarray) -> float:
    mine, other = both.mean(axis=0)
    return float(mine / other)


def world_line(world: str, runs: dict[str, dict[int, float]], setting: str) -> Line:
    mine = np.array(list(runs[AUTO].values()))
    rival = best_rival(runs)
    against = pairs(runs, rival)
    return {
        "world": world,
        "seeds": len(mine),
        "auto": mine.mean(),
        "deviation": mine.std(ddof=1) if len(mine) > 1 else "",
        "fixed": np.mean(list(runs[FIXED].values())),
        **named("ratio", ratio(pairs(runs, FIXED))),
        "chosen": setting,
        "theory": np.mean(list(runs[THEORY].values())),
        "rival": rival,
        "rival_seeds": against.shape[1],
        "rival_regret": against[0, :, 1].mean(),
        **named("rival_ratio", ratio(against)),
    }


def named(name: str, found: tuple[float, float, float]) -> Line:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found))


def figures(worlds: Runs) -> list[Line]:
    """What, measured with its interval, at most."""
    found = []
    for name, policy, least, worst in (
        ("the best fixed setting", FIXED, 1.1, 1.3),
        ("theory-tuned DOMD", THEORY, 0.5, 1.1),
    ):
        stack = [pairs(runs, policy) for runs in worlds.values()]
        single = max((ratio(one) for one in stack), key=lambda found: found[0])
        together = ratio(np.concatenate(stack))
        found.append((f"AutoDOMD / {name}, geometric mean", together, least))
        found.append((f"AutoDOMD / {name}, worst environment", single, worst))
    return [{"figure": n, **named("ratio", r), "at most": f"{bound:g}"} for n, r, bound in found]


def interval(line: dict[str, str], name: str) -> str:
    """Measured [low, high]; an old result may have no interval, or not be on common seeds."""
    if not line[name]:
        return ""
    known = line[f"{name}_low"] and f" [{float(line[f'{name}_low']):.2f}, "
    return f"{float(line[name]):.2f}" + (known and f"{known}{float(line[f'{name}_high']):.2f}]")


def summary() -> list[dict[str, str]]:
    """Return what is asked of AutoDOMD: in many worlds, and next to the whole catalogue."""
    against = (
        {**x, "figure": f"AutoDOMD / best rival, {x['panel']} ({x['rival']})", "at most": "1"}
        for x in stored("panels")
    )
    return [*stored("auto"), *against]


def above() -> list[dict[str, str]]:
    """Return the figures of the summary that are above what is asked."""
    return [x for x in summary() if float(x["ratio"]) > float(x["at most"])]


def summary_table() -> str:
    rows = ["| figure | measured [95 %] | at most |", "|---|---|---|"]
    rows += [f"| {x['figure']} | {interval(x, 'ratio')} | {x['at most']} |" for x in summary()]
    return "\n".join(rows)


def missed() -> str:
    """Name the figures of the summary that are above what is asked."""
    parts = (
        f"{x['figure']}: {interval(x, 'ratio')} where {x['at most']} is asked" for x in above()
    )
    return "; ".join(parts) or "nothing"


def worlds_table() -> str:
    """World by world."""
    head = "| environment | seeds | AutoDOMD | best fixed | AutoDOMD / best fixed [95 %] "
    rows = [
        head
        + "| its setting | theory-tuned DOMD | best rival | seeds | AutoDOMD / best rival [95 %] |"
    ]
    rows.append("|---" * 10 + "|")
    for x in stored("worlds"):
        cells = [x["world"], x["seeds"], f"{float(x['auto']):.0f} ± {float(x['deviation']):.0f}"]
        cells += [f"{float(x['fixed']):.0f}", interval(x, "ratio"), x["chosen"]]
        cells += [f"{float(x['theory']):.0f}", f"{float(x['rival_regret']):.0f} ({x['rival']})"]
        rows.append(
            "| " + " | ".join([*cells, x["rival_seeds"], interval(x, "rival_ratio")]) + " |"
        )
    return "\n".join(rows)


def together_table() -> str:
    """Over all worlds: interquartile mean and optimality gap of normalised regret."""
    rows = [
        "| policy | seeds | interquartile mean [95 %] | optimality gap [95 %] |",
        "|---" * 4 + "|",
    ]
    for x in stored("together"):
        middle, gap = (
            f"{float(x[k]):.3f} [{float(x[f'{k}_low']):.3f}, {float(x[f'{k}_high']):.3f}]"
            for k in ("iqm", "gap")
        )
        rows.append(f"| {x['policy']} | {x['seeds']} | {middle} | {gap} |")
    return "\n".join(rows)


def ablation_table() -> str:
    """Regret of each variant over that of the default: geometric mean, best and worst world."""
    worlds = regrets("ablation")
    variants = [p for p in next(iter(worlds.values())) if p != AUTO]
    rows = [
        "| changed | geometric mean | best environment | worst environment |",
        "|---|---|---|---|",
    ]
    for variant in variants:
        r = np.array([mean(lines, variant) / mean(lines, AUTO) for lines in worlds.values()])
        worst = list(worlds)[int(r.argmax())]
        middle = np.exp(np.log(r).mean())
        rows.append(f"| {variant} | {middle:.2f} | {r.min():.2f} | {r.max():.2f} ({worst}) |")
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
    themed.save(figure, tables.RESULTS / "memory.svg")


if __name__ == "__main__":
    draw_memory()
    print(worlds_table(), together_table(), summary_table(), sep="\n\n")
    if above():
        sys.exit(f"not reached: {missed()}")
