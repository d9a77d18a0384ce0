"""Requests of the client, repeated while there is time."""

from __future__ import annotations

import http.client
import json
import math
import random
import ssl
import time
from collections import deque
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

AGAIN = (429, 502, 503, 504)  # answers after which the same request may do better


class ServiceError(ValueError):
    """What the service refused; `problem` is all that it said."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", "the service did not say what is wrong")))
        self.problem, self.status = dict(problem), int(problem.get("status", 0))


class UnreachableError(ConnectionError):
    """The service did not answer in time."""


class Transport:
    """Connections to one service. Threads may share it."""

    def __init__(self, url: str, api_key: str | None, timeout: float) -> None:
        self._parts = urlsplit(url)
        if self._parts.scheme not in ("http", "https") or not self._parts.hostname:
            raise ValueError(f"url must look like 'http://127.0.0.1:8100', got {url!r}")
        if not (isinstance(timeout, (int, float)) and 0.0 < timeout < math.inf):
            raise ValueError(f"timeout must be a number of seconds above 0, got {timeout!r}")
        self._timeout = timeout
        self._headers = {"content-type": "application/json"}
        self._headers |= {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._idle: deque[http.client.HTTPConnection] = deque()  # without a request under way

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Send a request, and repeat it while there is time: that changes nothing."""
        raw = None if body is None else json.dumps(body, allow_nan=False).encode()
        end, pause, wrong = time.monotonic() + self._timeout, 0.02, "no time was left"
        while (left := end - time.monotonic()) > 0.0:
            try:
                status, found = self._once(method, path, raw, left)
                if status < 400:
                    return found
                if status not in AGAIN:
                    raise ServiceError(found)
                wrong = f"{status}: {found.get('detail')}"
            except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
                wrong = f"{type(error).__name__}: {error}"
            time.sleep(min(pause * random.uniform(0.5, 1.0), max(0.0, end - time.monotonic())))
            pause *= 2.0
        raise UnreachableError(
            f"{self._parts.netloc} is unreachable ({wrong}): start it, or pass a default"
        )

    def _once(
        self, method: str, path: str, raw: bytes | None, left: float
    ) -> tuple[int, dict[str, Any]]:
        link = self._link(left)
        try:
            link.request(method, self._parts.path.rstrip("/") + path, raw, self._headers)
            answer = link.getresponse()
            found = json.loads(answer.read())
        except BaseException:
            link.close()  # its next bytes may belong to this answer
            raise
        self._idle.append(link)
        return answer.status, found if isinstance(found, dict) else {}

    def _link(self, left: float) -> http.client.HTTPConnection:
        """Return a connection for one call: one that is idle, or a new one."""
        try:
            link = self._idle.pop()
        except IndexError:
            return self._connect(left)
        if link.sock is not None:
            link.sock.settimeout(left)
        return link

    def _connect(self, left: float) -> http.client.HTTPConnection:
        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=left)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=left, context=context)

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()
