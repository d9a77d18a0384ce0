"""Every way through the engine, as ratios from one run: sizes, inputs, policies, first use.

`make bench-roads` prints them; exit status 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.numpy_domd import NumpyDOMD
from benchmarks.peers.registry import PEERS
from benchmarks.peers.venvs import install, python_of
from benchmarks.speed import Nothing, best_in_turns
from benchmarks.tables import report
from driftbandit import DOMD, AutoDOMD, Bandit, Fleet, Problem

SIZES = ((5, 30, 20.0), (20, 100, 6.0), (50, 1000, 3.0))  # d, arms, times NumPy's speed
AUTO = ((5, 10.0), (20, 15.0), (50, 20.0), (100, 20.0))  # d, times DOMD's round at most
COLD = {"DOMD": 5.0, "AutoDOMD": 6.0}
ROOT = Path(__file__).parents[1]


def stream(d: int, n_arms: int, rounds: int) -> tuple[list, list[int]]:
    """Unit arms and fair coins."""
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((rounds, n_arms, d))
    arms /= np.linalg.norm(arms, axis=-1, keepdims=True)
    return list(arms), rng.integers(2, size=rounds).tolist()


def seconds(players: list, d: int, n_arms: int, rounds: int, repeats: int) -> list[float]:
    """Of a round of each player, in turns, less the loop around it."""
    arms, rewards = stream(d, n_arms, rounds)

    def call(player):
        def play() -> None:
            for X, r in zip(arms, rewards):
                player.update(X[player.choose(X)], r)

        return play

    calls = [call(player) for player in (Nothing(), *players)]
    for each in calls:
        each()
    empty, *spent = np.array(best_in_turns(calls, repeats)) / rounds
    return [float(each - empty) for each in spent]


def over_numpy(d: int, n_arms: int, *, theory: bool) -> tuple[float, float]:
    """NumPy's round over ours, and ours in microseconds."""
    problem = Problem(dim=d, radius=1.0, horizon=5000, path_length=6.28)
    policy = DOMD.from_theory(problem, scale=0.2) if theory else DOMD(problem=problem, bonus=1.0)
    letters = {"S": 1.0, "gamma": policy.discount, "lam": policy.regularization}
    naive = NumpyDOMD(d, **letters, eta=policy.step, delta=0.01, scale=policy.scale or 0.1)
    rounds = 200 if d < 50 else 30
    ours, theirs = seconds([Bandit(policy), naive], d, n_arms, rounds, 30)
    return theirs / ours, ours * 1e6


class Lists:
    """A bandit that is handed lists."""

    def __init__(self, bandit):
        self.bandit = bandit

    def choose(self, arms):
        return self.bandit.choose(arms.tolist())

    def update(self, x, r):
        self.bandit.update(x.tolist(), r)


class OnlyLists:
    """What making the lists costs the benchmark, not the user."""

    def choose(self, arms):
        arms.tolist()
        return 0

    def update(self, x, r):
        x.tolist()


def other_roads() -> dict[str, float]:
    """Thompson sampling, lists and a learner of a fleet over the plain road, d = 5, 30 arms."""
    policy = DOMD(problem=Problem(dim=5))
    fleet = Fleet(policy)
    fleet.update([7], [[0.0] * 5], [0])
    thompson = Bandit(DOMD(problem=Problem(dim=5), exploration="thompson"))
    players = [Bandit(policy), thompson, Lists(Bandit(policy)), OnlyLists(), fleet[7]]
    plain, drawn, listed, listing, keyed = seconds(players, 5, 30, 500, 40)
    return {
        "Thompson": drawn / plain,
        "lists": (listed - listing) / plain,
        "fleet[key]": keyed / plain,
    }


def auto(d: int, n_arms: int = 30) -> tuple[float, float]:
    """AutoDOMD's round over DOMD's, no radius given, and its own in microseconds."""
    problem = Problem(dim=d)
    players = [Bandit(AutoDOMD(problem=problem)), Bandit(DOMD(problem=problem))]
    rounds = 200 if d < 50 else 40
    mixed, plain = seconds(players, d, n_arms, rounds, 15)
    return mixed / plain, mixed * 1e6


def auto_over_numpy() -> float:
    """AutoDOMD's round over NumPy's DOMD, d = 32, 20 arms."""
    naive = NumpyDOMD(32, S=10.0, gamma=0.9965, lam=1.0, eta=2.0, delta=0.01, scale=0.1)
    mixed, theirs = seconds([Bandit(AutoDOMD(problem=Problem(dim=32))), naive], 32, 20, 100, 20)
    return mixed / theirs


PEER = """
import sys, time
import numpy as np
from benchmarks.peers.bayesianbandits import LEARNERS
from benchmarks.peers.learner import Task
d, count, rounds = map(int, sys.argv[1:])
task = Task(dim=d, count=count, radius=1.0, norm=1.0, seed=0, rounds=rounds)
learner, rng = LEARNERS["UCB"](task, 0.995, 0.8), np.random.default_rng(0)
arms = rng.standard_normal((rounds, count, d))
arms /= np.linalg.norm(arms, axis=-1, keepdims=True)
spent = []
for X in arms:
    tic = time.perf_counter()
    arm = learner.choose(X)
    learner.update(X, arm, int(rng.integers(2)))
    spent.append(time.perf_counter() - tic)
print(np.median(spent[rounds // 4:]))
"""


def bayesianbandits(d: int, n_arms: int = 30) -> float | None:
    """Seconds of its round, or None where it cannot be installed."""
    peer = next(peer for peer in PEERS if peer.name == "bayesianbandits")
    if install(peer).reason:
        return None
    command = [python_of(peer), "-c", PEER, str(d), str(n_arms), "80"]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    done.check_returncode()
    return float(done.stdout)


FIRST = """
import time
begin = time.process_time()
import numba
after_numba = time.process_time() - begin
import numpy as np
from driftbandit import {kind}, Bandit, Fleet, Problem
x = np.full((30, 5), 0.1)
bandit = Bandit({kind}(problem=Problem(dim=5)))
bandit.update(x[bandit.choose(x)], 1)
first = time.process_time() - begin
bandit.choose(x, k=3)
bandit.predict(x)
fleet = Fleet(bandit.policy)
fleet.update([1, 2], x[:2], [1, 0])
fleet.choose([1, 2], x)
print(after_numba, first, time.process_time() - begin - first)
"""
BARE = """
import time
begin = time.process_time()
import numba
after_numba = time.process_time() - begin
import numpy as np
from driftbandit.core.row_batch import widen
widen(np.zeros((1, 3)), 0, np.zeros(3))
print(after_numba, time.process_time() - begin, 0.0)
"""


def first_use(code: str, cache: str) -> tuple[float, ...]:
    """CPU seconds of a new process: import numba, up to the first decision and update, the rest."""
    env = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    return tuple(map(float, done.stdout.split()))


def first_uses():
    """Cold and warm, as figures."""
    for kind, limit in COLD.items():
        code = FIRST.format(kind=kind)
        with tempfile.TemporaryDirectory() as cache:
            _, cold, rest = first_use(code, cache)
            warm = min((first_use(code, cache) for _ in range(5)), key=lambda times: times[1])
            first_use(BARE, cache)
            bare = min((first_use(BARE, cache) for _ in range(5)), key=lambda times: times[1])
        yield (
            f"{kind}, empty cache, first choose and update: CPU s",
            cold,
            f"<= {limit}",
            cold <= limit,
        )
        yield f"{kind}: slate, predict and fleet after that: CPU s", rest, "<= 3", rest <= 3.0
        ratio = warm[1] / warm[0]
        yield f"{kind}, warm: first decision over import numba", ratio, "<= 1.5", ratio <= 1.5
        floor = bare[1] / bare[0]
        yield "any stored kernel of numba's, called once, over import numba", floor, "", True


def figures():
    """(what, measured, required, reached) one by one."""
    for d, n_arms, least in SIZES:
        for name, theory in (("theory's lambda", True), ("lambda = 1", False)):
            ratio, ours = over_numpy(d, n_arms, theory=theory)
            what = f"NumPy over Bandit, d={d}, {n_arms} arms, {name} ({ours:.2f} us)"
            yield what, ratio, f">= {least:g}", ratio >= least
    for (name, ratio), most in zip(other_roads().items(), (3.0, 4.0, 3.0)):
        yield f"{name} over the plain road, d=5, 30 arms", ratio, f"<= {most:g}", ratio <= most
    for d, most in AUTO:
        ratio, ours = auto(d)
        what = f"AutoDOMD over DOMD, d={d}, 30 arms, no radius ({ours:.0f} us)"
        yield what, ratio, f"<= {most:g}", ratio <= most
        if d >= 50 and (theirs := bayesianbandits(d)) is not None:
            times = theirs * 1e6 / ours
            yield f"bayesianbandits over AutoDOMD, d={d}, 30 arms", times, ">= 1", times >= 1.0
    ratio = auto_over_numpy()
    yield "AutoDOMD over NumPy's DOMD, d=32, 20 arms", ratio, "<= 3", ratio <= 3.0
    yield from first_uses()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    parser.add_argument("--first-use", action="store_true", help="only the cost of the first use")
    args = parser.parse_args()
    tic = time.perf_counter()
    status = report("Roads", first_uses() if args.first_use else figures(), args.csv)
    print(f"{time.perf_counter() - tic:.0f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
