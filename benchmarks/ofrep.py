"""OFREP next to the native route, on loopback: `make bench-openfeature` prints requests per second.

Both ask for the same decision of one loop with a catalogue, in turns, so that a busy machine slows
both. Exit status 1 if the figure is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.features import CONTEXT
from benchmarks.service import ARMS, DECLARED, load, served
from benchmarks.tables import Figure, report
from driftbandit import Client

TURNS = 8
PATHS = {"native": "/v1/loops/shop/decisions", "OFREP": "/ofrep/v1/evaluate/flags/shop"}
BODIES = {
    "native": {"context": CONTEXT, "key": "ann"},
    "OFREP": {"context": CONTEXT | {"targetingKey": "ann"}},
}
LEAST = 0.8  # of the native route's requests per second


def request(route: str) -> bytes:
    body = json.dumps(BODIES[route]).encode()
    head = f"POST {PATHS[route]} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json"
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def rates(port: int, seconds: float) -> dict[str, list[float]]:
    """Return requests per second by route, one number for each turn."""
    sent = {route: request(route) for route in PATHS}
    found: dict[str, list[float]] = {route: [] for route in PATHS}
    for turn in range(TURNS + 1):
        for route, raw in sent.items():
            rate = len(load((port,), lambda *_, raw=raw: raw, seconds)) / seconds
            found[route] += [rate] if turn else []  # the first compiles
    return found


def figures(seconds: float) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(dir=".") as folder, served(f"{folder}/shop.db") as found:
        with Client(f"http://127.0.0.1:{found.port}", "shop", timeout=60) as client:
            client.declare(**DECLARED, arms=ARMS)
        by_route = rates(found.port, seconds)
    for route, each in by_route.items():
        yield f"{route}: requests per second, median of {TURNS} turns", np.median(each), "", True
    ratio = float(np.median(np.divide(by_route["OFREP"], by_route["native"])))
    yield "OFREP per native, median of pairs of turns", ratio, f">= {LEAST}", ratio >= LEAST


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    return report("OpenFeature", figures(asked.seconds), asked.csv)


if __name__ == "__main__":
    sys.exit(main())
