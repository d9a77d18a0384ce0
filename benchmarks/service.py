"""The service under load, on loopback: `make bench-service` prints requests per second.

The service is a process of its own; this one asks, over some connections, each with one request
under way. Both share the machine. Where PostgreSQL is on the path, two services over one database
are measured, too: without waiting for the disk, and with it. Features have d = 48, each product a
coordinate of its own, and then d = 32, where some share theirs. Exit status 1 if a figure is
missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.features import CONTEXT, arms
from benchmarks.loop import FEATURES, FOLDED, WAIT, fsync
from benchmarks.tables import report
from driftbandit import Client, Features

ROOT = Path(__file__).resolve().parent.parent
CONNECTIONS = 16
STEPS = (1, 2, 4, 8, 16, 32)  # connections of the figure
LIGHT = 100  # requests per second of a light load
ARMS = {f"arm {k}": arm for k, arm in enumerate(arms(20))}
LENGTH = re.compile(rb"content-length: (\d+)", re.I)
Make = Callable[[int, bytes], bytes]  # the next request, from its number and the answer before


def declared(features: Features) -> dict[str, Any]:
    return {
        "features": {k: v for k, v in features.to_dict().items() if k not in ("type", "base")},
        "reward": {"low": 0, "high": 1, "wait": WAIT, "missing": 0},
        "exploration": 0.02,
    }


DECLARED = declared(FEATURES)


class Served(NamedTuple):
    """A service: its port, its process, and the seconds until it answered."""

    port: int
    pid: int
    started: float

    def busy(self) -> float:
        """Return the seconds of a processor that it has used."""
        used = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(ledger: str, *options: str) -> Iterator[Served]:
    """A service of its own."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "driftbandit", "serve", ledger, "--port", "0"]
    command += ["--open", "--rate", "1000000", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        found = None
        while not found:
            line = process.stderr.readline()
            if not line:
                raise ValueError("the service does not start: run driftbandit serve by hand")
            found = re.search(r"running on http://[^:]*:(\d+)", line)
        try:
            yield Served(int(found[1]), process.pid, time.perf_counter() - begun)
        finally:
            process.terminate()


class Asking(asyncio.Protocol):
    """One connection: asks, waits for the answer, asks again, until the time is over."""

    def __init__(self, make: Make, end: float, spent: list[float], every: float) -> None:
        self.make, self.end, self.spent, self.over = make, end, spent, asyncio.Event()
        self.every = every  # seconds from one request to the next, at least
        self.count, self.answer = 0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        self.begun = time.perf_counter()
        if self.begun >= self.end:
            self.over.set()
            self.transport.close()
            return
        self.transport.write(self.make(self.count, self.answer))
        self.count, self.answer = self.count + 1, b""

    def data_received(self, data: bytes) -> None:
        self.answer += data
        head = self.answer.find(b"\r\n\r\n")
        if head < 0:
            return
        length = LENGTH.search(self.answer, 0, head)
        assert length
        if len(self.answer) >= head + 4 + int(length[1]):
            assert self.answer.startswith(b"HTTP/1.1 200"), self.answer
            now = time.perf_counter()
            self.spent.append(now - self.begun)
            left = self.begun + self.every - now
            asyncio.get_running_loop().call_later(left, self._ask) if left > 0 else self._ask()

    def connection_lost(self, _: Exception | None) -> None:
        self.over.set()


def load(
    ports: tuple[int, ...],
    make: Make,
    seconds: float,
    connections: int = CONNECTIONS,
    every: float = 0.0,
) -> np.ndarray:
    """Seconds of every request; connections are spread over the services."""
    spent: list[float] = []

    async def run() -> None:
        end = time.perf_counter() + seconds
        loop = asyncio.get_running_loop()
        asking = []
        for k in range(connections):
            where = "127.0.0.1", ports[k % len(ports)]
            make_one = lambda: Asking(make, end, spent, every)  # noqa: E731
            asking += [(await loop.create_connection(make_one, *where))[1]]
        await asyncio.gather(*(each.over.wait() for each in asking))

    asyncio.run(run())
    return np.array(spent)


def request(method: str, path: str, body: bytes) -> bytes:
    head = f"{method} /v1/loops/shop{path} HTTP/1.1\r\nhost: localhost\r\n"
    head += "content-type: application/json"
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


ASKED = [
    json.dumps({"context": CONTEXT | {"age": age}, "arms": ARMS}).encode() for age in range(18, 90)
]
DECIDE = [request("POST", "/decisions", body) for body in ASKED]
BATCH = request("POST", "/batches", b'{"decisions":[' + b",".join((ASKED * 2)[:50]) + b"]}")


def decide(count: int, _: bytes) -> bytes:
    return DECIDE[count % len(DECIDE)]


def both(count: int, answer: bytes) -> bytes:
    """A decision, and for one in ten its reward."""
    if count % 11 != 10:
        return DECIDE[count % len(DECIDE)]
    return reward(count, answer)


def reward(count: int, answer: bytes) -> bytes:
    id = re.search(rb'"id":"(\w+)"', answer)
    path = f"/decisions/{id[1].decode() if id else count}/reward"
    return request("PUT", path, b'{"value":1}')


def figures(seconds: float, ledger: str | None, figure: Path | None):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yield "the disk's fsync: ms", 1e3 * fsync(Path(folder)), "", True
        with served(ledger or f"{folder}/shop.db") as found:
            yield "start to listening: s", found.started, "<= 2", found.started <= 2
            yield from _figures(found, seconds, FEATURES)
            if figure:
                ports = (found.port,)
                draw(figure, {n: load(ports, both, seconds / 4, n) for n in STEPS}, seconds / 4)
        if not ledger:
            with served(f"{folder}/folded.db") as found:
                for what, *rest in _figures(found, seconds, FOLDED):
                    yield what if "d=" in what else f"d={FOLDED.size}: {what}", *rest
    if not ledger and shutil.which("initdb"):
        for durable in (False, True):
            yield from pairs(seconds / 2, durable)


def pairs(seconds: float, durable: bool):
    """Two services over one PostgreSQL: one trains, both decide."""
    sys.path.insert(0, str(ROOT / "tests"))
    from databases import Server

    words = f"two services, PostgreSQL {'with' if durable else 'without'} fsync"
    base = Server(fsync=durable)
    try:
        with ExitStack() as stack:
            url = base.url()
            ports = tuple(stack.enter_context(served(url)).port for _ in range(2))
            with _client(ports[0]) as first, _client(ports[1]) as second:
                first.declare(**DECLARED)
                second.declare(**DECLARED)
                load(ports, both, 3.0)
                spent = load(ports, both, seconds)
                behind = max(each.health()["behind"] for each in (first, second))
            rate, slow = len(spent) / seconds, 1e3 * float(np.quantile(spent, 0.99))
            yield f"{words}: requests per second", rate, ">= 1000", rate >= 1000
            yield f"{words}: 99 % within, ms", slow, "", True
            yield f"{words}: the learner behind, s", behind, "<= 1.5", behind <= 1.5
    finally:
        base.remove()


def _client(port: int) -> Client:
    return Client(f"http://127.0.0.1:{port}", "shop", timeout=60)


def draw(path: Path, found: dict[int, np.ndarray], seconds: float) -> None:
    """Time to an answer against requests per second, for more and more connections."""
    import matplotlib.pyplot as plt

    rates = [len(spent) / seconds for spent in found.values()]
    _, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for share, name in ((0.5, "half within"), (0.99, "99 % within")):
        times = [1e3 * np.quantile(spent, share) for spent in found.values()]
        axis.plot(rates, times, marker="o", label=name)
    for rate, spent, n in zip(rates, found.values(), found):
        height = 1e3 * np.quantile(spent, 0.99)
        axis.annotate(str(n), (rate, height), (0, 6), textcoords="offset points", ha="center")
    axis.axhline(30, color="grey", linewidth=0.8, linestyle=":")
    axis.set(xlabel="requests per second", ylabel="ms", xlim=(0, None), ylim=(0, None))
    axis.set_title("The service under load, by connections", loc="left")
    axis.legend(frameon=False, loc="upper left")
    plt.savefig(path)


def _figures(service: Served, seconds: float, features: Features):
    ports = (service.port,)
    with _client(service.port) as client:
        client.declare(**declared(features))
        load(ports, both, 3.0)  # compile, and fill the window
        busy = service.busy()
        spent = load(ports, both, seconds)
        busy = 1e6 * (service.busy() - busy) / len(spent)
        behind = client.health()["behind"]  # asked at once: what waits now has waited so long
        rate = len(spent) / seconds
        what = f"{CONNECTIONS} connections, AutoDOMD, 20 arms, 8 raw columns, d={features.size}"
        yield f"{what}: requests per second", rate, ">= 3000", rate >= 3000
        yield "of a processor, for one request: us", busy, "", True
        slow = 1e3 * float(np.quantile(spent, 0.99))
        yield "99 % within: ms", slow, "<= 30", slow <= 30
        yield "half within: ms", 1e3 * float(np.median(spent)), "", True
        yield f"the learner behind after {seconds:g} s: s", behind, "<= 1", behind <= 1
        time.sleep(WAIT + 1.0)  # until what the heavy load left is trained
        spent = 1e3 * load(ports, both, seconds / 4, 1, 1.0 / LIGHT)
        for share, most in ((0.5, 1.5), (0.99, 4.0)):
            slow = float(np.quantile(spent, share))
            what = f"at {LIGHT} requests per second, {100 * share:g} % within: ms"
            yield what, slow, f"<= {most:g}", slow <= most
        rate = len(load(ports, reward, seconds / 4)) / (seconds / 4)
        yield "rewards per second", rate, ">= 2000", rate >= 2000
        rate = 50 * len(load(ports, lambda *_: BATCH, seconds / 4, 4)) / (seconds / 4)
        yield "decisions per second in batches of 50", rate, ">= 4500", rate >= 4500


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    parser.add_argument("--figure", type=Path, help="also draw time against rate")
    parser.add_argument("--ledger", help="a new postgresql:// database instead of a file")
    args = parser.parse_args()
    found = figures(args.seconds, args.ledger, args.figure)
    return report("The service under load", found, args.csv)


if __name__ == "__main__":
    sys.exit(main())
