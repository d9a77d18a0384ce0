"""The gateway: an ASGI application that every request passes on its way in and out.

It finds the route, checks key, rate and size before it reads a body, waits until the loop is open,
calls the endpoint, and turns every error into problem+json.
"""

from __future__ import annotations

import asyncio
import inspect
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Executor
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple, get_args, get_type_hints
from urllib.parse import parse_qsl, unquote

import msgspec

from driftbandit.service.api.loops import Call, Reply, Service
from driftbandit.service.errors import MEDIA, RefusedError, headers, problem, without_path
from driftbandit.service.http.auth import Authenticator
from driftbandit.service.http.hosts import HostCheck
from driftbandit.service.limits import SMALL, Owner, RateLimiter, TooManyError, UnderWay
from driftbandit.service.ops.telemetry import Telemetry
from driftbandit.service.routes import AS_TOML, Route
from driftbandit.service.schema.messages import BatchResponse, Parts, ProblemDetails

Decoders = dict[str, Callable[[bytes], Any]]  # by media type
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
STRICT = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
JSON, TOML, EVENTS = "application/json", "application/toml", "text/event-stream"
SLOWED = 1.0  # seconds that a key waits for the answer that it asks too much
LONG = 1 << 16  # bytes of an answer that is waited for until it is read
CHARGED = 4096  # bytes of a body that count as one more call
PARAMETER = 0  # stands for a name in a path; parts of paths are text, so none is equal to it
encode = msgspec.json.Encoder().encode


class Endpoint(NamedTuple):
    """A route, and what can be known before the first request."""

    route: Route
    decoders: Decoders
    parameters: list[str]
    is_async: bool
    has_loop: bool
    part: Callable[[msgspec.Raw], Any] | None  # reads a decision of a batch
    takes_turn: bool  # with other requests of its key; not what is read for long


class Page(NamedTuple):
    """What is always the same: the dashboard's page and the OpenAPI document."""

    text: bytes
    media: str
    headers: Mapping[str, str] = MappingProxyType({})


class Gateway:
    """Answers requests for routes and pages. `light` and `heavy` run endpoints that are not
    asynchronous; `heavy` those that read much of a log, one after the other. `hosts` says which
    names and pages may ask; without it, all."""

    def __init__(
        self,
        service: Service,
        routes: tuple[Route, ...],
        pages: dict[str, Page],
        authenticator: Authenticator,
        light: Executor,
        heavy: Executor,
        hosts: HostCheck | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._hosts, self._telemetry = hosts, telemetry
        self._service, self._authenticator = service, authenticator
        self._light, self._heavy = light, heavy
        self._seconds = service.limits.seconds
        self._rates, self._under_way = RateLimiter(service.limits.rate), UnderWay(service.limits)
        self._shares, self._turns = service.turns.shares, service.turns
        self._pages = pages
        self._tree: dict[Any, Any] = {}
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node, words = self._tree, route.path.split("/")[1:]
        for word in words:
            node = node.setdefault(PARAMETER if word[0] == "{" else word, {})
        names = [word[1:-1] for word in words if word[0] == "{"]
        is_async = inspect.iscoroutinefunction(route.act)
        part = _part(route)
        takes_turn = not route.heavy and route.answers[0][1] != "stream"
        known = is_async, route.needs_loop, part, takes_turn
        endpoint = Endpoint(route, _decoders(route, part is not None), names, *known)
        node.setdefault(None, {})[route.method] = endpoint

    def find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str]]:
        """Return the endpoint of a path as it was sent, and the names in it. A / that is
        percent-encoded separates nothing."""
        node, values = self._tree, []
        for part in path.split("/")[1:]:
            if part in node:
                node = node[part]
            elif part and PARAMETER in node:
                node = node[PARAMETER]
                values.append(_decoded(part))
            else:
                raise _nothing()
        endpoints = node.get(None)
        if endpoints is None:
            raise _nothing()
        found = endpoints.get("GET" if method == "HEAD" else method)
        if found is None:
            raise NotAllowedError(sorted(endpoints))
        return found, dict(zip(found.parameters, values))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whatever happens."""
        held: list[tuple[Owner, int]] = []  # what counts as under way until the answer is sent
        try:
            await self._answer(scope, receive, send, held)
        finally:
            for each in held:
                self._under_way.leave(*each)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, held: list[tuple[Owner, int]]
    ) -> None:
        begun, route, answer = time.perf_counter(), None, None
        method, path = scope["method"], scope["raw_path"].decode("latin-1")
        try:
            if self._hosts is not None:
                self._hosts.check(dict(scope["headers"]))
            if path in self._pages and method in ("GET", "HEAD"):
                page = self._pages[path]
                return await _send(send, 200, page.text, page.media, page.headers)
            endpoint, names = self.find(method, path)
            route = endpoint.route
            answer, text = await self._reply(endpoint, names, scope, receive, held)
            status, _, media, more = answer
        except Exception as error:
            told, more = await self._refusal(error)
            status, text, media = told.status, told, MEDIA
            if route is not None and route.refusal is not None:
                status, text, media, _ = route.refusal(told, names.get("name", ""))
            text = encode(text)
        if route is not None:
            seconds = time.perf_counter() - begun
            self._service.metrics.count(route.method, route.path, status, seconds)
            if self._telemetry is not None:
                asked = dict(scope["headers"]), route.method, route.path, names.get("name")
                said = None if answer is None else answer.message
                self._telemetry.record(*asked, status, seconds, said)
        if isinstance(text, bytes):
            return await _send(send, status, text, media, more)
        try:
            async with asyncio.timeout(self._seconds if media == EVENTS else None):
                await _stream(receive, send, status, text, media)
        except TimeoutError:  # it is not read, or too slowly
            scope["connection"].abort()
            await _gone(receive)

    async def _refusal(self, error: Exception) -> tuple[ProblemDetails, dict[str, str]]:
        """Return an error as a problem, and headers; a key that asks too much waits for it."""
        if isinstance(error, TooManyError):
            await asyncio.sleep(min(error.seconds, SLOWED))
        told = problem(error)
        if told.status == 503:
            told.detail = without_path(told.detail, self._service.pool.path)
        more = headers(told.status) | getattr(error, "headers", {})
        return told, more

    async def _reply(
        self,
        endpoint: Endpoint,
        names: dict[str, str],
        scope: Scope,
        receive: Receive,
        held: list[tuple[Owner, int]],
    ) -> tuple[Reply, Any]:
        """Return an answer, and what is sent of it."""
        route, head = endpoint.route, dict(scope["headers"])
        loop: Any = None
        if route.role is None:
            reply = route.act(Call(self._service, names, {}, None, loop))
            return reply, encode(reply.message)
        header = head.get(b"authorization")
        key = self._authenticator.check(header and header.decode("latin-1"), route.role).name
        if (connection := scope.get("connection")) is not None:
            connection.admit(key)
        self._shares.note(key)
        self._rates.take(key)
        query, body, reading = _query(scope) if route.query else {}, None, False
        raw = b""
        try:
            async with asyncio.timeout(self._seconds):
                await self._turns.wait(key)
                if endpoint.has_loop:
                    loop = await self._service.pool.wait_for(names["name"])
                size = self._size(endpoint.decoders, head)
                if endpoint.takes_turn:
                    turn = (key, names.get("name", "")), size
                    await self._under_way.enter(*turn)
                    held.append(turn)
                if endpoint.decoders:
                    reading = True
                    raw, reading = await self._read(receive), False
                known = head.get(b"if-none-match")
                tag = None if known is None else known.decode("latin-1")
                with self._shares.under_way(key) if endpoint.takes_turn else nullcontext():
                    if endpoint.decoders:
                        body = await self._decoded(endpoint, head, raw, key)
                    call = Call(self._service, names, query, body, loop, key, tag, len(raw))
                    reply = await self._act(endpoint, call)
                    return reply, await self._encoded(reply, key)
        except TimeoutError:
            if reading:
                raise RefusedError(408, "the body took too long: send it at once") from None
            raise

    async def _act(self, endpoint: Endpoint, call: Call) -> Reply:
        route = endpoint.route
        if endpoint.is_async:
            return await route.act(call)
        threads = self._heavy if route.heavy else self._light
        return await asyncio.get_running_loop().run_in_executor(threads, route.act, call)

    def _size(self, decoders: Decoders, head: dict[bytes, bytes]) -> int:
        """Return how many bytes a body may have, before it is read."""
        if not decoders:
            return 0
        kind = _kind(head)
        if kind not in decoders:
            raise RefusedError(415, f"Content-Type must be {' or '.join(decoders)}, got {kind!r}")
        size = int(head.get(b"content-length", self._service.limits.body))
        self._service.limits.check_body(size)
        return size

    async def _decoded(
        self, endpoint: Endpoint, head: dict[bytes, bytes], raw: bytes, key: str
    ) -> Any:
        """Return the message in a body; what it holds counts for the rate of its key."""
        limits, calls = self._service.limits, 1
        if len(raw) > SMALL:
            await self._turns.wait(key, is_long=True)
        with self._shares.charged(key):
            limits.check_values(raw)
            body = endpoint.decoders[_kind(head)](raw)
        if endpoint.route.every_loop:
            calls = max(1, len(self._service.pool.names))
        if endpoint.part is not None:
            calls = len(body.decisions)
            limits.check_batch(body.decisions)
        self._rates.charge(key, max(calls, len(raw) // CHARGED) - 1)
        if endpoint.part is not None:
            body.decisions = await self._turns.each(key, endpoint.part, body.decisions)
        return body

    async def _encoded(self, reply: Reply, key: str) -> Any:
        """Return what is sent; a long list of decisions is written some at a time."""
        if reply.media != JSON:
            return reply.message
        if not isinstance(reply.message, BatchResponse):
            return encode(reply.message)
        parts = await self._turns.each(key, encode, reply.message.decisions)
        return b'{"decisions":[%b]}' % b",".join(parts)

    async def _read(self, receive: Receive) -> bytes:
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RefusedError(400, "the connection was closed")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._service.limits.check_body(size)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)


class NotAllowedError(RefusedError):
    """A path that has other methods."""

    def __init__(self, methods: list[str]) -> None:
        super().__init__(405, f"this path takes {', '.join(methods)}: /openapi.json lists all")
        self.headers = {"allow": ", ".join(methods)}


def _nothing() -> RefusedError:
    return RefusedError(404, "there is nothing here: /openapi.json lists what there is")


def _decoders(route: Route, is_batch: bool) -> Decoders:
    """Return what reads a body, by its type; the decisions of a batch are left as they are."""
    if route.body is None:
        return {}
    found: Decoders = {JSON: msgspec.json.Decoder(Parts if is_batch else route.body).decode}
    if route.body in AS_TOML:
        found[TOML] = lambda raw: msgspec.convert(tomllib.loads(raw.decode()), route.body)
    return found


def _part(route: Route) -> Callable[[msgspec.Raw], Any] | None:
    """Return what reads a decision of a batch, if the body is one."""
    if "decisions" not in getattr(route.body, "__struct_fields__", ()):
        return None
    (kind,) = get_args(get_type_hints(route.body)["decisions"])
    decode, where = msgspec.json.Decoder(kind).decode, "`$.decisions[...]"

    def read(raw: msgspec.Raw) -> Any:
        try:
            return decode(raw)
        except msgspec.ValidationError as error:
            told = str(error).replace("`$", where, 1)
            told += "" if where in told else f" - at {where}`"
            raise msgspec.ValidationError(told) from None

    return read


def _kind(head: dict[bytes, bytes]) -> str:
    """Return the media type of a body. None is no JSON: a page may send such a body to any server,
    without asking it first."""
    sent = head.get(b"content-type", b"").decode("latin-1")
    return sent if sent in (JSON, TOML) else sent.partition(";")[0].strip()


def _decoded(part: str) -> str:
    if "%" not in part and part.isascii():
        return part
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise RefusedError(400, "names in a path must be UTF-8, percent-encoded") from None


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


FIXED = _encoded(STRICT)


async def _send(
    send: Send, status: int, text: bytes, media: str, more: Mapping[str, str] | None = None
) -> None:
    head = [(b"content-type", media.encode()), (b"content-length", b"%d" % len(text))]
    head += _encoded({**STRICT, **more}) if more else FIXED
    await send({"type": "http.response.start", "status": status, "headers": head})
    if len(text) > LONG:  # it counts as under way until it is read
        await send({"type": "http.response.body", "body": text, "more_body": True})
        text = b""
    await send({"type": "http.response.body", "body": text})


async def _stream(
    receive: Receive, send: Send, status: int, parts: AsyncIterator[bytes], media: str
) -> None:
    """Send parts until they end or the client has gone."""
    head = [(b"content-type", media.encode()), *FIXED]
    await send({"type": "http.response.start", "status": status, "headers": head})
    tasks = [asyncio.ensure_future(each) for each in (_parts(send, parts), _gone(receive))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _parts(send: Send, parts: Any) -> None:
    try:
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await parts.aclose()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
