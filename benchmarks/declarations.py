"""Natural declarations of everyday jobs: `make bench-declarations` sets each against the best
simple baseline of its job, and against choices at random.

A job is decided by a bandit with `AutoDOMD` and the columns that a newcomer would declare, and all
other options are left alone. Design seeds are below 2,000; these judge.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import process_time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.tables import stored, told, write
from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Category,
    Features,
    Flag,
    Fleet,
    Item,
    Number,
    Reward,
)
from driftbandit.datasets import load
from driftbandit.loop.config import Declaration
from driftbandit.loop.learning.keyed import learner_for
from driftbandit.loop.state.definition import Version
from driftbandit.loop.state.reward_windows import Example

JUDGE = range(71_000, 71_020)
LEVEL = 0.02  # of the gap between random and best: what counts as level with a baseline
GENRES = list("abcdef")
TOPICS = ["sport", "world", "music", "tech"]
Floats = np.ndarray


class Round(NamedTuple):
    """A context, arms by name, and the mean reward of each, from 0 to 1."""

    context: dict[str, Any]
    arms: dict[str, dict[str, Any]]
    means: Floats
    pay: Floats | None = None  # rewards are pay with probability means / pay; None: 1


Player = Callable[[np.random.Generator], Any]


class Job(NamedTuple):
    """Rounds of a seed, declarations by name, and simple baselines by name."""

    rounds: Callable[[int], Iterator[Round]]
    declarations: dict[str, Features]
    baselines: dict[str, Player]
    keyed: Mapping[str, Player] = MappingProxyType({})  # declarations with a key
    most: int = 1000  # seeds that it is played with: wide rows take long


class Thompson:
    """Beta-Thompson for every arm by name, in every cell of the context."""

    def __init__(self, rng: Any, cell: Callable[[dict], Any] = lambda context: None) -> None:
        self.rng, self.cell, self.counts = rng, cell, dict[Any, list[float]]()

    def choose(self, told: Round) -> int:
        own = self.cell(told.context)
        self.now = [self.counts.setdefault((own, name), [1.0, 1.0]) for name in told.arms]
        return int(np.argmax([self.rng.beta(a, b) for a, b in self.now]))

    def learn(self, k: int, reward: float) -> None:
        self.now[k][int(self.rng.random() >= reward)] += 1.0


class LinearThompson:
    """Linear Thompson sampling with a normal prior; `effects` adds one for every name on offer."""

    def __init__(self, rng: Any, rows: Callable[[Round], Floats], effects: bool = False) -> None:
        self.rng, self.rows, self.effects = rng, rows, effects
        self.names: list[str] = []
        self.A, self.b = np.zeros((0, 0)), np.zeros(0)

    def choose(self, told: Round) -> int:
        X = self.rows(told)
        names = list(told.arms) if self.effects else []
        if names != self.names or not self.b.size:
            self._rename(X.shape[1], names)
        self.X = np.c_[X, np.eye(len(names))] if names else X
        C = np.linalg.inv(self.A)
        draw = np.linalg.cholesky((C + C.T) / 2) @ self.rng.standard_normal(len(C))
        return int(np.argmax(self.X @ (C @ self.b + 0.3 * draw)))

    def _rename(self, d: int, names: list[str]) -> None:
        """Forget names that are gone; new ones begin at the prior."""
        kept = [(d + k, d + self.names.index(n)) for k, n in enumerate(names) if n in self.names]
        pairs = ([(k, k) for k in range(d)] if self.b.size else []) + kept
        A, b = np.eye(d + len(names)), np.zeros(d + len(names))
        if pairs:
            new, old = (list(each) for each in zip(*pairs))
            A[np.ix_(new, new)], b[new] = self.A[np.ix_(old, old)], self.b[old]
        self.A, self.b, self.names = A, b, names

    def learn(self, k: int, reward: float) -> None:
        x = self.X[k]
        self.A += np.outer(x, x)
        self.b += reward * x


class Declared:
    """A bandit with declared columns."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.bandit = Bandit(AutoDOMD(problem=features.problem(Reward(0, 1))))

    def choose(self, told: Round) -> int:
        known = self.features.arm
        arms = [{n: v for n, v in arm.items() if n in known} for arm in told.arms.values()]
        context = {n: v for n, v in told.context.items() if n in self.features.context}
        self.X = self.features.encode(context, arms)
        return self.bandit.choose(self.X)

    def learn(self, k: int, reward: float) -> None:
        self.bandit.update(self.X[k], reward)


class Keyed:
    """A loop's learner for each key, without the ledger."""

    def __init__(self, features: Features, **options: Any) -> None:
        self.features, reward = features, Reward(0, 1)
        told = Declaration(features=features, reward=reward, key="user", **options)
        version = Version(features, told.timed_policy, None)
        self.learner, self.n = learner_for(told, version), 0

    def choose(self, told: Round) -> int:
        self.key = told.context["user"]
        self.X = self.features.encode({}, list(told.arms.values()))
        return self.learner.view(0.0, self.key).bandit.choose(self.X)

    def learn(self, k: int, reward: float) -> None:
        self.n += 1
        self.learner.train(Example(self.n, self.n, 0.0, reward, key=self.key), self.X[k])


class FromNothing:
    """A learner for each key that knows nothing of the others."""

    def __init__(self, features: Features) -> None:
        self.features, self.fleet = features, Fleet(DOMD(problem=features.problem(Reward(0, 1))))

    def choose(self, told: Round) -> int:
        self.key = told.context["user"]
        self.X = self.features.encode({}, list(told.arms.values()))
        return int(self.fleet.choose([self.key], self.X)[0])

    def learn(self, k: int, reward: float) -> None:
        self.fleet.update([self.key], self.X[[k]], [reward])


# The jobs


def users(differ: float) -> Callable[[int], Iterator[Round]]:
    """Two hundred users who come 30 times and like six genres; `differ` is in log-odds."""

    def rounds(seed: int) -> Iterator[Round]:
        rng = np.random.default_rng([seed, 6])
        all_users = rng.permutation([-0.9, -1.2, -1.5, -1.5, -1.8, -2.1])
        p = 1.0 / (1.0 + np.exp(-(all_users + rng.normal(0.0, differ, (200, 6)))))
        arms = {genre: {"genre": genre} for genre in GENRES}
        for user in rng.permutation(np.repeat(np.arange(200), 30)).tolist():
            yield Round({"user": f"u{user}"}, arms, p[user])

    return rounds


def prices(seed: int) -> Iterator[Round]:
    """Twelve prices from 1 to 12; members pay more. What is earned is the price, or nothing."""
    rng = np.random.default_rng([seed, 1])
    budget, spread, extra = rng.uniform(3, 8), rng.uniform(0.6, 2.0), rng.uniform(0, 3)
    price = np.arange(1.0, 13.0)
    arms = {f"{p:g}": {"price": p} for p in price}
    for _ in range(2000):
        member = bool(rng.random() < 0.5)
        buys = 1.0 / (1.0 + np.exp((price - budget - extra * member) / spread))
        yield Round({"member": member}, arms, buys * price / 12.0, price / 12.0)


def latency(seed: int) -> Iterator[Round]:
    """Batch sizes from 1 to 128: the best one grows with the load."""
    rng = np.random.default_rng([seed, 2])
    sizes, at = 2.0 ** np.arange(8), rng.uniform(1, 3)
    arms = {f"{s:g}": {"batch": s} for s in sizes}
    for _ in range(2000):
        load_now = float(rng.random())
        best = at + 3.0 * load_now
        yield Round(
            {"load": load_now}, arms, 0.1 + 0.7 * np.exp(-((np.log2(sizes) - best) ** 2) / 4)
        )


def scores(seed: int) -> Iterator[Round]:
    """Twelve search results whose score is worth what it says: a line is right."""
    rng = np.random.default_rng([seed, 3])
    slope, level = rng.uniform(1, 3), rng.uniform(-3, -1)
    for _ in range(1000):
        score = rng.random(12)
        arms = {str(k): {"score": float(s)} for k, s in enumerate(score)}
        yield Round({}, arms, 1.0 / (1.0 + np.exp(-(level + slope * score))))


def shop(seed: int) -> Iterator[Round]:
    """Twenty products out of many; country, hour and device matter, each with some categories."""
    rng = np.random.default_rng([seed, 7])
    category, brand = rng.normal(0, 0.5, 10), rng.normal(0, 0.4, 6)
    local, hourly = rng.normal(0, 0.7, (8, 10)), rng.normal(0, 0.7, (10, 2))
    handy, dear = rng.normal(0, 0.5, (3, 6)), rng.uniform(0.5, 1.5)
    for _ in range(1000):
        country, device, hour = int(rng.integers(8)), int(rng.integers(3)), rng.uniform(0, 24)
        kind, made, price = rng.integers(10, size=20), rng.integers(6, size=20), rng.random(20)
        angle = np.array([np.cos(np.pi * hour / 12), np.sin(np.pi * hour / 12)])
        z = -2.0 + category[kind] + brand[made] + local[country, kind] + hourly[kind] @ angle
        z = z + handy[device, made] - dear * (price - 0.4) ** 2 * 4.0
        told = zip(kind.tolist(), made.tolist(), price.tolist())
        arms = {str(k): {"category": c, "brand": b, "price": p} for k, (c, b, p) in enumerate(told)}
        context = {"country": country, "device": device, "hour": float(hour)}
        yield Round(context, arms, 1.0 / (1.0 + np.exp(-z)))


def shop_rows(told: Round) -> Floats:
    """Category, brand and price, for a linear baseline without products."""
    return np.array(
        [
            [1.0, arm["price"], arm["price"] ** 2]
            + [float(arm["category"] == k) for k in range(10)]
            + [float(arm["brand"] == k) for k in range(6)]
            for arm in told.arms.values()
        ]
    )


def shop_features(dim: int) -> Features:
    context = {"country": Category(list(range(8))), "device": Category(list(range(3)))}
    arm = {"category": Category(list(range(10))), "brand": Category(list(range(6)))}
    return Features(
        context=context | {"hour": Number(0, 24, cyclic=True)},
        arm=arm | {"price": Number(0, 1)},
        dim=dim,
    )


def news(seed: int) -> Iterator[Round]:
    """Sixteen articles by name; half are new twice a day, and all are stale in hours."""
    rng = np.random.default_rng([seed, 4])
    day, articles, topics = 600, [], rng.normal(0, 0.4, 4)
    for t in range(4 * day):
        if t % (day // 2) == 0:
            kept = articles[8:]
            names = range(10**6 if not kept else t, (10**6 if not kept else t) + 16 - len(kept))
            new = ((f"a{n}", int(rng.integers(4)), rng.normal(0, 0.8), t) for n in names)
            articles = kept + list(new)
        likes = int(rng.integers(4))
        z = [
            -2.2 + topics[topic] + own + 0.8 * (topic == likes) - 1.2 * min(1.0, (t - then) / day)
            for _, topic, own, then in articles
        ]
        arms = {
            name: {"name": name, "topic": TOPICS[topic], "age": 24.0 * (t - then) / day}
            for name, topic, _, then in articles
        }
        yield Round({"likes": TOPICS[likes]}, arms, 1.0 / (1.0 + np.exp(-np.array(z))))


def news_rows(told: Round) -> Floats:
    """Topic, whether it is the one that the visitor likes, and age, for the linear baseline."""
    return np.array(
        [
            [arm["topic"] == told.context["likes"], arm["age"] / 24.0]
            + [float(arm["topic"] == topic) for topic in TOPICS]
            for arm in told.arms.values()
        ]
    )


def stream(name: str, names: list[str]) -> Callable[[int], Iterator[Round]]:
    """A recorded stream of classes; a seed is a stretch of 1,500 rounds."""

    def rounds(seed: int) -> Iterator[Round]:
        data = load(name)
        n = len(data.rewards)
        first = int(np.random.default_rng([seed, 5]).integers(0, max(1, n - 1500)))
        size = data.arms.shape[2] // len(names)
        for t in range(first, min(first + 1500, n)):
            row = data.arms[t, 0, :size]
            context = {f"x{k}": float(v) for k, v in enumerate(row)}
            yield Round(context, {c: {"class": c} for c in names}, data.rewards[t].astype(float))

    return rounds


# Ends of the columns' ranges in tenths, which a newcomer knows.
BIKE = "-3 3 -3 3 -3 3 -3 3 -3 2 -4 4 -4 4 -4 4 -4 4 -6 6 -4 4 -4 6 -1 6 -6 6 -1 6"
WEATHER = "-5 5 -6 4 -7 7 -7 7 -5 7 -6 7 -6 5 -6 5"


def stream_features(tenths: str, names: list[str]) -> Features:
    ends = [float(end) / 10.0 for end in tenths.split()]
    pairs = zip(ends[::2], ends[1::2])
    context = {f"x{k}": Number(*pair, required=True) for k, pair in enumerate(pairs)}
    return Features(context=context, arm={"class": Category(names, required=True)})


def by_class(told: Round) -> Floats:
    """The context in a block of each class."""
    x = np.array([*told.context.values(), 1.0])
    return np.kron(np.eye(len(told.arms)), x)


def jobs() -> dict[str, Job]:
    member, load_now = {"member": Flag()}, {"load": Number(0, 1)}
    thompson: dict[str, Player] = {"Thompson per arm": Thompson}
    likes, topic = {"likes": Category(TOPICS)}, {"topic": Category(TOPICS), "age": Number(0, 24)}
    match = [("likes", "topic")]
    weather, bike = ["dry", "rain"], ["low", "middle", "high"]

    def per(cell: Callable[[dict], Any]) -> dict[str, Player]:
        return {"Thompson per arm and context": lambda rng: Thompson(rng, cell)}

    genre = Features(arm={"genre": Category(GENRES, required=True)})

    def keys(differ: float) -> Job:
        players: dict[str, Player] = {
            "key": lambda _: Keyed(genre),
            "key, population=30": lambda _: Keyed(genre, population=30),
        }
        plain: dict[str, Player] = {
            "each key from nothing": lambda _: FromNothing(genre),
            "Thompson per arm, all keys together": Thompson,
        }
        return Job(users(differ), {}, plain, players)

    linear: dict[str, Player] = {"linear Thompson": lambda rng: LinearThompson(rng, by_class)}
    return {
        "prices": Job(
            prices,
            {
                "price: Number": Features(context=member, arm={"price": Number(1, 12)}),
                "price: Number(log=True)": Features(
                    context=member, arm={"price": Number(1, 12, log=True)}
                ),
                "price: Category": Features(
                    context=member, arm={"price": Category(list(range(1, 13)))}
                ),
            },
            thompson | per(lambda context: context["member"]),
        ),
        "latency": Job(
            latency,
            {
                "batch: Number(log=True)": Features(
                    context=load_now, arm={"batch": Number(1, 128, log=True)}
                ),
                "batch: Number": Features(context=load_now, arm={"batch": Number(1, 128)}),
                "batch: Category": Features(
                    context=load_now, arm={"batch": Category([2**k for k in range(8)])}
                ),
            },
            thompson | per(lambda context: int(4 * context["load"])),
        ),
        "scores": Job(
            scores,
            {
                "score: Number": Features(arm={"score": Number(0, 1)}),
                "score: Number(curve=False)": Features(arm={"score": Number(0, 1, curve=False)}),
            },
            {
                "linear Thompson": lambda rng: LinearThompson(
                    rng, lambda told: np.array([[1.0, a["score"]] for a in told.arms.values()])
                )
            },
        ),
        "news": Job(
            news,
            {
                "name: Item": Features(context=likes, arm=topic | {"name": Item()}),
                "name: Item, age: Number(curve=False)": Features(
                    context=likes,
                    arm=topic | {"name": Item(), "age": Number(0, 24, curve=False)},
                ),
                "name: Category(size=64)": Features(
                    context=likes,
                    arm=topic | {"name": Category(size=64)},
                    interactions=match,
                ),
                "without names": Features(context=likes, arm=topic),
            },
            thompson
            | {"linear Thompson, an effect per item": lambda r: LinearThompson(r, news_rows, True)},
        ),
        "weather": Job(
            stream("weather", weather),
            {
                "lines": stream_features(WEATHER, weather),
                "ranges too wide": stream_features("-10 10 " * 8, weather),
            },
            thompson | linear,
        ),
        "bike": Job(
            stream("bike", bike),
            {
                "lines": stream_features(BIKE, bike),
                "ranges too wide": stream_features("-10 10 " * 15, bike),
            },
            thompson | linear,
        ),
        "shop": Job(
            shop,
            {f"folded into {dim}": shop_features(dim) for dim in (64, 128, 256)},
            {"linear Thompson, no products": lambda rng: LinearThompson(rng, shop_rows)},
            most=5,
        ),
        "users alike": keys(0.1),
        "users who differ": keys(1.3),
    }


def play(player: Any, rounds: Iterable[Round], rng: np.random.Generator) -> Floats:
    """Mean rewards of what was chosen, of the best arm and of all arms."""
    found = np.zeros(3)
    n = 0
    for told_now in rounds:
        k = player.choose(told_now)
        mean = float(told_now.means[k])
        pay = 1.0 if told_now.pay is None else float(told_now.pay[k])
        player.learn(k, pay * float(rng.random() < mean / pay))
        found += [mean, told_now.means.max(), told_now.means.mean()]
        n += 1
    return found / n


def one(make: Player, job: Job, seed: int) -> Floats:
    """What `play` finds, and microseconds of CPU per round."""
    start, rounds = process_time(), Counted(job.rounds(seed))
    found = play(make(np.random.default_rng([seed, 8])), rounds, np.random.default_rng([seed, 9]))
    return np.append(found, 1e6 * (process_time() - start) / rounds.n)


class Counted:
    """Rounds, counted."""

    def __init__(self, rounds: Iterator[Round]) -> None:
        self.rounds, self.n = rounds, 0

    def __iter__(self) -> Iterator[Round]:
        for each in self.rounds:
            self.n += 1
            yield each


def lines(chosen: list[str], seeds: range) -> Iterator[dict[str, Any]]:
    """A line for every player of a job: its share of the way from random to best."""
    for name in chosen:
        job = jobs()[name]
        players: dict[str, Player] = {
            k: (lambda _, f=f: Declared(f)) for k, f in job.declarations.items()
        }
        players |= dict(job.keyed)
        for label, make in (players | job.baselines).items():
            runs = np.array([one(make, job, seed) for seed in seeds[: job.most]])
            share = (runs[:, 0] - runs[:, 2]) / (runs[:, 1] - runs[:, 2])
            error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else 0.0
            yield {
                "job": name,
                "player": label,
                "kind": "declaration" if label in players else "baseline",
                "seeds": len(runs),
                **dict(zip(("reward", "best", "random", "cpu_us"), runs.mean(axis=0).tolist())),
                "share": float(share.mean()),
                "error": float(error),
            }


def row(line: dict[str, Any]) -> list[str]:
    """Cells of the table."""
    numbers = [f"{float(line[name]):.4f}" for name in ("reward", "best", "random")]
    share = f"{float(line['share']):.3f} ± {1.96 * float(line['error']):.3f}"
    cost = f"{float(line['cpu_us']):.0f}"
    return [line["job"], line["player"], line["kind"], line["seeds"], *numbers, share, cost]


def table() -> str:
    """Job by job, from what is stored."""
    head = [
        "job",
        "player",
        "",
        "seeds",
        "reward",
        "best",
        "random",
        "share of the way to best [95 %]",
        "CPU per round, µs",
    ]
    rows = [head, ["---"] * len(head), *(row(line) for line in stored("declarations"))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def missed(found: list[dict[str, Any]]) -> list[str]:
    """Jobs whose best declaration is below the best baseline, and declarations below random."""
    out = []
    for name in dict.fromkeys(line["job"] for line in found):
        own = [line for line in found if line["job"] == name]
        best = {
            kind: max((float(line["share"]) for line in own if line["kind"] == kind), default=0.0)
            for kind in ("declaration", "baseline")
        }
        if best["declaration"] < best["baseline"] - LEVEL:
            out.append(
                f"{name}: {best['declaration']:.3f}, the best baseline {best['baseline']:.3f}"
            )
        out += [f"{name}, {x['player']}: below random" for x in own if float(x["share"]) < 0.0]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=len(JUDGE), help="that judge")
    parser.add_argument("--first", type=int, default=JUDGE.start, help="first seed")
    parser.add_argument("--jobs", default=",".join(jobs()), help="with commas between them")
    parser.add_argument("--store", action="store_true", help="into docs/results/declarations.csv")
    given = parser.parse_args()
    chosen = given.jobs.split(",")
    found = told(
        "declarations", lines(chosen, range(given.first, given.first + given.seeds)), row, False
    )
    if given.store:
        try:
            others = [line for line in stored("declarations") if line["job"] not in chosen]
        except FileNotFoundError:
            others = []
        order = list(jobs())
        write("declarations", sorted([*others, *found], key=lambda line: order.index(line["job"])))
    if short := missed(found):
        sys.exit("not reached: " + "; ".join(short))


if __name__ == "__main__":
    main()
