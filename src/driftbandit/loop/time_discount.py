"""Forgetting in time: policies whose discounts count steps of the clock instead of rounds.

A learner that is trained at moments ages by `steps(elapsed)` before every reward:

    bandit.update(x, r, steps=clock.steps(at - before))

A quiet night then counts as a night, and a rush as the minutes it took.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from driftbandit import validate
from driftbandit.durations import seconds
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.base import Policy
from driftbandit.policies.domd import DOMD

HOUR = 3600.0
MEMORIES = (1.0, 3.0, 10.0, 30.0, 96.0, 300.0, 1000.0, 3000.0, math.inf)  # hours to never

# Seconds in one step. AutoDOMD knows its grid by discounts: which memories are short, how large
# their theta may be, what weight they begin with. So the shortest has 0.9, as it has in rounds.
STEP = 0.1 * HOUR
SHORTEST = 2.0  # seconds of the shortest half-life: below, a discount per step is no number


def steps(elapsed: float) -> float:
    """Steps of a timed policy in so many seconds; time that runs backwards stands still."""
    return max(0.0, elapsed) / STEP


def timed(policy: Policy, half_life: Any) -> Policy:
    """The policy with its memory in time: a half-life such as "7d" for DOMD, and "auto" for
    AutoDOMD, which weighs memories from an hour to forever and chooses by itself.

    >>> from driftbandit import Problem
    >>> timed(DOMD(problem=Problem(dim=2)), "6min").discount
    0.5
    """
    if isinstance(policy, AutoDOMD):
        return _timed_auto(policy, half_life)
    if not isinstance(policy, DOMD):
        raise ValueError(
            f"{policy.name} cannot forget in time: use DOMD or AutoDOMD, or leave half_life out"
        )
    if half_life == "auto":
        raise ValueError(
            f"{policy.name} has one memory: use AutoDOMD, or a half-life such as half_life='7d'"
        )
    _refuse_rounds(policy, "discount")
    return replace(policy, discount=_discount(half_life))


def _timed_auto(policy: AutoDOMD, half_life: Any) -> AutoDOMD:
    if half_life != "auto":
        raise ValueError(
            "AutoDOMD chooses its memory by itself: use half_life='auto', or DOMD, got half_life="
            f"{validate.show(half_life)}"
        )
    _refuse_rounds(policy, "discounts")
    return replace(policy, discounts=tuple(1.0 - STEP / (HOUR * n) for n in MEMORIES))


def _discount(half_life: Any) -> float:
    """Per step."""
    clean = seconds(half_life, "half_life")
    if clean < SHORTEST:
        raise ValueError(f"half_life must be {SHORTEST:g} s or more, got {half_life!r}")
    return float(2.0 ** (-STEP / clean))


def _refuse_rounds(policy: Policy, name: str) -> None:
    """Raise if the user chose a discount: it counts rounds."""
    given = getattr(policy, name)
    if given != getattr(type(policy)(problem=policy.problem), name):
        raise ValueError(
            f"{name}={validate.show(given)} counts rounds, half_life counts time: leave one of "
            "them out"
        )


def memories(discounts: Mapping[float, float]) -> dict[float, float]:
    """Weights by memory in seconds, of what `explain().discounts` has by discount."""
    return {math.inf if g == 1.0 else STEP / (1.0 - g): w for g, w in discounts.items()}
