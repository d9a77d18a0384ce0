"""The application: routes, gateway and loops put together, started and stopped."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from driftbandit import __version__
from driftbandit.service.api.loops import Service
from driftbandit.service.dashboard.live import LiveViews
from driftbandit.service.dashboard.page import dashboard
from driftbandit.service.fairness import Shares, Turns
from driftbandit.service.http.auth import ApiKeys, Authenticator, KeyAuthenticator, OpenAccess
from driftbandit.service.http.gateway import Gateway, Page, Receive, Scope, Send
from driftbandit.service.http.hosts import HostCheck
from driftbandit.service.http.openapi import document
from driftbandit.service.limits import Limits
from driftbandit.service.ops.metrics import Metrics
from driftbandit.service.ops.telemetry import Telemetry
from driftbandit.service.pool.batcher import Batcher
from driftbandit.service.pool.loop_pool import LoopPool, Opener
from driftbandit.service.routes import ROUTES

LOOK = 1.0  # seconds until loops that another service has left are found
THREADS = 4  # for what reads the ledger


class Application:
    """An ASGI application over the loops of a ledger; it opens them when it starts. `opener` and
    `authenticator` replace `Loop` and the stored API keys, for tests."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        open_access: bool = False,
        allowed_hosts: Sequence[str] = (),
        opener: Opener | None = None,
        authenticator: Authenticator | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._pool = LoopPool(os.fspath(path), *([] if opener is None else [opener]))
        shares = Shares()
        self._batcher = Batcher(self._pool, shares)
        self.views = LiveViews(self._pool, limits := limits or Limits())
        metrics, turns = Metrics(self._pool), Turns(shares)
        service = Service(self._pool, self._batcher, limits, metrics, self.views, turns)
        self._light, self._heavy = (ThreadPoolExecutor(n, "driftbandit api") for n in (THREADS, 1))
        own = OpenAccess() if open_access else KeyAuthenticator(ApiKeys(path))
        self._authenticator = authenticator or own
        hosts = HostCheck(allowed_hosts) if open_access or allowed_hosts else None
        pages, threads = _pages(open_access), (self._light, self._heavy)
        self._telemetry = telemetry
        self._gateway = Gateway(
            service, ROUTES, pages, self._authenticator, *threads, hosts, telemetry
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._gateway.answer(scope, receive, send)
            return
        assert (await receive())["type"] == "lifespan.startup"
        opening = asyncio.create_task(self._open_loops())  # /healthz answers meanwhile
        await send({"type": "lifespan.startup.complete"})
        await receive()
        opening.cancel()
        await self._close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _open_loops(self) -> None:
        """Open loops that are not open, again and again."""
        while True:
            await asyncio.to_thread(self._pool.open_all)
            await asyncio.sleep(LOOK)

    async def _close(self) -> None:
        stops: list[Callable[[], None]] = [self._light.shutdown, self._heavy.shutdown]
        stops += [self.views.close, self._batcher.close, self._pool.close]
        stops += [] if self._telemetry is None else [self._telemetry.close]
        for stop in (*stops, self._authenticator.close):
            await asyncio.to_thread(stop)


def _pages(open_access: bool) -> dict[str, Page]:
    """Pages that hold no data, so that they need no key."""
    text, policy = dashboard(open_access)
    described = msgspec.json.encode(document(ROUTES, __version__))
    return {
        "/": Page(text.encode(), "text/html; charset=utf-8", {"content-security-policy": policy}),
        "/openapi.json": Page(described, "application/json"),
    }
