"""A service on loopback for tests: in a thread, or as a process of its own."""

import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from urllib.parse import quote

from driftbandit.service.server import server

NEWS = {
    "features": {
        "context": {"age": {"type": "Number", "low": 18, "high": 90}},
        "arm": {"topic": {"type": "Category", "values": ["sport", "world"]}},
    },
    "reward": {"low": 0, "high": 1, "wait": "30min", "missing": 0},
    "policy": "DOMD",
    "exploration": 0.1,
}
ARMS = {"a": {"topic": "sport"}, "b": {"topic": "world"}}


@contextmanager
def in_thread(path, **options):
    """The port of a service that runs until the block ends."""
    made = server(path, **({"port": 0, "open_access": True} | options))
    thread = threading.Thread(target=made.run)
    thread.start()
    while not (made.started and made.servers):
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield made.servers[0].sockets[0].getsockname()[1]
    finally:
        made.should_exit = True
        thread.join()


def ask(port, method, path, body=None, key=None, raw=None, headers=None):
    """Status, message and headers of one request."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    sent = {"content-type": "application/json"} | (headers or {})
    sent |= {"authorization": f"Bearer {key}"} if key else {}
    data = raw if body is None else json.dumps(body).encode()
    link.request(method, quote(path, safe="/?=&%{}"), data, sent)
    answer = link.getresponse()
    text = answer.read()
    link.close()
    is_json = (
        "json" in answer.headers["content-type"] and "jsonl" not in answer.headers["content-type"]
    )
    return answer.status, json.loads(text) if is_json else text, dict(answer.headers)


def until_ready(port):
    end = time.monotonic() + 30
    while ask(port, "GET", "/readyz")[0] != 200:
        assert time.monotonic() < end
        time.sleep(0.01)


class Process:
    """`driftbandit serve` as a stranger starts it, after the Python of `first`, if there is any."""

    def __init__(self, folder, *options, ledger="shop.db", first=None):
        run = ["-m", "driftbandit"]
        if first is not None:
            run = ["-c", f"{first}\nfrom driftbandit.cli import main\nmain()"]
        command = [sys.executable, *run, "serve", ledger, "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines = []
        while not (found := re.search(r"running on https?://[^:]*:(\d+)", self._line())):
            pass
        self.port = int(found[1])
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _line(self):
        line = self.process.stderr.readline()
        assert line, f"the service ended: {self.lines}"
        self.lines.append(line)
        return line

    def _drain(self):
        self.lines.extend(self.process.stderr)

    def stop(self, signal):
        self.process.send_signal(signal)
        code = self.process.wait(timeout=30)
        self._thread.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
