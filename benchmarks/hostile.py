"""An honest key beside a hostile one, and beside idle connections: `make bench-hostile`.

The service is a process of its own, and so is every attack, on loopback. Calm and attacked times
take turns, so that both meet the same machine. The figure is the honest key's 99 % time under
attack over its calm one. A process that only computes is a control: what the machine's part is.
Exit status 1 if a figure is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.tables import report
from driftbandit import Client
from driftbandit.service.http.auth import ApiKeys

EVERY = 0.01  # seconds from one honest request to the next
UNREAD = 30.0  # seconds that an answer is left unread
SWING = 4.0  # seconds from the start of an attack to the first look
HOSTILE, IDLE = 10.0, 3.0  # times the calm value, at most
DECLARED = {
    "features": {
        "context": {"age": {"type": "Number", "low": 18, "high": 90}},
        "arm": {"topic": {"type": "Category", "values": [f"t{k}" for k in range(20)]}},
    },
    "reward": {"low": 0, "high": 1, "wait": "30min", "missing": 0},
    "policy": "DOMD",
    "exploration": 0.1,
}
ARMS = {f"arm {k}": {"topic": f"t{k}"} for k in range(20)}
ASKED = {"context": {"age": 31}, "arms": ARMS, "default": "arm 1"}


class Attack(NamedTuple):
    """What hostile connections send again and again; `reads` tells whether they read answers."""

    connections: int
    make: Callable[[], list[bytes]]
    reads: bool = True


def http(method: str, path: str, body: object = None, raw: bytes | None = None) -> bytes:
    """A request, without its key."""
    data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json"
    return f"{head}\r\ncontent-length: {len(data)}\r\nKEY\r\n\r\n".encode() + data


def decide(body: object = None, raw: bytes | None = None, loop: str = "shop") -> bytes:
    return http("POST", f"/v1/loops/{loop}/decisions", body, raw)


def batch(decisions: list[object]) -> bytes:
    return http("POST", "/v1/loops/shop/batches", {"decisions": decisions})


def batches() -> list[bytes]:
    few = {"context": {"age": 31}, "arms": {str(k): {} for k in range(50)}}
    return [batch([few] * 1000)]


def slates() -> list[bytes]:
    arms = {str(k): {} for k in range(1000)}
    return [decide({"context": {}, "arms": arms, "k": 10})]


def floods() -> list[bytes]:
    return [decide(ASKED)]


def poison() -> list[bytes]:
    """Deep values, ids that are used again, names that are nearly right, in batches."""
    deep = b'{"context":{"x":' + b"[" * 600 + b"]" * 600 + b'},"arms":{},"default":"a","id":"x"}'
    names = {f"{'ab' * 18}{k:03}": {} for k in range(20)}
    wrong = {"context": {"age": 31}, "arms": names, "default": "ba" * 19}
    return [decide(raw=deep), decide(ASKED | {"id": "same"}), batch([wrong] * 700)]


def junk() -> list[bytes]:
    """Large bodies that hold nothing, or much."""
    return [decide(raw=b"[" + b"{}," * 330_000 + b"{}]"), decide(raw=b" " * 999_000 + b"{}"),
            decide({"context": {"x": [1] * 300_000}, "arms": ARMS})]  # fmt: skip


def strangers() -> list[bytes]:
    """Loops that there are not, paths that there are not, decisions to cancel."""
    return [decide(ASKED, loop=f"no{k}") for k in range(20)] + [
        http("GET", "/v1/nothing"), http("DELETE", "/v1/loops/shop/decisions/none")]  # fmt: skip


ATTACKS = {
    "batches of 1000": Attack(24, batches),
    "slates, 10 of 1000 arms": Attack(16, slates),
    "400 connections that decide": Attack(400, floods),
    "poisoned requests": Attack(24, poison),
    "bodies of a megabyte": Attack(24, junk),
    "unknown loops": Attack(100, strangers),
    "answers that are not read": Attack(200, batches, reads=False),
}
NO_KEY = "999 idle connections"
MACHINE = "a process that only computes"  # it asks nothing: what the machine's part is


async def attack(port: int, name: str, key: str) -> None:
    """Send until the process is ended; a connection that was closed is opened again."""
    while name == MACHINE:
        pass
    kind = ATTACKS[name]
    shown = f"authorization: Bearer {key}".encode()
    sent = [each.replace(b"KEY", shown, 1) for each in kind.make()]
    await asyncio.gather(*(_attacker(port, kind, sent, k) for k in range(kind.connections)))


async def _attacker(port: int, kind: Attack, sent: list[bytes], k: int) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while True:
                writer.write(sent[k % len(sent)])
                await writer.drain()
                k += 1
                if not kind.reads:
                    await asyncio.sleep(UNREAD)
                    break
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
            writer.close()
        await asyncio.sleep(0.5)


@contextmanager
def idle(port: int) -> Iterator[None]:
    """Connections without a key that send nothing."""
    open_ = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(999)]
    try:
        yield
    finally:
        for each in open_:
            each.close()


@contextmanager
def attacked(port: int, name: str, key: str) -> Iterator[None]:
    """An attack from another process, which gives way to others on this machine."""
    command = [sys.executable, "-m", "benchmarks.hostile", "--attack", name]
    environment = os.environ | {"PORT": str(port), "KEY": key}
    with subprocess.Popen(["nice", *command], env=environment) as process:
        try:
            yield
        finally:
            process.kill()


@contextmanager
def served(ledger: str) -> Iterator[int]:
    """The port of a service with keys."""
    command = [sys.executable, "-m", "driftbandit", "serve", ledger, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        while not (found := re.search(r"running on http://[^:]*:(\d+)", process.stderr.readline())):
            pass
        drained = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        try:
            yield int(found[1])
        finally:
            process.kill()
            drained.wait()


def honest(port: int, key: str, seconds: float) -> list[float]:
    """Seconds of each decision, asked at a steady pace over one connection."""
    spent = list[float]()
    with Client(f"http://127.0.0.1:{port}", "shop", api_key=key, timeout=60) as client:
        client.decide(ASKED["context"], ARMS)
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end or not spent:
            client.decide(ASKED["context"], ARMS)
            spent.append(time.perf_counter() - begun)
            time.sleep(max(0.0, EVERY - spent[-1]))
    return spent


def figures(rounds: int, seconds: float, only: str | None):
    """The ratio of each attack, and the worst of all."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        ledger, keys = f"{folder}/shop.db", {}
        stored = ApiKeys(ledger)
        for name, role in (("owner", "admin"), ("honest", "decide"), ("hostile", "decide")):
            keys[name] = stored.create(name, [role])
        stored.close()
        with served(ledger) as port:
            with Client(
                f"http://127.0.0.1:{port}", "shop", api_key=keys["owner"], timeout=120
            ) as c:
                c.declare(**DECLARED)
            honest(port, keys["honest"], 2.0)  # compile
            yield from _ratios(port, keys, rounds, seconds, only)


def _ratios(port: int, keys: dict[str, str], rounds: int, seconds: float, only: str | None):
    worst = 0.0
    for name in (MACHINE, NO_KEY, *ATTACKS):
        if only is not None and only not in name:
            continue
        calm, busy = list[float](), list[float]()
        for _ in range(rounds):
            calm += honest(port, keys["honest"], seconds)
            with idle(port) if name == NO_KEY else attacked(port, name, keys["hostile"]):
                time.sleep(SWING)  # until it is in full swing
                busy += honest(port, keys["honest"], seconds)
            _settle(port, keys["honest"], float(np.median(calm)))
        before, after = (1e3 * float(np.quantile(each, 0.99)) for each in (calm, busy))
        yield f"{name}: 99 % within, ms, calm", before, "", True
        yield f"{name}: 99 % within, ms", after, "", True
        ratio = after / before
        if name == MACHINE:
            yield f"{name}: times the calm value", ratio, "", True
            continue
        most = IDLE if name == NO_KEY else HOSTILE
        worst = worst if name == NO_KEY else max(worst, ratio)
        yield f"{name}: times the calm value", ratio, f"< {most:g}", ratio < most
    if only is None:
        yield "hostile key, the worst: times the calm value", worst, "< 10", worst < HOSTILE


def _settle(port: int, key: str, usual: float) -> None:
    """Wait until the service is done with an attack, half a minute at most."""
    for _ in range(30):
        if np.quantile(honest(port, key, 1.0), 0.9) < 2.0 * usual:
            break


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of calm and attack in turns")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each")
    parser.add_argument("--only", help="attacks whose name has this in it")
    parser.add_argument("--csv", type=Path, help="also write the figures to this file")
    parser.add_argument("--attack", help=argparse.SUPPRESS)  # this program as the attacker
    given = parser.parse_args()
    if given.attack:
        asyncio.run(attack(int(os.environ["PORT"]), given.attack, os.environ["KEY"]))
    found = figures(given.rounds, given.seconds, given.only)
    return report("An honest key under attack", found, given.csv)


if __name__ == "__main__":
    sys.exit(main())
