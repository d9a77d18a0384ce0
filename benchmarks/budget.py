"""Budgets on real prompts: `make bench-budget` routes 3,609 prompts between three language models.

Each prompt has a quality and a cost in dollars under each model. The bandit sees what it chose, the
scenarios move prices and qualities, and three ceilings bound the mean cost. The data come from the
package paretobandit and are never shipped: `--data` names a file with arrays `quality`, `cost`
(n, 3) and `prompt` (n, 25).

What is measured is the loop's own: `Accounts` and `pricing` move the price, `Floor` decides, and
the learner is AutoDOMD. A test plays the same prompts with a `Loop`, and it chooses the same.

The peer is ParetoBandit, in an environment of its own (`benchmarks/peers/paretobandit.py`), with
the setting that has the best quality on the design seeds among those that keep the budget.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.registry import PARETO
from benchmarks.peers.venvs import install, python_of
from benchmarks.tables import stored, told, write
from driftbandit import AutoDOMD, Bandit, Budget, Category, Features, Loop, Reward, Vector
from driftbandit.loop.config import Settings
from driftbandit.loop.deciding.pricing import spends, terms
from driftbandit.loop.deciding.types import Request
from driftbandit.loop.exploration import Floor, pick
from driftbandit.loop.state.accounts import Account, Accounts
from driftbandit.loop.storage.events import Bill
from driftbandit.policies.base import Floats

MODELS = ("llama-3.1-8b", "mistral-large", "gemini-2.5-pro")
LISTED = np.array([0.1 + 0.1, 0.5 + 1.5, 1.25 + 10.0]) * 300e-6  # dollars of 600 tokens, half out
CEILINGS = {"low": 0.0003, "middle": 0.000662, "high": 0.00187}  # dollars for a decision
SCENARIOS = ("stationary", "price", "quality", "newcomer")
JUDGE, DESIGN = range(20), range(1000, 1005)
# The published setting first. Its own `cost_penalty` and the pacer's modes change most.
SETTINGS = tuple(
    {"mode": mode, "lr": 0.05, "alpha": alpha, "forgetting_factor": 0.997, "cost_penalty": cost}
    for mode in ("adaptive", "soft", "hard")
    for cost in (0.3, 0.0)
    for alpha in (0.01, 0.05, 0.1, 0.3)
)
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
    prompt: Floats  # (n, 25)
    quality: Floats  # (n, 3)
    cost: Floats
    stated: Floats
    offered: np.ndarray


class Data(NamedTuple):
    X: Floats
    prompt: Floats
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
    return Data(X, prompts, quality, cost)


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
    return Stream(data.X[order], data.prompt[order], quality, cost, stated, offered)


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
        bill = Bill(MODELS[k], arms[place]["cost"], spend.costs[place])
        waiting.append((bill, world.cost[t, k]))
        if len(waiting) > late:
            account.bill(*waiting.pop(0))
        bandit.update(X[k], world.quality[t, k])
    return run_of(world, chosen)


def run_of(world: Stream, chosen: np.ndarray) -> Run:
    """Return what these choices gave and cost."""
    each = np.arange(len(chosen)), chosen
    return Run(chosen, world.quality[each], world.cost[each])


class Case(NamedTuple):
    scenario: str
    ceiling: str
    seed: int

    @property
    def dollars(self) -> float:
        return CEILINGS[self.ceiling]


def peer_runs(data: Data, cases: Sequence[tuple[Case, dict[str, Any]]]) -> list[Run]:
    """Let ParetoBandit route the prompts of cases, each with its setting."""
    script = Path(__file__).parent / "peers" / "paretobandit.py"
    with TemporaryDirectory() as folder:
        jobs, worlds = {}, {}
        for k, (case, setting) in enumerate(cases):
            world = stream(data, case.scenario, case.seed)
            path = Path(folder) / f"{case.scenario}-{case.seed}.npz"
            if not path.exists():
                np.savez(path, **{k: v for k, v in world._asdict().items() if k != "X"})
            worlds[case.scenario, case.seed] = world
            jobs[str(k)] = (str(path), case.dollars, case.seed, setting)
        listed, target = Path(folder) / "jobs.json", Path(folder) / "choices.npz"
        listed.write_text(json.dumps(jobs))
        subprocess.run([python_of(PARETO), script, listed, target], check=True)
        with np.load(target) as found:
            return [
                run_of(worlds[case.scenario, case.seed], found[str(k)])
                for k, (case, _) in enumerate(cases)
            ]


def best_setting(data: Data) -> dict[str, Any]:
    """Return the peer's setting with the best mean quality at the middle ceiling on design seeds,
    of those whose second half spends at most 2 % too much on average."""
    cases = [Case(scenario, "middle", seed) for scenario in SCENARIOS for seed in DESIGN]
    found = peer_runs(data, [(case, setting) for setting in SETTINGS for case in cases])
    told = []
    for k in range(len(SETTINGS)):
        runs = found[k * len(cases) : (k + 1) * len(cases)]
        each = [figures(run, case.dollars, case.scenario) for run, case in zip(runs, cases)]
        quality, over = (float(np.mean([f[key] for f in each])) for key in ("quality", "overspend"))
        told.append((over <= 0.02, quality, k))
    return SETTINGS[max(told)[2]]


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


def lines(
    data: Data, seeds: Sequence[int], cases: Sequence[str], peer: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    """A line for each scenario, ceiling and player: means over the seeds, and the worst of them."""
    for scenario in SCENARIOS:
        for name, ceiling in CEILINGS.items():
            if cases and f"{scenario}-{name}" not in cases:
                continue
            ours = [play(stream(data, scenario, seed), ceiling) for seed in seeds]
            yield line_of("driftbandit", scenario, name, ours)
            if peer is not None:
                theirs = peer_runs(data, [(Case(scenario, name, seed), peer) for seed in seeds])
                yield line_of("paretobandit", scenario, name, theirs)


def line_of(player: str, scenario: str, ceiling: str, runs: Sequence[Run]) -> dict[str, Any]:
    dollars = CEILINGS[ceiling]
    found = [figures(run, dollars, scenario) for run in runs]
    columns = {key: np.array([each[key] for each in found]) for key in found[0]}
    return {
        "player": player,
        "scenario": scenario,
        "ceiling": ceiling,
        "dollars": f"{dollars:g}",
        "seeds": len(found),
        **{key: float(column.mean()) for key, column in columns.items()},
        "error": float(columns["quality"].std(ddof=1) / np.sqrt(len(found))),  # of the quality
        "most overspend": float(columns["overspend"].max()),
        "worst of all": float(columns["worst"].max()),
        "half": float(columns["half"].mean()) if "half" in columns else "",
    }


def missed(line: dict[str, Any]) -> list[str]:
    """Return what a line of ours does not reach."""
    if line["player"] != "driftbandit":
        return []
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
    parts = (("overspend", "most overspend"), ("worst", "worst of all"))
    over = [" ".join((percent(line[mean]), f"({percent(line[most])})")) for mean, most in parts]
    quality = f"{float(line['quality']):.4f}"
    return [line["scenario"], f"${line['dollars']}", line["player"], quality, *over, half]


def percent(part: Any) -> str:
    return f"{100.0 * float(part):+.2f} %"


HEAD = ["scenario", "ceiling", "", "quality", "overspend of the second half (worst seed)"]
HEAD += ["worst 500 decisions (worst seed)", "decisions until half of the newcomer's share"]


def table() -> str:
    """Scenario by scenario, from what is stored."""
    rows = [HEAD, ["---"] * len(HEAD), *(row(line) for line in stored("budget"))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def cases_won(player: str, column: str, sign: float) -> str:
    """Return in how many cases a player is ahead in a column, larger or with -1 smaller."""
    pairs: dict[tuple[str, str], dict[str, float]] = {}
    for line in stored("budget"):
        case = pairs.setdefault((line["scenario"], line["ceiling"]), {})
        case[line["player"]] = sign * float(line[column])
    both = [case for case in pairs.values() if len(case) == 2]
    return (
        f"{sum(max(case, key=lambda name: case[name]) == player for case in both)} of {len(both)}"
    )


def ahead() -> str:
    """Return in how many cases our quality is above the peer's."""
    return cases_won("driftbandit", "quality", 1.0)


def steadier() -> str:
    """Return in how many cases the peer's worst window is below ours."""
    return cases_won("paretobandit", "worst", -1.0)


def most(column: str) -> str:
    """Return the largest number that a column has for ours in any case."""
    ours = (line for line in stored("budget") if line["player"] == "driftbandit")
    return percent(max(float(line[column]) for line in ours)).lstrip("+")


def stored_cost() -> str:
    """Return the stored ratio of decision times."""
    return f"{float(stored('budget-cost')[0]['ratio']):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="an npz file with the prompts")
    parser.add_argument("--seeds", type=int, default=len(JUDGE), help="that judge")
    parser.add_argument("--first", type=int, default=0, help="seed; design uses 1000 and up")
    parser.add_argument("--cases", nargs="*", default=(), help="such as quality-low; all if none")
    parser.add_argument("--store", action="store_true", help="into docs/results")
    parser.add_argument("--speed", action="store_true", help="only the cost of a decision")
    parser.add_argument("--alone", action="store_true", help="without the peer")
    given = parser.parse_args()
    if given.speed:
        ratio = decision_cost()
        if given.store:
            write("budget-cost", [{"what": "with a budget over without", "ratio": ratio}])
        print(f"a decision with a budget takes {ratio:.2f} times as long as without one")
        sys.exit(0 if ratio <= DEARER else f"not reached: at most {DEARER} is asked for")
    data, peer, seeds = read(given.data), None, range(given.first, given.first + given.seeds)
    if not given.alone:
        if reason := install(PARETO).reason:
            sys.exit(f"paretobandit cannot be installed: {reason}")
        peer = best_setting(data)
        print("paretobandit plays with", json.dumps(peer), flush=True)
    found = told("budget", lines(data, seeds, given.cases, peer), row, given.store)
    if short := [each for line in found for each in missed(line)]:
        sys.exit(f"not reached: {'; '.join(short)}")


if __name__ == "__main__":
    main()
