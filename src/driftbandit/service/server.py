"""The server: uvicorn with time-outs, a quiet log, and a stop that loses nothing."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from driftbandit.service.app import Application
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.http.connections import BoundedProtocol, Slots
from driftbandit.service.http.hosts import is_loopback
from driftbandit.service.limits import Limits
from driftbandit.service.ops.telemetry import Telemetry

log = logging.getLogger("driftbandit.service")
CONNECTIONS = 1000
NEW = 16  # connections that are accepted in one step of the event loop
WAITING = 1024  # connections that wait to be accepted
IDLE, STOP = 30, 10  # seconds: of a connection without requests; for requests under way
LAST = 25.0  # seconds after which a process that was told to stop ends, whatever it waits for


class Server(uvicorn.Server):
    """A server that ends in time: if a database or a client holds it up after SIGTERM or Ctrl-C,
    the process ends all the same. What was acknowledged is in the ledger."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; more connections may wait in the system than are accepted in one step."""
        await super().startup(sockets)
        for each in self.servers:
            for listening in each.sockets:
                with listening.dup() as same:
                    same.listen(WAITING)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            end = threading.Timer(LAST, _end)
            end.daemon = True
            end.start()
        super().handle_exit(sig, frame)


def _end() -> None:
    log.error("not stopped after %d seconds, so the process ends: the ledger has it all", LAST)
    os._exit(1)


def connections() -> int:
    """Return how many connections there may be at once; half of the files of this process."""
    try:
        import resource  # not on Windows
    except ImportError:
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    wanted = 4 * CONNECTIONS if hard == endless else min(hard, 4 * CONNECTIONS)
    if soft != endless and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return CONNECTIONS if soft == endless else min(CONNECTIONS, soft // 2)


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
        raise ValueError(f"--open is for this machine only, got the host {host!r}: use keys")


def check_port(host: str, port: int) -> None:
    """Raise if the service could not listen there, before anything is made."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        if os.name == "posix":
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as asyncio does
        try:
            tried.bind((host, port))
        except OSError as error:
            raise ValueError(
                f"port {port} of {host} cannot be used ({error.strerror}): "
                "choose another with --port, or --port 0 for a free one"
            ) from None


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
    telemetry: Telemetry | None = None,
    **seams: Any,
) -> uvicorn.Server:
    """Return a server that is not started yet: `run()` serves until SIGINT or SIGTERM. `seams` are
    for tests, as `Application` has them."""
    check_host(host, open_access)
    app = Application(
        path,
        limits=limits,
        open_access=open_access,
        allowed_hosts=allowed_hosts,
        telemetry=telemetry,
        **seams,
    )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=partial(BoundedProtocol, Slots(connections())),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        backlog=NEW,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=STOP,
        server_header=False,
        proxy_headers=False,
        access_log=False,
        log_config=None,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
    )
    made = Server(config)
    app.views.stopping = lambda: made.should_exit  # streams end before the server waits for them
    return made


def address(made: uvicorn.Server) -> str | None:
    """Return where a server listens, or None before it does."""
    if not (made.started and made.servers):
        return None
    host, port = made.servers[0].sockets[0].getsockname()[:2]
    scheme = "https" if made.config.is_ssl else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def log_to_stderr(level: str = "INFO", lines: logging.Formatter | None = None) -> None:
    """Write log lines of the service, as JSON unless `lines` has another form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(lines or JsonFormatter())
    for name in ("driftbandit", "uvicorn"):
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(level)
