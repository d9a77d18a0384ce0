"""The door: what every request passes on its way in and out."""

from __future__ import annotations

import asyncio
import inspect
import time
from concurrent.futures import Executor
from typing import Any, Protocol
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from driftbandit.service.api.loops import Call, Reply, Service
from driftbandit.service.http.auth import Key
from driftbandit.service.http.errors import MEDIA, RefusedError, headers, problem
from driftbandit.service.http.limits import Buckets
from driftbandit.service.routes import Route

STRICT = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
write = msgspec.json.Encoder().encode


class Guard(Protocol):
    """Who may come in."""

    def check(self, header: str | None, role: str) -> Key: ...


class Door:
    """Key, rate and size are checked before a body is read; errors become problem+json."""

    def __init__(self, service: Service, guard: Guard, light: Executor, heavy: Executor) -> None:
        self._service, self._guard, self._light, self._heavy = service, guard, light, heavy
        self._buckets = Buckets(service.limits.rate)

    async def pass_through(self, route: Route, decoder: Any, request: Request) -> Response:
        """Answer a request, whatever happens."""
        begun = time.perf_counter()
        try:
            reply = await self._answer(route, decoder, request)
            response = _response(reply)
        except ClientDisconnect:
            response = refused(RefusedError(400, "the connection was closed"))
        except Exception as error:
            response = refused(error)
        seconds = time.perf_counter() - begun
        self._service.metrics.count(route.method, route.path, response.status_code, seconds)
        return response

    async def _answer(self, route: Route, decoder: Any, request: Request) -> Reply:
        if route.role is not None:
            who = self._guard.check(request.headers.get("authorization"), route.role)
            self._buckets.take(who.name)
        body = await self._body(decoder, request) if decoder else None
        query = dict(request.query_params) if route.query else {}
        path = {name: _decoded(part) for name, part in request.path_params.items()}
        call = Call(self._service, path, query, body)
        if route.role is None:
            return route.act(call)
        if inspect.iscoroutinefunction(route.act):
            return await route.act(call)
        threads = self._heavy if route.heavy else self._light
        running = asyncio.get_running_loop().run_in_executor(threads, route.act, call)
        return await asyncio.wait_for(running, self._service.limits.seconds)

    async def _body(self, decoder: Any, request: Request) -> Any:
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
        if kind not in decoder:
            raise RefusedError(415, f"send {' or '.join(decoder)}, got {kind!r}")
        try:
            raw = await asyncio.wait_for(self._read(request), self._service.limits.seconds)
        except asyncio.TimeoutError:
            raise RefusedError(408, "the body took too long: send it at once") from None
        return decoder[kind](raw)

    async def _read(self, request: Request) -> bytes:
        most, parts, size = self._service.limits.body, [], 0
        if int(request.headers.get("content-length", "0")) > most:
            raise RefusedError(413, f"a body has at most {most} bytes: send less")
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise RefusedError(413, f"a body has at most {most} bytes: send less")
            parts.append(part)
        return b"".join(parts)


def _decoded(part: str) -> str:
    """A part of a path, such as an id: routes are found before it is decoded, so a / that is
    percent-encoded belongs to it."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise RefusedError(400, "names in a path must be UTF-8, percent-encoded") from None


def _response(reply: Reply) -> Response:
    if reply.media == "application/json":
        return Response(write(reply.message), reply.status, STRICT, reply.media)
    if isinstance(reply.message, bytes):
        return Response(reply.message, reply.status, STRICT, reply.media)
    return StreamingResponse(reply.message, reply.status, STRICT, reply.media)


def refused(error: Exception) -> Response:
    """A problem as an answer."""
    told = problem(error)
    return Response(write(told), told.status, STRICT | headers(told.status), MEDIA)
