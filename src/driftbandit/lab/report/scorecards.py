"""Cards of suites: read, scored, compared and shown as tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.lab.report.scores import Interval, Regrets, difference, ratio, score

FORMAT = 1
ALL, DRIFT, REST = "all", "drift", "jumps or rest"
STREAMS = {"time": "streams in time order", "shuffled": "streams shuffled"}
KINDS = (DRIFT, REST, *STREAMS.values())  # of worlds, as columns
MISSING = "–"
Card = dict[str, Any]


class Comparison(NamedTuple):
    """One policy against another on what both have played: below 1 and below 0 the first wins."""

    first: str
    second: str
    overall: Interval  # ratio of regrets
    worlds: dict[str, tuple[float, float, Interval]]  # both means, and their paired difference


def read_card(path: str | os.PathLike[str]) -> Card:
    """A card that `run_suite` wrote."""
    try:
        card = json.loads(Path(path).read_text(encoding="utf-8"))
        known = card["format"] == FORMAT and all(
            len(played["regret"]) == len(card["seeds"]) and world in card["worlds"]
            for worlds in card["policies"].values()
            for world, played in worlds.items()
        )
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise ValueError(f"{path} is no card of a suite: make one with `driftbandit suite`")
    return dict(card)


def regrets(card: Card, policy: str) -> Regrets:
    """Final regrets of a policy by world."""
    return {world: played["regret"] for world, played in card["policies"][policy].items()}


def groups(card: Card) -> dict[str, dict[str, float]]:
    """References of all worlds, and of each kind that the suite has."""
    worlds = {world: (_kind(facts), facts["reference"]) for world, facts in card["worlds"].items()}
    found = {ALL: {world: reference for world, (_, reference) in worlds.items()}}
    for kind in KINDS:
        found[kind] = {world: each for world, (own, each) in worlds.items() if own == kind}
    return {group: references for group, references in found.items() if references}


def _kind(facts: dict[str, Any]) -> str:
    if "order" in facts:
        return STREAMS[facts["order"]]
    return DRIFT if facts["drifts"] else REST


def scores(card: Card, policy: str) -> dict[str, Interval | None]:
    """The score over all worlds and over each kind of them; None where it has not played all."""
    played = set(card["policies"][policy])
    return {
        group: score(regrets(card, policy), references) if set(references) <= played else None
        for group, references in groups(card).items()
    }


def ranking(card: Card) -> list[tuple[str, dict[str, Interval | None], float]]:
    """Policies with their scores and their cost per round, the best first; those that have not
    played every world come last."""
    rows = []
    for policy, worlds in card["policies"].items():
        costs = sorted(played["us_per_round"] for played in worlds.values())
        rows.append((policy, scores(card, policy), costs[len(costs) // 2]))
    return sorted(rows, key=lambda row: _rank(row[1]))


def _rank(found: dict[str, Interval | None]) -> tuple[bool, float]:
    known = [interval.value for interval in found.values() if interval is not None]
    return found[ALL] is None, known[0] if known else 2.0


def compare(a: Card, b: Card) -> list[Comparison]:
    """Policies of a against those of the same name in b, or all against all if there are none."""
    if (a["suite"], a["hash"]) != (b["suite"], b["hash"]):
        raise ValueError(
            f"scores on {a['suite']} ({a['hash']}) and on {b['suite']} ({b['hash']}) cannot be "
            "compared: play both on the same suite"
        )
    common = [(name, name) for name in a["policies"] if name in b["policies"]]
    pairs = common or list(product(a["policies"], b["policies"]))
    return [_compared(a, b, *pair) for pair in pairs if _shared(a, b, *pair)]


def _shared(a: Card, b: Card, first: str, second: str) -> list[str]:
    return [world for world in a["policies"][first] if world in b["policies"][second]]


def _compared(a: Card, b: Card, first: str, second: str) -> Comparison:
    worlds, mine, yours = _shared(a, b, first, second), regrets(a, first), regrets(b, second)
    mine, yours = ({world: r[world] for world in worlds} for r in (mine, yours))
    gaps = {
        world: (
            a["policies"][first][world]["mean"],
            b["policies"][second][world]["mean"],
            difference(mine[world], yours[world]),
        )
        for world in worlds
    }
    return Comparison(first, second, ratio(mine, yours), gaps)


def score_rows(card: Card) -> Iterator[tuple[str, ...]]:
    """The ranking as a table; its heading first."""
    yield ("policy", *(f"score, {group}" for group in groups(card)), "µs per round")
    for policy, found, cost in ranking(card):
        shown = (MISSING if interval is None else f"{interval:.3f}" for interval in found.values())
        yield (policy, *shown, f"{cost:.3g}")


def world_rows(card: Card) -> Iterator[tuple[str, ...]]:
    """Mean regret as a share of the reference, policies down and worlds across."""
    yield ("policy", *(str(k + 1) for k in range(len(card["worlds"]))))
    for policy, _, _ in ranking(card):
        played = card["policies"][policy]
        yield (
            policy,
            *(
                f"{played[world]['mean'] / facts['reference']:.3f}" if world in played else MISSING
                for world, facts in card["worlds"].items()
            ),
        )
