"""Cards of suites: read, scored, compared and shown as tables.

A score is a geometric mean of regrets over many worlds, with a bootstrap interval over seeds. A
policy's regrets are a mapping from worlds to the final regret of every seed. The same seeds mean
the same contexts and the same noise, so two policies are compared seed by seed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftbandit.lab.report.statistics import CONFIDENCE, paired_difference

FORMAT = 1
ALL, DRIFT, REST = "all", "drift", "jumps or rest"
STREAMS = {"time": "streams in time order", "shuffled": "streams shuffled"}
KINDS = (DRIFT, REST, *STREAMS.values())  # of worlds, as columns
MISSING = "–"
RESAMPLES = 4000
Card = dict[str, Any]
Floats = NDArray[np.float64]
Regrets = Mapping[str, Sequence[float]]


class ScoreInterval(NamedTuple):
    """A figure, and between what it lies with 95 % confidence."""

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


class CardComparison(NamedTuple):
    """One policy against another on what both have played: below 1 and below 0 the first wins."""

    first: str
    second: str
    overall: ScoreInterval  # ratio of regrets
    worlds: dict[str, tuple[float, float, ScoreInterval]]  # both means, and their paired difference


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
    """References of all worlds, and of each kind that the suite has; a world may be of several."""
    found: dict[str, dict[str, float]] = {group: {} for group in (ALL, *KINDS)}
    for world, facts in card["worlds"].items():
        for kind in (ALL, *_kinds(facts)):
            found.setdefault(kind, {})[world] = facts["reference"]
    return {group: references for group, references in found.items() if references}


def _kinds(facts: dict[str, Any]) -> list[str]:
    if "axes" in facts:
        return list(facts["axes"])
    if "order" in facts:
        return [STREAMS[facts["order"]]]
    return [DRIFT if facts["drifts"] else REST]


def scores(card: Card, policy: str) -> dict[str, ScoreInterval | None]:
    """The score over all worlds and over each kind of them; None where it has not played all."""
    played = set(card["policies"][policy])
    return {
        group: score(regrets(card, policy), references) if set(references) <= played else None
        for group, references in groups(card).items()
    }


def ranking(card: Card) -> list[tuple[str, dict[str, ScoreInterval | None], float]]:
    """Policies with their scores and their cost per round, the best first; those that have not
    played every world come last."""
    rows = []
    for policy, worlds in card["policies"].items():
        costs = sorted(played["us_per_round"] for played in worlds.values())
        rows.append((policy, scores(card, policy), costs[len(costs) // 2]))
    return sorted(rows, key=lambda row: _rank(row[1]))


def _rank(found: dict[str, ScoreInterval | None]) -> tuple[bool, float]:
    known = [interval.value for interval in found.values() if interval is not None]
    return found[ALL] is None, known[0] if known else 2.0


def compare(a: Card, b: Card) -> list[CardComparison]:
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


def _compared(a: Card, b: Card, first: str, second: str) -> CardComparison:
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
    return CardComparison(first, second, ratio(mine, yours), gaps)


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


def score(regrets: Regrets, reference: Mapping[str, float]) -> ScoreInterval:
    """Geometric mean over worlds of mean regret over reference."""
    return _interval([_logs(regrets[world]) - math.log(reference[world]) for world in reference])


def ratio(a: Regrets, b: Regrets) -> ScoreInterval:
    """Geometric mean over worlds of a's mean regret over b's, on the same seeds."""
    return _interval([_logs(a[world]) - _logs(b[world]) for world in a])


def difference(a: Sequence[float], b: Sequence[float]) -> ScoreInterval:
    """Mean of a - b, seed by seed, with Student's t."""
    found = paired_difference(a, b)
    return ScoreInterval(found.mean, found.low, found.high)


def _logs(regrets: Sequence[float]) -> Floats:
    """Logarithm of the mean, and of the means of resamples. The same seeds are drawn in every world
    and for every policy: what a seed brings is not independent from world to world."""
    values = np.asarray(regrets, dtype=float)
    places = np.random.default_rng(0).integers(values.size, size=(RESAMPLES, values.size))
    with np.errstate(divide="ignore"):  # who knows the truth has no regret
        return np.log(np.concatenate([[values.mean()], values[places].mean(axis=1)]))


def _interval(logs: Sequence[Floats]) -> ScoreInterval:
    found = np.exp(np.mean(logs, axis=0))
    tail = (1.0 - CONFIDENCE) / 2
    low, high = np.quantile(found[1:], [tail, 1.0 - tail])
    return ScoreInterval(float(found[0]), float(low), float(high))
