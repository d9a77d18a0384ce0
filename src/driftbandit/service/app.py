"""The application: routes, door and loops put together."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from driftbandit import __version__
from driftbandit.service.api.loops import Service
from driftbandit.service.dashboard import page
from driftbandit.service.dashboard.live import Live
from driftbandit.service.http.auth import Keys, OpenDoor
from driftbandit.service.http.errors import RefusedError
from driftbandit.service.http.gateway import STRICT, Door, refused
from driftbandit.service.http.limits import Limits
from driftbandit.service.http.openapi import document
from driftbandit.service.ops.metrics import Metrics
from driftbandit.service.pool.batcher import Crowd
from driftbandit.service.pool.loop_pool import Loops
from driftbandit.service.routes import AS_TOML, ROUTES, Route

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOOK = 1.0  # seconds until loops that another service has left are found
THREADS = 4  # for what reads the ledger


def application(
    path: str | os.PathLike[str], *, limits: Limits | None = None, open_door: bool = False
) -> Starlette:
    """An ASGI application over the loops of a file; it opens them when it starts."""
    loops = Loops(os.fspath(path))
    limits = limits or Limits()
    crowd = Crowd(loops, limits.seconds)
    live = Live(loops, limits)
    service = Service(loops, crowd, limits, Metrics(loops), live)
    guard: Keys | OpenDoor = OpenDoor() if open_door else Keys(path)
    light, heavy = (ThreadPoolExecutor(n, "driftbandit service") for n in (THREADS, 1))
    door = Door(service, guard, light, heavy)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        running = asyncio.get_running_loop()
        looking = asyncio.create_task(_look(loops, light))  # /healthz answers meanwhile
        yield
        looking.cancel()
        for stop in (light.shutdown, heavy.shutdown, live.close, crowd.close, loops.close):
            await running.run_in_executor(None, stop)
        guard.close()

    paths = [Path(each.path, _handler(door, each), methods=[each.method]) for each in ROUTES]
    paths.append(Path("/openapi.json", _document()))
    paths.append(Path("/", _page(open_door)))
    made = Starlette(
        routes=paths,
        lifespan=life,
        middleware=[Middleware(AsSent)],
        exception_handlers={HTTPException: _unknown},
    )
    made.state.live = live
    return made


class AsSent:
    """Routes are found by the path as it was sent, where an encoded / separates nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("latin-1")}
        await self._app(scope, receive, send)


async def _look(loops: Loops, threads: ThreadPoolExecutor) -> None:
    """Open what is not open, again and again."""
    while True:
        await asyncio.get_running_loop().run_in_executor(threads, loops.look)
        await asyncio.sleep(LOOK)


Handler = Callable[[Request], Awaitable[Response]]


def _handler(door: Door, route: Route) -> Handler:
    decoder: dict[str, Any] | None = None
    if route.body is not None:
        decoder = {"application/json": msgspec.json.Decoder(route.body).decode}
    if route.body in AS_TOML:
        assert decoder is not None
        decoder["application/toml"] = partial(_from_toml, route.body)
    return partial(door.pass_through, route, decoder)


def _from_toml(kind: Any, raw: bytes) -> Any:
    return msgspec.convert(tomllib.loads(raw.decode()), kind)


def _document() -> Handler:
    """The OpenAPI document; it is no secret."""
    text = msgspec.json.encode(document(__version__))

    async def answer(_: Request) -> Response:
        return Response(text, 200, STRICT, "application/json")

    return answer


def _page(open_door: bool) -> Handler:
    """The dashboard; it holds no data, so anybody may have it."""
    text, policy = page.page(open_door)

    async def answer(_: Request) -> Response:
        return Response(text, 200, STRICT | {"content-security-policy": policy}, "text/html")

    return answer


PATHS = [(compile_path(route.path)[0], route.method) for route in ROUTES]


async def _unknown(request: Request, error: Exception) -> Response:
    """Paths and methods that are not in the table."""
    assert isinstance(error, HTTPException)
    detail = "there is nothing here: /openapi.json lists what there is"
    answer = refused(RefusedError(error.status_code, detail))
    if error.status_code == 405:
        found = {method for pattern, method in PATHS if pattern.match(request.scope["path"])}
        answer.headers["allow"] = ", ".join(sorted(found or {"GET"}))
    return answer
