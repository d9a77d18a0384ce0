"""The speed figures, each a ratio measured in one run: `make bench`.

Exit status 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.linalg.lapack import dpotrf

from benchmarks.numpy_domd import NumpyDOMD
from benchmarks.tables import report
from driftbandit import DOMD, ArmSet, Bandit, Circle, Problem, memory_bytes

WORLD = Circle()  # d = 5, 30 arms, T = 5000
POLICY = DOMD.from_theory(WORLD.problem, scale=0.2, delta=0.01)
LETTERS = {
    "S": WORLD.radius,
    "gamma": POLICY.discount,
    "lam": POLICY.regularization,
    "eta": POLICY.step,
    "delta": POLICY.delta,
    "scale": POLICY.scale,
}


class Nothing:
    """The loop without a bandit; its time is subtracted."""

    def choose(self, arms):
        return 0

    def update(self, x, r):
        pass


def best_in_turns(calls, repeats: int) -> list[float]:
    """Seconds of each call: the best of many, in turns. Calls should take milliseconds: on a busy
    machine only short ones get through undisturbed, and a long one would look slower than it is."""
    best = [np.inf] * len(calls)
    for _ in range(repeats):
        for k, call in enumerate(calls):
            tic = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - tic)
    return best


def plays(bandit, rounds: int = 1000):
    """A call that plays some rounds, the same for whoever plays them."""
    block = next(WORLD.blocks((0,), rounds))
    arms = list(np.ascontiguousarray(block.arms[:, 0]))
    luck = (block.luck[:, 0] < 0.5).astype(int).tolist()

    def play() -> None:
        for X, r in zip(arms, luck):
            bandit.update(X[bandit.choose(X)], r)

    return play


def seconds_per_round(*bandits, repeats: int = 100) -> list[float]:
    """choose and update of each, less the loop around them; NumPy plays fewer rounds in a call."""
    players = Nothing(), *bandits
    rounds = [50 if isinstance(player, NumpyDOMD) else 1000 for player in players]
    best = best_in_turns([plays(*each) for each in zip(players, rounds)], repeats)
    empty, *spent = np.array(best) / rounds
    return [float(each - empty) for each in spent]


def seconds_per_replicate_round(n: int = 100, rounds: int = 300, repeats: int = 5) -> float:
    block = next(WORLD.blocks(range(n), rounds))
    rows, memory, times = np.arange(n), POLICY.init(n), []
    rewards = (block.luck < 0.5).astype(float)
    for _ in range(repeats):
        spent = 0.0
        for arms, r in zip(block.arms, rewards):
            tic = time.perf_counter()
            choice = POLICY.choose(memory, arms)
            toc = time.perf_counter()
            x = arms[rows, choice]
            tac = time.perf_counter()
            memory = POLICY.update(memory, x, r)
            spent += toc - tic + time.perf_counter() - tac
        times.append(spent / rounds / n)
    return min(times)


def flat_in_time(rounds: int, repeats: int = 50) -> tuple[float, bool]:
    """Cost of the last of so many rounds over that of rounds 1001 to 2000 of other bandits, in
    turns; whether memory stays."""
    old, young = Bandit(POLICY), [plays(Bandit(POLICY)) for _ in range(repeats)]
    size, late = old.memory_bytes, plays(old)
    for play in [*young, *[late] * (rounds // 1000 - repeats)]:
        play()
    rest = iter(young)
    last, early = best_in_turns([late, lambda: next(rest)()], repeats)
    assert old.rounds == rounds
    return last / early, old.memory_bytes == size == memory_bytes(POLICY.init(1))


def degenerate_stream(gamma: float, lucky: float, rounds: int) -> tuple[float, bool]:
    """Always the same arm: 1 - smallest eigenvalue / lambda, and whether all else is in order."""
    policy = DOMD(problem=Problem(dim=5, radius=1.0), discount=gamma)
    rng, bandit = np.random.default_rng(0), Bandit(policy)
    x = rng.standard_normal(5)
    x /= np.linalg.norm(x)
    for r in np.tile(rng.random(100_000) < lucky, rounds // 100_000).astype(int).tolist():
        bandit.update(x, r)
    H, theta = bandit.curvature, bandit.theta
    fine = np.array_equal(H, H.T) and np.isfinite(theta).all() and np.linalg.norm(theta) <= 1.0
    return 1.0 - np.linalg.eigvalsh(H)[0] / policy.regularization, bool(fine)


def many_arms(policy, rounds: int, n_arms: int = 100_000, timed: int = 200) -> float:
    """choose over argmax(X @ theta) for a catalogue, medians of rounds after some learning."""
    rng, d = np.random.default_rng(0), policy.problem.dim
    X = rng.standard_normal((n_arms, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True) / rng.random((n_arms, 1)) ** 0.2
    truth = rng.standard_normal(d)
    truth /= np.linalg.norm(truth)
    bandit, arms, ours, theirs = Bandit(policy), ArmSet(X), [], []
    for t in range(rounds + timed):
        theta = bandit.theta
        tic = time.perf_counter()
        arm = bandit.choose(arms)
        toc = time.perf_counter()
        if t >= rounds:
            np.argmax(X @ theta)
            ours.append(toc - tic)
            theirs.append(time.perf_counter() - toc)
        bandit.update(X[arm], int(rng.random() < 1 / (1 + np.exp(-X[arm] @ truth))))
    return float(np.median(ours) / np.median(theirs))


def problem_of(dim: int) -> Problem:
    return Problem(dim=dim, radius=1.0, horizon=5000, path_length=6.28)


LARGE = {
    "theory's lambda": DOMD.from_theory(problem_of(256)),
    "lambda = 1": DOMD(problem=problem_of(256)),
}
IMPORTS = "import driftbandit", "from driftbandit import DOMD, Bandit, Problem", "import numba"


def large_update(policy, rounds: int = 400) -> tuple[float, float]:
    """update over LAPACK's dpotrf of the same matrix, medians taken in turns, and the share of
    rounds that ended on the sphere: their step had left the ball and was projected."""
    d, ours, theirs, projected = policy.problem.dim, [], [], []
    rng, bandit = np.random.default_rng(0), Bandit(policy)
    for x in rng.standard_normal((rounds, d)) / np.sqrt(2 * d):
        H = np.array(bandit.curvature, order="F")
        tic = time.perf_counter()
        dpotrf(H, lower=1, clean=0, overwrite_a=1)
        toc = time.perf_counter()
        bandit.update(x, int(rng.random() < 0.5))
        ours.append(time.perf_counter() - toc)
        theirs.append(toc - tic)
        projected.append(np.linalg.norm(bandit.theta) > 1.0 - 1e-9)
    return float(np.median(ours) / np.median(theirs)), float(np.mean(projected))


def seconds_to_import(*codes: str, repeats: int = 15) -> list[float]:
    """The quickest of several new processes, less the start of Python; warm, that is with bytecode,
    whatever this process writes."""
    times = {code: [] for code in ("pass", *codes)}
    usual = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats):
        for code, spent in times.items():
            tic = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=usual)
            spent.append(time.perf_counter() - tic)
    return [min(times[code]) - min(times["pass"]) for code in codes]


def large_figures(learning: int = 2000):
    """Those of many arms and many dimensions."""
    problem = problem_of(50)
    for name, policy, limit in (
        ("theory's lambda", DOMD.from_theory(problem), 1.5),
        ("lambda = 1", DOMD(problem=problem), 3.0),
    ):
        ratio = many_arms(policy, learning)
        what = f"choose of 100,000 arms, d=50, {name}, over argmax(X @ theta)"
        yield what, ratio, f"<= {limit}", ratio <= limit
    for name, policy in LARGE.items():
        ratio, projected = large_update(policy)
        what = f"update, d=256, {name}, {projected:.0%} of steps projected, over dpotrf"
        yield what, ratio, "<= 2", ratio <= 2
    package, names, numba = seconds_to_import(*IMPORTS)
    yield "import driftbandit, seconds", package, "<= 0.4", package <= 0.4
    what = f"{IMPORTS[1]}, over import numba ({numba:.2f} s)"
    yield what, names / numba, "", True


def figures(rounds: int):
    """(what, measured, required, reached) one by one."""
    naive, ours = seconds_per_round(NumpyDOMD(5, **LETTERS), Bandit(POLICY))
    batch = seconds_per_replicate_round()
    detail = f"{ours * 1e6:.2f} us against {naive * 1e6:.1f} us"
    yield f"Bandit, d=5, 30 arms, over NumPy ({detail})", naive / ours, ">= 20", naive / ours >= 20
    detail = f"{batch * 1e6:.2f} us a replicate-round"
    yield f"batch of 100 over NumPy ({detail})", naive / batch, ">= 40", naive / batch >= 40
    yield from large_figures()
    ratio, constant = flat_in_time(rounds)
    yield (
        f"a round at the end of {rounds} over one of 1001..2000",
        ratio,
        "<= 1.05",
        ratio <= 1.05,
    )
    yield "memory constant (1 = yes)", float(constant), "= 1", constant
    for gamma, lucky in ((0.9, 0.7), (0.9999, 0.7), (0.9999, 1.0)):
        deficit, fine = degenerate_stream(gamma, lucky, 10 * rounds)
        what = f"{10 * rounds:.0e} times one arm, reward {lucky}, gamma={gamma}: 1 - eigmin/lambda"
        yield what, deficit, "<= 1e-9", fine and deficit <= 1e-9


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1_000_000, help="length of the long run")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    return report("Speed and endurance", figures(args.rounds), args.csv)


if __name__ == "__main__":
    sys.exit(main())
