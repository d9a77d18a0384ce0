"""Real streams: `python -m benchmarks.streams` plays what is missing and fills docs/streams.md.

Everybody takes the best of at most 8 settings on the window before the one that counts, with the
same rounds and rewards for all; peers play in environments of their own (benchmarks/peers).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy import stats

from benchmarks.peers import contest, venvs
from benchmarks.peers.registry import (
    ALPHAS,
    BAYESIAN,
    COBA,
    EPSILON,
    OURS,
    RIVER,
    SQUARECB,
    VW,
    Contender,
)
from benchmarks.tables import write
from driftbandit import Environment, Stream

console = Console(width=130)
HERO = "driftbandit AutoDOMD"
# First round and length of the window that counts; the settings are chosen on what lies before.
WINDOWS = {
    "weather": (3_834, 5_990),
    "bike": (4_000, 9_000),
    "elec2": (12_424, 9_000),
    "flights": (12_186, 9_000),
}
ORDERS = ("time", "shuffled")
FORGETTING = ({"half_life": 50}, {"half_life": 200}, {"half_life": 800}, {"discount": 1.0})
GUESSES = tuple(
    {"radius": radius, "path_length": path, "scale": scale}
    for radius in (3.0, 10.0)
    for path in (3.0, 30.0)
    for scale in (0.2, 0.02)
)
JUMPS = tuple(
    {"radius": radius, "change_points": changes, "scale": scale}
    for radius in (3.0, 10.0)
    for changes in (3, 30)
    for scale in (0.2, 0.02)
)
STILL = tuple(
    {"radius": radius, "scale": scale} for radius in (1.0, 3.0, 10.0, 30.0) for scale in (0.2, 0.02)
)
RATES = (0.99, 0.98, 0.995, 0.999)
SLOW = {"tune": (100,)}
# Milliseconds a round. GLM-UCB, which solves a likelihood over the whole past, takes 18 ms in the
# middle of the bikes and more at the end: hours for the settings alone, so it is not here.
SLOWEST = SLOW | {"judge": (0, 1, 2)}


def ours(label: str, learner: str, grid: tuple[dict, ...] = ({},), **seeds) -> Contender:
    return Contender(f"driftbandit {label}", OURS, learner, "features", grid, **seeds)


def peer(label: str, package, learner: str, grid: tuple[dict, ...]) -> Contender:
    return Contender(label, package, learner, "features", grid, **SLOW)


CONTENDERS = (
    Contender("uniform choice", OURS, "Uniform", "nothing", ({},)),
    ours("AutoDOMD", "AutoDOMD"),
    ours("DOMD, defaults", "DOMD"),
    ours(
        "DOMD, tuned before",
        "DOMD",
        tuple(one | {"bonus": bonus} for bonus in (1.0, 0.3) for one in FORGETTING),
    ),
    ours("DOMD by theory", "DOMD by theory", GUESSES),
    ours("GLB-OMD", "GLBOMD by theory", STILL),
    ours("GLOC", "GLOC by theory", STILL),
    ours("LinUCB", "LinUCB by theory", STILL),
    ours("D-LinUCB", "DLinUCB by theory", GUESSES),
    ours("LB-WeightUCB", "LBWeightUCB by theory", GUESSES),
    ours("RestartGLB", "RestartGLB by theory", GUESSES, **SLOWEST),
    ours("SW-GLUCB", "SWGLUCB by theory", JUMPS, **SLOWEST),
    ours("SCB-WeightUCB", "SCBWeightUCB by theory", GUESSES, **SLOWEST),
    peer("vowpalwabbit ε-greedy", VW, "adf", EPSILON),
    peer("vowpalwabbit SquareCB", VW, "adf", SQUARECB),
    peer(
        "bayesianbandits UCB",
        BAYESIAN,
        "UCB",
        tuple({"rate": rate, "quantile": q} for q in (0.84, 0.68) for rate in RATES),
    ),
    peer("bayesianbandits Thompson", BAYESIAN, "Thompson", tuple({"rate": r} for r in RATES)),
    peer(
        "river Bayesian regression, UCB",
        RIVER,
        "Shared",
        tuple(
            {"width": width} | forgetting
            for width in (1.0, 0.3)
            for forgetting in ({}, {"smoothing": 0.999}, {"smoothing": 0.99}, {"beta": 10.0})
        ),
    ),
    peer("coba LinUCB", COBA, "LinUCB", ALPHAS),
)


def worlds(names: list[str], rounds: int | None) -> dict[tuple[str, str], Environment]:
    """Streams by name and order, cut to so many rounds where that is asked for."""
    found = {}
    for name in names:
        start, horizon = WINDOWS[name]
        for order in ORDERS:
            T = min(rounds or horizon, horizon)
            found[name, order] = Stream(data=name, order=order, start=start, horizon=T)
    return found


def install(contenders: list[Contender]) -> list[Contender]:
    """Those whose package is there, or could be installed."""
    found = []
    for package in dict.fromkeys(contender.peer for contender in contenders):
        with console.status(f"installing {package.name}"):
            reason = venvs.install(package).reason
        if reason:
            console.print(f"{package.name} does not play: {reason}", markup=False)
        else:
            found += [contender for contender in contenders if contender.peer == package]
    return [contender for contender in contenders if contender in found]


def play(what: str, jobs_of, contenders: list[Contender], places) -> None:
    """What is not stored yet, two processes at a time, the peers first: they are slow."""
    ordered = sorted(contenders, key=lambda contender: contender.peer == OURS)
    work = [(each, jobs_of(each, world)) for each in ordered for world in places.values()]
    missing = sum(not contest.stored(line) for _, jobs in work for line in jobs)
    with Progress(console=console) as bar:
        task = bar.add_task(what, total=missing)
        contest.play_all(work, lambda: bar.advance(task))


def rewards(contender: Contender, world: Environment) -> np.ndarray:
    """Mean reward of every seed that counts, in per cent."""
    jobs = contest.judging(contender, world)
    return 100.0 * np.array([float(contest.result(line)["reward"]) for line in jobs])


def interval(values: np.ndarray) -> tuple[float, float]:
    """Half the width of the 95 % interval of a mean, below and above alike."""
    if len(values) < 2:
        return float(values.mean()), float("nan")
    t = stats.t.ppf(0.975, len(values) - 1)
    return float(values.mean()), float(t * values.std(ddof=1) / np.sqrt(len(values)))


def lines(contenders: list[Contender], places) -> Iterator[dict]:
    """One line a contender, stream and order; `difference` is paired, to AutoDOMD."""
    hero = next(contender for contender in contenders if contender.label == HERO)
    for (name, order), world in places.items():
        best = rewards(hero, world)
        for contender in contenders:
            found = rewards(contender, world)
            mean, half = interval(found)
            gap, gap_half = interval(found - best[: len(found)])  # seeds 0, 1, ... of both
            yield {
                "contender": contender.label,
                "stream": name,
                "order": order,
                "seeds": len(found),
                "rounds": world.horizon,
                "mean": f"{mean:.2f}",
                "half": f"{half:.2f}",
                "difference": f"{gap:.2f}",
                "difference_half": f"{gap_half:.2f}",
                "setting": json.dumps(contest.best(contender, world)),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", nargs="+", default=list(WINDOWS), choices=list(WINDOWS))
    parser.add_argument("--rounds", type=int, help="fewer rounds, to try it out")
    parser.add_argument("--only", nargs="+", help="words: contenders whose label holds one")
    given = parser.parse_args()
    chosen = [c for c in CONTENDERS if not given.only or any(w in c.label for w in given.only)]
    chosen = [c for c in CONTENDERS if c in chosen or c.label == HERO]
    places, contenders = worlds(given.streams, given.rounds), install(chosen)
    play("choosing settings", contest.tuning, contenders, places)
    play("playing what counts", contest.judging, contenders, places)
    found = list(lines(contenders, places))
    if given.rounds or given.only or len(given.streams) < len(WINDOWS):
        for line in found:
            console.print(*(line[k] for k in ("stream", "order", "contender", "mean", "half")))
        return
    write("real-streams", found, ends="\n")
    from benchmarks import readme

    page = readme.ROOT / "docs" / "streams.md"
    page.write_text(readme.filled(page.read_text()))


if __name__ == "__main__":
    main()
