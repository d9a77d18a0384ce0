"""What a client says to a service, and what it makes of the answers: the same for `Client` and
`AsyncClient`, which only differ in how they wait.

A method is a generator. It yields requests, is sent their answers, and returns its result; an
answer that is an error is thrown into it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from driftbandit.client.errors import ServiceError, UnreachableError
from driftbandit.client.outbox import Outbox
from driftbandit.ids import new_id

log = logging.getLogger("driftbandit.client")
T = TypeVar("T")


class Ask(NamedTuple):
    """A request: its body is what becomes JSON."""

    method: str
    path: str
    body: Any = None


Steps = Generator[Ask, dict[str, Any], T]


def resumed(steps: Steps[T], answer: Any) -> Ask:
    """Return what a call asks for next, once it has its answer, or the error in its place."""
    return steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)


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


class Exchange:
    """The calls of one loop, and its fallback decisions until they are sent."""

    def __init__(self, loop: str) -> None:
        self._path = f"/v1/loops/{quote(loop, '')}"
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
    ) -> Steps[ServedDecision]:
        """Choose among arms, or k of them, as `Loop.decide` does. If the service is unreachable,
        return the `default`, and tell the loop later (`send`); without a default, raise."""
        own = new_id() if id is None else id
        asked = {"context": context, "arms": arms, "id": own, "key": key, "default": default}
        asked |= {} if k is None else {"k": k}
        try:
            made = ServedDecision(**(yield from self._call("POST", "/decisions", asked)))
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
            yield from self._send_some()  # some at a time, so that no decision waits for all
        return made

    def send(self) -> Steps[int]:
        """Send fallback decisions to the loop, and return how many it took. `decide`, `reward` and
        `close` call it, too."""
        sent = 0
        while self._outbox:
            sent += yield from self._send_some()
        return sent

    def _send_some(self) -> Steps[int]:
        batch = self._outbox.take()
        if not batch:
            return 0
        try:
            found = (yield from self._call("POST", "/records", {"decisions": batch}))["decisions"]
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
    ) -> Steps[list[ServedDecision | ServiceError]]:
        """Make many decisions in one request, each with `context`, `arms` and what else `decide`
        takes; in place of one that is refused stands the error."""
        batch = [{"id": new_id(), **each} for each in asked]
        found = (yield from self._call("POST", "/batches", {"decisions": batch}))["decisions"]
        return [
            ServedDecision(**each["decision"])
            if "decision" in each
            else ServiceError(each["problem"])
            for each in found
        ]

    def reward(self, id: str, value: float, *, position: int | None = None) -> Steps[str]:
        """Send the reward of a decision, or of a position of a slate; return what became of it, as
        `Loop.reward` does."""
        if id in self._outbox:
            yield from self.send()  # the decision comes first
        path, said = f"/decisions/{quote(id, '')}/reward", {"value": value, "position": position}
        return str((yield from self._call("PUT", path, said))["outcome"])

    def prefer(self, id: str, other: int | str) -> Steps[str]:
        """Say which of two arms was better, as `Loop.prefer` does. Of a decision with k=2, `other`
        is the position of the better arm, 0 or 1; of two decisions, the id of the worse one."""
        if id in self._outbox or other in self._outbox:
            yield from self.send()
        path = f"/decisions/{quote(id, '')}/preference"
        said = {"over" if isinstance(other, str) else "position": other}
        return str((yield from self._call("PUT", path, said))["outcome"])

    def cancel(self, id: str, *, position: int | None = None) -> Steps[str]:
        """Mark a decision, or a position of a slate, as never shown."""
        if id in self._outbox:
            yield from self.send()
        query = "" if position is None else f"?position={position}"
        return str(
            (yield from self._call("DELETE", f"/decisions/{quote(id, '')}{query}"))["outcome"]
        )

    def metric(
        self, id: str, name: str, value: float, *, position: int | None = None
    ) -> Steps[str]:
        """Record another number about a decision, such as its cost; returns "recorded", or
        "unknown" if the loop has no such decision."""
        if id in self._outbox:
            yield from self.send()
        path = f"/decisions/{quote(id, '')}/metrics/{quote(name, '')}"
        said = {"value": value, "position": position}
        return str((yield from self._call("PUT", path, said))["outcome"])

    def add_arm(self, name: str, columns: Mapping[str, Any] | None = None) -> Steps[None]:
        """Add an arm to the catalogue of the loop, or give it other columns."""
        yield from self._call("PUT", f"/arms/{quote(name, '')}", {"columns": columns or {}})

    def pause_arm(self, name: str) -> Steps[None]:
        """Pause an arm: decisions that name it choose among the others."""
        yield from self._call("PATCH", f"/arms/{quote(name, '')}", {"paused": True})

    def resume_arm(self, name: str) -> Steps[None]:
        """Offer a paused arm again."""
        yield from self._call("PATCH", f"/arms/{quote(name, '')}", {"paused": False})

    def retire_arm(self, name: str) -> Steps[None]:
        """Remove an arm from the catalogue of the loop."""
        yield from self._call("DELETE", f"/arms/{quote(name, '')}")

    def declare(self, /, **declaration: Any) -> Steps[dict[str, Any]]:
        """Declare the loop, or check that it was declared like this."""
        return (yield from self._call("PUT", "", declaration))

    def health(self) -> Steps[dict[str, Any]]:
        """Return how the loop is doing."""
        return (yield from self._call("GET", "/health"))

    def compare(self) -> Steps[dict[str, Any]]:
        """Compare candidates, as `Loop.compare` does; `words` has the same in sentences."""
        return (yield from self._call("GET", "/comparison"))

    def promote(
        self,
        candidate: str,
        *,
        expected_live: str | None = None,
        force: bool = False,
        not_worse: Mapping[str, float] | None = None,
    ) -> Steps[str]:
        """Promote a candidate, as `Loop.promote` does; return the policy that acts. Without proof
        it is a `ServiceError`, whose `problem["leads"]` has what is known."""
        asked: dict[str, Any] = {"candidate": candidate, "expected_live": expected_live}
        asked |= {"force": force, "not_worse": None if not_worse is None else dict(not_worse)}
        return str((yield from self._call("POST", "/promotion", asked))["acts"])

    def finish(self) -> Steps[None]:
        """Send what is left, if the service can be reached."""
        try:
            yield from self.send()
        except UnreachableError as error:
            log.warning("%d fallback decisions were not sent: %s", len(self._outbox), error)

    def _call(self, method: str, path: str, body: Any = None) -> Steps[dict[str, Any]]:
        return (yield Ask(method, self._path + path, body))
