"""The client: decisions from a service, and the default arm where there is none.

It needs only Python's standard library.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from driftbandit.client.outbox import Kept
from driftbandit.client.transport import AwayError as AwayError
from driftbandit.client.transport import ServiceError as ServiceError
from driftbandit.client.transport import Wire
from driftbandit.loop.deciding.request import new_id

log = logging.getLogger("driftbandit.client")


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

    Every decision has an id before it is asked for, so a call can be repeated: the same id gives
    the same answer. `timeout` is for a call with all its repetitions, in seconds. While the service
    is away, decisions with a default are made here and kept; they are sent once it is back.

    >>> client = Client("http://127.0.0.1:1", "news", timeout=0.2)
    >>> client.decide({"age": 30}, {"a": {}, "b": {}}, default="b").arm
    'b'
    """

    def __init__(self, url: str, loop: str, *, key: str | None = None, timeout: float = 2.0):
        self._path = f"/v1/loops/{quote(loop, '')}"
        self._wire = Wire(url, key, timeout)
        self._kept = Kept()

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
        because the service is away: it gives the default, and tells the loop later (`send`)."""
        own = new_id() if id is None else id
        asked = {"context": context, "arms": arms, "id": own, "key": key, "default": default}
        asked |= {} if k is None else {"k": k}
        try:
            made = Served(**self._call("POST", "/decisions", asked))
        except AwayError as error:
            if default is None:
                raise
            log.warning("decision %s is the default: %s", own, error)
            self._kept.add({**asked, "at": time.time()})
            if k is None:
                return Served(own, default, 1.0, {}, "fallback")
            places = [{"arm": arm, "probability": 1.0, "probabilities": {}} for arm in default]
            return Served(own, None, 1.0, {}, "fallback", places)
        with suppress(AwayError):
            self._send_some()  # some at a time: nobody waits long for a decision
        return made

    def send(self) -> int:
        """Send what was decided here while the service was away. Returns how many decisions the
        loop took. `decide`, `reward` and `close` call it, too."""
        sent = 0
        while self._kept:
            sent += self._send_some()
        return sent

    def _send_some(self) -> int:
        batch = self._kept.take()
        if not batch:
            return 0
        try:
            found = self._call("POST", "/records", {"decisions": batch})["decisions"]
        except AwayError:
            self._kept.put_back(batch)
            raise
        except ServiceError as error:
            log.error("%d decisions made here are refused: %s", len(batch), error)
            return 0
        refused = {k: each["problem"] for k, each in enumerate(found) if "problem" in each}
        for k, problem in refused.items():
            log.warning("decision %s is refused: %s", batch[k]["id"], problem["detail"])
        return len(batch) - len(refused)

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
        if id in self._kept:
            self.send()  # the decision comes first
        path, said = f"/decisions/{quote(id, '')}/reward", {"value": value, "position": position}
        return str(self._call("PUT", path, said)["outcome"])

    def cancel(self, id: str, *, position: int | None = None) -> str:
        """Say that a decision, or a position of a slate, was never shown."""
        if id in self._kept:
            self.send()
        query = "" if position is None else f"?position={position}"
        return str(self._call("DELETE", f"/decisions/{quote(id, '')}{query}")["outcome"])

    def declare(self, **declaration: Any) -> dict[str, Any]:
        """Make the loop, or check that it is what is declared here."""
        return self._call("PUT", "", declaration)

    def health(self) -> dict[str, Any]:
        """How the loop is doing."""
        return self._call("GET", "/health")

    def compare(self) -> dict[str, Any]:
        """How candidates stand, as `Loop.compare` says; `words` has it in sentences."""
        return self._call("GET", "/comparison")

    def promote(self, candidate: str, *, over: str | None = None, force: bool = False) -> str:
        """Let a candidate act, as `Loop.promote` does; returns who acts. Without proof it is a
        `ServiceError`, whose `problem["leads"]` says what is known."""
        asked = {"candidate": candidate, "over": over, "force": force}
        return str(self._call("POST", "/promotion", asked)["acts"])

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return self._wire.call(method, self._path + path, body)

    def close(self) -> None:
        """Send what is kept, and close all connections."""
        try:
            self.send()
        except AwayError as error:
            log.warning("%d decisions made here were not sent: %s", len(self._kept), error)
        self._wire.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
