"""Results of the contest as files: docs/results/peers*.csv and the figure."""

from __future__ import annotations

import json

import numpy as np

from benchmarks import tables
from benchmarks.peers import contest
from benchmarks.peers.registry import Contender
from benchmarks.peers.timing import Speed, shown
from benchmarks.peers.venvs import Installed
from driftbandit import Environment


def judged(contender: Contender, label: str, world: Environment) -> dict:
    """One line of peers.csv: a contender in a world, over the seeds that count."""
    found = [contest.result(line) for line in contest.judging(contender, world)]
    regret = np.array([float(r["regret"]) for r in found])
    return {
        "contender": contender.label,
        "world": label,
        "setting": json.dumps(contest.best(contender, world)),
        "seeds": len(found),
        "rounds": int(found[0]["rounds"]),
        "mean": f"{regret.mean():.1f}",
        "deviation": f"{regret.std(ddof=1) if len(regret) > 1 else 0.0:.1f}",
        "choose_us": f"{median(found, 'choose_ns'):.2f}",
        "update_us": f"{median(found, 'update_ns'):.2f}",
    }


def median(results: list[dict], name: str) -> float:
    return float(np.median(np.concatenate([r[name] for r in results]))) / 1000.0


def speed_row(contender: Contender, speed: Speed) -> dict:
    return {
        "contender": contender.label,
        "sees": contender.sees,
        "seeds": len(contender.judge),
        "tried": len(contender.grid),
        "choose_us": f"{speed.choose:.2f}",
        "update_us": f"{speed.update:.2f}",
        "mean_us": f"{speed.mean:.2f}",
        "bytes": speed.bytes,
        "resident_mb": f"{speed.resident / 1e6:.1f}",
    }


def write(
    contenders: list[Contender],
    worlds: dict[str, Environment],
    installed: dict[str, Installed],
    speeds: dict[str, Speed],
    ratios: list[tuple[str, float, str]],
) -> None:
    """Everything the documents quote."""
    found = {
        "peers": [judged(c, name, w) for c in contenders for name, w in worlds.items()],
        "peers-speed": [speed_row(c, speeds[c.label]) for c in contenders],
        "peers-install": [{"peer": k} | v._asdict() for k, v in installed.items()],
        "peers-ratios": [{"what": a, "measured": shown(b), "wanted": c} for a, b, c in ratios],
    }
    for name, lines in found.items():
        tables.write(name, lines, ends="\n")
