"""Watching: the health of a loop from its latest events, so that it costs the same at any age."""

from __future__ import annotations

import logging
import math
import time
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from driftbandit.loop import promotion, time_discount
from driftbandit.loop.learning.learner import Learner
from driftbandit.loop.reporting.curve import curve
from driftbandit.loop.reporting.drift_report import changes
from driftbandit.loop.reporting.estimates import Mean, estimate
from driftbandit.loop.reporting.health import Bin, Health
from driftbandit.loop.reporting.outcomes import Story, story
from driftbandit.loop.reporting.policy_values import Line, default, itself, seen, uniform, value
from driftbandit.loop.runtime import Desk
from driftbandit.policies.auto import AutoDOMD
from driftbandit.reward import Reward

log = logging.getLogger("driftbandit.loop")

WINDOW = 10_000  # latest events
BINS, LEAST = 5, 20  # of the calibration, and decisions in each
AGAIN = 60.0  # seconds after which concerns are logged again
_warned: WeakKeyDictionary[Desk, float] = WeakKeyDictionary()  # when they were
TARGETS = {"loop": itself, "uniform": uniform, "default": default}


def health(desk: Desk, since: float | None) -> Health:
    """From the latest events; `since` asks what has changed."""
    ledger, past, counts = desk.ledger, desk.now, desk.clerk.book.counts.copy()
    told = story(ledger, past, max(ledger.start, desk.clerk.book.seq - WINDOW))
    reward, lines = past.declaration.reward, told.rows
    bias, bins = calibration(lines, reward)
    found = Health(
        name=ledger.name,
        decisions=counts["decide"] + counts["decide cancelled"],
        rewards=counts["reward counted"],
        recent=len({line["seq"] for line in lines}),
        **shares(told),
        lag=desk.trainer.lag,
        trains=ledger.lock.trains,
        acts=promotion.acts(desk),
        candidates=promotion.shares(desk),
        **memory(desk.learner, lines, desk.clerk.clock),
        bias=bias,
        calibration=bins,
        values={name: value(lines, target, reward) for name, target in TARGETS.items()},
        curve=curve(lines, TARGETS, reward),
        metrics=metrics(lines),
        changed=tuple(changes(ledger, past, desk.learner, since) if since is not None else ()),
    )
    _warn(desk, found)
    return found


def _warn(desk: Desk, found: Health) -> None:
    """Who watches asks every second: the log need not repeat it."""
    if found.concerns and time.monotonic() - _warned.get(desk, -math.inf) >= AGAIN:
        _warned[desk] = time.monotonic()
        for concern in found.concerns:
            log.warning("loop %r: %s", found.name, concern)


def shares(told: Story) -> dict[str, Any]:
    """Of the latest decisions and rewards."""
    lines, rewards = told.rows, told.kinds["reward"]
    closed = sum(line["status"] in ("trained", "missing") for line in lines)
    exploring = [1.0 - max(line["probabilities"]) for line in lines if line["probabilities"]]
    return {
        "missing": told.counts["missing"] / max(closed, 1),
        "cancelled": sum(line["status"] == "cancelled" for line in lines) / max(len(lines), 1),
        "clipped": told.counts["clipped"] / max(rewards, 1),
        "late": sum(line["late"] for line in lines) / max(rewards, 1),
        "exploration_share": math.fsum(exploring) / max(len(exploring), 1),
    }


def memory(learner: Learner, lines: list[Line], now: float) -> dict[str, Any]:
    """Rewards that the estimate rests on, in effect, and AutoDOMD's word for its world."""
    with learner.lock:
        policy, rounds = learner.version.policy, learner.bandit.rounds
        if isinstance(policy, AutoDOMD):
            said = learner.bandit.explain()
            return {"memory": said.memory, "state": said.state}
    discount = float(getattr(policy, "discount", 1.0))
    ages: Any = np.arange(rounds)
    if learner.timed:  # of what is in the window: older rewards are not seen
        trained = (line["at"] for line in lines if line["status"] == "trained")
        ages = np.array([time_discount.steps(now - at) for at in trained])
    return {"memory": float((discount**ages).sum()), "state": None}


def calibration(lines: list[Line], reward: Reward) -> tuple[Mean | None, tuple[Bin, ...]]:
    """Observed minus expected rewards in all, and both in bins of what was expected."""
    known = [line for line in lines if line["status"] == "trained" and line["mean"] is not None]
    expected = np.array([float(reward.outside(line["mean"])) for line in known])
    observed = np.array([seen(line, reward) for line in known])
    order = np.argsort(expected, kind="stable")
    parts = np.array_split(order, max(1, min(BINS, len(known) // LEAST)))
    ends = reward.low, reward.high
    found = [(part, estimate(observed[part].tolist(), ends=ends)) for part in parts]
    bins = (Bin(float(expected[part].mean()), each) for part, each in found if each)
    return estimate((observed - expected).tolist()), tuple(bins)


def metrics(lines: list[Line]) -> dict[str, dict[str, Mean | None]]:
    """Secondary metrics by arm."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        for each in line["metrics"]:
            found.setdefault(each["name"], {}).setdefault(line["arm"], []).append(each["value"])
    return {
        name: {arm: estimate(found[name][arm]) for arm in sorted(found[name])}
        for name in sorted(found)
    }
