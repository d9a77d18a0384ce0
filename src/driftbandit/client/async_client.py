"""The client of a decision service for asyncio. It needs httpx (the extra `async`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from driftbandit.client.errors import ServiceError, UnreachableError
from driftbandit.client.exchange import Ask, Exchange, Steps, resumed
from driftbandit.client.transport import Address, Attempts

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    call: Callable[Concatenate[Exchange, P], Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return a call as a coroutine method."""

    @wraps(call)
    async def method(self: AsyncClient, /, *given: P.args, **options: P.kwargs) -> T:
        return await self._play(call(self._exchange, *given, **options))

    return method


class AsyncClient:
    """One loop of a service, for asyncio: the calls of `Client`, each to be awaited.

    Tasks of one event loop may share it. Ids, retries, the default while the service is
    unreachable, and what is sent once it is back are those of `Client`.

    ```
    async with AsyncClient(url, "news") as client:
        decision = await client.decide({"age": 30}, key="ann", default="a")
        await client.reward(decision.id, 1)
    ```
    """

    def __init__(self, url: str, loop: str, *, api_key: str | None = None, timeout: float = 2.0):
        self._address = Address(url, api_key, timeout)
        self._exchange = Exchange(loop)
        self._http = _httpx().AsyncClient(headers=self._address.headers, trust_env=False)

    decide = _awaited(Exchange.decide)
    send = _awaited(Exchange.send)
    decide_many = _awaited(Exchange.decide_many)
    reward = _awaited(Exchange.reward)
    prefer = _awaited(Exchange.prefer)
    cancel = _awaited(Exchange.cancel)
    metric = _awaited(Exchange.metric)
    add_arm = _awaited(Exchange.add_arm)
    pause_arm = _awaited(Exchange.pause_arm)
    resume_arm = _awaited(Exchange.resume_arm)
    retire_arm = _awaited(Exchange.retire_arm)
    declare = _awaited(Exchange.declare)
    health = _awaited(Exchange.health)
    compare = _awaited(Exchange.compare)
    promote = _awaited(Exchange.promote)

    async def _play(self, steps: Steps[T]) -> T:
        """Send what a call asks for, and return what it makes of the answers."""
        answer: Any = None
        while True:
            try:
                ask = resumed(steps, answer)
            except StopIteration as done:
                return done.value
            try:
                answer = await self._answer(ask)
            except (ServiceError, UnreachableError) as error:
                answer = error

    async def _answer(self, ask: Ask) -> dict[str, Any]:
        """Send a request, and repeat it while there is time: that changes nothing."""
        attempts, raw = Attempts(self._address), self._address.raw(ask.body)
        while (left := attempts.left) > 0.0:
            try:
                async with asyncio.timeout(left):
                    url = self._address.base + ask.path
                    found = await self._http.request(ask.method, url, content=raw, timeout=None)
                if attempts.accepts(found.status_code, answer := found.json()):
                    return answer
            except (_httpx().HTTPError, TimeoutError, json.JSONDecodeError) as error:
                attempts.failed(error)
            await asyncio.sleep(attempts.pause())
        raise attempts.given_up()

    async def close(self) -> None:
        """Send what is left, and close all connections."""
        await self._play(self._exchange.finish())
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise ImportError("AsyncClient needs httpx: pip install 'driftbandit[async]'") from None
    return httpx
