"""Speed figures that must not slip: `make bench-guard`.

Each is a ratio of two times measured side by side, so a slower machine changes little. One that
is more than 20 % worse than benchmarks/guard.json says is measured again, and if it stays so, it
is named and the exit status is 1. `--store` writes what was measured as the new standard.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import roads, speed
from benchmarks.numpy_domd import NumpyDOMD
from benchmarks.yardstick import Yardstick, YardstickFleet
from driftbandit import DOMD, Bandit, Fleet

STORED = Path(__file__).with_suffix(".json")
SLACK, TRIES = 1.2, 3
WIDE = speed.problem_of(50)
POLICY = DOMD(problem=speed.WORLD.problem)  # a constant bonus, as the C yardstick has


class Figure(NamedTuple):
    """`measure` gives a ratio, and raises FileNotFoundError where there is no C compiler."""

    measure: Callable[[], float]
    better: str  # "more" or "less"


def quotient(ours: Callable[[], object], reference: Callable[[], object], repeats: int) -> float:
    """Best time of ours over best time of the reference."""
    best = speed.best_in_turns([ours, reference], repeats)
    return best[0] / best[1]


def over_naive() -> float:
    naive, ours = speed.seconds_per_round(NumpyDOMD(5, **speed.LETTERS), Bandit(speed.POLICY))
    return naive / ours


def bandit_over_c(rounds: int = 1000) -> float:
    """The C side gets addresses that were looked up before: what remains is ctypes and C."""
    block = next(speed.WORLD.blocks((0,), rounds))
    arms, rewards = np.ascontiguousarray(block.arms[:, 0]), (block.luck[:, 0] < 0.5).astype(float)
    addresses, row = [X.ctypes.data for X in arms], arms.strides[1]
    yardstick = Yardstick(POLICY)

    def plain() -> None:
        for X, r in zip(addresses, rewards.tolist()):
            yardstick.learn_at(X + row * yardstick.choose_at(X, 30), r)

    return quotient(speed.plays(Bandit(POLICY), rounds), plain, 50)


def fleet_over_c(n: int = 10_000) -> float:
    """On the same cores: both use all there are."""
    rng, keys = np.random.default_rng(0), np.arange(n)
    arms = rng.standard_normal((n, 30, 5))
    arms /= np.linalg.norm(arms, axis=2, keepdims=True)
    played, rewards = arms[:, 0].copy(), rng.integers(0, 2, (100, n)).astype(float)
    fleet, yardstick = Fleet(POLICY), YardstickFleet(POLICY, n)
    for_ours, for_plain = iter(rewards), iter(rewards)

    def ours() -> None:
        fleet.choose(keys, arms)
        fleet.update(keys, played, next(for_ours))

    def plain() -> None:
        yardstick.choose(arms)
        yardstick.update(played, next(for_plain))

    return quotient(ours, plain, len(rewards))


def import_over_numba() -> float:
    ours, numba = speed.seconds_to_import(*speed.IMPORTS[1:])
    return ours / numba


FIGURES = {
    "naive NumPy over Bandit, d = 5, 30 arms": Figure(over_naive, "more"),
    "Bandit over C through ctypes, d = 5, 30 arms": Figure(bandit_over_c, "less"),
    "Fleet over C, 10,000 learners, d = 5, 30 arms": Figure(fleet_over_c, "less"),
    "choose over argmax(X @ theta), theory's lambda": Figure(
        lambda: speed.many_arms(DOMD.from_theory(WIDE), 500), "less"
    ),
    "choose over argmax(X @ theta), lambda = 1": Figure(
        lambda: speed.many_arms(DOMD(problem=WIDE), 500), "less"
    ),
    "update over dpotrf, d = 256, theory's lambda": Figure(
        lambda: speed.large_update(speed.LARGE["theory's lambda"])[0], "less"
    ),
    "update over dpotrf, d = 256, lambda = 1": Figure(
        lambda: speed.large_update(speed.LARGE["lambda = 1"])[0], "less"
    ),
    "AutoDOMD over DOMD, d = 5, 30 arms, no radius": Figure(lambda: roads.auto(5)[0], "less"),
    "import of Bandit, DOMD and Problem over import numba": Figure(import_over_numba, "less"),
}


def slipped(measured: float, stored: float, better: str) -> bool:
    """Whether a figure is more than 20 % worse than it was."""
    return measured > stored * SLACK if better == "less" else measured < stored / SLACK


def guarded(figure: Figure, stored: float | None) -> float:
    """Measured until it is as good as it was, at most three times: the best of them.

    With nothing stored, the middle one of three: a lucky standard would be hard to keep.
    """
    found = [figure.measure()]
    while len(found) < TRIES and (stored is None or slipped(found[-1], stored, figure.better)):
        found.append(figure.measure())
    if stored is None:
        return float(np.median(found))
    return min(found) if figure.better == "less" else max(found)


def judge(figures: dict[str, Figure], stored: dict[str, float]) -> dict[str, tuple]:
    """(measured or None, verdict) of every figure."""
    verdicts = {}
    for name, figure in figures.items():
        try:
            measured = guarded(figure, stored.get(name))
        except FileNotFoundError as error:  # no C compiler
            verdicts[name] = None, f"skipped: {str(error).split(' (')[0]}"
            continue
        before = stored.get(name)
        good = before is None or not slipped(measured, before, figure.better)
        verdicts[name] = measured, ("new" if before is None else "holds") if good else "SLIPPED"
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true", help="make this run the standard")
    keep = parser.parse_args().store
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    verdicts = judge(FIGURES, {} if keep else stored)
    table = Table("figure", "better", "stored", "measured", "verdict", title="Speed, guarded")
    for name, (measured, verdict) in verdicts.items():
        shown = [f"{value:.3g}" if value else "" for value in (stored.get(name), measured)]
        table.add_row(name, FIGURES[name].better, *shown, verdict)
    Console(width=130).print(table)
    if keep:
        new = {name: round(value, 3) for name, (value, _) in verdicts.items() if value}
        STORED.write_text(json.dumps(stored | new, indent=2) + "\n")
    return int(any(verdict == "SLIPPED" for _, verdict in verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
