"""What decisions take on the disk and in memory, and how long a service takes to start:
`python -m benchmarks.sizing --csv docs/results/sizing.csv`, then `python -m benchmarks.readme`.

Exit status 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.features import CONTEXT
from benchmarks.loop import FEATURES
from benchmarks.service import ARMS, ASKED, DECLARED
from benchmarks.tables import report
from driftbandit import Loop, Reward
from driftbandit.loop.storage import sqlite

START = 2.0  # seconds until the first answer
AFTER = 5  # starts, of which the middle one counts


def disk(n: int) -> tuple[float, float]:
    """Bytes of a decision with its reward, in the file and in memory while it is open."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        options = {"clock": "events", "training": "inline"}
        reward = Reward(0, 1, wait="1d", missing=0)
        with Loop(path, features=FEATURES, reward=reward, exploration=0.02, **options) as loop:
            decide(loop, n // 10, 0)
            before = resident()
            decide(loop, n, n)
            grown = resident() - before
        return path.stat().st_size / (n + n // 10), grown / n


def decide(loop: Loop, n: int, first: int) -> None:
    for k in range(first, first + n):
        made = loop.decide(CONTEXT | {"age": 18 + k % 70}, ARMS, at=float(k))
        loop.reward(made.id, 1, at=float(k))


def resident() -> float:
    """Bytes of this process, at its largest."""
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def started(path: Path) -> tuple[float, float, float]:
    """Seconds from the command to the first decision, and of a processor until then, and megabytes
    of the service."""
    command = [sys.executable, "-m", "driftbandit", "serve", str(path), "--port", "0", "--open"]
    begun = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        while not (found := re.search(r"http://[\d.:]+", process.stderr.readline())):
            pass
        loop = f"{found[0]}/v1/loops/shop"
        if not path.with_suffix(".declared").exists():
            send("PUT", loop, json.dumps(DECLARED).encode())
            path.with_suffix(".declared").touch()
        send("POST", f"{loop}/decisions", ASKED[0])
        seconds = time.perf_counter() - begun
        status = Path(f"/proc/{process.pid}/status").read_text()
        used = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    busy = sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    return seconds, busy, int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024.0


def send(method: str, url: str, body: bytes) -> None:
    """Ask, and wait for the answer: the loop is opened on the way."""
    headers = {"content-type": "application/json"}
    asked = urllib.request.Request(url, body, headers, method=method)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        answer.read()


def figures(n: int):
    sqlite.SYNCHRONOUS = "OFF"  # sizes are the same
    file, memory = disk(n)
    what = f"a decision with {len(ARMS)} arms and 8 raw columns, and its reward"
    yield f"{what}: bytes on the disk", file, "", True
    yield "while it is open: bytes in memory", memory, "", True
    with tempfile.TemporaryDirectory() as folder:
        found = sorted(started(Path(folder) / "shop.db") for _ in range(AFTER))
    seconds, busy, megabytes = found[len(found) // 2]
    yield "a service with one loop: MB in memory", megabytes, "", True
    yield "command to first decision, warm: s", seconds, f"<= {START:g}", seconds <= START
    yield "of which a processor was busy: s", busy, "", True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    return report("Sizes", figures(args.decisions), args.csv)


if __name__ == "__main__":
    sys.exit(main())
