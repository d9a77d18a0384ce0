"""The service over HTTP: the same answers as the loop, and refusals that name the remedy."""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import fields
from pathlib import Path

import polars as pl
import pytest
from typer.main import get_command

from driftbandit import Client, Loop
from driftbandit.cli import app as cli
from driftbandit.client.client import ServiceError, UnreachableError
from driftbandit.loop.config import Changeable, Options
from driftbandit.service.http import connections
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.http.openapi import document
from driftbandit.service.limits import Limits
from driftbandit.service.routes import ROUTES
from driftbandit.service.schema.options import LoopChanges, LoopDeclaration
from driftbandit.service.server import check_host
from serving import ARMS, NEWS, Process, ask, free_port, in_thread, until_ready

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

DECISION = {"context": {"age": 30}, "arms": ARMS}


def driftbandit(*args, cwd):
    command = [sys.executable, "-m", "driftbandit", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def port(tmp_path_factory, no_wait_for_the_disk):
    path = tmp_path_factory.mktemp("service") / "shop.db"
    with in_thread(path, limits=Limits(arms=5, batch=4, body=20_000)) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        yield port


def test_a_declaration_can_be_repeated_and_read(port):
    status, found, _ = ask(port, "PUT", "/v1/loops/news", NEWS)
    assert status == 200
    assert ask(port, "GET", "/v1/loops/news")[1] == found
    assert found["declaration"]["reward"]["wait"] == 1800.0
    assert "news" in ask(port, "GET", "/v1/loops")[1]["loops"]
    part = {"reward": NEWS["reward"]}
    assert ask(port, "PUT", "/v1/loops/news", part)[0] == 200


def test_another_declaration_is_a_conflict_that_shows_the_difference(port):
    other = json.loads(json.dumps(NEWS)) | {"exploration": 0.2, "half_life": "7d"}
    other["reward"]["wait"] = 60
    other["features"]["arm"]["topic"]["values"] = ["sport", "music"]
    status, found, headers = ask(port, "PUT", "/v1/loops/news", other)
    assert status == 409
    assert headers["content-type"] == "application/problem+json"
    assert {each["field"]: (each["declared"], each["given"]) for each in found["difference"]} == {
        "features.arm.topic.values": (["sport", "world"], ["sport", "music"]),
        "half_life": (None, 604800.0),
        "reward.wait": (1800.0, 60.0),
        "exploration.uniform": (0.1, 0.2),
    }
    assert ask(port, "GET", "/v1/loops/news")[1]["settings"]["exploration"]["uniform"] == 0.1


def test_toml_and_changes(port):
    text = b"""
        exploration = 0.3
        policy = {type = "DOMD", discount = 0.99}
        [reward]
        low = 0
        high = 5
        [features.arm]
        age = {type = "Number", low = 0, high = 100}
    """
    toml = {"content-type": "application/toml"}
    assert ask(port, "PUT", "/v1/loops/stars", raw=text, headers=toml)[0] == 201
    assert ask(port, "PUT", "/v1/loops/stars", raw=text, headers=toml)[0] == 200
    status, found, _ = ask(
        port, "PATCH", "/v1/loops/stars", {"exploration": 0.4, "mode": "apprentice"}
    )
    assert status == 200
    assert (found["settings"]["exploration"]["uniform"], found["settings"]["mode"]) == (
        0.4,
        "apprentice",
    )
    assert found["declaration"]["policy"]["discount"] == 0.99
    assert ask(port, "PUT", "/v1/loops/stars", raw=text, headers=toml)[0] == 409
    rule = {"exploration": {"type": "Thompson", "uniform": 0.1}}
    found = ask(port, "PATCH", "/v1/loops/stars", rule)[1]["settings"]["exploration"]
    assert (found["type"], found["uniform"]) == ("Thompson", 0.1)


@pytest.mark.parametrize("id", ["plain", "a/b c?d#é", "../../etc", "x/reward", "<b>&amp;"])
def test_a_decision_and_its_life(port, id):
    asked = DECISION | {"id": id}
    status, made, _ = ask(port, "POST", "/v1/loops/news/decisions", asked)
    assert status == 200
    assert made["id"] == id
    assert made["probability"] == made["probabilities"][made["arm"]]
    assert ask(port, "POST", "/v1/loops/news/decisions", asked)[1] == made
    other = asked | {"context": {"age": 31}}
    assert ask(port, "POST", "/v1/loops/news/decisions", other)[0] == 409
    with Client(f"http://127.0.0.1:{port}", "news") as client:
        assert client.reward(id, 1) == "counted"
        assert client.reward(id, 1) == "corrected"
        assert client.cancel(id) == "cancelled"
        assert client.reward(id, 1) == "late"
    assert ask(port, "GET", f"/v1/loops/news/decisions/{id.encode().hex()}/why")[0] == 404


def test_why_and_health_and_log(port, tmp_path):
    with Client(f"http://127.0.0.1:{port}", "tale", timeout=30) as client:
        client.declare(**NEWS)
        begun = time.time()
        made = [client.decide({"age": age}, ARMS, key=f"k{age}") for age in (20, 50, 80)]
        client.reward(made[1].id, 0.5)
        client.cancel(made[2].id)
        health = client.health()
        counts = health["counts"]
        assert (health["report"]["decisions"], health["report"]["rewards"]) == (3, 1)
        assert health["report"]["missing"] == 0.0
    assert (counts["decide"], counts["reward counted"], counts["cancel cancelled"]) == (3, 1, 1)
    why = ask(port, "GET", f"/v1/loops/tale/decisions/{made[0].id}/why")[1]
    assert why["arm"] == made[0].arm
    assert why["logged"] == why["computed"] == list(made[0].probabilities.values())
    lines = ask(port, "GET", "/v1/loops/tale/log")[1].decode().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["id"] for row in rows] == [each.id for each in made]
    assert [row["status"] for row in rows] == ["open", "open", "cancelled"]
    (tmp_path / "log.parquet").write_bytes(ask(port, "GET", "/v1/loops/tale/log?format=parquet")[1])
    assert pl.read_parquet(tmp_path / "log.parquet")["id"].to_list() == [row["id"] for row in rows]
    before = f"/v1/loops/tale/log?since={begun - 9}&until={begun - 5}"
    assert ask(port, "GET", before)[1] == b""
    assert ask(port, "GET", f"/v1/loops/tale/log?since={rows[2]['at']!r}")[1].count(b"\n") == 1


def test_the_log_is_evaluated(port):
    with Client(f"http://127.0.0.1:{port}", "judged", timeout=60) as client:
        client.declare(**NEWS | {"reward": {"low": 0, "high": 1}, "exploration": 0.5})
        assert ask(port, "GET", "/v1/loops/judged/evaluation")[0] == 422  # nothing is trained yet
        defaults = {}
        for k in range(60):
            defaults[f"d{k}"] = default = "ab"[k % 2]
            made = client.decide({"age": 20 + k}, ARMS, id=f"d{k}", default=default)
            client.reward(made.id, 0.2 + 0.6 * (made.arm == "b"))
        client.decide({"age": 30}, ARMS, k=2, id="slate")
        for position in (0, 1):
            client.reward("slate", 1, position=position)
    status, found, _ = ask(port, "GET", "/v1/loops/judged/evaluation")
    assert (status, found["rows"], found["slates"]) == (200, 60, 2)
    lines = ask(port, "GET", "/v1/loops/judged/log")[1].decode().splitlines()
    rows = [row for row in map(json.loads, lines) if row["id"] != "slate"]
    values = found["report"]["values"]
    shown = {name: values[name]["estimates"]["ips"]["value"] for name in values}
    assert shown["live"] == pytest.approx(sum(row["reward"] for row in rows) / 60)
    own = [row for row in rows if row["arm"] == defaults[row["id"]]]
    by_hand = sum(row["reward"] / row["probability"] for row in own) / 60
    assert shown["default"] == pytest.approx(by_hand)
    by_hand = sum(0.5 * row["reward"] / row["probability"] for row in rows) / 60
    assert shown["uniform"] == pytest.approx(by_hand)
    assert all(each["second"] == "default" for each in found["report"]["differences"])
    status, page, headers = ask(port, "GET", "/v1/loops/judged/evaluation.html")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"<title>Evaluation of live, default, uniform</title>" in page
    late = f"/v1/loops/judged/evaluation?since={rows[-1]['at'] + 100}"
    assert ask(port, "GET", late)[0] == 422


def test_large_logs_are_not_evaluated_here(tmp_path):
    with in_thread(tmp_path / "shop.db", limits=Limits(rows=3)) as port:
        with Client(f"http://127.0.0.1:{port}", "news", timeout=30) as client:
            client.declare(**NEWS | {"reward": {"low": 0, "high": 1}})
            for k in range(4):
                client.reward(client.decide({"age": 30}, ARMS, id=f"d{k}").id, 1)
        status, found, _ = ask(port, "GET", "/v1/loops/news/evaluation")
        assert (status, "pass since=" in found["detail"]) == (422, True)


def test_a_declaration_has_all_options_of_a_loop(port):
    assert set(LoopDeclaration.__struct_fields__) == Options.__optional_keys__
    assert set(LoopChanges.__struct_fields__) == Changeable.__optional_keys__
    keyed = {k: v for k, v in NEWS.items() if k != "policy"} | {"key": "user"}
    assert ask(port, "PUT", "/v1/loops/users", keyed)[0] == 201
    assert ask(port, "PUT", "/v1/loops/users", keyed)[0] == 200
    status, problem, _ = ask(port, "POST", "/v1/loops/users/decisions", DECISION)
    assert (status, "pass key=" in problem["detail"]) == (422, True)
    asked = DECISION | {"key": "ann"}
    assert ask(port, "POST", "/v1/loops/users/decisions", asked)[0] == 200


def test_slates(port):
    with Client(f"http://127.0.0.1:{port}", "slates", timeout=30) as client:
        client.declare(**NEWS)
        made = client.decide({"age": 30}, ARMS, k=2, id="s", default=["b", "a"])
        assert client.decide({"age": 30}, ARMS, k=2, id="s", default=["b", "a"]) == made
        assert made.arm is None
        assert sorted(place["arm"] for place in made.places) == ["a", "b"]
        first, second = made.places
        assert (first["probability"], second["probability"]) == (made.probability, 1.0)
        assert client.reward("s", 1, position=1) == "counted"
        assert client.cancel("s", position=0) == "cancelled"
        with pytest.raises(ServiceError, match="pass position="):
            client.reward("s", 1)
        with pytest.raises(ServiceError, match="whole number"):
            client.cancel("s", position="x")
    with Client("http://127.0.0.1:1", "slates", timeout=0.1) as client:
        away = client.decide({"age": 30}, ARMS, k=2, default=["b", "a"])
        assert [place["arm"] for place in away.places] == ["b", "a"]


def test_a_batch_decides_and_refuses_one_by_one(port):
    wrong = {"context": {"agee": 30}, "arms": ARMS}
    body = {"decisions": [DECISION | {"id": "b1"}, wrong, DECISION | {"id": "b1"}]}
    status, found, _ = ask(port, "POST", "/v1/loops/news/batches", body)
    first, second, third = found["decisions"]
    assert status == 200
    assert first == third
    assert second["problem"]["status"] == 422
    assert "did you mean 'age'" in second["problem"]["detail"]
    body = {"decisions": [DECISION] * 5}
    assert ask(port, "POST", "/v1/loops/news/batches", body)[0] == 413


ASK, NEW = "/v1/loops/news/decisions", "/v1/loops/new"
BAD = [
    ("POST", ASK, b"{", 400, "truncated"),
    ("POST", ASK, b"[]", 400, "Expected `object`"),
    ("POST", ASK, b'{"context": {}}', 422, "arms"),
    ("POST", ASK, b'{"context":{},"arms":{},"colour":1}', 400, "colour"),
    ("POST", ASK, b'{"context":{},"arms":{}}', 422, "no arm"),
    ("POST", ASK, b'{"context":{},"arms":[{},{},{},{},{},{}]}', 422, "5 arms"),
    ("POST", ASK, b'{"context":{"age":"x"},"arms":[{}]}', 422, "age"),
    ("POST", ASK, b'{"context":{},"arms":[{}],"at":9e9}', 422, "ahead"),
    ("POST", ASK, b'{"context":{},"arms":[{}],"id":"\\n"}', 422, "printable"),
    ("POST", ASK, b"[" * 15_000, 400, "Expected"),
    ("POST", ASK, b'{"context":' + b"[" * 15_000, 400, ""),
    ("POST", ASK, b'{"context":{"age":' + b'{"a":' * 3000, 400, ""),
    ("POST", ASK, b'{"context":{"age":' + b"9" * 6000 + b'},"arms":[{}]}', None, ""),
    ("POST", ASK, b'{"context":{"age":"\\ud800"},"arms":[{}]}', 400, ""),
    ("POST", ASK, b"\xff\xfe", 400, ""),
    ("POST", "/v1/loops/unknown/decisions", b'{"context":{},"arms":[{}]}', 404, "declare it"),
    ("PUT", "/v1/loops/news/decisions/x/reward", b'{"value": "much"}', 400, "float"),
    ("PUT", "/v1/loops/news/decisions/x/reward", b'{"value": NaN}', 400, ""),
    ("PUT", "/v1/loops/new loop", b'{"reward": {"low": 0, "high": 1}}', 422, "name"),
    ("PUT", NEW, b'{"reward": {"low": 0, "high": 1}}', 422, "features"),
    ("PUT", NEW, b'{"reward": {"low": 0, "high": 1, "colour": 2}}', 422, "colour"),
    ("PUT", NEW, b'{"exploration": {"type": "Circle"}}', 422, "Floor, Thompson"),
    ("PUT", NEW, b'{"features": {"arm": {"x": {"type": "Oracle"}}}}', 422, "Number"),
    ("PUT", NEW, b'{"features":{"arm":{"x":{"type":"Vector","size":999999999}}}}', 422, "terms"),
    ("PUT", NEW, b'{"features": {"arm": {"x": 3}}}', 422, "Number"),
    ("PUT", NEW, b'{"features": {"arm": 3}}', 422, "mapping"),
    ("GET", "/v1/loops/news/log?format=csv", None, 422, "jsonl"),
    ("GET", "/v1/loops/news/log?since=now", None, 422, "seconds"),
    ("GET", "/v1/loops/news/decisions/none/why", None, 404, "no decision"),
    ("GET", "/v2/loops", None, 404, "openapi"),
    ("GET", "/v1/loops/%FF", None, 400, "UTF-8"),
    ("DELETE", "/v1/loops/news/decisions/x/reward", None, 405, ""),
    ("DELETE", "/v1/loops/news/decisions/x/why", None, 405, ""),
    ("DELETE", "/v1/loops/news", None, 405, ""),
    ("POST", ASK, b" " * 30_000, 413, "20000 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "raw", "status", "words"), BAD)
def test_bad_requests_are_refused_with_a_reason(port, method, path, raw, status, words):
    found, problem, headers = ask(port, method, path, raw=raw)
    assert found == status or (status is None and 400 <= found < 500)
    assert headers["content-type"] == "application/problem+json"
    assert words in problem["detail"]
    assert problem["status"] == found
    assert ask(port, "POST", "/v1/loops/news/decisions", DECISION)[0] == 200


def test_other_media_and_headers(port):
    text = {"content-type": "text/plain"}
    assert ask(port, "POST", "/v1/loops/news/decisions", DECISION, headers=text)[0] == 415
    headers = ask(port, "GET", "/healthz")[2]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers


def test_slow_and_chunked_bodies_do_not_hold_others(tmp_path):
    head = b"POST /v1/loops/news/decisions HTTP/1.1\r\nhost: localhost\r\n"
    head += b"content-type: application/json\r\n"
    with in_thread(tmp_path / "shop.db") as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
    limits = Limits(body=20_000, seconds=0.5)
    with in_thread(tmp_path / "shop.db", limits=limits) as port:
        until_ready(port)
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(head + b"content-length: 100\r\n\r\n{")
            assert ask(port, "GET", "/healthz")[0] == 200
            assert b" 408 " in slow.recv(4096)
        with socket.create_connection(("127.0.0.1", port)) as endless:
            endless.sendall(head + b"transfer-encoding: chunked\r\n\r\n")
            for _ in range(30):
                endless.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
            assert b" 413 " in endless.recv(4096)


def test_connections_without_a_request_are_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(connections, "FIRST", 0.2)
    monkeypatch.setattr(connections, "LOOK", 0.1)
    with in_thread(tmp_path / "shop.db") as port:
        for sent in (b"", b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as slow:
                slow.sendall(sent)
                assert slow.recv(100) == b""
        with socket.create_connection(("127.0.0.1", port), timeout=5) as resting:
            for pause in (0.3, 0.0):  # between two requests a connection may rest
                resting.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert b"alive" in resting.recv(4096)
                time.sleep(pause)


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl")
def test_tls(tmp_path, monkeypatch):
    files = [str(tmp_path / name) for name in ("key.pem", "cert.pem")]
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    more = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made.split(), "-keyout", files[0], "-out", files[1], *more], check=True,
                   capture_output=True)  # fmt: skip
    tls = {"certificate": files[1], "private_key": files[0]}
    with in_thread(tmp_path / "shop.db", **tls) as port:
        wary = Client(f"https://127.0.0.1:{port}", "news", timeout=1)
        with pytest.raises(UnreachableError, match="CERTIFICATE"):
            wary.health()
        monkeypatch.setenv("SSL_CERT_FILE", files[1])
        with Client(f"https://127.0.0.1:{port}", "news", timeout=20) as client:
            client.declare(**NEWS)
            assert client.health()["mode"] == "active"


def test_the_service_agrees_with_a_loop_and_its_restart(tmp_path):
    path, made = tmp_path / "shop.db", []
    with in_thread(path) as port, Client(f"http://127.0.0.1:{port}", "news", timeout=30) as client:
        client.declare(**NEWS | {"reward": {"low": 0, "high": 1}})
        for k in range(30):
            made.append(client.decide({"age": 18 + k}, ARMS, id=f"d{k}"))
            client.reward(made[-1].id, k % 2)
    with in_thread(path) as port, Client(f"http://127.0.0.1:{port}", "news", timeout=30) as client:
        again = client.decide({"age": 18}, ARMS, id="d0")
        assert again == made[0]
        assert client.decide_many([{"context": {"age": 19}, "arms": ARMS, "id": "d1"}]) == [made[1]]
    with Loop(path, name="news") as loop:
        assert loop.counts["decide"] == 30
        assert all(audit.logged == audit.computed for audit in loop.audits())


def test_many_threads_at_once(port):
    made, client = [], Client(f"http://127.0.0.1:{port}", "busy", timeout=30)
    client.declare(**NEWS)

    def work(k):
        for n in range(10):
            decision = client.decide({"age": 20 + k}, ARMS, id=f"{n}")  # all want the same ids
            made.append((decision.id, decision.arm))

    threads = [threading.Thread(target=work, args=(1,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.health()["counts"]["decide"] == 10
    client.close()
    assert len(made) == 60
    assert len(set(made)) == 10


def test_metrics_and_documents(port):
    text = ask(port, "GET", "/metrics")[1].decode()
    assert 'driftbandit_events_total{event="decide",loop="news"}' in text
    assert 'route="/v1/loops/{name}/decisions",status="200"' in text
    found = ask(port, "GET", "/openapi.json")[1]
    assert found == json.loads(json.dumps(document(ROUTES, found["info"]["version"])))
    for path, operations in found["paths"].items():
        for method, operation in operations.items():
            names = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert all(f"{{{name}}}" in path for name in names)
            status = ask(port, method.upper(), path, raw=b"{}")[0]
            assert str(status) in operation["responses"], (method, path, status)


def test_keys_allow_what_their_roles_say(tmp_path):
    path = tmp_path / "shop.db"
    keys = ApiKeys(path)
    admin, web = keys.create("boss", ["admin"]), keys.create("web", ["decide", "reward"])
    with in_thread(path, open_access=False) as port:
        put = ("PUT", "/v1/loops/news", NEWS)
        assert ask(port, *put)[0] == 401
        for wrong in ("web", f"{web}x", "web.", ".", "é", "boss." + web.split(".")[1]):
            assert ask(port, *put, headers={"authorization": f"Bearer {wrong}".encode()})[0] == 401
        assert ask(port, *put, headers={"authorization": f"Basic {admin}"})[0] == 401
        assert ask(port, *put, key=web)[0] == 403
        assert ask(port, *put, key=admin)[0] == 201
        assert ask(port, "POST", "/v1/loops/news/decisions", DECISION, key=web)[0] == 200
        assert ask(port, "GET", "/v1/loops/news/log", key=web)[0] == 403
        assert ask(port, "GET", "/metrics")[0] == 401
        assert ask(port, "GET", "/healthz")[0] == 200
        keys.revoke("web")
        end = time.monotonic() + 20
        while ask(port, "POST", "/v1/loops/news/decisions", DECISION, key=web)[0] != 401:
            assert time.monotonic() < end
    keys.close()
    for file in tmp_path.iterdir():
        assert admin.split(".")[1].encode() not in file.read_bytes()


def test_keys_are_refused_in_words(tmp_path):
    keys = ApiKeys(tmp_path / "shop.db")
    keys.create("web", ["read"])
    for name, roles, words in (("web", ["read"], "revoke"), ("a.b", ["read"], "letters"),
                               ("x", [], "some of"), ("x", ["root"], "decide")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            keys.create(name, roles)
    with pytest.raises(ValueError, match="no key"):
        keys.revoke("unknown")
    keys.close()
    with pytest.raises(ValueError, match="this machine only"):
        check_host("0.0.0.0", True)
    check_host("::1", True)


def test_what_is_refused_leaves_nothing_behind(tmp_path):
    path = tmp_path / "shop.db"
    with in_thread(path) as port:
        for wrong in ({"reward": {"low": 0, "high": 1}}, NEWS | {"mode": "dead"},
                      NEWS | {"retention": "1s"}, NEWS | {"exploration": 2}):  # fmt: skip
            assert ask(port, "PUT", "/v1/loops/bad", wrong)[0] == 422
        assert ask(port, "GET", "/v1/loops")[1] == {"loops": []}
        assert ask(port, "DELETE", "/v1/loops/bad")[2]["allow"] == "GET, PATCH, PUT"
    base = sqlite3.connect(path)
    assert base.execute("SELECT count(*) FROM loop").fetchone() == (0,)
    base.close()
    assert [each.name for each in tmp_path.iterdir()] == ["shop.db"]
    done = driftbandit("api-keys", "list", "nowhere.db", cwd=tmp_path)
    assert (done.returncode, "check the name" in done.stderr) == (2, True)
    assert not (tmp_path / "nowhere.db").exists()


def test_a_key_has_its_rate(tmp_path):
    with in_thread(tmp_path / "shop.db", limits=Limits(rate=2.0)) as port:
        assert [ask(port, "GET", "/v1/loops")[0] for _ in range(4)] == [200] * 4
        begun = time.monotonic()
        status, _, headers = ask(port, "GET", "/v1/loops")
        assert (status, headers["retry-after"]) == (429, "1")
        assert 0.2 < time.monotonic() - begun < 1.5  # a client that goes on is slowed down
        time.sleep(0.6)
        assert ask(port, "GET", "/v1/loops")[0] == 200


def test_the_rate_counts_decisions(tmp_path):
    """A batch counts as its decisions, and is paid for before the next request."""
    with in_thread(tmp_path / "shop.db", limits=Limits(rate=100.0)) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        asked = {"decisions": [DECISION] * 450}
        assert ask(port, "POST", "/v1/loops/news/batches", asked)[0] == 200
        status, problem, headers = ask(port, "POST", "/v1/loops/news/decisions", DECISION)
        assert status == 429
        assert "per second" in problem["detail"]
        assert 1 <= int(headers["retry-after"]) <= 3


def test_a_client_waits_for_a_service_and_falls_back(tmp_path):
    port = free_port()
    with Client(f"http://127.0.0.1:{port}", "news", timeout=0.3) as client:
        away = client.decide({"age": 30}, ARMS, default="b")
        assert (away.arm, away.probability, away.role) == ("b", 1.0, "fallback")
        with pytest.raises(UnreachableError, match="pass a default"):
            client.decide({"age": 30}, ARMS)
        with pytest.raises(UnreachableError):
            client.reward(away.id, 1)
    with pytest.raises(ValueError, match="http://"):
        Client("127.0.0.1:80", "news")
    with in_thread(tmp_path / "shop.db") as port:
        client = Client(f"http://127.0.0.1:{port}", "news", timeout=30)
        with pytest.raises(ServiceError, match="declare it") as refused:
            client.decide({"age": 30}, ARMS, default="b")
        assert refused.value.status == 404
        client.close()


def test_a_client_repeats_until_it_is_answered():
    """A server that drops the first two connections."""
    answers = [b"", b"HTTP/1.1 503 x\r\ncontent-length: 2\r\n\r\n{}",
               b'HTTP/1.1 200 x\r\ncontent-length: 21\r\n\r\n{"outcome":"counted"}']  # fmt: skip
    seen = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            for answer in answers:
                link, _ = listening.accept()
                with link:
                    seen.append(link.recv(65536))
                    link.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with Client(f"http://127.0.0.1:{listening.getsockname()[1]}", "x", timeout=20) as client:
            assert client.reward("d", 1) == "counted"
        thread.join()
    assert len(seen) == 3


def test_a_loop_that_stopped_is_opened_again(tmp_path):
    path = tmp_path / "shop.db"
    with in_thread(path) as port:
        assert ask(port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        base = sqlite3.connect(path)
        base.execute("ALTER TABLE event RENAME TO gone")
        base.commit()
        status, problem, headers = ask(port, "POST", "/v1/loops/news/decisions", DECISION)
        assert (status, headers["retry-after"]) == (503, "1")
        assert "ledger" in problem["detail"]
        assert ask(port, "GET", "/readyz")[0] == 503
        base.execute("ALTER TABLE gone RENAME TO event")
        base.commit()
        base.close()
        time.sleep(1.1)
        assert ask(port, "POST", "/v1/loops/news/decisions", DECISION)[0] == 200
        assert ask(port, "GET", "/readyz")[0] == 200


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_curl_in_the_docs_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", page, flags=re.S))
    keys = ApiKeys(tmp_path / "shop.db")
    key = keys.create("me", ["admin"])
    with in_thread(tmp_path / "shop.db", open_access=False) as port:
        env = os.environ | {"URL": f"http://127.0.0.1:{port}", "KEY": key}
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    keys.close()
    assert done.returncode == 0, done.stderr
    assert '{"outcome":"counted"}' in done.stdout
    assert pl.read_parquet(tmp_path / "log.parquet")["id"].to_list() == ["visit-1", "visit-0"]


PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text()


def test_every_route_is_documented():
    """Each stands in the table of routes with its method."""
    paths = {path: list(operations) for path, operations in document(ROUTES, "0")["paths"].items()}
    for path, methods in {**paths, "/": ["get"], "/openapi.json": ["get"]}.items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in PAGE, f"{method} {path}: name it in service.md"


def test_every_setting_is_documented():
    """Options of the command, and limits by name or by number."""
    for param in get_command(cli).commands["serve"].params:
        for option in (each for each in param.opts if each.startswith("--")):
            assert re.search(rf"{option}\b", PAGE), f"{option}: name it in service.md"
    limits = PAGE.partition("## Limits")[2].partition("\n## ")[0]
    for field in fields(Limits):
        number = f"{field.default:g}"
        shown = {number, f"{int(field.default):,}", field.name}
        assert re.search(rf"\b{field.name}\b", limits), f"{field.name}: name it under Limits"
        assert any(each in limits for each in shown - {field.name}), f"{field.name} is {number}"


def test_served_as_a_stranger_does(tmp_path):
    served = Process(tmp_path)
    words = served.process.stdout.readline()
    key = words.split()[-1]
    assert "first API key" in words
    until_ready(served.port)
    assert ask(served.port, "PUT", "/v1/loops/news", NEWS)[0] == 401
    assert ask(served.port, "PUT", "/v1/loops/news", NEWS, key=key)[0] == 201
    answer = ask(served.port, "POST", "/v1/loops/news/decisions", DECISION, key=key)[1]
    begun = time.monotonic()
    served.stop(signal.SIGINT)
    assert time.monotonic() - begun < 5
    assert all(json.loads(line)["level"] == "info" for line in served.lines)
    with Loop(tmp_path / "shop.db", name="news") as loop:
        assert loop.log()["id"].to_list() == [answer["id"]]


def test_a_guard_is_declared_as_data(port):
    metrics = {"cost": {"low": 0, "high": 5, "goal": "min"}}
    body = NEWS | {"guard": {"level": 0.9, "metrics": metrics}}
    assert ask(port, "PUT", "/v1/loops/guarded", body)[0] == 201
    assert ask(port, "PUT", "/v1/loops/guarded", body)[0] == 200
    settings = ask(port, "GET", "/v1/loops/guarded")[1]["settings"]
    assert settings["guard"]["metrics"]["cost"]["high"] == 5.0
    assert ask(port, "PATCH", "/v1/loops/guarded", {"guard": False})[0] == 200
    assert ask(port, "GET", "/v1/loops/guarded")[1]["settings"]["guard"] is None
    for wrong in ({"metrics": 1}, {"metrics": {"cost": 3}}, {"level": 2}, {"x": 1}):
        assert ask(port, "PATCH", "/v1/loops/guarded", {"guard": wrong})[0] == 422
