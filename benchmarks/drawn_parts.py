"""What limits AutoDOMD in environments drawn at random: one part of it changed at a time.

`make bench-drawn-parts` plays the two judged draws in which AutoDOMD does worst (`bench-drawn`), on
seeds that judge nothing, and says for each variant how it compares with the best fixed setting. Its
last column is what the same change does in the design draws, compared with AutoDOMD as it is: a
part that costs there too could go, and one that helps there has to stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.drawn import DESIGN, HORIZON, fixed, settings
from benchmarks.tables import markdown, stored, told
from benchmarks.worlds import interval, named, ratio
from driftbandit import AutoDOMD, Policy, random_environment, simulate

LOOKED, OFTEN = range(20, 60), range(20, 28)  # seeds in the worst draws, and in the design draws
WORST = 2  # draws that are looked at
ELSEWHERE = "design draws"
AS_IT_IS, ALONE = "nothing", "one learner: the best fixed setting, with AutoDOMD's machinery"
CHANGES: dict[str, dict[str, Any]] = {
    AS_IT_IS: {},
    "bonus 1": {"bonus": 1.0},
    "no levels": {"levels": 0.0, "paces": ()},
    "no rescaling": {"rescaling": False},
    "no renewal": {"renewal": 1e9},
}


def worst_draws() -> list[int]:
    """Return the judged draws with the largest ratio to the best fixed setting."""
    judged = [x for x in stored("drawn") if x["setting"]]
    return [int(x["draw"]) for x in sorted(judged, key=lambda x: -float(x["ratio"]))[:WORST]]


def variants(policy: AutoDOMD, setting: dict[str, float]) -> dict[str, Policy]:
    """Return AutoDOMD with one part changed, and with the learner of one setting alone."""
    found: dict[str, Policy] = {k: replace(policy, **change) for k, change in CHANGES.items()}
    one = {f"{k}s": (setting[k],) for k in ("discount", "regularization")}
    plain = {"levels": 0.0, "paces": (), "widening": 0.0, "bonus": setting["bonus"]}
    return found | {ALONE: replace(policy, **one, **plain)}


def lines(draws: Sequence[int], looked: range, often: range) -> Iterator[dict[str, Any]]:
    """Yield the ratio of every variant in every draw, and in the design draws together."""
    chosen = settings("drawn-settings")
    for draw in draws:
        world = random_environment(draw, horizon=HORIZON)
        best = simulate(fixed(world, chosen[draw]), world, looked).total
        for name, policy in variants(AutoDOMD(problem=world.problem), chosen[draw]).items():
            both = np.stack([simulate(policy, world, looked).total, best], axis=1)
            yield {"changed": name, "where": f"draw {draw}", **named("ratio", ratio(both[None]))}
    worlds = [random_environment(draw, horizon=HORIZON) for draw in DESIGN]
    totals = {
        name: np.array(
            [simulate(replace(AutoDOMD(problem=w.problem), **new), w, often).total for w in worlds]
        )
        for name, new in CHANGES.items()
    }
    for name, regrets in totals.items():
        both = np.stack([regrets, totals[AS_IT_IS]], axis=2)
        yield {"changed": name, "where": ELSEWHERE, **named("ratio", ratio(both))}


def row(line: dict[str, Any]) -> list[str]:
    """Return the cells of a line."""
    return [line["changed"], line["where"], interval(line, "ratio")]


def table() -> str:
    """Return variants down, and where they played across."""
    found = {(x["changed"], x["where"]): interval(x, "ratio") for x in stored("drawn-parts")}
    places = list(dict.fromkeys(where for _, where in found))
    head = [
        f"{p}, over AutoDOMD" if p == ELSEWHERE else f"{p}, over the best fixed setting"
        for p in places
    ]
    names = dict.fromkeys(name for name, _ in found)
    body = [[name, *(found.get((name, p), "") for p in places)] for name in names]
    return markdown([["changed", *head], *body])


if __name__ == "__main__":
    told("drawn-parts", lines(worst_draws(), LOOKED, OFTEN), row, "--store" in sys.argv)
