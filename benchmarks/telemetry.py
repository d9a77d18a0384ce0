"""What traces cost: `make bench-telemetry` compares a service that sends them with one without.

Both answer the same requests on loopback, in turns; a collector that reads and forgets takes the
traces. The figure is CPU time of the service's process per request.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from benchmarks.deciders import spent
from benchmarks.service import DECLARED, both, load, served
from benchmarks.tables import Figure, report
from driftbandit import Client

TURNS = 6


class Collector(BaseHTTPRequestHandler):
    """Takes traces, and keeps none."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def figures(seconds: float) -> Iterator[Figure]:
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{collector.server_port}"
    costs: dict[str, list[float]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory(dir=".") as folder, ExitStack() as stack:
        both_ways = {"without": (), "with": ("--telemetry",)}
        found = {
            name: stack.enter_context(served(f"{folder}/{name}.db", *options))
            for name, options in both_ways.items()
        }
        for each in found.values():
            with Client(f"http://127.0.0.1:{each.port}", "shop", timeout=60) as client:
                client.declare(**DECLARED)
        for turn in range(TURNS + 1):
            for name, each in found.items():
                before = spent([each.pid])
                n = len(load((each.port,), both, seconds))
                cost = 1e6 * (spent([each.pid]) - before) / n
                costs[name] += [cost] if turn else []  # the first compiles
    collector.shutdown()
    collector.server_close()
    for name, each in costs.items():
        yield f"{name} traces: CPU us of the service per request", np.median(each), "", True
    more = float(np.median(np.subtract(costs["with"], costs["without"])))
    yield "traces: CPU us per request", more, "", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a turn")
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    return report("Traces", figures(asked.seconds), asked.csv)


if __name__ == "__main__":
    sys.exit(main())
