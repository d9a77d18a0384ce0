"""The server: uvicorn with time-outs, a quiet log, and a stop that loses nothing."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftbandit.service.app import Application
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.http.hosts import is_loopback
from driftbandit.service.limits import Limits

log = logging.getLogger("driftbandit.service")
HEADERS = 10.0  # seconds for the head of a request to arrive
HEAD = 65_536  # bytes of a head, and what comes with its last part
LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"
CONNECTIONS = 1000
IDLE, STOP = 30, 10  # seconds: of a connection without requests; for requests under way


class JoinedWrites:
    """A transport that sends all writes of one step of the event loop at once: head and body of an
    answer are one system call, and one packet."""

    def __init__(self, transport: Any, call_soon: Callable[..., Any]) -> None:
        self._transport, self._call_soon = transport, call_soon
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class BoundedProtocol(HttpToolsProtocol):
    """Closes connections that do not send the head of a request in time, or a very long one."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(JoinedWrites(transport, self.loop.call_soon))  # type: ignore[arg-type]
        self._size = 0  # bytes of a head that is not complete
        self._since: float | None = self.loop.time()  # when that head began
        self._timer = self.loop.call_later(HEADERS, self._check)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._size = 0 if self._since is None else self._size + len(data)
        if self._size > HEAD and not self.transport.is_closing():
            self.transport.write(LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        if self._since is None:
            self._since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._since = None
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Close the connection if a head is late; one timer serves all requests of it."""
        left = HEADERS if self._since is None else self._since + HEADERS - self.loop.time()
        if left > 0.0:
            self._timer = self.loop.call_later(left, self._check)
        elif not self.transport.is_closing():
            self.transport.close()


class JsonFormatter(logging.Formatter):
    """Writes a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"at": round(record.created, 3), "level": record.levelname.lower()}
        line |= {"from": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def check_host(host: str, open_access: bool) -> None:
    """Raise if a service without keys would listen to other machines."""
    if open_access and not is_loopback(host):
        raise ValueError(
            f"--open and --demo are for this machine only, got the host {host!r}: use keys"
        )


def first_key(path: str) -> str | None:
    """Return a new key for a ledger that has none."""
    keys = ApiKeys(path)
    try:
        return None if keys.all() else keys.create("first", ["admin"])
    finally:
        keys.close()


def server(
    path: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 8100,
    limits: Limits | None = None,
    open_access: bool = False,
    allowed_hosts: Sequence[str] = (),
    certificate: str | None = None,
    private_key: str | None = None,
    **seams: Any,
) -> uvicorn.Server:
    """Return a server that is not started yet: `run()` serves until SIGINT or SIGTERM. `seams` are
    for tests, as `Application` has them."""
    check_host(host, open_access)
    app = Application(
        path, limits=limits, open_access=open_access, allowed_hosts=allowed_hosts, **seams
    )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=STOP,
        server_header=False,
        proxy_headers=False,
        access_log=False,
        log_config=None,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
    )
    made = uvicorn.Server(config)
    app.views.stopping = lambda: made.should_exit  # streams end before the server waits for them
    return made


def address(made: uvicorn.Server) -> str | None:
    """Return where a server listens, or None before it does."""
    if not (made.started and made.servers):
        return None
    host, port = made.servers[0].sockets[0].getsockname()[:2]
    scheme = "https" if made.config.is_ssl else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def log_to_stderr(level: str = "INFO") -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("driftbandit", "uvicorn"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(level)
