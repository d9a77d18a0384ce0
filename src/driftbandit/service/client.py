"""The client: decisions from a service, and the default arm where there is none.

It needs nothing but Python's own library.
"""

from __future__ import annotations

import http.client
import json
import logging
import random
import ssl
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from driftbandit import validate
from driftbandit.loop.request import new_id

log = logging.getLogger("driftbandit.client")
AGAIN = (429, 502, 503, 504)  # answers after which the same request may do better


class ServiceError(ValueError):
    """What the service refused; `problem` is all that it said."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", "the service did not say what is wrong")))
        self.problem, self.status = dict(problem), int(problem.get("status", 0))


class AwayError(ConnectionError):
    """The service did not answer."""


@dataclass(frozen=True)
class Served:
    """A decision. `role` is "fallback" where the service was away and the default is played.

    A slate has `places` in order, each with arm, probability and probabilities, and no `arm`.
    """

    id: str
    arm: str | int | None
    probability: float
    probabilities: Mapping[str, float]
    role: str
    places: Sequence[Mapping[str, Any]] = ()


class Client:
    """One loop of a service. Threads may share a client.

    Every decision has an id before it is asked for, so a call is repeated safely: the same id, the
    same answer. `timeout` bounds a call with all its repetitions, in seconds.

    >>> client = Client("http://127.0.0.1:1", "news", timeout=0.2)
    >>> client.decide({"age": 30}, {"a": {}, "b": {}}, default="b").arm
    'b'
    """

    def __init__(self, url: str, loop: str, *, key: str | None = None, timeout: float = 2.0):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be such as 'http://127.0.0.1:8100', got {url!r}")
        self._parts, self._path = parts, f"{parts.path.rstrip('/')}/v1/loops/{quote(loop, '')}"
        self._timeout = validate.positive("timeout", timeout, "seconds that a call may take")
        self._headers = {"content-type": "application/json"}
        self._headers |= {"authorization": f"Bearer {key}"} if key else {}
        self._idle: deque[http.client.HTTPConnection] = deque()  # connections nobody uses now

    def decide(
        self,
        context: Mapping[str, Any],
        arms: Mapping[str, Any] | Sequence[Any],
        *,
        id: str | None = None,
        key: str | None = None,
        default: Any = None,
        k: int | None = None,
    ) -> Served:
        """Choose among arms, or k of them, as `Loop.decide` does. With a `default` it never fails
        for lack of a service: the default is played, and the loop knows nothing of it."""
        own = new_id() if id is None else id
        asked = {"context": context, "arms": arms, "id": own, "key": key, "default": default}
        asked |= {} if k is None else {"k": k}
        try:
            return Served(**self._call("POST", "/decisions", asked))
        except AwayError as error:
            if default is None:
                raise
            log.warning("decision %s is the default: %s", own, error)
            if k is None:
                return Served(own, default, 1.0, {}, "fallback")
            places = [{"arm": arm, "probability": 1.0, "probabilities": {}} for arm in default]
            return Served(own, None, 1.0, {}, "fallback", places)

    def decide_many(self, asked: Sequence[Mapping[str, Any]]) -> list[Served | ServiceError]:
        """Many decisions in one request, each with `context`, `arms` and what else `decide` takes;
        in place of one that is refused stands the error."""
        batch = [{"id": new_id(), **each} for each in asked]
        found = self._call("POST", "/batches", {"decisions": batch})["decisions"]
        return [
            Served(**each["made"]) if "made" in each else ServiceError(each["problem"])
            for each in found
        ]

    def reward(self, id: str, value: float, *, position: int | None = None) -> str:
        """Say what a decision gave, or a position of a slate; returns what became of it, as
        `Loop.reward` does."""
        path, said = f"/decisions/{quote(id, '')}/reward", {"value": value, "position": position}
        return str(self._call("PUT", path, said)["outcome"])

    def cancel(self, id: str, *, position: int | None = None) -> str:
        """Say that a decision, or a position of a slate, was never shown."""
        query = "" if position is None else f"?position={position}"
        return str(self._call("DELETE", f"/decisions/{quote(id, '')}{query}")["outcome"])

    def declare(self, **declaration: Any) -> dict[str, Any]:
        """Make the loop, or check that it is what is declared here."""
        return self._call("PUT", "", declaration)

    def health(self) -> dict[str, Any]:
        """How the loop is doing."""
        return self._call("GET", "/health")

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask, and ask again while there is time: with an id, a repetition changes nothing."""
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
        raise AwayError(f"{self._parts.netloc} is away ({wrong}): start it, or pass a default")

    def _once(
        self, method: str, path: str, raw: bytes | None, left: float
    ) -> tuple[int, dict[str, Any]]:
        link = self._link(left)
        try:
            link.request(method, self._path + path, raw, self._headers)
            answer = link.getresponse()
            found = json.loads(answer.read())
        except BaseException:
            link.close()  # nobody knows what comes next on it
            raise
        self._idle.append(link)
        return answer.status, found if isinstance(found, dict) else {}

    def _link(self, left: float) -> http.client.HTTPConnection:
        """A connection for one call: one that is idle, or a new one."""
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

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
