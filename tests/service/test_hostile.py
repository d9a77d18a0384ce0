"""Hostile clients: they get a reason or no connection, memory is bounded, others are served."""

import json
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from serving import ARMS, NEWS, Process, ask, until_ready

ASKED, DECISION = "/v1/loops/news/decisions", {"context": {"age": 30}, "arms": ARMS}
HEAD = f"POST {ASKED} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".encode()
MB = 2**20
PROC = Path("/proc/self/clear_refs")
pytestmark = pytest.mark.skipif(not PROC.exists(), reason="no /proc to read memory from")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    process = Process(tmp_path_factory.mktemp("hostile"), "--open")
    until_ready(process.port)
    assert ask(process.port, "PUT", "/v1/loops/news", NEWS)[0] == 201
    for _ in range(20):
        assert ask(process.port, "POST", ASKED, DECISION)[0] == 200
    yield process
    process.stop(signal.SIGTERM)
    lines = [json.loads(line) for line in process.lines]
    assert not [line for line in lines if line["level"] == "error"]


@pytest.fixture(autouse=True)
def _bounded(served):
    """Whatever comes, the process stays small and goes on to decide."""
    before = memory(served)
    yield
    assert memory(served) - before < 40 * MB
    assert ask(served.port, "POST", ASKED, DECISION)[0] == 200


def memory(served):
    """Bytes that the process has had at most since it was asked last."""
    pid = served.process.pid
    status = Path(f"/proc/{pid}/status").read_text()
    most = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return int(most.split()[1]) * 1024


def link(served):
    return socket.create_connection(("127.0.0.1", served.port), timeout=15)


def sent(served, *parts):
    """What a service answers to bytes; nothing if it closes the connection."""
    with link(served) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            return connection.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            return b""


def test_ten_megabytes(served):
    body = b'{"context":{"age":"' + b"x" * 10 * MB + b'"}}'
    head = HEAD + f"content-length: {len(body)}\r\n\r\n".encode()
    assert sent(served, head)[9:12] == b"413"  # before any of it has come
    assert sent(served, head, body)[9:12] in (b"413", b"")
    chunks = [b"10000\r\n" + body[:65536] + b"\r\n"] * 160
    answer = sent(served, HEAD + b"transfer-encoding: chunked\r\n\r\n", *chunks)
    assert answer[9:12] in (b"413", b"")


def test_many_send_ten_megabytes_at_once(served):
    body, answers = b" " * 10 * MB, []
    head = HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"%x\r\n" % len(body)

    def work_one():
        answers.append(sent(served, head, body))

    work = [threading.Thread(target=work_one) for _ in range(20)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert all(answer[9:12] in (b"413", b"") for answer in answers)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 20 * MB + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 2 * MB + b"\r\n",
        b"GET /" + b"x" * 20 * MB + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ],
    ids=["a long header", "many headers", "a long path"],
)
def test_heads_without_end(served, head):
    assert sent(served, head)[9:12] in (b"431", b"414", b"400", b"")


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"content-length: -1\r\n\r\n",
        HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n{}",
        HEAD + b"content-length: 9\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"content-length: " + b"9" * 400 + b"\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        HEAD.replace(b"localhost", b"\xff\x00") + b"\r\n",
        b"GET http://[/ HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01" + bytes(range(256)),
        b"GET /healthz HTTP/9.9\r\n\r\n",
    ],
)
def test_heads_that_are_none(served, head):
    answer = sent(served, head, b"\r\n\r\n")
    assert answer[9:10] == b"4" or not answer


@pytest.mark.parametrize(
    "value", ["Bearer " + "x" * 60_000, "Bearer \x00", "Bearer é.ü", "Bearer " * 900]
)
def test_keys_that_are_none(served, value):
    """A service with open access reads no key; the head must still be one."""
    head = HEAD + b"authorization: " + value.encode() + b"\r\ncontent-length: 2\r\n\r\n{}"
    assert sent(served, head)[9:12] in (b"400", b"431", b"")


def test_slow_clients_do_not_hold_others(served):
    """Two hundred who send a byte now and then, or never read what they are answered."""
    slow = [link(served) for _ in range(200)]
    try:
        for k, connection in enumerate(slow):
            if k % 2:
                connection.sendall(HEAD[: k % len(HEAD)])
            else:
                connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 50)
        spent = []
        for k in range(50):
            slow[2 * k + 1].sendall(b"x")
            begun = time.monotonic()
            assert ask(served.port, "POST", ASKED, DECISION)[0] == 200
            spent.append(time.monotonic() - begun)
        assert sorted(spent)[45] < 1.0
    finally:
        for connection in slow:
            connection.close()
