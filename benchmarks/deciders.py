"""1, 2 and 4 services over one PostgreSQL: `make bench-deciders` prints requests per second, and
the CPU time behind each: of the services, of the database, and of what sends the requests.

Loops take turns at the database, and a turn stores all that waits. So the figures are for few and
many connections, and for one loop and four.

All share this machine, so the CPU time says what other machines would do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg

from benchmarks.service import DECLARED, ROOT, both, load, served
from benchmarks.tables import Figure, report, stored
from driftbandit import Client

COUNTS = (1, 2, 4)
SETTINGS = ((1, 16), (1, 64), (4, 64))  # loops, connections
LEAST = 1.5  # times one service's decisions, by four of them


class Measured(NamedTuple):
    """Requests per second, and CPU microseconds per request by part."""

    rate: float
    service: float
    database: float
    sender: float

    @property
    def busy(self) -> float:
        """Cores that all parts together had in use."""
        return self.rate * (self.service + self.database + self.sender) / 1e6


def spent(pids: list[int]) -> float:
    """Return the CPU seconds of processes and of all that they have started."""
    total = 0.0
    for pid in pids:
        own = psutil.Process(pid)
        for each in (own, *own.children(recursive=True)):
            times = each.cpu_times()
            total += times.user + times.system
    return total


def asking(loops: int) -> Callable[[int, bytes], bytes]:
    """Return requests for loops in turn; a reward goes to the loop of the decision before it."""

    def make(count: int, answer: bytes) -> bytes:
        number = (count - (count % 11 == 10)) % loops
        return both(count, answer).replace(b"/loops/shop/", b"/loops/shop%d/" % number, 1)

    return make


def measured(
    url: str, database: int, count: int, loops: int, connections: int, seconds: float
) -> Measured:
    """Load `count` services that share loops."""
    with ExitStack() as stack:
        found = [stack.enter_context(served(url)) for _ in range(count)]
        ports, pids = tuple(each.port for each in found), [each.pid for each in found]
        for port in ports:
            for k in range(loops):
                with Client(f"http://127.0.0.1:{port}", f"shop{k}", timeout=60) as client:
                    client.declare(**DECLARED)
        load(ports, asking(loops), 2.0, connections)  # compile, and fill the window
        before = spent(pids), spent([database]), time.process_time()
        n = len(load(ports, asking(loops), seconds, connections))
        after = spent(pids), spent([database]), time.process_time()
    parts = ((1e6 * (b - a) / n) for a, b in zip(before, after))
    return Measured(n / seconds, *parts)


def bytes_per_event(url: str) -> float:
    """Return the size of the table of events, with its indices, over their number."""
    with psycopg.connect(url) as base:
        asked = "SELECT pg_total_relation_size('event')::float / count(*) FROM event"
        return base.execute(asked).fetchone()[0]


def figures(seconds: float) -> Iterator[Figure]:
    sys.path.insert(0, str(ROOT / "tests"))
    from databases import Server

    base = Server(fsync=True)
    try:
        for loops, connections in SETTINGS:
            yield from _setting(base, loops, connections, seconds)
    finally:
        base.remove()


def _setting(base: Any, loops: int, connections: int, seconds: float) -> Iterator[Figure]:
    rates, words = {}, f"{loops} loop{'s' if loops > 1 else ''}, {connections} connections"
    for count in COUNTS:
        asked = count, loops, connections, seconds
        found = measured(url := base.url(), base.process.pid, *asked)
        rates[count], told = found.rate, f"{words}, {count} service{'s' if count > 1 else ''}"
        yield f"{told}: requests per second", found.rate, "", True
        yield f"{told}: CPU us of the services per request", found.service, "", True
        yield f"{told}: CPU us of PostgreSQL per request", found.database, "", True
        yield f"{told}: cores in use, of {psutil.cpu_count()}", found.busy, "", True
    yield f"{words}: bytes of the database per event", bytes_per_event(url), "", True
    ratio = rates[4] / rates[1]
    yield f"{words}: 4 services per 1", ratio, f">= {LEAST}", ratio >= LEAST


def _stored(words: str) -> float:
    line = next(each for each in stored("deciders") if each["figure"].endswith(words))
    return float(line["measured"])


def _cores(words: str) -> str:
    """Cores that 10,000 requests per second need, by the CPU time of one service's requests."""
    return f"{_stored(words) * 10_000 / 1e6:.1f}"


SERVICE_TIME = "1 loop, 64 connections, 1 service: CPU us of the services per request"
BASE_TIME = "1 loop, 64 connections, 1 service: CPU us of PostgreSQL per request"
BYTES = "1 loop, 64 connections: bytes of the database per event"
FOUR_TIME = "1 loop, 64 connections, 4 services: CPU us of the services per request"
SAYS = {
    "deciderfollow": lambda: f"{(_stored(FOUR_TIME) - _stored(SERVICE_TIME)) / 3:.0f}",
    "deciderservice": lambda: f"{_stored(SERVICE_TIME):.0f}",
    "deciderdatabase": lambda: f"{_stored(BASE_TIME):.0f}",
    "decidercores": lambda: _cores(SERVICE_TIME),
    "deciderbase": lambda: _cores(BASE_TIME),
    "deciderbytes": lambda: f"{_stored(BYTES):,.0f}",
    "deciderterabytes": lambda: f"{_stored(BYTES) / 1e3:.1f}",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0, help="of load, for each row")
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    return report("Deciders on PostgreSQL", figures(asked.seconds), asked.csv)


if __name__ == "__main__":
    sys.exit(main())
