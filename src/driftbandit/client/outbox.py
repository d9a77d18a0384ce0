"""The outbox: fallback decisions of a client, until the service has them."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("driftbandit.client")
MOST = 10_000  # decisions; beyond, the oldest are dropped
BYTES = 200_000  # of a batch, about: services refuse large bodies


class Outbox:
    """Decisions in the order in which they were made. Threads may share it."""

    def __init__(self) -> None:
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, id: object) -> bool:
        with self._lock:
            return any(each["id"] == id for each in self._waiting)

    def add(self, decision: Mapping[str, Any]) -> None:
        with self._lock:
            self._waiting.append(decision)
            if len(self._waiting) > MOST:
                gone = self._waiting.popleft()
                log.warning("decision %s is dropped: %d others wait to be sent", gone["id"], MOST)

    def take(self) -> list[Mapping[str, Any]]:
        """Return the oldest, as many as one request holds."""
        batch: list[Mapping[str, Any]] = []
        size = 0
        with self._lock:
            while self._waiting and size < BYTES:
                batch.append(self._waiting.popleft())
                size += len(json.dumps(batch[-1]))
        return batch

    def put_back(self, batch: list[Mapping[str, Any]]) -> None:
        """Keep decisions that could not be sent."""
        with self._lock:
            self._waiting.extendleft(reversed(batch))
