"""What is slow holds up nothing else: a loop that opens, and a database that does not answer."""

import threading
import time

import pytest

from driftbandit import Loop
from driftbandit.service.http.auth import ApiKeys, KeyAuthenticator
from serving import ARMS, NEWS, ask, in_thread, until_ready

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

DECISION = {"context": {"age": 30}, "arms": ARMS}
SOON = 2.0  # seconds, on a busy machine
REVOKED = 1.0  # seconds after which a revoked key is refused, as docs/service.md says


class Gated:
    """Opens loops; the one called "slow" only after `go`."""

    def __init__(self):
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, path, *, name, **options):
        if name == "slow":
            self.asked.set()
            assert self.go.wait(60)
        return Loop(path, name=name, **options)


@pytest.fixture
def ledger(tmp_path):
    """Two loops that are declared."""
    path = tmp_path / "shop.db"
    with in_thread(path) as port:
        for name in ("quick", "slow"):
            assert ask(port, "PUT", f"/v1/loops/{name}", NEWS)[0] == 201
    return path


def in_background(calls):
    """Threads that ask, and where their answers will be."""
    answers = []
    threads = [
        threading.Thread(target=lambda call=call: answers.append(ask(*call)[0])) for call in calls
    ]
    for thread in threads:
        thread.start()
    return threads, answers


def timed(*call):
    begun = time.monotonic()
    status = ask(*call)[0]
    return status, time.monotonic() - begun < SOON


def test_a_loop_that_opens_does_not_hold_up_others(ledger):
    gate = Gated()
    with in_thread(ledger, opener=gate) as port:
        assert gate.asked.wait(20)
        slow = "/v1/loops/slow"
        calls = [(port, "POST", f"{slow}/decisions", DECISION)] * 6
        calls += [(port, "GET", slow)] * 6  # more than there are threads of either kind
        calls += [(port, "GET", f"{slow}/health")] * 2 + [(port, "GET", f"{slow}/overview")] * 2
        calls += [(port, "PUT", slow, NEWS)] * 2
        threads, answers = in_background(calls)
        time.sleep(0.3)  # all of them wait
        quick = "/v1/loops/quick"
        ask(port, "GET", quick)
        for call in (
            ("POST", f"{quick}/decisions", DECISION),
            ("GET", quick),
            ("GET", f"{quick}/health"),
            ("GET", f"{quick}/overview"),
            ("PUT", quick, NEWS),
            ("GET", "/healthz"),
        ):
            assert timed(port, *call) == (200, True), call
        assert ask(port, "GET", "/readyz")[0] == 503
        assert answers == []
        gate.go.set()
        for thread in threads:
            thread.join()
        assert answers == [200] * len(calls)
        until_ready(port)


def test_a_new_loop_that_opens_does_not_hold_up_others(tmp_path):
    gate = Gated()
    with in_thread(tmp_path / "shop.db", opener=gate) as port:
        assert ask(port, "PUT", "/v1/loops/quick", NEWS)[0] == 201
        threads, answers = in_background([(port, "PUT", "/v1/loops/slow", NEWS)] * 6)
        assert gate.asked.wait(20)
        assert timed(port, "POST", "/v1/loops/quick/decisions", DECISION) == (200, True)
        assert timed(port, "PUT", "/v1/loops/quick", NEWS) == (200, True)
        gate.go.set()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200] * 5 + [201]  # one of them has made it


class StalledKeys(ApiKeys):
    """The keys of a database that may stop answering."""

    def __init__(self, path):
        self.answers, self.asked = threading.Event(), threading.Event()
        self.answers.set()
        super().__init__(path)

    def all(self):
        if not self.answers.is_set():
            self.asked.set()
            assert self.answers.wait(60)
        return super().all()


def until(port, key, status):
    """Seconds until a key is answered like this."""
    begun = time.monotonic()
    while ask(port, "GET", "/v1/loops", key=key)[0] != status:
        assert time.monotonic() < begun + 20
    return time.monotonic() - begun


def test_a_database_that_stalls_holds_up_no_known_key(tmp_path):
    path = tmp_path / "shop.db"
    stored, keys = ApiKeys(path), StalledKeys(path)
    known = stored.create("known", ["admin"])
    with in_thread(path, authenticator=KeyAuthenticator(keys)) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS, known)[0] == 201
        keys.answers.clear()
        assert keys.asked.wait(20)
        assert timed(port, "GET", "/healthz") == (200, True)
        for _ in range(3):
            assert timed(port, "POST", "/v1/loops/news/decisions", DECISION, known) == (200, True)
        assert timed(port, "GET", "/v1/loops", None, "other.key") == (401, True)
        new = stored.create("new", ["read"])
        keys.answers.set()
        assert until(port, new, 200) < REVOKED + SOON
        stored.revoke("known")
        assert until(port, known, 401) < REVOKED + SOON
    stored.close()
