"""Budgets on real prompts: `make bench-budget` routes 3,609 prompts between three language models.

Each prompt has a quality and a cost in dollars under each model. The bandit sees what it chose, the
scenarios move prices and qualities, and three ceilings bound the mean cost. The data come from the
package paretobandit and are never shipped: `--data` names a file with arrays `quality`, `cost`
(n, 3) and `prompt` (n, 25).

What is measured is the loop's own: `Accounts` and `pricing` move the price, `Floor` decides, and
the learner is AutoDOMD. A test plays the same prompts with a `Loop`, and it chooses the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import stored, told
from driftbandit import AutoDOMD, Bandit, Budget, Category, Features, Loop, Reward, Vector
from driftbandit.loop.config import Settings
from driftbandit.loop.deciding.pricing import spends, terms
from driftbandit.loop.deciding.types import Request
from driftbandit.loop.exploration import Floor, pick
from driftbandit.loop.state.accounts import Account, Accounts
from driftbandit.policies.base import Floats

MODELS = ("llama-3.1-8b", "mistral-large", "gemini-2.5-pro")
LISTED = np.array([0.1 + 0.1, 0.5 + 1.5, 1.25 + 10.0]) * 300e-6  # dollars of 600 tokens, half out
CEILINGS = {"low": 0.0003, "middle": 0.000662, "high": 0.00187}  # dollars for a decision
SCENARIOS = ("stationary", "price", "quality", "newcomer")
JUDGE = range(20)
REQUIRED = {"stationary": 0.9212, "price": 0.9216, "quality": 0.8708, "newcomer": 0.8799}
OVERSPEND = {"stationary": 0.005, "price": 0.005, "quality": 0.02, "newcomer": 0.02}
WINDOW, SETTLED, WORST, HALF = 500, 600, 0.25, 142
DEARER = 1.2  # times the CPU time of a decision without a budget
FEATURES = Features(context={"prompt": Vector(25)}, arm={"model": Category(MODELS)}, dim=64)
REWARD = Reward(0, 1)


class Stream(NamedTuple):
    """Prompts in the order of a seed: what each model would give and cost, what its cost is stated
    as, and whether it is on offer."""

    X: Floats  # (n, 3, size)
    quality: Floats  # (n, 3)
    cost: Floats
    stated: Floats
    offered: np.ndarray


class Data(NamedTuple):
    X: Floats
    quality: Floats
    cost: Floats


def read(path: Path) -> Data:
    """Return the prompts, encoded."""
    with np.load(path) as file:
        quality, cost = file["quality"].astype(float), file["cost"].astype(float)
        prompts = file["prompt"].astype(float)
    arms = [{"model": model} for model in MODELS]
    contexts = [{"prompt": prompt.tolist()} for prompt in prompts]
    X = np.stack(FEATURES.encode_each(contexts, [arms] * len(contexts)))
    return Data(X, quality, cost)


def stream(data: Data, scenario: str, seed: int) -> Stream:
    """Return the prompts as they come in a scenario."""
    n = len(data.cost)
    order = np.random.default_rng(seed).permutation(n)
    quality, cost = data.quality[order].copy(), data.cost[order].copy()
    stated, offered = np.tile(LISTED, (n, 1)), np.ones((n, 3), dtype=bool)
    if scenario == "price":  # announced
        cost[n // 2 :, 2] *= 0.1
        stated[n // 2 :, 2] *= 0.1
    if scenario == "quality":  # silent
        quality[n // 3 : 2 * n // 3, 1] *= 0.75 / quality[:, 1].mean()
    if scenario == "newcomer":
        offered[: n // 3, 1] = False
    return Stream(data.X[order], quality, cost, stated, offered)


class Run(NamedTuple):
    """What was chosen, prompt by prompt."""

    arm: np.ndarray
    quality: Floats
    cost: Floats


def play(world: Stream, ceiling: float, exploration: float = 0.0, late: int = 0) -> Run:
    """Route all prompts; bills come `late` decisions after theirs."""
    bandit = Bandit(AutoDOMD(problem=FEATURES.problem(REWARD)))
    settings, accounts = Settings(budget=Budget("cost", mean=ceiling)), Accounts()
    account = accounts.by_name["cost"] = Account(bills={})
    rule, waiting, chosen = Floor(exploration), list[Any](), np.empty(len(world.X), dtype=int)
    for t, X in enumerate(world.X):
        on = np.flatnonzero(world.offered[t])
        arms: list[Any] = [{"cost": float(world.stated[t, k])} for k in on]
        asked = Request({}, [MODELS[k] for k in on], arms, None, None, str(t), None)
        spend = spends(asked, settings, accounts, float(t))["cost"]
        words = (0, str(t), bandit.name)
        p = rule.probabilities(bandit, np.ascontiguousarray(X[on]), words, terms([spend]))
        place = pick(p, words)
        k = chosen[t] = on[place]
        account.decide(float(t), spend, spend.costs[place])
        waiting.append((MODELS[k], arms[place]["cost"], spend.costs[place], world.cost[t, k]))
        if len(waiting) > late:
            account.bill(*waiting.pop(0))
        bandit.update(X[k], world.quality[t, k])
    each = np.arange(len(chosen)), chosen
    return Run(chosen, world.quality[each], world.cost[each])


def figures(run: Run, ceiling: float, scenario: str) -> dict[str, float]:
    """Return the figures of one run: overspend is a part of the ceiling, and so is the worst
    window; `half` counts decisions until the newcomer has half of its final share."""
    n = len(run.arm)
    windows = np.convolve(run.cost[SETTLED:], np.full(WINDOW, 1.0 / WINDOW), "valid")
    found = {
        "quality": float(run.quality.mean()),
        "overspend": float(run.cost[n // 2 :].mean() / ceiling - 1.0),
        "worst": float(windows.max() / ceiling - 1.0),
    }
    if scenario == "newcomer":
        final = (run.arm[2 * n // 3 :] == 1).mean()
        share = np.convolve(run.arm[n // 3 :] == 1, np.full(50, 0.02), "valid")
        there = np.flatnonzero(share >= final / 2.0)
        found["half"] = float(there[0] + 50) if len(there) else float(n)
    return found


def decision_cost(turns: int = 12, each: int = 100) -> float:
    """Return the CPU time of a decision with a budget over that without one: medians of turns that
    both loops take one after the other."""
    arms = {name: {"model": name} for name in MODELS}
    priced = {name: {**arms[name], "cost": cost} for name, cost in zip(MODELS, LISTED.tolist())}
    new: dict[str, Any] = {"features": FEATURES, "reward": REWARD, "training": "inline"}
    prompts = np.random.default_rng(0).standard_normal((each, 25)).tolist()
    with (
        Loop(":memory:", arms=arms, **new) as plain,
        Loop(":memory:", arms=priced, budget=Budget("cost", mean=0.000662), **new) as bounded,
    ):
        times: dict[Any, list[float]] = {plain: [], bounded: []}
        for _ in range(turns + 1):  # the first one compiles
            for loop, found in times.items():
                begun = time.process_time()
                for prompt in prompts:
                    loop.decide({"prompt": prompt})
                found.append(time.process_time() - begun)
        return float(np.median(times[bounded][1:]) / np.median(times[plain][1:]))


def lines(data: Data, seeds: Sequence[int], cases: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A line for each scenario and ceiling: means over the seeds, and the worst of them."""
    for scenario in SCENARIOS:
        for name, ceiling in CEILINGS.items():
            if cases and f"{scenario}-{name}" not in cases:
                continue
            runs = (play(stream(data, scenario, seed), ceiling) for seed in seeds)
            found = [figures(run, ceiling, scenario) for run in runs]
            columns = {key: np.array([each[key] for each in found]) for key in found[0]}
            yield {
                "scenario": scenario,
                "ceiling": name,
                "dollars": f"{ceiling:g}",
                "seeds": len(found),
                **{key: float(column.mean()) for key, column in columns.items()},
                "most overspend": float(columns["overspend"].max()),
                "worst of all": float(columns["worst"].max()),
                "half": float(columns["half"].mean()) if "half" in columns else "",
            }


def missed(line: dict[str, Any]) -> list[str]:
    """Return what a line does not reach."""
    scenario, half = line["scenario"], line["half"]
    tests = {
        "overspend": line["overspend"] <= OVERSPEND[scenario],
        "worst window": line["worst"] <= WORST,
        "quality": line["ceiling"] != "middle" or line["quality"] >= REQUIRED[scenario],
        "half": half == "" or half <= HALF,
    }
    where = f"{scenario}, {line['ceiling']}"
    return [f"{what} ({where})" for what, reached in tests.items() if not reached]


def row(line: dict[str, Any]) -> list[str]:
    """Cells of the table."""
    half = f"{float(line['half']):.0f}" if line["half"] else ""
    over = [f"{100.0 * float(line[key]):+.2f} %" for key in ("overspend", "worst")]
    return [line["scenario"], f"${line['dollars']}", f"{float(line['quality']):.4f}", *over, half]


HEAD = ["scenario", "ceiling", "quality", "overspend of the second half"]
HEAD += ["worst 500 decisions", "decisions until half of the newcomer's share"]


def table() -> str:
    """Scenario by scenario, from what is stored."""
    rows = [HEAD, ["---"] * len(HEAD), *(row(line) for line in stored("budget"))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="an npz file with the prompts")
    parser.add_argument("--seeds", type=int, default=len(JUDGE), help="that judge")
    parser.add_argument("--first", type=int, default=0, help="seed; design uses 1000 and up")
    parser.add_argument("--cases", nargs="*", default=(), help="such as quality-low; all if none")
    parser.add_argument("--store", action="store_true", help="into docs/results/budget.csv")
    parser.add_argument("--speed", action="store_true", help="only the cost of a decision")
    given = parser.parse_args()
    if given.speed:
        ratio = decision_cost()
        print(f"a decision with a budget takes {ratio:.2f} times as long as without one")
        sys.exit(0 if ratio <= DEARER else f"not reached: at most {DEARER} is asked for")
    seeds = range(given.first, given.first + given.seeds)
    found = told("budget", lines(read(given.data), seeds, given.cases), row, given.store)
    if short := [each for line in found for each in missed(line)]:
        sys.exit(f"not reached: {'; '.join(short)}")


if __name__ == "__main__":
    main()
