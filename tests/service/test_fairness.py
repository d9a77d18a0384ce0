"""One key, or one client without a key, does not stop the others: groups have fair shares, an
exception stays with its own call, and what waits is bounded."""

import asyncio
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from driftbandit import DOMD, Category, Features, Loop, Number, Reward, plugins
from driftbandit.service.api.loops import Call
from driftbandit.service.fairness import PATIENCE, PIECE, Shares, Turns
from driftbandit.service.http import connections
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.limits import Limits, UnderWay
from driftbandit.service.pool import loop_pool
from driftbandit.service.pool.batcher import (
    ASKED,
    BYTES,
    GROUP,
    SCORED,
    SMALL,
    Batcher,
    FairQueue,
    Submission,
)
from serving import ARMS, NEWS, Process, ask, in_thread, until_ready

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

DECIDE, DECISION = "/v1/loops/news/decisions", {"context": {"age": 30}, "arms": ARMS}
BATCHES = "/v1/loops/news/batches"
DEEP = b'{"context":{"x":' + b"[" * 600 + b"]" * 600 + b'},"arms":{},"default":"a","id":"deep"}'


# ---- an exception stays with its own call


class Odd(dict):
    """A context that fails when it is looked at, with an error of its own kind."""

    def items(self):
        raise self["error"]


@pytest.mark.parametrize("error", [RecursionError, TypeError, ZeroDivisionError, MemoryError])
def test_an_exception_stays_with_its_call(tmp_path, error):
    """Its neighbours are decided and stored as if it had not been there."""
    features = Features(context={"age": Number(18, 90)}, arm={"topic": Category(["sport"])})
    arms = {"a": {"topic": "sport"}}
    calls = [("decide", {"context": {"age": 30}, "arms": arms, "id": f"d{k}"}) for k in range(9)]
    calls[4] = "decide", calls[4][1] | {"context": Odd(error=error("hostile"))}
    with Loop(tmp_path / "a.db", features=features, reward=Reward(0, 1), policy=DOMD) as loop:
        answers = loop.submit_many(calls)
        assert isinstance(answers.pop(4), error)
        assert [each.id for each in answers] == loop.log()["id"].to_list()
        assert all(audit.agrees for audit in loop.audits())


@pytest.fixture(scope="module")
def port(tmp_path_factory, no_wait_for_the_disk):
    with in_thread(tmp_path_factory.mktemp("fair") / "shop.db") as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        yield port


def test_deep_values_are_refused_alone(port):
    assert ask(port, "POST", DECIDE, raw=DEEP)[0] in (400, 422)
    answers = []

    def work(raw):
        for _ in range(20):
            answers.append(
                (raw is None, ask(port, "POST", DECIDE, DECISION, raw=raw)[0])
                if raw is None
                else (False, ask(port, "POST", DECIDE, raw=raw)[0])
            )

    threads = [threading.Thread(target=work, args=(raw,)) for raw in (None, None, None, DEEP)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for honest, status in answers if honest} == {200}
    assert {status for honest, status in answers if not honest} <= {400, 422}


@pytest.mark.parametrize("depth", [1, 10, 31, 32, 33, 100, 600])
def test_a_stored_column_can_be_read_again(port, depth):
    """What is taken can be repeated and listed, whatever its depth."""
    raw = DEEP.replace(b"[" * 600, b"[" * depth).replace(b"]" * 600, b"]" * depth)
    raw = raw.replace(b"deep", b"deep%d" % depth)
    first, again = (ask(port, "POST", DECIDE, raw=raw)[0] for _ in range(2))
    assert first == again == (200 if depth < 32 else first)
    assert first in (200, 400, 422)
    assert ask(port, "GET", "/v1/loops/news/log")[0] == 200


def test_names_that_are_nearly_right_cost_little(port):
    """The suggestion reads every name once; comparing all letters of all names took minutes."""
    names = {f"{'ab' * 400}{k}": {} for k in range(900)}
    body = {"context": {"age": 30}, "arms": names, "default": "ba" * 20_000}
    begun = time.process_time()
    status, problem, _ = ask(port, "POST", DECIDE, body)
    assert (status, "default must be one of the arms" in problem["detail"]) == (422, True)
    short = {"ab" * 19 + f"{k:02}": {} for k in range(90)}
    wrong = {"context": {"age": 30}, "arms": short, "default": "ba" * 19}
    assert ask(port, "POST", BATCHES, {"decisions": [wrong] * 100})[0] == 200
    assert time.process_time() - begun < 3.0  # of this process, which serves


# ---- limits of one request


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"arms": {str(k): {} for k in range(1000)}, "k": 1000}, 422),
        ({"arms": {}, "k": 150_000, "default": list(range(101))}, 422),
        ({"arms": {str(k): {} for k in range(500)}, "k": 50}, 422),
        ({"arms": {str(k): {} for k in range(100)}, "k": 100}, 200),
        ({"arms": {f"{'x' * 2000}{k}": {} for k in range(90)}, "k": 50}, 413),
        ({"k": -1}, 422),
        ({"k": 2**62}, 422),
        ({"context": {"x": [1] * 200_000}}, 422),
    ],
)
def test_small_requests_do_no_large_work(port, change, status):
    found = ask(port, "POST", DECIDE, DECISION | change)
    assert found[0] == status, found[1]


def test_a_batch_has_a_total(port):
    slate = {"context": {}, "arms": {str(k): {} for k in range(90)}, "k": 90}
    status, problem, _ = ask(port, "POST", BATCHES, {"decisions": [slate] * 10})
    assert (status, "split it" in problem["detail"]) == (413, True)
    many = b'{"decisions":[' + b",".join([b"{}"] * 200_000) + b"]}"
    assert ask(port, "POST", BATCHES, raw=many)[0] == 413


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"context": 1, "arms": ARMS}, "at `$.decisions[...].context`"),
        ({"arms": ARMS}, "`context` - at `$.decisions[...]`"),
        ([], "at `$.decisions[...]`"),
    ],
)
@pytest.mark.parametrize("path", [BATCHES, "/v1/loops/news/records"])
def test_a_wrong_decision_of_a_batch_says_where(port, path, wrong, told):
    """Decisions of a batch are read some at a time; what is wrong is told as if it were at once."""
    right = DECISION | {"id": "right", "default": "a"}
    status, problem, _ = ask(port, "POST", path, {"decisions": [right, wrong, right]})
    assert (status, told in problem["detail"]) == (400, True), problem


@pytest.mark.parametrize("size", [15_000, 17_000, 70_000, 200_000])
@pytest.mark.parametrize("shape", ["one header", "many headers", "a path"])
def test_the_head_has_its_limit(port, size, shape):
    more = {"one header": b"x: " + b"y" * size + b"\r\n", "many headers": b"x: y\r\n" * (size // 6)}
    path = b"/healthz" + (b"?" + b"y" * size if shape == "a path" else b"")
    head = b"GET " + path + b" HTTP/1.1\r\nhost: localhost\r\n" + more.get(shape, b"") + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(head)
        try:
            answer = link.recv(4096)
        except ConnectionResetError:
            answer = b"HTTP/1.1 431 "
    assert answer[9:12] == (b"200" if size < connections.HEAD else b"431")


def test_details_show_no_path(tmp_path):
    """The ledger is in use by another process: the answer says so, and not where it is."""
    path = tmp_path / "secret" / "shop.db"
    path.parent.mkdir()
    with in_thread(path) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
    with Loop(path, name="news"), in_thread(path) as port:
        status, problem, _ = ask(port, "POST", DECIDE, DECISION)
        assert (status, "open already" in problem["detail"]) == (503, True)
        assert "secret" not in json.dumps(problem)
        assert "shop.db" not in json.dumps(problem)


# ---- fair shares


def submission(key, loop, calls, scored=0):
    return Submission(key, "news", loop, [("decide", {})] * calls, scored)


def taken(queued):
    """Calls by key of the next group, which is then made."""
    group, found = queued.take(), {}
    for part in group:
        found[part.of.key] = found.get(part.of.key, 0) + part.end - part.first
    queued.done(group)
    return found


def in_loop(test):
    """Submissions have a future, so they are made where an event loop runs."""

    async def run():
        test()

    asyncio.run(run())


def heavy(*keys):
    """Shares in which these keys have cost much, beside one that asked just now."""
    shares = Shares()
    for key in ("light", *keys):
        shares.note(key)
    for key in keys:
        shares.charge(key, 1e6)
    return shares


def test_keys_have_equal_shares():
    def check():
        queued, loop = FairQueue(Shares()), object()
        for _ in range(24):
            queued.put(submission("big", loop, 1000))
        assert taken(queued) == {"big": GROUP}
        for key in ("one", "two", "three"):
            queued.put(submission(key, loop, GROUP))
        assert taken(queued) == dict.fromkeys(("big", "one", "two", "three"), GROUP // 4)

    in_loop(check)


def test_keys_that_asked_just_now_keep_their_shares():
    """They may ask again while a group is made, so one key alone in the queue does not fill it."""

    def check():
        shares, loop = Shares(), object()
        queued = FairQueue(shares)
        for key in ("big", "one", "two", "three"):
            shares.note(key)
        queued.put(submission("big", loop, 1000))
        assert taken(queued) == {"big": GROUP // 4}
        queued.put(submission("one", loop, 5))
        assert taken(queued) == {"big": GROUP // 4, "one": 5}
        time.sleep(ASKED)
        shares.note("big")
        assert taken(queued) == {"big": GROUP}

    in_loop(check)


def test_keys_that_asked_just_now_keep_their_shares_of_arms():
    def check():
        shares, loop = Shares(), object()
        queued = FairQueue(shares)
        for key in ("arms", "other"):
            shares.note(key)
        queued.put(submission("arms", loop, 20, scored=20 * SCORED // 10))
        assert taken(queued) == {"arms": 5}

    in_loop(check)


def test_a_long_body_counts_as_arms_that_are_scored():
    """So a group of a heavy key has few such calls, and a lighter key need not wait for many."""
    asked = []

    async def call(key, name, loop, calls, scored):
        asked.append(scored)
        return calls

    service = SimpleNamespace(batcher=SimpleNamespace(call=call))
    for size in (0, 1000, 900_000):
        one = Call(service, {"name": "news"}, {}, None, object(), "key", size=size)
        asyncio.run(one.submit([("decide", {})], 20))
    assert asked == [20, 20 + 1000 // BYTES, 20 + 900_000 // BYTES]
    assert asked[1] < 2 * 20
    assert asked[2] > SCORED


def test_a_share_is_bounded_by_the_arms_it_scores():
    def check():
        queued, loop = FairQueue(Shares()), object()
        queued.put(submission("slates", loop, 10, scored=10 * SCORED))
        queued.put(submission("arms", loop, 100, scored=100 * SCORED // 10))
        assert taken(queued) == {"slates": 1, "arms": 5}
        assert taken(queued) == {"slates": 1, "arms": 5}

    in_loop(check)


def test_no_key_is_heavy_alone():
    shares = Shares()
    shares.note("only")
    shares.charge("only", 1e6)
    assert not shares.is_heavy("only")
    shares.note("other")
    assert shares.is_heavy("only")
    assert not shares.is_heavy("other")
    shares.charge("other", 0.6e6)  # more than half as much
    assert not shares.is_heavy("only")


def test_a_heavy_key_waits_while_a_lighter_one_asks():
    shares = heavy("hostile")
    assert not shares.must_wait("hostile")
    with shares.under_way("hostile"), shares.under_way("hostile"):
        assert not shares.must_wait("hostile")  # not for itself
        with shares.under_way("light"):
            assert shares.must_wait("hostile")
            assert not shares.must_wait("light")
        assert not shares.must_wait("hostile")


def test_groups_of_heavy_keys_are_small_and_apart():
    def check():
        shares, loop = heavy("hostile", "slates"), object()
        queued = FairQueue(shares)
        queued.put(submission("hostile", loop, 1000))
        queued.put(submission("slates", loop, 5, scored=5 * SCORED))
        queued.put(submission("light", loop, 3))
        assert taken(queued) == {"light": 3}
        shares.charge("slates", 1e6)
        assert taken(queued) == {"hostile": SMALL}  # the lightest of them first
        shares.charge("hostile", 1.5e6)
        assert taken(queued) == {"slates": 1}
        group = queued.take()
        queued.put(submission("light", loop, 1))
        assert [part.of.key for part in queued.take()] == ["light"]  # beside a heavy group
        queued.done(group)

    in_loop(check)


def test_a_piece_waits_for_lighter_keys_but_not_for_long():
    def check():
        shares, loop = heavy("hostile"), object()
        queued = FairQueue(shares)
        queued.put(submission("hostile", loop, 20))
        with shares.under_way("light"):
            begun = time.monotonic()
            assert taken(queued) == {"hostile": SMALL}
            assert time.monotonic() - begun >= 0.8 * PATIENCE

    in_loop(check)


def test_the_event_loop_does_one_piece_of_a_heavy_key_at_a_time():
    """Between two pieces other tasks go on, and the heavy keys take turns."""

    async def run():
        shares, order = heavy("hostile", "other"), []
        turns = Turns(shares)
        shares.charge("other", 1e5)  # a little more than the first one

        async def ask_for(key):
            await turns.wait(key)
            order.append(key)
            shares.charge(key, 0.0 if key == "light" else 2e5)

        tasks = [asyncio.ensure_future(ask_for("hostile")) for _ in range(5)]
        tasks += [asyncio.ensure_future(ask_for("other")) for _ in range(3)]
        tasks[1].cancel()
        await ask_for("light")
        assert order == ["light"]
        while len(order) < 8:
            before = len(order)
            await asyncio.sleep(0)
            assert len(order) <= before + 1
        assert order == ["light", *["hostile", "other"] * 3, "hostile"]
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(asyncio.wait_for(run(), 30))


def test_long_work_is_done_in_pieces():
    """Other tasks go on in between, and the result is what it would be at once."""

    async def run():
        turns, seen, done = Turns(Shares()), [0], []

        async def look():
            while not done:
                seen[0] += 1
                await asyncio.sleep(0)

        def work(k):
            time.sleep(2 * PIECE)
            return k * k

        looking = asyncio.ensure_future(look())
        assert await turns.each("key", work, range(20)) == [k * k for k in range(20)]
        done.append(True)
        await looking
        assert seen[0] >= 19
        assert await turns.each("key", work, []) == []

    asyncio.run(run())


def test_requests_that_have_timed_out_are_left_out():
    def check():
        queued, loop = FairQueue(Shares()), object()
        late = [submission("key", loop, 200), submission("other", loop, 1)]
        for one in late:
            queued.put(one)
        group = queued.take()
        for one in late:
            one.answer.cancel()
        queued.done(group)
        queued.put(last := submission("key", loop, 1))
        assert [part.of for part in queued.take()] == [last]

    in_loop(check)


def test_every_call_is_made_once_and_in_order():
    def check():
        queued, loops = FairQueue(Shares()), [object(), object()]
        sent = [submission(f"k{k % 3}", loops[k % 2], 1 + 37 * k % 150, 20) for k in range(30)]
        for one in sent:
            queued.put(one)
        made = {id(one): [] for one in sent}
        while any(len(made[id(one)]) < len(one.calls) for one in sent):
            group = queued.take()
            assert len({id(part.of.loop) for part in group}) == 1
            for part in group:
                made[id(part.of)] += range(part.first, part.end)
            queued.done(group)
        for one in sent:
            assert made[id(one)] == list(range(len(one.calls)))

    in_loop(check)


class Stuck:
    """A loop that does not answer until it may, or one that does."""

    def __init__(self, go):
        self.go, self.made = go, queue.SimpleQueue()

    def submit_many(self, calls):
        assert self.go.wait(30)
        return list(calls)


def test_loops_that_do_not_answer_hold_up_no_other_loop():
    """Threads that wait for them are replaced."""
    go, free = threading.Event(), threading.Event()
    free.set()
    batcher = Batcher(SimpleNamespace(close_if_stopped=None), Shares())

    async def run():
        stuck = [
            asyncio.ensure_future(batcher.call("k", f"s{k}", Stuck(go), [("decide", {})], 1))
            for k in range(5)
        ]
        await asyncio.sleep(0.05)
        begun = time.monotonic()
        quick = batcher.call("k", "quick", Stuck(free), [("decide", {"id": 1})], 1)
        assert await asyncio.wait_for(quick, 20) == [("decide", {"id": 1})]
        assert time.monotonic() - begun < 10
        assert not any(each.done() for each in stuck)
        go.set()
        await asyncio.gather(*stuck)

    asyncio.run(run())
    batcher.close()


def test_what_is_under_way_is_bounded():
    """Requests wait for their turn in order; one that gives up frees its place."""

    async def run():
        limits = Limits(requests=3, held=100)
        turns, owner, order = UnderWay(limits), ("key", "loop"), []

        async def ask_for(k, size):
            await turns.enter(owner, size)
            order.append(k)

        tasks = [asyncio.ensure_future(ask_for(k, size)) for k, size in enumerate([60, 30, 90, 5])]
        await asyncio.sleep(0)
        assert order == [0, 1]
        await asyncio.wait_for(turns.enter(("other", "loop"), 100), 1)  # not held up
        tasks[2].cancel()
        await asyncio.sleep(0.01)
        turns.leave(owner, 60)
        await asyncio.sleep(0.01)
        assert order == [0, 1, 3]
        await asyncio.wait_for(turns.enter(owner, 50), 1)

    asyncio.run(run())


# ---- connections


def test_clients_without_a_key_cannot_hold_connections(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.service.server.CONNECTIONS", 40)
    path = tmp_path / "shop.db"
    keys = ApiKeys(path)
    key = keys.create("me", ["admin"])
    keys.close()
    with in_thread(path, open_access=False) as port:
        auth = f"GET /v1/loops HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n".encode()
        honest = socket.create_connection(("127.0.0.1", port), timeout=10)
        honest.sendall(auth)
        assert honest.recv(4096).startswith(b"HTTP/1.1 200")
        strangers = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(120)]
        for k, each in enumerate(strangers):
            with suppress(OSError):  # closed already
                each.sendall((b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"GET /", b"")[k % 3])
        assert ask(port, "PUT", "/v1/loops/news", NEWS, key)[0] == 201
        honest.sendall(auth)  # it has kept its slot
        assert honest.recv(4096).startswith(b"HTTP/1.1 200")
        for each in (honest, *strangers):
            each.close()


@pytest.mark.parametrize("drips", [False, True])
def test_streams_that_are_not_read_are_closed(tmp_path, monkeypatch, drips):
    for name, seconds in (("UNREAD", 0.6), ("LOOK", 0.1)):
        monkeypatch.setattr(connections, name, seconds)
    monkeypatch.setattr("driftbandit.service.dashboard.live.PAUSE", 0.01)
    with in_thread(tmp_path / "shop.db", limits=Limits(streams=2, seconds=3.0)) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        until_ready(port)
        assert ask(port, "POST", DECIDE, DECISION)[0] == 200
        slow = []
        for _ in range(2):
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", port))
            link.sendall(b"GET /v1/loops/news/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            slow.append(link)
        end = time.monotonic() + 15
        while True:  # decisions change the view, so there is always more to send
            ask(port, "POST", DECIDE, DECISION)
            for link in slow if drips else ():
                link.recv(64)
            with socket.create_connection(("127.0.0.1", port), timeout=10) as one:
                one.sendall(b"GET /v1/loops/news/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
                if one.recv(64).startswith(b"HTTP/1.1 200"):
                    break
            assert time.monotonic() < end
            time.sleep(0.1)
        for link in slow:
            link.close()


def test_long_names_make_no_long_view(port):
    """Every open dashboard has a copy of it."""
    long, end = {"x" * 100_000: ARMS["a"], "y" * 100_000: ARMS["b"]}, time.monotonic() + 20
    while True:
        assert ask(port, "POST", DECIDE, DECISION | {"arms": long})[0] == 200
        view = ask(port, "GET", "/v1/loops/news/overview")[1]
        found = {name for each in view["latest"] for name in (each["arm"], each.get("runner_up"))}
        if any(str(name).startswith(("xxx", "yyy")) for name in found):
            break
        assert time.monotonic() < end
        time.sleep(0.1)
    assert len(json.dumps(view)) < 50_000


def test_too_many_requests_at_once_on_a_connection(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        try:
            link.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 3000)
            while link.recv(65536):
                pass
        except ConnectionResetError:
            pass
    assert ask(port, "GET", "/healthz")[0] == 200


# ---- ledgers that are moved, and a stop that always ends


@pytest.mark.parametrize("deleted", [True, False])
def test_a_ledger_that_is_moved_or_deleted_is_noticed(tmp_path, deleted):
    path = tmp_path / "shop.db"
    with in_thread(path) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        for each in list(tmp_path.iterdir()):
            each.unlink() if deleted else each.rename(tmp_path / f"old-{each.name}")
        end = time.monotonic() + 10
        while ask(port, "POST", DECIDE, DECISION)[0] == 200:
            assert time.monotonic() < end
            time.sleep(0.05)
        for _ in range(5):
            status, problem, _ = ask(port, "POST", DECIDE, DECISION)
            assert status == 503
            assert str(tmp_path) not in problem["detail"]
        assert ask(port, "GET", "/readyz")[0] == 503
        assert ask(port, "GET", "/healthz")[0] == 200
        time.sleep(1.2)
        assert not path.exists()  # nothing new is made in its place


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP")
def test_a_database_that_stands_still_stops_neither_healthz_nor_the_end(tmp_path, postgres):
    url = postgres.url()
    sooner = "from driftbandit.service import server\nserver.LAST = 3.0"
    served = Process(tmp_path, "--open", ledger=url, first=sooner)
    until_ready(served.port)
    assert ask(served.port, "PUT", "/v1/loops/news", NEWS)[0] == 201
    stopped = stop_database(postgres)
    try:
        threads = [
            threading.Thread(target=try_to_ask, args=(served.port, path))
            for path in (DECIDE, "/v1/loops/unknown/decisions") * 4
        ]
        for thread in threads:
            thread.start()
        for _ in range(5):
            begun = time.monotonic()
            assert ask(served.port, "GET", "/healthz")[0] == 200
            assert time.monotonic() - begun < 2.0
            time.sleep(0.2)
        begun = time.monotonic()
        served.stop(signal.SIGTERM)
        assert 3.0 <= time.monotonic() - begun < 10.0  # not before requests had their time
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    for thread in threads:
        thread.join()


def try_to_ask(port, path):
    with suppress(OSError):  # the service has ended
        ask(port, "POST", path, DECISION)


def stop_database(postgres):
    """Freeze a server and all its processes; return their ids."""
    main = int(Path(postgres.folder, "data", "postmaster.pid").read_text().split()[0])
    found = subprocess.run(["pgrep", "-P", str(main)], capture_output=True, text=True).stdout
    pids = [main, *map(int, found.split())]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return pids


# ---- loops that there are not, and types that a request may not name


def test_loops_that_there_are_not_cost_a_database_few_reads(postgres, monkeypatch):
    """Each such request opened two connections."""
    reads, names = [], loop_pool.names
    monkeypatch.setattr(loop_pool, "names", lambda *a, **k: reads.append(1) or names(*a, **k))
    with in_thread(postgres.url()) as port:
        before = len(reads)

        def flood(who):
            for k in range(5):
                path = f"/v1/loops/no{who}{k}/decisions"
                assert ask(port, "POST", path, {"context": {}, "arms": ARMS})[0] == 404

        begun = time.monotonic()
        threads = [threading.Thread(target=flood, args=(who,)) for who in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent = time.monotonic() - begun
    assert 1 <= len(reads) - before <= 2 + spent / loop_pool.BETWEEN


NESTED = [
    {"type": "Evil"},
    {"type": "Number", "low": {"type": "Evil"}, "high": 1},
    {"type": "Number", "low": 0, "high": [{"type": "Evil"}]},
    {"type": "Category", "values": [{"type": "Evil"}]},
    {"type": "Category", "values": [["a", {"type": "Evil"}]]},
]


@pytest.mark.parametrize("column", NESTED)
def test_no_type_in_a_request_imports_a_plug_in(port, monkeypatch, column):
    asked = []
    monkeypatch.setattr(plugins, "offered", asked.append)
    features = {"context": {"a": column}, "arm": {"b": {"type": "Flag"}}}
    said = {**NEWS, "features": features}
    assert ask(port, "PUT", "/v1/loops/nested", said)[0] in (400, 422)
    rule = {"type": "Thompson", "uniform": [{"type": "Evil"}]}
    assert ask(port, "PUT", "/v1/loops/nested", {**NEWS, "exploration": rule})[0] in (400, 422)
    assert asked == []
