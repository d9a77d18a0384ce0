"""Decisions that a client made by itself while the service was away, until they are sent."""

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


class Kept:
    """In the order in which they were made. Threads may share it."""

    def __init__(self) -> None:
        self._waiting: deque[Mapping[str, Any]] = deque()
        self._turn = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, id: object) -> bool:
        with self._turn:
            return any(each["id"] == id for each in self._waiting)

    def add(self, decision: Mapping[str, Any]) -> None:
        with self._turn:
            self._waiting.append(decision)
            if len(self._waiting) > MOST:
                gone = self._waiting.popleft()
                log.warning("decision %s is dropped: %d others wait to be sent", gone["id"], MOST)

    def take(self) -> list[Mapping[str, Any]]:
        """The oldest, as many as one request holds; none if there is none."""
        batch: list[Mapping[str, Any]] = []
        size = 0
        with self._turn:
            while self._waiting and size < BYTES:
                batch.append(self._waiting.popleft())
                size += len(json.dumps(batch[-1]))
        return batch

    def put_back(self, batch: list[Mapping[str, Any]]) -> None:
        """They could not be sent."""
        with self._turn:
            self._waiting.extendleft(reversed(batch))
