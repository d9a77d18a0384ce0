"""Metrics for Prometheus: requests by route, and every loop's events and lag."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from driftbandit.durations import HOUR
from driftbandit.service.pool.loop_pool import LoopPool

HEAD = HOUR  # seconds for which a head is shown
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0, 5.0)  # seconds


class Metrics(Collector):
    """Counts requests by route and status, and reads figures of loops when Prometheus asks."""

    def __init__(self, pool: LoopPool) -> None:
        self._pool, self._registry = pool, CollectorRegistry()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._times: dict[tuple[str, str], list[int]] = {}  # by bound, and beyond the last
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._heads: dict[str, tuple[str, float]] = {}  # heads that are shown, and since when
        self._registry.register(self)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; called by the event loop alone."""
        self._requests[method, route, status] += 1
        self._seconds[method, route] += seconds
        if (method, route) not in self._times:
            self._times[method, route] = [0] * (len(BOUNDS) + 1)
        self._times[method, route][bisect_left(BOUNDS, seconds)] += 1

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        yield from self._of_requests()
        yield from self._of_loops()

    def _of_requests(self) -> Iterator[Any]:
        requests = CounterMetricFamily(
            "driftbandit_requests",
            "Requests by route and status",
            labels=("method", "route", "status"),
        )
        for (method, route, status), n in dict(self._requests).items():
            requests.add_metric((method, route, str(status)), n)
        times = HistogramMetricFamily(
            "driftbandit_request_seconds", "Time to an answer", labels=("method", "route")
        )
        bounds = [*map(str, BOUNDS), "+Inf"]
        for labels, counts in dict(self._times).items():
            times.add_metric(labels, [*zip(bounds, accumulate(counts))], self._seconds[labels])
        yield from (requests, times)

    def _of_loops(self) -> Iterator[Any]:
        events = CounterMetricFamily(
            "driftbandit_events", "Events by kind and outcome", labels=("loop", "event")
        )
        waiting = GaugeMetricFamily(
            "driftbandit_waiting_examples", "Examples not trained yet", labels=("loop",)
        )
        behind = GaugeMetricFamily(
            "driftbandit_behind_seconds", "How long the oldest has waited", labels=("loop",)
        )
        heads = GaugeMetricFamily(
            "driftbandit_head_events",
            "Events of the ledger at the head that the label shows; once an hour a new one",
            labels=("loop", "head"),
        )
        for name, loop in self._pool.opened.items():
            for event, n in loop.counts.items():
                events.add_metric((name, event), n)
            waiting.add_metric((name,), loop.lag.examples)
            behind.add_metric((name,), loop.lag.seconds)
            heads.add_metric(
                (name, head := self._head(name, loop.head)), int(head.split(":")[0] or 0)
            )
        yield from (events, waiting, behind, heads)

    def _head(self, name: str, head: str) -> str:
        """Return the head to show: a label that changed with every event would be a new series for
        Prometheus with every scrape."""
        shown, since = self._heads.get(name, ("", 0.0))
        if not shown or time.monotonic() - since >= HEAD:
            self._heads[name] = shown, _ = head, time.monotonic()
        return shown
