"""Rewards as applications have them, next to the same learner with ideal treatment.

`make bench-trials` plays every trial on several seeds. "declared" is what a user gets from a `Loop`
who declares the reward and nothing else: raw values in, late ones awaited. "ideal" is the same
learner for whoever knows better: rewards at once, in a scale and a family chosen by hand. "as it
comes" is what people write without a loop. Exit status 1 if a declared reward earns less than 95 %
of the ideal.
"""

from __future__ import annotations

import argparse
import heapq
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import report
from driftbandit import (
    AutoDOMD,
    Bandit,
    Bernoulli,
    Category,
    Family,
    Features,
    Gaussian,
    Loop,
    Number,
    Reward,
)

REQUIRED = 0.95
TREATMENTS = ("declared", "ideal", "as it comes")


class Trial(NamedTuple):
    """A world, a declaration, and what somebody who knows better would do."""

    features: Features
    arms: list[dict[str, Any]]
    context: Callable[[Any], dict[str, Any]]
    means: Callable[[dict[str, Any]], Any]  # true mean of every arm, raw
    draw: Callable[[float, dict[str, Any], Any], float]  # a raw reward of this mean and arm
    reward: Reward  # all that a user declares
    family: Family  # by hand
    by_hand: Callable[[float], float]  # the raw reward for that family
    pace: float  # seconds between decisions
    comes: float  # seconds until a reward that is not `missing` is there
    rounds: int


class Declared:
    """What a user has: a loop with this declaration, and rewards when they come."""

    def __init__(self, trial: Trial, _: str) -> None:
        declared = {"features": trial.features, "reward": trial.reward}
        self.trial, self.queue = trial, []
        self.loop = Loop(":memory:", clock="events", training="inline", **declared)

    def choose(self, context: dict[str, Any], now: float) -> int:
        while self.queue and self.queue[0][0] <= now:
            when, id, raw = heapq.heappop(self.queue)
            self.loop.reward(id, raw, at=when)
        self.id = f"{now}"
        return int(self.loop.decide(context, self.trial.arms, id=self.id, at=now).arm)

    def told(self, raw: float, now: float) -> None:
        if raw != self.trial.reward.missing:
            heapq.heappush(self.queue, (now + self.trial.comes, self.id, raw))


class ByHand:
    """A bandit that is told at once and in a scale of its own, or of everything as it comes."""

    def __init__(self, trial: Trial, treatment: str) -> None:
        self.trial, self.ideal, self.queue = trial, treatment == "ideal", []
        family = trial.family if self.ideal else trial.reward.family
        self.bandit = Bandit(AutoDOMD(problem=trial.features.problem(family)))

    def choose(self, context: dict[str, Any], now: float) -> int:
        while self.queue and self.queue[0][0] <= now:
            self.bandit.update(*heapq.heappop(self.queue)[2:])
        X = self.trial.features.encode(context, self.trial.arms)
        arm = self.bandit.choose(X)
        self.x = X[arm]
        return arm

    def told(self, raw: float, now: float) -> None:
        reward = self.trial.reward
        value = self.trial.by_hand(raw) if self.ideal else reward.inside(raw)[0]
        late = reward.wait if raw == reward.missing else self.trial.comes
        heapq.heappush(self.queue, (now if self.ideal else now + late, now, self.x, value))


def earned(trial: Trial, seed: int, treatment: str) -> tuple[float, float, float]:
    """Mean of what was chosen, of uniform choices and of the best arms, per round."""
    rng, total = np.random.default_rng(seed), np.zeros(3)
    player = (Declared if treatment == "declared" else ByHand)(trial, treatment)
    better = np.min if trial.reward.goal == "min" else np.max
    for now in trial.pace * np.arange(float(trial.rounds)):
        context = trial.context(rng)
        means = trial.means(context)
        arm = player.choose(context, float(now))
        player.told(trial.draw(means[arm], trial.arms[arm], rng), float(now))
        total += means[arm], means.mean(), better(means)
    return tuple((total / trial.rounds).tolist())


def logistic(z: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-z))


def visitors(rng: Any) -> dict[str, Any]:
    return {"age": float(rng.uniform(18, 90)), "member": ("yes", "no")[int(rng.random() < 0.7)]}


VISITOR = {"age": Number(18, 90, required=True), "member": Category(["yes", "no"], required=True)}
TOPICS = ["world", "sport", "money", "music", "food"]


def taste(context: dict[str, Any]) -> Any:
    """How much a reader likes each topic, from -1 to 1."""
    young = (54.0 - context["age"]) / 36.0
    member = 1.0 if context["member"] == "yes" else -1.0
    return 0.5 * np.array([-young, young, member, young * 0.5 - member, -0.6])


def clicks(low: float, high: float, wait: str, comes: float, rounds: int) -> Trial:
    """A click or none on one of five articles."""
    middle, reach = (math.log(p / (1 - p)) for p in (math.sqrt(low * high), high))
    return Trial(
        features=Features(context=VISITOR, arm={"topic": Category(TOPICS, required=True)}),
        arms=[{"topic": topic} for topic in TOPICS],
        context=visitors,
        means=lambda context: logistic(middle + (reach - middle) * taste(context)),
        draw=lambda mean, arm, rng: float(rng.random() < mean),
        reward=Reward(0, 1, wait=wait, missing=0),
        family=Bernoulli(),
        by_hand=float,
        pace=2.0,
        comes=comes,
        rounds=rounds,
    )


PRICES = [10, 20, 30, 40, 50, 60, 70, 80]


def prices(high: float) -> Trial:
    """The price of one article: revenue in euros, or 0 if it is not bought."""
    price = np.array(PRICES, dtype=float)

    def revenue(context: dict[str, Any]) -> Any:
        worth = 55.0 if context["member"] == "yes" else 35.0
        return price * logistic((worth - price) / 8.0)

    return Trial(
        features=Features(context=VISITOR, arm={"price": Category(PRICES, required=True)}),
        arms=[{"price": p} for p in PRICES],
        context=visitors,
        means=revenue,
        draw=lambda mean, arm, rng: arm["price"] * float(rng.random() < mean / arm["price"]),
        reward=Reward(0, high, wait="1min", missing=0),
        family=Gaussian(variance=0.5, bound=20.0),
        by_hand=lambda raw: raw / 30.0,
        pace=2.0,
        comes=30.0,
        rounds=8000,
    )


SERVERS = ["a", "b", "c", "d"]


def routing() -> Trial:
    """Latency in milliseconds with heavy tails; what takes longer than 2 s counts as 2 s."""
    shape = 1.0  # of the logarithm: one request in a hundred takes ten times the median

    def latency(context: dict[str, Any]) -> Any:
        size = math.log(context["size"]) / math.log(1000.0)
        return 60.0 * np.exp(np.array([1.6 * size, 1.0, 0.6 + 0.8 * size, 2.0 - 1.2 * size]))

    def draw(mean: float, arm: dict[str, Any], rng: Any) -> float:
        return float(mean * math.exp(shape * rng.standard_normal() - 0.5 * shape**2))

    return Trial(
        features=Features(
            context={"size": Number(1, 1000, log=True, required=True)},
            arm={"server": Category(SERVERS, required=True)},
        ),
        arms=[{"server": name} for name in SERVERS],
        context=lambda rng: {"size": float(np.exp(rng.uniform(0, math.log(1000.0))))},
        means=latency,
        draw=draw,
        reward=Reward(0, 2000, goal="min", wait="5s", missing=2000),
        family=Gaussian(variance=1.0, bound=20.0),
        by_hand=lambda raw: -min(raw, 2000.0) / 200.0,
        pace=0.05,
        comes=1.0,
        rounds=8000,
    )


TRIALS = {
    "clicks of 10 to 40 %, 10 min late": clicks(0.1, 0.4, wait="10min", comes=300.0, rounds=20_000),
    "clicks of 1 to 5 %": clicks(0.01, 0.05, wait="1min", comes=5.0, rounds=40_000),
    "clicks of 1 to 5 %, 10 min late": clicks(0.01, 0.05, wait="10min", comes=300.0, rounds=40_000),
    "prices, declared up to 100 euros": prices(100),
    "prices, declared up to 500 euros": prices(500),
    "routing in milliseconds": routing(),
}


class Outcome(NamedTuple):
    """What the declared reward earns over the ideal, above 1 if it is better."""

    ratio: float
    error: float  # its standard error over seeds
    gained: float  # the same ratio of what is earned beyond uniform choices
    words: str


def outcome(trial: Trial, seeds: int) -> Outcome:
    found = {how: np.array([earned(trial, k, how) for k in range(seeds)]) for how in TREATMENTS}
    mine, ideal, naive = (found[how][:, 0] for how in TREATMENTS)
    uniform, best = found["ideal"][:, 1:].mean(axis=0)
    ratios = ideal / mine if trial.reward.goal == "min" else mine / ideal
    means = {"": mine, "ideal ": ideal, "as it comes ": naive, "uniform ": uniform, "best ": best}
    words = ", ".join(f"{name}{np.mean(value):.3g}" for name, value in means.items())
    return Outcome(
        float(ratios.mean()),
        float(ratios.std(ddof=1) / math.sqrt(seeds)) if seeds > 1 else math.nan,
        float((mine.mean() - uniform) / (ideal.mean() - uniform)),
        words,
    )


def figures(seeds: int):
    """(what, measured, required, reached) one by one."""
    for name, trial in TRIALS.items():
        found = outcome(trial, seeds)
        reached = found.ratio >= REQUIRED
        yield f"{name}: {found.words}", found.ratio, f">= {REQUIRED}", reached
        yield f"{name}: standard error over {seeds} seeds", found.error, "", True
        yield f"{name}: of the gain over uniform", found.gained, "", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=24, help="runs of every trial")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    return report("Declared rewards over ideal treatment", figures(args.seeds), args.csv)


if __name__ == "__main__":
    sys.exit(main())
