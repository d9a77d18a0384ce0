"""What other policies would have earned, by the probabilities in the log itself (SNIPS)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from driftbandit.loop.reporting.estimates import Mean, estimate
from driftbandit.reward import Reward

Line = dict[str, Any]  # of the log
ASIDE = ("holdout", "fallback")  # roles: the default was played, and the loop not asked
Target = Callable[[Line], float | None]  # pi/p of what was chosen; None if the log cannot tell


def uniform(line: Line) -> float | None:
    """Every arm that is left alike."""
    left = [p for p in line["probabilities"] if p > 0.0]
    if len(left) < len(line["names"]) - (line["position"] or 0):
        return None  # the log never plays some of them
    return 1.0 / (len(left) * line["probability"])


def default(line: Line) -> float | None:
    """The default alone."""
    names = line["names"]
    if line["default"] is None or not line["probabilities"][names.index(line["default"])]:
        return None
    return 1.0 / line["probability"] if line["arm"] == line["default"] else 0.0


def itself(line: Line) -> float | None:
    """What was played, where the loop was asked."""
    return None if line["role"] in ASIDE else 1.0


def value(lines: list[Line], target: Target, reward: Reward) -> Mean | None:
    """Mean reward of a target, raw; None where the log cannot tell.

    A position of a slate counts with the weights of those before it: its reward may depend on them.
    """
    values, weights, held = [], [], []
    for line, weight in _weighed(lines, target):
        if weight is None and line["role"] not in ASIDE:
            return None
        if weight is not None and line["status"] == "trained":
            values.append(seen(line, reward))
            weights.append(weight)
            held.append(line["role"] == "holdout")
    return estimate(values, _balanced(weights, held), (reward.low, reward.high))


def _balanced(weights: list[float], held: list[bool]) -> list[float]:
    """Weights with which the holdout and the others count for as many rows as they are worth. Both
    were drawn at random; a few explored defaults of large weights must not drown a holdout."""
    w, apart = np.array(weights), np.array(held, dtype=bool)
    for group in (apart, ~apart):
        squares = float((w[group] ** 2).sum())
        w[group] *= float(w[group].sum()) / squares if squares else 0.0
    return list(w.tolist())


def _weighed(lines: list[Line], target: Target) -> Iterator[tuple[Line, float | None]]:
    """Lines and their weights; `lines` are in order, so a slate's follow each other."""
    before: float | None = 1.0
    for line in lines:
        if line["role"] == "empty":
            continue
        weight = target(line)
        if line["position"]:  # not the first
            weight = _both(before, weight)
        before = weight
        yield line, weight


def _both(before: float | None, weight: float | None) -> float | None:
    """What the target would not have begun, it need not go on with."""
    if before == 0.0:
        return 0.0
    return None if before is None or weight is None else before * weight


def seen(line: Line, reward: Reward) -> float:
    """The reward of a line as it was learnt: raw, and inside the range."""
    return float(reward.outside(reward.inside(line["reward"])[0]))
