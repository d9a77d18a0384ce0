"""Coverage of every interval on simulated logs whose truth is known.

    python -m benchmarks.coverage [--logs 1000] [--rows 3000] [--csv docs/results/intervals.csv]

The live policy follows discounted rewards and explores with one decision in five, or plays at
random. Values stand still, or drift. Candidates are an arm, and a learner that follows all rewards
so far; its means are the reward model. Printed: the share of logs in which an interval holds at the
end, and in which a sequence holds at all looks at once. Then the same for logs in which few rows
carry an estimate: rare clicks, arms that are hardly ever logged, 50 rows. And for what
`loop.health()` says of other policies. Exit status 1 if one is not as promised.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import write_rows
from driftbandit.estimators import ope
from driftbandit.estimators.accumulators import Band, Difference, Value
from driftbandit.estimators.increments import LoggedArms
from driftbandit.estimators.overlap import overlap
from driftbandit.loop.reporting import policy_values
from driftbandit.reward import Reward

ARMS, FLOOR, EVERY, CLIP, ENOUGH = 3, 0.2, 100, 5.0, 100.0
WORLDS: dict[str, dict[str, Any]] = {
    "live policy at random": {"drift": 0.0, "adaptive": False},
    "live policy learns": {"drift": 0.0},
    "live policy learns, values drift": {"drift": 1.5},
}
PROMISED = {"sequence": (0.95, 1.0), "clipped": (0.93, 1.0)}  # a clipped interval has a margin
USUAL = (0.93, 0.975)  # of 1,000 logs: 95 % and about three standard deviations to both sides
EFFECTIVE = "effective rows, at least"
WARNED, KINDS = 0.95, ("ips", "snips", "dr", "ips clipped", "dr clipped")


class Hard(NamedTuple):
    """Logs in which few rows carry an estimate. Contexts of some kinds, each with its share; the
    probabilities of arms, and what the candidate plays and arms earn in each kind."""

    rows: int
    shares: tuple[float, ...]
    h: tuple[tuple[float, ...], ...]
    pi: tuple[tuple[float, ...], ...]
    clicks: tuple[tuple[float, ...], ...]
    expected: float | None = None  # by the reward model; None: the mean of all rewards
    money: bool = False  # one in ten buys, and few spend much


THIRD, SECOND_ARM = (1 / 3, 1 / 3, 1 / 3), (0.0, 1.0, 0.0)
EVEN, RARE = (0.5, 0.5, 0.0), (0.0, 0.0, 1.0)
HARD = {
    "1 % clicks, 1,000 rows": Hard(1000, (1.0,), (THIRD,), (SECOND_ARM,), ((0.01,) * 3,)),
    "1 % clicks, model says 50 %": Hard(
        1000, (1.0,), (THIRD,), (SECOND_ARM,), ((0.01,) * 3,), expected=0.5
    ),
    "99 % clicks, 1,000 rows": Hard(1000, (1.0,), (THIRD,), (SECOND_ARM,), ((0.99,) * 3,)),
    "0.3 % clicks, 1,000 rows": Hard(1000, (1.0,), (THIRD,), (SECOND_ARM,), ((0.003,) * 3,)),
    "money, mean 1 % of its range": Hard(
        1000, (1.0,), (THIRD,), (SECOND_ARM,), ((0.01,) * 3,), money=True
    ),
    "5 % clicks, arm logged 1 in 200": Hard(
        3000, (1.0,), ((0.99, 0.005, 0.005),), (SECOND_ARM,), ((0.05,) * 3,)
    ),
    "30 % clicks, arm logged 1 in 1,000": Hard(
        1000, (1.0,), ((0.998, 0.001, 0.001),), (SECOND_ARM,), ((0.3,) * 3,)
    ),
    "skew: 10 % of rows at 1 in 100": Hard(
        5000, (0.9, 0.1), (EVEN, (0.5, 0.49, 0.01)), (SECOND_ARM, RARE), ((0.02,) * 3,) * 2
    ),
    "skew: 20 % of rows at 1 in 500": Hard(
        5000,
        (0.8, 0.2),
        (EVEN, (0.5, 0.498, 0.002)),
        (SECOND_ARM, RARE),
        ((0.05,) * 3, (0.05, 0.05, 0.2)),
    ),
    "skew: 2 % of rows at 1 in 1,000": Hard(
        1000,
        (0.98, 0.02),
        (EVEN, (0.5, 0.499, 0.001)),
        (SECOND_ARM, RARE),
        ((0.2,) * 3, (0.2, 0.2, 0.9)),
    ),
    "50 rows, 30 % clicks": Hard(50, (1.0,), (THIRD,), (SECOND_ARM,), ((0.3,) * 3,)),
    "50 rows, 2 % clicks": Hard(50, (1.0,), (THIRD,), (SECOND_ARM,), ((0.02,) * 3,)),
}


class Asked(NamedTuple):
    """Logs that `loop.health()` reads: the probabilities of arms, of which the second is the
    default, what they earn, the share of the holdout, and how many decisions a user has; then the
    holdout is one of users, who differ."""

    rows: int
    h: tuple[float, ...]
    clicks: tuple[float, ...]
    holdout: float = 0.0
    visits: int = 0


HEALTH = {
    "arms logged 1 in 10": Asked(300, (0.8, 0.1, 0.1), (0.7, 0.4, 0.1)),
    "arms logged 1 in 100": Asked(300, (0.98, 0.01, 0.01), (0.7, 0.4, 0.1)),
    "1 to 2 % clicks": Asked(200, (0.4, 0.3, 0.3), (0.02, 0.01, 0.01)),
    "default logged 1 in 100, holdout of 10 %": Asked(
        1000, (0.98, 0.01, 0.01), (0.6, 0.3, 0.6), 0.1
    ),
    "users who differ, 20 visits each, holdout of 20 %": Asked(
        2000, (0.9, 0.05, 0.05), (0.4, 0.3, 0.4), 0.2, 20
    ),
}


class World:
    """Logs side by side."""

    def __init__(
        self, logs: int, n: int, seed: int, drift: float, *, adaptive: bool = True
    ) -> None:
        rng = np.random.default_rng(seed)
        phase = np.arange(n)[:, None] / n + np.arange(ARMS) / ARMS
        self.n, self.truth = n, 0.3 + 0.2 * np.sin(2.0 * np.pi * phase * drift)
        self.h, self.q = np.empty((2, logs, n, ARMS))  # q: the learner's means before each row
        self.A, self.R = np.empty((logs, n), dtype=np.int64), np.empty((logs, n))
        rows = np.arange(logs)
        live, learner = (
            np.stack([np.ones((logs, ARMS)), np.full((logs, ARMS), 2.0)]) for _ in "12"
        )
        for t in range(n):
            h = np.full((logs, ARMS), FLOOR / ARMS if adaptive else 1.0 / ARMS)
            if adaptive:
                h[rows, np.argmax(live[0] / live[1], axis=1)] += 1.0 - FLOOR
            a = (rng.random((logs, 1)) > np.cumsum(h, axis=1)).sum(axis=1).clip(0, ARMS - 1)
            r = (rng.random(logs) < self.truth[t, a]).astype(float)
            self.h[:, t], self.q[:, t], self.A[:, t], self.R[:, t] = (
                h,
                learner[0] / learner[1],
                a,
                r,
            )
            live = 0.99 * live + np.array([0.01, 0.02])[:, None, None]
            for sums in (live, learner):
                sums[0, rows, a] += r
                sums[1, rows, a] += 1.0

    def log(self, k: int) -> tuple[LoggedArms, Any]:
        start = np.arange(0, ARMS * self.n, ARMS)
        return LoggedArms(start, start + self.A[k], self.h[k].ravel()), self.R[k]

    def always(self, arm: int) -> Any:
        return np.eye(ARMS)[np.full(self.n, arm)].ravel()

    def learner(self, k: int) -> Any:
        """The arm that has earned most so far."""
        return np.eye(ARMS)[np.argmax(self.q[k], axis=1)].ravel()

    def mean(self, pi: Any) -> Any:
        """The true mean value of a candidate up to each row."""
        earned = (pi.reshape(self.n, ARMS) * self.truth).sum(axis=1)
        return np.cumsum(earned) / np.arange(1, self.n + 1)


def coverage(logs: int, n: int, seed: int, drift: float, **options: Any) -> dict[str, float]:
    """Shares of logs in which each interval holds, and the smallest effective sample size."""
    world, held, least = World(logs, n, seed, drift, **options), Counter[str](), np.inf
    for k in range(logs):
        for name, found in checks(world, k):
            if name == EFFECTIVE:
                least = min(least, found)
            else:
                held[name] += bool(found)
    return {name: held[name] / logs for name in held} | {EFFECTIVE: least}


def checks(world: World, k: int) -> Iterator[tuple[str, Any]]:
    """Which intervals of one log hold."""
    (arms, R), q = world.log(k), world.q[k].ravel()
    looks, pis = np.arange(EVERY - 1, world.n, EVERY), (world.always(1), world.learner(k))
    truths = [world.mean(pi) for pi in pis]
    for name, pi, truth in zip(("an arm", "a learner"), pis, truths):
        rows = Value(CLIP).columns(arms, pi, q, R)
        total, seen = rows[:, : len(ope.SUMS)].sum(axis=0), overlap(arms, pi, q, R, CLIP)
        yield EFFECTIVE, seen.effective
        for kind, each in ope.estimates(total, seen, 0.95, CLIP).items():
            if kind != "dm":  # has no interval
                yield f"{name}: {kind}", each.low <= truth[-1] <= each.high
        yield f"{name}: sequence", always(Value.band(up_to(rows, looks), 0.05), truth[looks])
    rows, truth = Difference().columns(arms, pis, q, R), truths[0] - truths[1]
    seen = overlap(arms, pis[0] - pis[1], q, R)
    once = ope.difference(rows.sum(axis=0)[:3], seen, 0.95)
    yield "difference", once.low <= truth[-1] <= once.high
    yield "difference: sequence", always(Difference.band(up_to(rows, looks), 0.05), truth[looks])


def hard_coverage(world: Hard, logs: int, seed: int) -> dict[str, float]:
    """Shares of logs in which each interval holds, and of those in which one does not the share
    that is warned of."""
    rng, held, missed, warned = np.random.default_rng(seed), Counter[str](), 0, 0
    effective = 0.0
    for _ in range(logs):
        arms, pi, q, R, truth, live = hard_log(world, rng)
        value, gap = Value(CLIP).columns(arms, pi, q, R), Difference()
        total, seen = value[:, : len(ope.SUMS)].sum(axis=0), overlap(arms, pi, q, R, CLIP)
        found = ope.estimates(total, seen, 0.95, CLIP)
        good = {kind: found[kind].low <= truth <= found[kind].high for kind in KINDS}
        both = gap.columns(arms, (pi, arms.h), q, R)
        apart = overlap(arms, pi - arms.h, q, R)
        once = ope.difference(both.sum(axis=0)[:3], apart, 0.95)
        good["difference"] = once.low <= truth - live <= once.high
        missed += not all(good.values())
        warned += not all(good.values()) and ope.rough(total, seen)
        looks = np.unique(np.linspace(1, world.rows, 20).astype(int)) - 1
        good["sequence"] = always(Value.band(up_to(value, looks), 0.05), truth)
        band = Difference.band(up_to(both, looks), 0.05)
        good["difference: sequence"] = always(band, truth - live)
        held.update(kind for kind, holds in good.items() if holds)
        effective += seen.effective / logs
    shares = {kind: held[kind] / logs for kind in good}
    return shares | {"misses warned of": warned / missed if missed else 1.0, "effective": effective}


def hard_log(world: Hard, rng: np.random.Generator) -> tuple[Any, ...]:
    """A log, the candidate, the model, rewards, and the values of candidate and live policy."""
    kinds = rng.choice(len(world.shares), size=world.rows, p=world.shares)
    h, pi, clicks = (np.array(each) for each in (world.h, world.pi, world.clicks))
    drawn = rng.random((world.rows, 1)) > np.cumsum(h[kinds], axis=1)
    A = drawn.sum(axis=1).clip(0, h.shape[1] - 1)
    R = rng.random(world.rows) < clicks[kinds, A]
    if world.money:  # a tenth buys; what they spend is on average ten times the mean
        size = rng.choice([0.2, 0.6, 1.5, 4.0, 12.0], world.rows, p=[0.45, 0.35, 0.15, 0.04, 0.01])
        R = (rng.random(world.rows) < 0.1) * size / 0.805 * 10.0 * clicks[kinds, A]
    R = np.minimum(R, 1.0).astype(float)
    start = np.arange(0, 3 * world.rows, 3)
    q = np.full(3 * world.rows, world.expected or 0.0)
    if world.expected is None:
        q = np.repeat((0.5 + np.cumsum(R) - R) / (1.0 + np.arange(world.rows)), 3)
    values = (float((np.array(world.shares)[:, None] * p * clicks).sum()) for p in (pi, h))
    return LoggedArms(start, start + A, h[kinds].ravel()), pi[kinds].ravel(), q, R, *values


def hard_lines(found: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """The table: a line for each world, a column for each interval."""
    names = [name for name in next(iter(found.values())) if name != "effective"]
    yield ["log", "effective rows", *names]
    for world, shares in found.items():
        cells = (f"{100.0 * shares[name]:.1f}" for name in names)
        yield [world, f"{shares['effective']:.0f}", *cells]


def hard_missed(found: dict[str, dict[str, float]]) -> Iterator[str]:
    """What is promised and not held: an interval that misses is warned of."""
    for world, shares in found.items():
        for kind in (*KINDS, "difference"):
            if shares[kind] < USUAL[0] and shares["misses warned of"] < WARNED:
                yield f"{world}, {kind}: {shares[kind]:.4g}, not warned of"
        for kind in ("sequence", "difference: sequence"):
            if shares[kind] < PROMISED["sequence"][0]:
                yield f"{world}, {kind}: {shares[kind]:.4g}"


def health_coverage(world: Asked, logs: int, seed: int) -> dict[str, float]:
    """Shares of logs in which the intervals of `loop.health()` hold, or nothing is said."""
    rng, held = np.random.default_rng(seed), Counter[str]()
    truths = {"uniform": float(np.mean(world.clicks)), "default": world.clicks[1]}
    for _ in range(logs):
        lines = health_log(world, rng)
        for name, truth in truths.items():
            target = getattr(policy_values, name)
            found = policy_values.value(lines, target, Reward(0, 1, wait=5, missing=0))
            held[name] += found is None or found.low <= truth <= found.high
    return {name: held[name] / logs for name in truths}


def health_log(world: Asked, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The lines of a log."""
    names, lines, aside, taste = "abc"[: len(world.h)], [], False, 1.0
    for t in range(world.rows):
        if not world.visits or t % world.visits == 0:
            aside = rng.random() < world.holdout
            taste = 2.0 * (rng.random() < 0.5) if world.visits else 1.0  # of half of all users
        p = [0.0, 1.0, 0.0] if aside else [*world.h]
        k = int(rng.choice(len(p), p=p))
        line = {
            "role": "holdout" if aside else "active", "names": [*names], "default": names[1],
            "key": f"user {t // world.visits}" if world.visits else None, "arm": names[k],
            "probability": p[k], "probabilities": p, "position": None, "status": "trained",
            "reward": float(rng.random() < taste * world.clicks[k]),
        }  # fmt: skip
        lines.append(line)
    return lines


def health_lines(found: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """The table: a line for each world, a column for each policy."""
    yield ["log", *next(iter(found.values()))]
    for world, shares in found.items():
        yield [world, *(f"{100.0 * share:.1f}" for share in shares.values())]


def health_missed(found: dict[str, dict[str, float]]) -> Iterator[str]:
    for world, shares in found.items():
        for name, share in shares.items():
            if share < USUAL[0]:
                yield f"{world}, health, {name}: {share:.4g}"


def up_to(rows: Any, looks: Any) -> Any:
    return np.cumsum(rows, axis=0)[looks]


def always(band: Band, truth: Any) -> bool:
    return bool(((band.low <= truth) & (truth <= band.high)).all())


def promised(name: str) -> tuple[float, float]:
    if name == EFFECTIVE:
        return ENOUGH, np.inf
    return PROMISED.get(name.split()[-1], USUAL)


def lines(found: dict[str, dict[str, float]]) -> Iterator[list[str]]:
    """The table: a line for each interval, a column for each world."""
    yield ["interval", "promised, %", *found]
    for name in next(iter(found.values())):
        low, high = promised(name)
        if name == EFFECTIVE:
            yield [name, f"{low:g}", *(f"{each[name]:.0f}" for each in found.values())]
        else:
            shares = (f"{100.0 * each[name]:.1f}" for each in found.values())
            yield [name, f"{100.0 * low:g} to {100.0 * high:g}", *shares]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--hard", type=int, default=300, help="logs in which few rows matter")
    parser.add_argument("--csv", type=Path, help="also write the table to this file")
    parser.add_argument("--hard-csv", type=Path, help="and that of hard logs to this one")
    parser.add_argument("--health-csv", type=Path, help="and that of health to this one")
    given = parser.parse_args()
    found = {name: coverage(given.logs, given.rows, 1, **each) for name, each in WORLDS.items()}
    write_rows(given.csv, lines(found))
    for line in lines(found):
        print("  ".join(f"{cell:<24}" for cell in line))
    hard = {name: hard_coverage(world, given.hard, 5) for name, world in HARD.items()}
    write_rows(given.hard_csv, hard_lines(hard))
    for line in hard_lines(hard):
        print("  ".join(f"{cell:<12}" for cell in line))
    health = {name: health_coverage(world, given.hard, 5) for name, world in HEALTH.items()}
    write_rows(given.health_csv, health_lines(health))
    for line in health_lines(health):
        print("  ".join(f"{cell:<12}" for cell in line))
    missed = [*hard_missed(hard), *health_missed(health)] + [
        f"{world}, {name}: {share:.4g}"
        for world, shares in found.items()
        for name, share in shares.items()
        if not promised(name)[0] <= share <= promised(name)[1]
    ]
    print(*(f"MISSED {each}" for each in missed), sep="\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
