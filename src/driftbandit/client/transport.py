"""Requests of the clients, repeated while there is time."""

from __future__ import annotations

import http.client
import json
import math
import random
import ssl
import time
from collections import deque
from typing import Any
from urllib.parse import urlsplit

from driftbandit.client.errors import ServiceError, UnreachableError

AGAIN = (429, 502, 503, 504)  # answers after which the same request may do better


class Address:
    """Where a service is, what every request says, and how long a call may take."""

    def __init__(self, url: str, api_key: str | None, timeout: float) -> None:
        self.parts = urlsplit(url)
        if self.parts.scheme not in ("http", "https") or not self.parts.hostname:
            raise ValueError(f"url must look like 'http://127.0.0.1:8100', got {url!r}")
        if not (isinstance(timeout, (int, float)) and 0.0 < timeout < math.inf):
            raise ValueError(f"timeout must be a number of seconds above 0, got {timeout!r}")
        self.timeout, self.path = timeout, self.parts.path.rstrip("/")
        self.base = f"{self.parts.scheme}://{self.parts.netloc}{self.path}"
        self.headers = {"content-type": "application/json"}
        self.headers |= {"authorization": f"Bearer {api_key}"} if api_key else {}

    def raw(self, body: Any) -> bytes | None:
        """Return a body as bytes; JSON has no NaN."""
        return None if body is None else json.dumps(body, allow_nan=False).encode()


class Attempts:
    """One call and its repetitions: how much time is left, and what became of each."""

    def __init__(self, address: Address) -> None:
        self._address, self._pause, self._wrong = address, 0.02, "no time was left"
        self._end = time.monotonic() + address.timeout

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    def accepts(self, status: int, found: Any) -> bool:
        """Return whether an answer is the one; raise what the service refuses for good."""
        if status < 400:
            return True
        told = found if isinstance(found, dict) else {}
        if status not in AGAIN:
            raise ServiceError(told)
        self._wrong = f"{status}: {told.get('detail')}"
        return False

    def failed(self, error: Exception) -> None:
        """Note why there was no answer."""
        self._wrong = f"{type(error).__name__}: {error}"

    def pause(self) -> float:
        """Return the seconds to wait before the next attempt: twice as many each time, about."""
        now, self._pause = self._pause * random.uniform(0.5, 1.0), self._pause * 2.0
        return min(now, max(0.0, self.left))

    def given_up(self) -> UnreachableError:
        """Return the error of a call that had no answer in time."""
        return UnreachableError(
            f"{self._address.parts.netloc} is unreachable ({self._wrong}): start it, or pass a "
            "default"
        )


class Transport:
    """Connections to one service. Threads may share it."""

    def __init__(self, url: str, api_key: str | None, timeout: float) -> None:
        self._address = Address(url, api_key, timeout)
        self._idle: deque[http.client.HTTPConnection] = deque()  # without a request under way

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Send a request, and repeat it while there is time: that changes nothing."""
        attempts, raw = Attempts(self._address), self._address.raw(body)
        while (left := attempts.left) > 0.0:
            try:
                status, found = self._once(method, path, raw, left)
                if attempts.accepts(status, found):
                    return found
            except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
                attempts.failed(error)
            time.sleep(attempts.pause())
        raise attempts.given_up()

    def _once(
        self, method: str, path: str, raw: bytes | None, left: float
    ) -> tuple[int, dict[str, Any]]:
        link = self._link(left)
        try:
            link.request(method, self._address.path + path, raw, self._address.headers)
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
        host, port = str(self._address.parts.hostname), self._address.parts.port
        if self._address.parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=left)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=left, context=context)

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()
