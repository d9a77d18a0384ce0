"""The gate by which a candidate is promoted, and the guard: how often they err, how soon they see.

    python -m benchmarks.promotion [--runs 1000] [--csv docs/results/promotion.csv]
    python -m benchmarks.promotion --seeds 100 --csv docs/results/promotion-late.csv
    python -m benchmarks.promotion --loops 10 --csv docs/results/promotion-lost.csv

Runs are played in blocks of rows: rows of a few kinds, whose numbers in a block are multinomial.
What is added up is what `driftbandit.estimators.leads` adds up row by row, but for forecasts, which
stay the same within a block; tests/loop/test_gate.py compares the two. With `--seeds`, loops are
played in a world where rewards come late, and nothing else; with `--loops`, in one where unhappy
rewards of an arm are lost. Exit status 1 if a figure is not what it must be.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import write_rows
from driftbandit import (
    DOMD,
    Bandit,
    Bernoulli,
    Category,
    Features,
    Floor,
    InverseGap,
    Loop,
    Problem,
    Reward,
)
from driftbandit.estimators import leads
from driftbandit.estimators.increments import LoggedArms
from driftbandit.loop.state.spending import Turn, part

FLOOR, ARMS, CLICKS, ALPHA, POWER = 0.02, 20, 0.05, 0.05, 0.8
KINDS = 7  # of rows: an arm of three, clicked or not; or both policies play the same arm
RUN_LENGTH = 1e7  # of the guard, as `Guard` has it


class World(NamedTuple):
    """Some rows: the candidate's share, click rates of its arm, of the live policy's and of others,
    what the model expects, and the share of rows in which both policies play the same arm."""

    rows: int
    share: float
    clicks: tuple[float, float, float]
    model: float = CLICKS
    alike: float = 0.0

    @property
    def h(self) -> Any:
        """Logged probabilities; the other arms are laid together, no weight is on them."""
        each, rest = FLOOR / ARMS, FLOOR * (ARMS - 2) / ARMS
        return np.array(
            [
                (1.0 - FLOOR) * self.share + each,
                (1.0 - FLOOR) * (1.0 - self.share) + each,
                rest,
            ]
        )

    @property
    def pace(self) -> float:
        variance = (1.0 - self.alike) * (1.0 / self.h[0] + 1.0 / self.h[1])
        return min(leads.FASTEST, 1.0 / variance)

    @property
    def gap(self) -> float:
        """By how much the candidate is better."""
        return (1.0 - self.alike) * (self.clicks[0] - self.clicks[1])

    @property
    def chances(self) -> Any:
        """Probabilities of the kinds of rows."""
        v = np.array(self.clicks)
        apart = np.stack([self.h * (1.0 - v), self.h * v], axis=1).ravel()
        return np.array([*((1.0 - self.alike) * apart), self.alike])

    def payoffs(self) -> tuple[Any, Any]:
        """Payoffs of a row of each kind, for the candidate and for the live policy."""
        arms, pi, q, R = kinds(self.h, self.model)
        return leads.sides(arms, pi, q, R)


def kinds(h: Any, model: float) -> tuple[LoggedArms, Any, Any, Any]:
    """One row of each kind: arms, both policies, model and clicks."""
    start = np.arange(0, 3 * KINDS, 3)
    chosen = start + np.array([0, 0, 1, 1, 2, 2, 1])
    arms = LoggedArms(start, chosen, np.tile(h, KINDS))
    new, live = np.tile([1.0, 0.0, 0.0], KINDS), np.tile([0.0, 1.0, 0.0], KINDS)
    new[-3:] = live[-3:]
    return arms, (new, live), np.full(3 * KINDS, model), np.array([0.0, 1.0] * 3 + [0.0])


class Runs:
    """Many runs at once, as `leads.Evidence` is one: arrays are (runs, 2, T)."""

    def __init__(self, runs: int, stakes: leads.Stakes) -> None:
        self.stakes, shape = stakes, (runs, 2, len(stakes.gains))
        self.rows, self.pace, self.truth = 0, 0.0, 0.0  # truth: the mean payoff, in paces
        self.phi, self.cost, self.recent = (np.zeros(shape) for _ in range(3))

    def add(self, world: World, rng: np.random.Generator) -> None:
        """Add a block of rows."""
        made = [leads.bets(each, world.pace * np.tile(self.stakes.gains, (KINDS, 1)))
                for each in world.payoffs()]  # fmt: skip
        phi, unit = (np.stack([each[k] for each in made], axis=1) for k in (0, 1))
        stake, n = world.pace * self.stakes.gains, world.rows
        counts = rng.multinomial(n, world.chances, size=len(self.phi)).astype(float)
        forecast = np.clip((self.phi + world.pace) / (self.pace + world.pace), 0.0, leads.TOP)
        cost = sum(
            counts[:, k, None, None] * leads.penalty(stake, unit[k], phi[k] - forecast)
            for k in range(KINDS)
        )
        added = world.pace * np.einsum("rk,kst->rst", counts, phi)
        growth = np.exp(self.stakes.gains * (added - world.pace * n) - cost)
        self.recent = np.minimum((n + self.recent) * growth, leads.LARGEST)
        self.phi, self.cost, self.rows = self.phi + added, self.cost + cost, self.rows + n
        self.pace, self.truth = self.pace + world.pace * n, self.truth + world.pace * n * world.gap

    def log_capital(self, which: int, gap: float = 0.0) -> Any:
        mean = 1.0 + (gap if which == leads.BETTER else -gap)
        sums = self.phi[:, which], self.cost[:, which]
        return leads.log_capital(self.stakes, *sums, np.full(len(self.phi), self.pace), mean)

    def alarm(self, which: int) -> Any:
        return self.recent[:, which] @ self.stakes.weights


def played(worlds: Iterable[World], runs: Runs, rng: np.random.Generator) -> Iterator[Runs]:
    """Runs after each block."""
    for world in worlds:
        runs.add(world, rng)
        yield runs


def opened(worlds: Iterable[World], runs: Runs, error: float, rng: np.random.Generator) -> Any:
    """The row after which the gate opens in each run; infinite if it stays closed."""
    found = np.full(len(runs.phi), math.inf)
    for now in played(worlds, runs, rng):
        new = (now.log_capital(leads.BETTER) >= -math.log(error)) & np.isinf(found)
        found[new & (now.alarm(leads.WORSE) <= now.rows)] = now.rows
    return found


def fixed_size(effect: float, share: float, error: float) -> int:
    """Rows of a test that is looked at once and finds the effect in 80 % of all cases."""
    new, old = CLICKS * (1.0 + effect), CLICKS
    variance = new * (1.0 - new) / share + old * (1.0 - old) / (1.0 - share)
    z = NormalDist().inv_cdf(1.0 - error) + NormalDist().inv_cdf(POWER)
    return round(variance * (z / (new - old)) ** 2)


class Finding(NamedTuple):
    """A figure, in words, and whether it is what it must be; None if nothing is required."""

    what: str
    found: str
    required: str
    reached: bool | None = None


def blocks(rows: int, n: int, *world: Any, **more: Any) -> list[World]:
    """The same world in n blocks."""
    return [World(rows // n, *world, **more)] * n


BEFORE = {
    "no shadow": [],
    "a shadow of 100,000 rows": blocks(100_000, 20, 0.0, (CLICKS * 1.1, CLICKS, CLICKS)),
    "a shadow of 400,000 rows": blocks(400_000, 20, 0.0, (CLICKS * 1.1, CLICKS, CLICKS)),
}


def power(runs: int) -> Iterator[Finding]:
    """Rows until a candidate that is 10 % better is promoted, at a share of 10 %."""
    error = Turn(1, 0).error(1.0 - ALPHA)
    size = fixed_size(0.1, 0.1, error * part(1))
    better = (CLICKS * 1.1, CLICKS, CLICKS)
    yield Finding("test of fixed size with the same error, 80 % power", f"{size:,} rows", "")
    plain = math.nan
    for seed, (name, before) in enumerate(BEFORE.items()):
        rng = np.random.default_rng([1, seed])
        early = opened(before, Runs(runs, leads.stakes()), error * part(0), rng)
        late = opened(blocks(5 * size, 500, 0.1, better), Runs(runs, leads.stakes(0.1)),
                      error * part(1), rng)  # fmt: skip
        rows = np.median(np.where(np.isfinite(early), 0.0, late))
        plain = rows if math.isnan(plain) else plain
        ratio = rows / plain
        yield Finding(
            f"10 % better, planned 10 %, after {name}: median rows of the trial",
            f"{rows:,.0f} ({ratio:.2f} times those without a shadow)", "at most 1.1 times",
            ratio <= 1.1,
        )  # fmt: skip
    yield Finding("the same, over the test of fixed size", f"{plain / size:.2f}", "at most 1.25",
                  plain / size <= 1.25)  # fmt: skip
    for seed, (name, plan) in enumerate({"30 %": 0.3, "3.3 %": 0.033, "nothing": None}.items()):
        rng = np.random.default_rng([2, seed])
        worlds = blocks(8 * size, 800, 0.1, better)
        rows = np.median(opened(worlds, Runs(runs, leads.stakes(plan)), error * part(1), rng))
        yield Finding(f"10 % better, planned {name}: over the test of fixed size",
                      f"{rows / size:.2f}", "")  # fmt: skip
    ramp = blocks(100_000, 20, 0.01, better) + blocks(5 * size, 500, 0.1, better)
    rng = np.random.default_rng(3)
    rows = np.median(opened(ramp, Runs(runs, leads.stakes(0.1)), error * part(1), rng)) - 100_000
    yield Finding("10 % better, first 100,000 rows at a share of 1 %: over no such rows",
                  f"{rows / plain:.2f}", "at most 1.1", rows / plain <= 1.1)  # fmt: skip


def _swing(t: int) -> float:
    return 0.5 if t % 2 else -0.5


NULLS: dict[str, Callable[[int], World]] = {
    "equal, 5 % clicks": lambda t: World(1000, 0.1, (0.05, 0.05, 0.05)),
    "equal, 50 % clicks": lambda t: World(1000, 0.1, (0.5, 0.5, 0.5), 0.5),
    "equal, 1 % clicks": lambda t: World(1000, 0.1, (0.01, 0.01, 0.01), 0.01),
    "equal, half of the traffic": lambda t: World(1000, 0.5, (0.05, 0.05, 0.05)),
    "equal, 1 % of the traffic": lambda t: World(1000, 0.01, (0.05, 0.05, 0.05)),
    "clicks that drift for both": lambda t: World(
        1000, 0.1, (0.02 + 0.001 * t, 0.02 + 0.001 * t, 0.05)
    ),
    "better and worse in turns": lambda t: World(1000, 0.1, (0.05 * (1.0 + _swing(t)), 0.05, 0.05)),
    "a model that is wrong": lambda t: World(1000, 0.1, (0.05, 0.05, 0.05), 0.9),
    "alike in nine rows of ten": lambda t: World(1000, 0.1, (0.05, 0.05, 0.05), 0.05, 0.9),
    "a share that grows": lambda t: World(1000, min(0.4, 0.01 * (1 + t // 5)), (0.05, 0.05, 0.05)),
    "10 % worse": lambda t: World(1000, 0.1, (0.045, 0.05, 0.05)),
}  # t: the block


def nulls(runs: int, candidates: int = 20) -> Iterator[Finding]:
    """False promotions if candidates that are not better are tried in turn, and retired."""
    for seed, (name, world) in enumerate(NULLS.items()):
        rng, wrong = np.random.default_rng([4, seed]), np.zeros(runs, dtype=bool)
        for number in range(1, candidates + 1):
            error = Turn(number, 0).error(1.0 - ALPHA)
            shadow = [world(t)._replace(share=0.0) for t in range(10)]
            wrong |= np.isfinite(opened(shadow, Runs(runs, leads.stakes()), error * part(0), rng))
            trial = [world(t) for t in range(60)]
            wrong |= np.isfinite(opened(trial, Runs(runs, leads.stakes(0.1)), error * part(1), rng))
        share = float(wrong.mean())
        what = f"{candidates} candidates in turn, {name}: a false promotion"
        found = f"{100 * share:.1f} % of {runs:,} runs"
        yield Finding(what, found, "at most 5 %", share <= 0.05)


def covered(runs: int) -> Iterator[Finding]:
    """How often bounds hold at every look."""
    for seed, (name, world) in enumerate(NULLS.items()):
        rng, bad = np.random.default_rng([5, seed]), np.zeros((runs, 2), dtype=bool)
        made = Runs(runs, leads.stakes())
        for now in played((world(t) for t in range(200)), made, rng):
            gap = now.truth / now.pace
            for which in (leads.BETTER, leads.WORSE):
                bad[:, which] |= now.log_capital(which, gap) >= -math.log(ALPHA / 2.0)
        share = 1.0 - float(bad.any(axis=1).mean())
        yield Finding(f"both bounds hold at every look, {name}", f"{100 * share:.1f} %",
                      "at least 95 %", share >= 0.95)  # fmt: skip


class GuardWorld(World):
    """The live policy in place of the candidate: the default has the first arm."""

    @property
    def h(self) -> Any:
        return np.array([self.share, 0.96 * (1.0 - self.share), 0.04 * (1.0 - self.share)])


DEFAULTS = {"exploration of 5 %, 5 arms": 0.01, "a holdout of 5 %": 0.05}  # its share


def guard(runs: int) -> Iterator[Finding]:
    """Bad rows until the guard demotes a live policy that was good before."""
    for seed, (name, share) in enumerate(DEFAULTS.items()):
        first = math.nan
        for N in (0, 100_000, 400_000):
            rows, wrong = _demoted(N, share, runs, np.random.default_rng([6, seed, N]))
            first = rows if math.isnan(first) else first
            yield Finding(
                f"guard, {name}, {N:,} good rows, then half the clicks: median rows",
                f"{rows:,.0f} ({rows / first:.2f} times those at 0; false alarms before: {wrong})",
                "at most 1.3 times", rows / first <= 1.3,
            )  # fmt: skip
    runs_each, most = 200, 2_000_000
    rng, made = np.random.default_rng(7), Runs(runs_each, leads.stakes())
    alarms = np.zeros(runs_each, dtype=bool)
    for now in played([GuardWorld(2000, 0.05, (0.05, 0.05, 0.05))] * (most // 2000), made, rng):
        alarms |= now.alarm(leads.BETTER) >= RUN_LENGTH
    share, allowed = float(alarms.mean()), most / RUN_LENGTH
    limit = allowed + 2.0 * math.sqrt(allowed * (1 - allowed) / runs_each)
    what = f"guard, policies that are equal: false alarms in {most:,} rows"
    found = f"{100 * share:.1f} % of {runs_each} runs"
    yield Finding(what, found, f"about {100 * allowed:.0f} % or less", share <= limit)


def _demoted(N: int, share: float, runs: int, rng: np.random.Generator) -> tuple[float, int]:
    made, found = Runs(runs, leads.stakes()), np.full(runs, math.inf)
    good = [GuardWorld(1000, share, (0.05, 0.06, 0.05))] * (N // 1000)
    bad = [GuardWorld(1000, share, (0.05, 0.025, 0.05))] * 600
    for now in played(good + bad, made, rng):
        new = (now.alarm(leads.BETTER) >= RUN_LENGTH) & np.isinf(found)
        found[new] = now.rows - N
    return float(np.median(found[found > 0])), int((found <= 0).sum())


PERIOD, EXPLORED = 100, 0.3  # decisions, and the share that explores


def late_rewards(seeds: int) -> Iterator[Finding]:
    """The arm that is liked changes every 100 decisions and rewards are known 100 decisions later:
    a candidate with a short memory looks better than it is if it is asked too late."""
    what = f"late rewards, {seeds} loops, a worse candidate in the shadow, asked"
    wrong = sum(promoted_late(seed, at_decision=True) for seed in range(seeds))
    yield Finding(f"{what} at the decision: promoted", f"{wrong}", "0", wrong == 0)
    wrong = sum(promoted_late(seed, at_decision=False) for seed in range(seeds))
    yield Finding(f"{what} when the reward is known: promoted", f"{wrong}", "")


def promoted_late(seed: int, at_decision: bool, decisions: int = 3000) -> bool:
    """Return whether the candidate is promoted. What a loop does is compared with such a
    simulation in tests/loop/test_candidates.py."""
    rng, X = np.random.default_rng([8, seed]), np.eye(2)
    problem = Problem(dim=2, family=Bernoulli())
    both = [Bandit(DOMD(problem=problem, discount=gamma)) for gamma in (0.9, 1.0)]
    found, pace = leads.Evidence(leads.stakes()), leads.Pace((EXPLORED / 2, 1.0))
    error, waiting, rows = Turn(1, 0).error(1.0 - ALPHA) * part(0), list[Any](), list[Any]()
    for t in range(decisions):
        if len(waiting) == PERIOD:
            h, k, R, votes = waiting.pop(0)
            votes = votes if at_decision else [_vote(bandit, X) for bandit in both]
            rows.append((h, k, *votes, problem.family.mu(X @ both[1].theta), R, pace.weight))
            pace = pace.after(h, (votes[0], votes[1]))
            for bandit in both:
                bandit.update(X[k], R)
        if len(rows) == PERIOD:
            _add(found, rows)
            rows = []
            if found.proves(leads.BETTER, error):
                return True
        votes = [_vote(bandit, X) for bandit in both]
        k = int(rng.random() < votes[1][1])
        R = float(rng.random() < (0.6 if k == (t // PERIOD) % 2 else 0.3))
        waiting.append((votes[1], k, R, votes))
    return False


def _add(found: leads.Evidence, rows: list[Any]) -> None:
    h, chosen, first, second, q, R, paces = (np.array(each) for each in zip(*rows))
    start = np.arange(0, h.size, h.shape[1])
    arms = LoggedArms(start, start + chosen, h.ravel())
    found.add(arms, (first.ravel(), second.ravel()), q.ravel(), R, paces)


def _vote(bandit: Bandit, X: Any) -> Any:
    p = np.full(len(X), EXPLORED / len(X))
    p[bandit.choose(X)] += 1.0 - EXPLORED
    return p


LOST, CHECKED = 2000, 50  # decisions, and how often promotion is asked for


def lost_rewards(loops: int) -> Iterator[Finding]:
    """Two arms are liked alike, but half of the unhappy rewards of one are lost, so it looks
    better, and a candidate that prefers it looks better, too."""
    for how in ("missing", "cancelled"):
        wrong, named = map(sum, zip(*(promoted_lost(seed, how) for seed in range(loops))))
        what = f"half of one arm's unhappy rewards {how}, {loops} loops: promoted"
        yield Finding(what, f"{wrong} (the loss is named in {named})", "0", wrong == 0)
    wrong, named = map(sum, zip(*(promoted_lost(seed, "") for seed in range(loops))))
    what = f"no rewards lost, {loops} loops: promoted"
    yield Finding(what, f"{wrong} (a loss is named in {named})", "0", wrong == 0)


def promoted_lost(seed: int, how: str) -> tuple[bool, bool]:
    """Return whether the candidate is promoted, and whether the comparison names a loss."""
    rng, arms = np.random.default_rng([9, seed]), {name: {"name": name} for name in "xy"}
    features = Features(arm={"name": Category([*arms])})
    declared = {"features": features, "arms": arms, "reward": Reward(0, 1, wait=50)}
    even = {"policy": DOMD, "exploration": InverseGap(0.1, strength=0.0), "seed": seed}
    with Loop(":memory:", clock="events", training="inline", **declared, **even) as loop:
        loop.shadow("sharp", exploration=Floor(0.1), history=False)
        loop.trial("sharp", share=0.5)
        for t in range(LOST):
            made, at = loop.decide({}, at=100.0 * t, id=f"{seed} {t}"), 100.0 * t
            happy, lost = rng.random(2) < (0.3, 0.5)
            if happy or not (how and lost and made.arm == "x"):
                loop.reward(made.id, float(happy), at=at)
            elif how == "cancelled":
                loop.cancel(made.id, at=at)
            if t % CHECKED == CHECKED - 1 and _promoted(loop):
                return True, False
        found = loop.compare()
    return False, bool(found.losses or found.arm_losses)


def _promoted(loop: Loop) -> bool:
    try:
        loop.promote("sharp")
    except ValueError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=0, help="loops with late rewards")
    parser.add_argument("--loops", type=int, default=0, help="loops with lost rewards")
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    given, lines, missed = parser.parse_args(), [["what", "found", "must be"]], False
    parts = [(power, given.runs), (nulls, given.runs), (covered, given.runs), (guard, given.runs)]
    if given.seeds or given.loops:
        parts = [(late_rewards, given.seeds), (lost_rewards, given.loops)]
    for part_of_it, runs in parts:
        for each in part_of_it(runs) if runs else ():
            missed |= show(each, lines)
    write_rows(given.csv, lines)
    return int(missed)


def show(each: Finding, lines: list[list[str]]) -> bool:
    """Print a figure and add it to the table; return whether it is not what it must be."""
    bad = each.reached is False
    print(f"{each.what:<90} {each.found}{'  MISSED: ' + each.required if bad else ''}", flush=True)
    lines.append([each.what, each.found, each.required])
    return bad


if __name__ == "__main__":
    sys.exit(main())
