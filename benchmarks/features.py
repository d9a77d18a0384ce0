"""Raw values to contexts: `make bench-features` prints what it costs.

Exit status 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.speed import best_in_turns
from benchmarks.tables import report
from driftbandit import Category, Features, Flag, Number, Vector

REQUIRED = 60.0  # microseconds for 20 arms with 8 raw columns
CALLS, REPEATS = 10, 1000  # short calls: on a busy machine only they get through undisturbed

COLUMNS = {
    "context": {
        "age": Number(18, 90),
        "country": Category(["NL", "DE", "FR"]),
        "hour": Number(0, 24, cyclic=True, required=True),
        "visits": Number(1, 1000, log=True, required=True),
        "mobile": Flag(required=True),
    },
    "arm": {
        "price": Number(0, 100, required=True),
        "genre": Category(["rock", "jazz"]),
        "new": Flag(required=True),
    },
}
EXACT = Features(**COLUMNS, dim="exact")
SMALL = Features(**COLUMNS, interactions=[("age", "price"), ("country", "genre")])
FOLDED = Features(
    context=COLUMNS["context"] | {"taste": Vector(16)},
    arm=COLUMNS["arm"] | {"id": Category(size=9)},
)
CONTEXT = {"age": 31, "country": "NL", "hour": 13.5, "visits": 17, "mobile": True}


def arms(n: int) -> list[dict]:
    rng = np.random.default_rng(0)
    return [
        {
            "price": float(rng.uniform(0, 100)),
            "genre": ("rock", "jazz")[k % 2],
            "new": bool(k % 3),
        }
        for k in range(n)
    ]


def microseconds(features: Features, context: dict, given: list[dict], calls: int = CALLS) -> float:
    def call() -> None:
        for _ in range(calls):
            features.encode(context, given)

    return best_in_turns([call], REPEATS)[0] / calls * 1e6


def figures():
    for features in (EXACT, SMALL):
        spent = microseconds(features, CONTEXT, arms(20))
        what = f"20 arms, 8 raw columns, d={features.size}: us"
        yield what, spent, f"<= {REQUIRED:g}", spent <= REQUIRED
    gaps = {k: v for k, v in CONTEXT.items() if k not in ("age", "country")}
    yield "the same, two values missing: us", microseconds(EXACT, gaps, arms(20)), "", True
    taste = CONTEXT | {"taste": np.ones(16)}
    listed = [arm | {"id": f"item {k}"} for k, arm in enumerate(arms(20))]
    what = f"the same and an embedding, {FOLDED.plan.exact} terms folded into 64: us"
    yield what, microseconds(FOLDED, taste, listed), "", True
    yield "1000 arms: us", microseconds(EXACT, CONTEXT, arms(1000), calls=1), "", True
    frame = pl.DataFrame([CONTEXT | arm for arm in arms(100_000)])
    spent = best_in_turns([lambda: EXACT.encode_frame(frame)], 5)[0]
    yield "a row of a frame of 100000: us", spent / 0.1, "", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    return report("Raw values to contexts", figures(), parser.parse_args().csv)


if __name__ == "__main__":
    sys.exit(main())
