"""`driftbandit serve`, `demo`, `mcp`, `api-keys`, `backup`, `verify`, `erase` and `repair`."""

from __future__ import annotations

import gc
import logging
import sys
import tempfile
import threading
import time
import webbrowser
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from driftbandit.estimators.formatting import plural

TURN = 0.0005  # seconds after which a thread that computes gives way to one that has a request
# When Python looks for cycles. A look at all objects stops every thread for a tenth of a second and
# more, and hostile requests cause many; by these numbers it is rare, and leaves out the modules.
COLLECTED = 700, 10, 1000

Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes a free one.")]
Ledger = Annotated[str, typer.Argument(help="The ledger, as shop.db or postgresql://.")]
Name = Annotated[str, typer.Option(metavar="NAME", help="Name of the loop.")]


class Plain:
    """Help without types of Python: FILE, --port N and --quick, not {file} <str>, --port
    <int range> and --quick <bool>."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in found:
            if param.param_type_name == "argument":
                param.display_type_rich = lambda ctx: None  # its name says what it is
                param.metavar = param.metavar or param.name.upper()
            elif param.is_flag and param.metavar is None:
                param.metavar = ""
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.strip("{}") for piece in pieces]


class PlainCommand(Plain, TyperCommand):
    """A command with such options."""


class PlainGroup(Plain, TyperGroup):
    """A group of commands with such options."""


api_keys = typer.Typer(
    help="Create, list and revoke API keys for programs that call a service.",
    no_args_is_help=True,
)


def serve(
    file: Annotated[
        str, typer.Argument(help="The ledger, as shop.db or postgresql://; made if new.")
    ],
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Port = 8100,
    open_access: Annotated[
        bool, typer.Option("--open", help="Without keys; on this machine only.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Answer only to this host name (with --open also to localhost); repeat it.",
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option(metavar="N", help="Most calls per second with one API key.")
    ] = 5000.0,
    body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Largest request.")] = 1_000_000,
    arms: Annotated[int, typer.Option(min=1, metavar="N", help="Most arms in a decision.")] = 1000,
    certificate: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, metavar="FILE", help="TLS certificate (PEM)."),
    ] = None,
    private_key: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, metavar="FILE", help="Key of the certificate (PEM)."
        ),
    ] = None,
    telemetry: Annotated[
        bool,
        typer.Option("--telemetry", help="Send OpenTelemetry traces; OTEL_* variables say where."),
    ] = False,
) -> None:
    """Serve the loops of a ledger over HTTP, with a dashboard."""
    _needed()
    from driftbandit.service import server
    from driftbandit.service.limits import Limits

    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "allowed_hosts": allow_host or (),
        "limits": Limits(rate=rate, body=body, arms=arms),
        "certificate": _text(certificate),
        "private_key": _text(private_key),
    }
    server.check_host(host, open_access)
    server.check_port(host, port)
    if not open_access and (token := server.first_key(file)):
        print(f"first API key, with the role admin; it is shown only now: {token}", flush=True)
    server.log_to_stderr()
    if telemetry:
        from driftbandit.service.ops.telemetry import Telemetry

        options["telemetry"] = Telemetry()
    _run(server.server(file, open_access=open_access, **options))


def demo(
    minutes: Annotated[
        float, typer.Option(min=0.01, metavar="N", help="Minutes until it ends by itself.")
    ] = 5.0,
    port: Port = 8100,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            show_default=False,
            help="Open the dashboard in a browser, which it does only from a terminal.",
        ),
    ] = True,
) -> None:
    """Run a simulated shop whose visitors change their tastes, with its dashboard."""
    _needed()
    from driftbandit.service import server
    from driftbandit.service.ops import demo as shop

    server.check_port("127.0.0.1", port)
    server.log_to_stderr("WARNING", logging.Formatter("%(message)s"))  # for a person, not a program
    logging.getLogger("driftbandit.loop").setLevel("ERROR")  # the page shows its concerns
    with tempfile.TemporaryDirectory() as folder:
        made = server.server(Path(folder) / "demo.db", open_access=True, port=port)

        def send_visitors() -> None:
            look = (lambda: server.address(made)), (lambda: made.should_exit)
            show = webbrowser.open if browser and sys.stdout.isatty() else lambda url: None
            try:
                mark = made.config.app.views.happened.append  # type: ignore[union-attr]
                shop.run(*look, seconds=60.0 * minutes, opened=show, happened=mark)
            finally:
                made.should_exit = True  # the time is over

        visitors = threading.Thread(target=send_visitors)
        visitors.start()
        try:
            _run(made)
        finally:
            made.should_exit = True  # also if it could not start
            visitors.join()
        print("the demo has ended", flush=True)


def mcp(file: Ledger) -> None:
    """Offer the loops of a ledger to assistants as tools, by the Model Context Protocol."""
    from driftbandit.mcp_server import Loops, server

    loops = Loops(file)
    try:
        server(loops).run()  # until its input ends
    finally:
        loops.close()


def _run(made: Any) -> None:
    sys.setswitchinterval(TURN)
    gc.freeze()
    gc.set_threshold(*COLLECTED)
    try:
        made.run()
    except KeyboardInterrupt:
        return  # uvicorn has stopped by then, and loops are closed


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def backup(
    file: Annotated[str, typer.Argument(help="The ledger, an SQLite file.")],
    copy: Annotated[Path, typer.Argument(help="The new file.")],
) -> None:
    """Copy a ledger while it is in use. To restore it, copy the other way round."""
    from driftbandit.service.ops import backup as backups

    size = backups.backup(file, copy)
    print(f"{copy}: {size:,} bytes, checked")


def erase(
    file: Ledger,
    key: Annotated[str, typer.Argument(help="The key= of the decisions to erase.")],
    name: Name = "loop",
    relearn: Annotated[
        bool, typer.Option("--relearn", help="Train the learner again without them.")
    ] = False,
) -> None:
    """Erase everything that was logged about a key.

    The loop must not be open elsewhere; a service has a route for it."""
    with opened_loop(file, name) as loop:
        gone = loop.erase(key=key, relearn=relearn)
    word = "trained again without them" if gone.relearned else "as it was"
    print(
        f"{plural(gone.events, 'event')} of {plural(gone.decisions, 'decision')} erased; "
        f"the learner is {word}"
    )


def repair(
    file: Ledger,
    name: Name = "loop",
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The time now, as 2026-11-18T12:00Z; only for loops with clock='events'.",
        ),
    ] = None,
) -> None:
    """Correct the clock of a loop after the machine's clock was wrong.

    The loop must not be open elsewhere; a service has a route for it."""
    with opened_loop(file, name) as loop:
        when = loop.repair(None if at is None else _moment(at))
    date = f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M:%S}"
    print(f"the clock of loop {name!r} is at {date} UTC")


def opened_loop(file: str, name: str) -> Any:
    """Open a loop that is there."""
    from driftbandit.loop.loop import Loop
    from driftbandit.loop.storage.store import is_url

    if not (is_url(file) or Path(file).exists()):
        raise ValueError(f"{file!r} does not exist: check the name")
    return Loop(file, name=name)


def _moment(text: str) -> Any:
    """Return a number of seconds, or a date."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--at is seconds since the epoch or a date such as 2026-11-18T12:00Z, got {text!r}"
        ) from None


def verify(
    file: Ledger,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of a loop; default all of them.")
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="HEAD", help="A head that verify or health showed before: 1234:9f2c..."
        ),
    ] = None,
) -> None:
    """Check that no stored event was edited, removed or, with --head, cut off at the end."""
    from driftbandit.loop.reporting.verification import verify as verified

    found = verified(file, name, head)
    print(*found, sep="\n")
    if not all(each.holds for each in found):
        raise typer.Exit(1)


@api_keys.command(cls=PlainCommand)
def create(
    file: Ledger,
    name: Annotated[str, typer.Argument(help="Name of the program that uses it.")],
    role: Annotated[
        list[str], typer.Option(metavar="ROLE", help="decide, reward, read or admin; repeat it.")
    ],
) -> None:
    """Create a key and show it once."""
    print(_keys(file, new=True).create(name, role))


@api_keys.command(cls=PlainCommand)
def revoke(
    file: Ledger, name: Annotated[str, typer.Argument(help="Name of the program that uses it.")]
) -> None:
    """Revoke a key. Takes effect within a second."""
    _keys(file).revoke(name)


@api_keys.command("list", cls=PlainCommand)
def show(file: Ledger) -> None:
    """List all keys, without their secrets."""
    for key in _keys(file).all().values():
        day = time.strftime("%Y-%m-%d", time.gmtime(key.made))
        print(f"{key.name:<40} {' '.join(key.roles):<30} {day}")


def _keys(file: str, *, new: bool = False) -> Any:
    _needed()
    from driftbandit.loop.storage.store import is_url
    from driftbandit.service.http.auth import ApiKeys

    if not (new or is_url(file) or Path(file).exists()):
        raise ValueError(f"{file!r} does not exist: check the name")

    return ApiKeys(file)


def _needed() -> None:
    try:
        import httptools  # noqa: F401
        import msgspec  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{error.name} is missing: install the service with pip install 'driftbandit[service]'"
        ) from None
