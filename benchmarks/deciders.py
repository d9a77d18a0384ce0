"""1, 2 and 4 services over one PostgreSQL: `make bench-deciders` prints requests per second, and
the CPU time behind each: of the services, of the database, and of what sends the requests.

Loops take turns at the database, and a turn stores all that waits. So the figures are for few and
many connections, and for one loop and four, with the requests that share a turn. Four services of
which one is asked say what it costs that the others follow its events.

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
    """Requests per second, CPU microseconds per request by part, and requests per turn."""

    rate: float
    service: float
    database: float
    sender: float
    group: float  # requests that are stored with one commit

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


class Load(NamedTuple):
    """How many services share how many loops, how many of them are asked, and by how many
    connections."""

    services: int
    asked: int
    loops: int
    connections: int

    def words(self) -> str:
        some = f", {self.asked} of them asked" if self.asked < self.services else ""
        return f"{_many(self.services, 'service')}{some}"


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n > 1 else ''}"


def measured(url: str, database: int, loaded: Load, seconds: float) -> Measured:
    """Load services that share loops."""
    loops, connections = loaded.loops, loaded.connections
    with ExitStack() as stack:
        found = [stack.enter_context(served(url)) for _ in range(loaded.services)]
        ports, pids = tuple(each.port for each in found), [each.pid for each in found]
        for port in ports:
            for k in range(loops):
                with Client(f"http://127.0.0.1:{port}", f"shop{k}", timeout=60) as client:
                    client.declare(**DECLARED)
        ports = ports[: loaded.asked]
        load(ports, asking(loops), 2.0, connections)  # compile, and fill the window
        turns = commits(url)
        before = spent(pids), spent([database]), time.process_time()
        n = len(load(ports, asking(loops), seconds, connections))
        after = spent(pids), spent([database]), time.process_time()
        turns = commits(url) - turns
    parts = ((1e6 * (b - a) / n) for a, b in zip(before, after))
    return Measured(n / seconds, *parts, group=n / turns)


def commits(url: str) -> int:
    """Return the transactions that have written events: one for each turn."""
    with psycopg.connect(url) as base:
        return base.execute("SELECT count(DISTINCT xmin::text) FROM event").fetchone()[0]


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
    rates, words = {}, f"{_many(loops, 'loop')}, {connections} connections"
    for count, asked in ((4, 1), *((each, each) for each in COUNTS)):
        loaded = Load(count, asked, loops, connections)
        found = measured(url := base.url(), base.process.pid, loaded, seconds)
        rates[loaded], told = found.rate, f"{words}, {loaded.words()}"
        yield f"{told}: requests per second", found.rate, "", True
        yield f"{told}: CPU us of the services per request", found.service, "", True
        yield f"{told}: CPU us of PostgreSQL per request", found.database, "", True
        yield f"{told}: requests per commit", found.group, "", True
        yield f"{told}: cores in use, of {psutil.cpu_count()}", found.busy, "", True
    yield f"{words}: bytes of the database per event", bytes_per_event(url), "", True
    ratio = rates[loaded] / rates[Load(1, 1, loops, connections)]
    yield f"{words}: 4 services per 1", ratio, f">= {LEAST}", ratio >= LEAST


ONE, FOUR = (f"1 loop, 64 connections, {_many(count, 'service')}: " for count in (1, 4))
RATE, BUSY = "requests per second", "cores in use, of 2"
SERVICE_TIME = "CPU us of the services per request"
BASE_TIME = "CPU us of PostgreSQL per request"
BYTES = "1 loop, 64 connections: bytes of the database per event"


def _stored(words: str) -> float:
    line = next(each for each in stored("deciders") if each["figure"] == words)
    return float(line["measured"])


def _cores(words: str) -> str:
    """Cores that 10,000 requests per second need, by the CPU time of one service's requests."""
    return f"{_stored(words) * 10_000 / 1e6:.1f}"


def _time(loaded: str) -> float:
    """Return the CPU time of a request, us, in all parts."""
    return 1e6 * _stored(loaded + BUSY) / _stored(loaded + RATE)


def _most(loaded: str) -> float:
    """Return the requests per second for which both cores are just enough."""
    return 2e6 / _time(loaded)


SAYS = {
    "deciderfollow": lambda: (
        f"{(_stored(FOUR + SERVICE_TIME) - _stored(ONE + SERVICE_TIME)) / 3:.0f}"
    ),
    "decidertime": lambda: f"{_time(ONE):.0f}",
    "decidertimefour": lambda: f"{_time(FOUR):.0f}",
    "decidermost": lambda: f"{_most(ONE):,.0f}",
    "decidermostratio": lambda: f"{_most(ONE) / _stored(ONE + RATE):.2f}",
    "decidermostfour": lambda: f"{_most(FOUR):,.0f}",
    "decidermostfourratio": lambda: f"{_most(FOUR) / _stored(ONE + RATE):.2f}",
    "deciderservice": lambda: f"{_stored(ONE + SERVICE_TIME):.0f}",
    "deciderdatabase": lambda: f"{_stored(ONE + BASE_TIME):.0f}",
    "decidercores": lambda: _cores(ONE + SERVICE_TIME),
    "deciderbase": lambda: _cores(ONE + BASE_TIME),
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
