"""Whether `explain` tells the truth: `make bench-explain` asks AutoDOMD where the answer is known.

Worlds that stand still, drift or flip, levels that move, and real streams, shuffled and in order of
time. "Just changed" counts as drifting. Nobody knows the truth of a stream in order of time: what
is said of it is reported, and not judged.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from scipy.stats import binomtest

from benchmarks.tables import stored, told
from driftbandit import (
    AutoDOMD,
    Circle,
    Environment,
    FixedArms,
    FreshArms,
    Levels,
    SignFlip,
    Stationary,
    Stream,
    simulate,
)

SEEDS = range(71_000, 71_040)
AT_LEAST = 0.95
REST, DRIFT, OPEN = "stationary", "drifting", ""  # "": nobody knows
WORDS = (REST, DRIFT, "just changed", "learning")
ARMS: dict[str, Any] = {"fresh": FreshArms(30), "fixed": FixedArms(20)}
ORDERS: dict[Any, str] = {"shuffled": REST, "time": OPEN}
WINDOWS = {"weather": 500, "bike": 4000, "elec2": 12_424, "flights": 12_186}  # of 10,000 rounds
T, LATER = 5000, 200  # rounds; how long after a flip it is asked


class Case(NamedTuple):
    """A question: in which world, in which round, and the right answer."""

    label: str
    world: Environment
    asked: int
    truth: str


def at_rest() -> Iterator[Case]:
    for dim, radius, (kind, arms) in product((2, 5, 20), (1.0, 3.0), ARMS.items()):
        world = Stationary(horizon=T, dim=dim, radius=radius, arms=arms)
        yield Case(f"at rest, {kind} arms, d = {dim}, S = {radius:g}", world, T, REST)


def moving() -> Iterator[Case]:
    for radius, (kind, arms) in product((1.0, 3.0), ARMS.items()):
        what, options = f"{kind} arms, S = {radius:g}", {"radius": radius, "arms": arms}
        flip = SignFlip(horizon=T, **options)
        for turns in (1.0, 5.0):
            yield Case(
                f"turns = {turns:g}, {what}", Circle(horizon=T, turns=turns, **options), T, DRIFT
            )
        yield Case(f"before a flip, {what}", flip, T // 2, REST)
        yield Case(f"{LATER} rounds after a flip, {what}", flip, T // 2 + LATER, DRIFT)
        yield Case(f"{T // 2} rounds after a flip, {what}", flip, T, OPEN)


def levels() -> Iterator[Case]:
    for day, (kind, arms) in product((1, 10, 50, 200), ARMS.items()):
        arms = replace(arms, intercept=0.5)
        world = Levels(horizon=T, spread=1.0, day=day, radius=2.0, arms=arms)
        yield Case(f"level drawn every {day} rounds, {kind} arms", world, T, REST)


def streams() -> Iterator[Case]:
    for (order, truth), (name, start) in product(ORDERS.items(), WINDOWS.items()):
        world = Stream(data=name, order=order, start=start, horizon=9000)
        yield Case(f"{name}, {order}", world, 9000, truth)


KINDS = {
    "at rest": at_rest,
    "drift and flips": moving,
    "levels that move": levels,
    "streams": streams,
}


def words(world: Environment, rounds: set[int], seeds: range) -> dict[int, Counter[str]]:
    """What AutoDOMD says in these rounds, counted over seeds."""
    policy, said = AutoDOMD(problem=world.problem), {}

    def watch(t: int, memory: Any, theta: Any) -> None:
        if t in rounds:
            said[t] = Counter(found.state for found in policy.explain(memory))

    simulate(policy, world, seeds, watch=watch)
    return said


def lines(kind: str, seeds: range) -> Iterator[dict[str, Any]]:
    """A line a question; questions in one world are asked in one run."""
    cases: dict[Environment, list[Case]] = {}
    for case in KINDS[kind]():
        cases.setdefault(case.world, []).append(case)
    for world, asked in cases.items():
        said = words(world, {case.asked for case in asked}, seeds)
        yield from ({"kind": kind} | judged(case, said[case.asked]) for case in asked)


def all_lines(kinds: list[str], seeds: int) -> Iterator[dict[str, Any]]:
    for kind in kinds:
        yield from lines(kind, SEEDS[: seeds // 2 if kind == "streams" else seeds])


def judged(case: Case, said: Counter[str]) -> dict[str, Any]:
    """What was said, and how often it was right."""
    right = said[case.truth] + (case.truth == DRIFT) * said["just changed"]
    facts = {"world": case.label, "round": case.asked, "truth": case.truth, "seeds": said.total()}
    known = {"right": right if case.truth else ""}
    return facts | known | {word: said[word] for word in WORDS}


def share(right: int, runs: int) -> str:
    """In per cent, with the exact 95 % interval of Clopper and Pearson."""
    sure = binomtest(right, runs).proportion_ci()
    return f"{100 * right / runs:.0f} [{100 * sure.low:.0f}, {100 * sure.high:.0f}]"


def cells(line: dict[str, Any]) -> list[str]:
    """A line of the table."""
    said = ", ".join(f"{word} {line[word]}" for word in WORDS if int(line[word]))
    right = share(int(line["right"]), int(line["seeds"])) if line["truth"] else ""
    return [line["world"], str(line["round"]), line["truth"] or "unknown", said, right]


def table() -> str:
    """Question by question, from what is stored."""
    head = ["world", "asked in round", "truth", "said, in so many runs", "right, % [95 %]"]
    rows = [head, ["---"] * len(head), *(cells(line) for line in stored("explain"))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def summary() -> str:
    """The share of right words, of each kind of world."""
    found: dict[str, list[int]] = {}
    for line in stored("explain"):
        if line["truth"]:
            right, runs = found.get(line["kind"], (0, 0))
            found[line["kind"]] = [right + int(line["right"]), runs + int(line["seeds"])]
    parts = (
        f"{kind} {share(right, runs)} % of {runs} runs" for kind, (right, runs) in found.items()
    )
    return "; ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="of streams: half as many")
    parser.add_argument("--store", action="store_true", help="into docs/results/explain.csv")
    given = parser.parse_args()
    found = told("explain", all_lines(given.kinds, given.seeds), cells, given.store)
    missed = [x["world"] for x in found if x["truth"] and x["right"] < AT_LEAST * x["seeds"]]
    if missed:
        sys.exit(f"right in less than {100 * AT_LEAST:.0f} % of runs: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
