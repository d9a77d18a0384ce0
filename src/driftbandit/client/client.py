"""The client of a decision service. It needs only Python's standard library.

It retries failed calls, and falls back to the default arm if the service is unreachable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from driftbandit.client.errors import ServiceError as ServiceError
from driftbandit.client.errors import UnreachableError as UnreachableError
from driftbandit.client.exchange import Exchange, Steps, resumed
from driftbandit.client.exchange import ServedDecision as ServedDecision
from driftbandit.client.transport import Transport

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    call: Callable[Concatenate[Exchange, P], Steps[T]],
) -> Callable[Concatenate[Client, P], T]:
    """Return a call as a method that waits for its answers."""

    @wraps(call)
    def method(self: Client, /, *given: P.args, **options: P.kwargs) -> T:
        return self._play(call(self._exchange, *given, **options))

    return method


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
        self._exchange = Exchange(loop)
        self._transport = Transport(url, api_key, timeout)

    decide = _blocking(Exchange.decide)
    send = _blocking(Exchange.send)
    decide_many = _blocking(Exchange.decide_many)
    reward = _blocking(Exchange.reward)
    prefer = _blocking(Exchange.prefer)
    cancel = _blocking(Exchange.cancel)
    metric = _blocking(Exchange.metric)
    add_arm = _blocking(Exchange.add_arm)
    pause_arm = _blocking(Exchange.pause_arm)
    resume_arm = _blocking(Exchange.resume_arm)
    retire_arm = _blocking(Exchange.retire_arm)
    declare = _blocking(Exchange.declare)
    health = _blocking(Exchange.health)
    compare = _blocking(Exchange.compare)
    promote = _blocking(Exchange.promote)

    def _play(self, steps: Steps[T]) -> T:
        """Send what a call asks for, and return what it makes of the answers."""
        answer: Any = None
        while True:
            try:
                ask = resumed(steps, answer)
            except StopIteration as done:
                return done.value
            try:
                answer = self._transport.call(*ask)
            except (ServiceError, UnreachableError) as error:
                answer = error

    def close(self) -> None:
        """Send what is left, and close all connections."""
        self._play(self._exchange.finish())
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
