"""The client of a decision service. It needs only Python's standard library.

It retries failed calls, and falls back to the default arm if the service is unreachable.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from driftbandit.client.outbox import Outbox
from driftbandit.client.transport import ServiceError as ServiceError
from driftbandit.client.transport import Transport
from driftbandit.client.transport import UnreachableError as UnreachableError
from driftbandit.ids import new_id

log = logging.getLogger("driftbandit.client")


@dataclass(frozen=True)
class ServedDecision:
    """A decision. `role` is "fallback" if the service was unreachable and the default is played.

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

    Every decision has an id before it is asked for, so a call can be repeated: the same id gives
    the same answer. `timeout` is for a call with all its repetitions, in seconds. While the service
    is unreachable, the client plays the default, and tells the loop once the service is back.

    >>> client = Client("http://127.0.0.1:1", "news", timeout=0.2)
    >>> client.decide({"age": 30}, {"a": {}, "b": {}}, default="b").arm
    'b'
    """

    def __init__(self, url: str, loop: str, *, api_key: str | None = None, timeout: float = 2.0):
        self._path = f"/v1/loops/{quote(loop, '')}"
        self._transport = Transport(url, api_key, timeout)
        self._outbox = Outbox()

    def decide(
        self,
        context: Mapping[str, Any],
        arms: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        id: str | None = None,
        key: str | None = None,
        default: Any = None,
        k: int | None = None,
    ) -> ServedDecision:
        """Choose among arms, or k of them, as `Loop.decide` does. If the service is unreachable,
        return the `default`, and tell the loop later (`send`); without a default, raise."""
        own = new_id() if id is None else id
        asked = {"context": context, "arms": arms, "id": own, "key": key, "default": default}
        asked |= {} if k is None else {"k": k}
        try:
            made = ServedDecision(**self._call("POST", "/decisions", asked))
        except UnreachableError as error:
            if default is None:
                raise
            log.warning("decision %s is the default: %s", own, error)
            self._outbox.add({**asked, "at": time.time()})
            if k is None:
                return ServedDecision(own, default, 1.0, {}, "fallback")
            places = [{"arm": arm, "probability": 1.0, "probabilities": {}} for arm in default]
            return ServedDecision(own, None, 1.0, {}, "fallback", places)
        with suppress(UnreachableError):
            self._send_some()  # some at a time, so that no decision waits for all
        return made

    def send(self) -> int:
        """Send fallback decisions to the loop, and return how many it took. `decide`, `reward` and
        `close` call it, too."""
        sent = 0
        while self._outbox:
            sent += self._send_some()
        return sent

    def _send_some(self) -> int:
        batch = self._outbox.take()
        if not batch:
            return 0
        try:
            found = self._call("POST", "/records", {"decisions": batch})["decisions"]
        except UnreachableError:
            self._outbox.put_back(batch)
            raise
        except ServiceError as error:
            log.error("%d fallback decisions are refused: %s", len(batch), error)
            return 0
        refused = {k: each["problem"] for k, each in enumerate(found) if "problem" in each}
        for k, problem in refused.items():
            log.warning("decision %s is refused: %s", batch[k]["id"], problem["detail"])
        return len(batch) - len(refused)

    def decide_many(
        self, asked: Sequence[Mapping[str, Any]]
    ) -> list[ServedDecision | ServiceError]:
        """Many decisions in one request, each with `context`, `arms` and what else `decide` takes;
        in place of one that is refused stands the error."""
        batch = [{"id": new_id(), **each} for each in asked]
        found = self._call("POST", "/batches", {"decisions": batch})["decisions"]
        return [
            ServedDecision(**each["decision"])
            if "decision" in each
            else ServiceError(each["problem"])
            for each in found
        ]

    def reward(self, id: str, value: float, *, position: int | None = None) -> str:
        """Say what a decision gave, or a position of a slate; returns what became of it, as
        `Loop.reward` does."""
        if id in self._outbox:
            self.send()  # the decision comes first
        path, said = f"/decisions/{quote(id, '')}/reward", {"value": value, "position": position}
        return str(self._call("PUT", path, said)["outcome"])

    def cancel(self, id: str, *, position: int | None = None) -> str:
        """Say that a decision, or a position of a slate, was never shown."""
        if id in self._outbox:
            self.send()
        query = "" if position is None else f"?position={position}"
        return str(self._call("DELETE", f"/decisions/{quote(id, '')}{query}")["outcome"])

    def metric(self, id: str, name: str, value: float, *, position: int | None = None) -> None:
        """Record another number about a decision, such as its cost."""
        if id in self._outbox:
            self.send()
        path = f"/decisions/{quote(id, '')}/metrics/{quote(name, '')}"
        self._call("PUT", path, {"value": value, "position": position})

    def add_arm(self, name: str, columns: Mapping[str, Any] | None = None) -> None:
        """Add an arm to the catalogue of the loop, or give it other columns."""
        self._call("PUT", f"/arms/{quote(name, '')}", {"columns": columns or {}})

    def pause_arm(self, name: str) -> None:
        """Take an arm off offer."""
        self._call("PATCH", f"/arms/{quote(name, '')}", {"paused": True})

    def resume_arm(self, name: str) -> None:
        """Put a paused arm on offer again."""
        self._call("PATCH", f"/arms/{quote(name, '')}", {"paused": False})

    def retire_arm(self, name: str) -> None:
        """Remove an arm from the catalogue of the loop."""
        self._call("DELETE", f"/arms/{quote(name, '')}")

    def declare(self, **declaration: Any) -> dict[str, Any]:
        """Declare the loop, or check that it was declared like this."""
        return self._call("PUT", "", declaration)

    def health(self) -> dict[str, Any]:
        """Return how the loop is doing."""
        return self._call("GET", "/health")

    def compare(self) -> dict[str, Any]:
        """Compare candidates, as `Loop.compare` does; `words` has the same in sentences."""
        return self._call("GET", "/comparison")

    def promote(
        self,
        candidate: str,
        *,
        expected_live: str | None = None,
        force: bool = False,
        not_worse: Mapping[str, float] | None = None,
    ) -> str:
        """Promote a candidate, as `Loop.promote` does; return the policy that acts. Without proof
        it is a `ServiceError`, whose `problem["leads"]` has what is known."""
        asked: dict[str, Any] = {"candidate": candidate, "expected_live": expected_live}
        asked |= {"force": force, "not_worse": None if not_worse is None else dict(not_worse)}
        return str(self._call("POST", "/promotion", asked)["acts"])

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return self._transport.call(method, self._path + path, body)

    def close(self) -> None:
        """Send what is left, and close all connections."""
        try:
            self.send()
        except UnreachableError as error:
            log.warning("%d fallback decisions were not sent: %s", len(self._outbox), error)
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
