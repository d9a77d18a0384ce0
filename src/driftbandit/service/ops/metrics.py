"""What Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from driftbandit.service.pool.loop_pool import Loops

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """Requests by route and status, and how every loop is doing."""

    def __init__(self, loops: Loops) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_OfLoops(loops))
        self._requests = Counter(
            "driftbandit_requests",
            "Requests by route and status",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "driftbandit_request_seconds",
            "Time to an answer",
            ("method", "route"),
            buckets=SECONDS,
            registry=self._registry,
        )

        self._known: dict[tuple[str, str, int], tuple[Any, Any]] = {}  # finding them takes long

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        labels = method, route, status
        if labels not in self._known:
            own = self._requests.labels(*labels), self._seconds.labels(method, route)
            self._known[labels] = own
        requests, times = self._known[labels]
        requests.inc()
        times.observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _OfLoops(Collector):
    """Read when somebody asks, and never kept."""

    def __init__(self, loops: Loops) -> None:
        self._loops = loops

    def collect(self) -> Iterator[Any]:
        events = CounterMetricFamily(
            "driftbandit_events", "Events by kind and outcome", labels=("loop", "event")
        )
        waiting = GaugeMetricFamily(
            "driftbandit_waiting_examples", "Examples not trained yet", labels=("loop",)
        )
        behind = GaugeMetricFamily(
            "driftbandit_behind_seconds", "How long the oldest has waited", labels=("loop",)
        )
        for name, loop in self._loops.opened.items():
            for event, n in loop.counts.items():
                events.add_metric((name, event), n)
            waiting.add_metric((name,), loop.lag.examples)
            behind.add_metric((name,), loop.lag.seconds)
        yield from (events, waiting, behind)
