"""Pages that a browser shows cannot use a service without keys: neither by sending it requests
(CSRF), nor by pointing their own name at this machine (DNS rebinding)."""

import http.client
import http.server
import json
import re
import signal
import subprocess
import sys
import threading
from itertools import product

import pytest

from browsing import browser, needs_chromium  # noqa: F401 (a fixture)
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.http.hosts import HostCheck
from driftbandit.service.routes import ROUTES
from serving import ARMS, NEWS, Process, ask, in_thread, until_ready

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

DECIDE, DECISION = "/v1/loops/news/decisions", {"context": {"age": 30}, "arms": ARMS}
FORCED = {"candidate": "bold", "force": True}
BOLD = {"exploration": {"type": "Floor", "uniform": 0.5}}
FOREIGN = "http://evil.example"


@pytest.fixture(scope="module")
def port(tmp_path_factory, no_wait_for_the_disk):
    with in_thread(tmp_path_factory.mktemp("hosts") / "shop.db") as port:
        declared(port)
        yield port


def declared(port, key=None):
    assert ask(port, "PUT", "/v1/loops/news", NEWS, key)[0] == 201
    assert ask(port, "PUT", "/v1/loops/news/candidates/bold", BOLD, key)[0] == 201


def bare(port, method, path, headers, body=None):
    """Status of a request with these headers and no others."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    raw = b"" if body is None else json.dumps(body).encode()
    for name, value in {**headers, "Content-Length": str(len(raw))}.items():
        link.putheader(name, value)
    link.endheaders(raw)
    status = link.getresponse().status
    link.close()
    return status


def test_a_body_needs_its_content_type(port):
    """A page may send a body without one to any server, and its browser does not ask first."""
    local = {"Host": f"127.0.0.1:{port}"}
    for kind in ({}, {"Content-Type": ""}, {"Content-Type": "text/plain"}):
        assert bare(port, "POST", DECIDE, local | kind, DECISION) == 415
        assert bare(port, "POST", "/v1/loops/news/promotion", local | kind, FORCED) == 415
    json_ = {"Content-Type": "application/json; charset=utf-8"}
    assert bare(port, "POST", DECIDE, local | json_, DECISION) == 200
    assert ask(port, "GET", "/v1/loops/news/candidates")[1]["acts"] == "live"


def test_no_route_takes_a_body_of_an_unknown_type(port):
    sent = {"Host": f"127.0.0.1:{port}", "Content-Type": "text/plain"}
    routes = [route for route in ROUTES if route.body is not None]
    assert len(routes) > 8
    for route in routes:
        path = re.sub(r"{[^}]*}", "x", route.path.replace("{name}", "news"))
        status = bare(port, route.method, path, sent, {})
        assert status == 415, (route.method, path)


PATHS = (
    ("GET", "/v1/loops", None),
    ("GET", "/v1/loops/news/log", None),
    ("GET", "/", None),
    ("GET", "/healthz", None),
    ("POST", DECIDE, DECISION),
    ("PUT", "/v1/loops/evil", NEWS),
    ("DELETE", "/v1/loops/news/decisions/x", None),
    ("POST", "/v1/loops/news/promotion", FORCED),
)


@pytest.mark.parametrize(("method", "path", "body"), PATHS)
def test_names_and_pages_of_others_are_refused(port, method, path, body):
    json_, local = {"Content-Type": "application/json"}, f"localhost:{port}"
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "192.0.2.1", "",
                 "[::1", "localhost.evil.example", "a@b"):  # fmt: skip
        assert bare(port, method, path, json_ | {"Host": host}, body) == 403, host
    assert bare(port, method, path, json_, body) == 403  # no Host at all
    for origin in (FOREIGN, "null", "", "http://localhost:1", f"http://{local}.evil.example"):
        sent = json_ | {"Host": local, "Origin": origin}
        assert bare(port, method, path, sent, body) == 403, origin
    sent = json_ | {"Host": local, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert bare(port, method, path, sent, body) == 403
    assert ask(port, "GET", "/v1/loops")[1]["loops"] == ["news"]


def test_this_machine_and_its_own_pages_are_served(port):
    for host in (f"127.0.0.1:{port}", f"LOCALHOST:{port}", "localhost", "[::1]:80", "127.8.0.1"):
        assert bare(port, "GET", "/v1/loops", {"Host": host}) == 200
        own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert bare(port, "GET", "/v1/loops", own) == 200
    link = {"Host": "localhost", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert bare(port, "GET", "/", link) == 200


def test_other_names_are_allowed_by_name(tmp_path):
    with in_thread(tmp_path / "shop.db", allowed_hosts=["Shop.example"]) as port:
        for host, origin in product(("shop.example", "shop.example:80"), (None, "shop.example")):
            more = {"Origin": f"https://{origin}"} if origin else {}
            assert bare(port, "GET", "/v1/loops", {"Host": host} | more) == 200
        proxied = {"Host": f"127.0.0.1:{port}", "Origin": "https://shop.example"}
        assert bare(port, "GET", "/v1/loops", proxied) == 200
        assert bare(port, "GET", "/v1/loops", {"Host": "evil.example"}) == 403
        assert bare(port, "GET", "/v1/loops", {"Host": "shop.example", "Origin": FOREIGN}) == 403


def test_with_keys_names_are_checked_only_if_some_are_allowed(tmp_path):
    path = tmp_path / "shop.db"
    keys = ApiKeys(path)
    auth = {"Authorization": f"Bearer {keys.create('me', ['admin'])}"}
    keys.close()
    for allowed, status in (((), 200), (("shop.example",), 403)):
        with in_thread(path, open_access=False, allowed_hosts=allowed) as port:
            assert bare(port, "GET", "/v1/loops", auth | {"Host": "any.example"}) == status
            assert bare(port, "GET", "/v1/loops", {"Host": "localhost"}) == 401


def test_the_command_allows_names(tmp_path):
    served = Process(
        tmp_path, "--open", "--allow-host", "shop.example", "--allow-host", "b.example"
    )
    try:
        until_ready(served.port)
        for host, status in (("shop.example", 200), ("b.example", 200), ("c.example", 403)):
            assert bare(served.port, "GET", "/v1/loops", {"Host": host}) == status
    finally:
        served.stop(signal.SIGTERM)


@pytest.mark.parametrize("raw", [b"\xff\x00", b"[", b"]", b"a" * 5000, b":::", b"%", b"//"])
def test_odd_names_are_refused_and_nothing_else(raw):
    for head in ({b"host": raw}, {b"host": b"localhost", b"origin": raw}):
        with pytest.raises(ValueError, match="--allow-host"):
            HostCheck().check(head)


class Page(http.server.BaseHTTPRequestHandler):
    """A page of another server that sends a request as soon as it is shown."""

    target = ""

    def do_GET(self):
        script = (
            f"fetch('{self.target}', {{method: 'POST', mode: 'no-cors', "
            f"body: new Blob(['{json.dumps(FORCED)}'])}})"
            ".then(() => document.title = 'sent', () => document.title = 'failed')"
        )
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(f"<script>{script}</script>".encode())

    def log_message(self, *_):
        pass


@needs_chromium
@pytest.mark.slow
def test_a_page_in_a_real_browser_promotes_nothing(tmp_path, browser):  # noqa: F811
    from selenium.webdriver.support.ui import WebDriverWait

    with in_thread(tmp_path / "shop.db") as port:
        declared(port)
        Page.target = f"http://127.0.0.1:{port}/v1/loops/news/promotion"
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            browser.get(f"http://localhost:{other.server_port}/")
            WebDriverWait(browser, 20).until(lambda it: it.title in ("sent", "failed"))
            assert ask(port, "GET", "/v1/loops/news/candidates")[1]["acts"] == "live"
        finally:
            other.shutdown()
            other.server_close()


@pytest.mark.slow
def test_the_demo_is_checked_like_an_open_service():
    command = [sys.executable, "-m", "driftbandit", "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        try:
            port = int(re.search(r"http://[^:]*:(\d+)", demo.stdout.readline())[1])
            assert bare(port, "GET", "/v1/loops", {"Host": "localhost"}) == 200
            assert bare(port, "GET", "/v1/loops", {"Host": "evil.example"}) == 403
        finally:
            demo.terminate()
