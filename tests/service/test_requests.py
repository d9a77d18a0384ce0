"""Requests that are nearly right: valid ones of every route in which something is replaced, left
out, cut or repeated. None is the service's own fault. `make torture` sends 110,000 of them; with
TORTURE_SECONDS and TORTURE_SEED it sends a part, and the counts of all parts are added up."""

import http.client
import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pytest

from driftbandit.service.routes import ROUTES
from serving import ARMS, NEWS, Process, ask, until_ready

LONG = bool(os.environ.get("TORTURE"))
REQUESTS = 110_000 if LONG else 600
SECONDS = float(os.environ.get("TORTURE_SECONDS", "inf"))
SEED = int(os.environ.get("TORTURE_SEED", "11"))
STORED = Path(__file__).parents[2] / "docs" / "results" / "requests.csv"
RARE = ("/log", "/evaluation", "/evaluation.html", "/why", "/live")  # they read much, or for long
DEEP = {"x": 1}
for _ in range(60):
    DEEP = {"x": [DEEP]}
ODD = (None, True, -1, 0, 1, 2.5, 1e308, -1e308, 2**31, 2**63, 2**64, 10**40, "", "a",
       "null", "NaN", "x" * 300, "\x00", "é", "\ud800", "2026-01-01T00:00:00Z", "30min",
       "live", "default", [], {}, [[]], [None], {"": None}, {"a": {}}, {"type": "Number"},
       {"type": "os.system"}, DEEP)  # fmt: skip
DECISION = {"context": {"age": 30}, "arms": ARMS, "id": "d", "default": "a", "key": "u", "at": 1e9}
SLATE = {"context": {"age": 30}, "arms": ARMS, "k": 2, "default": ["a", "b"]}
BODIES = {
    "LoopDeclaration": [NEWS, NEWS | {"guard": {"level": 0.9}, "retention": "90d", "seed": 1}],
    "LoopChanges": [{"exploration": 0.2, "holdout": 0.1, "mode": "active"}],
    "DecisionRequest": [DECISION, SLATE],
    "DecisionBatch": [{"decisions": [DECISION, SLATE]}],
    "FallbackBatch": [{"decisions": [DECISION]}],
    "RewardRequest": [{"value": 1, "at": 1e9, "position": 0}],
    "CandidateDeclaration": [{"exploration": {"type": "Floor", "uniform": 0.5}, "half_life": "1d"}],
    "TrialRequest": [{"share": 0.1}],
    "PromotionRequest": [{"candidate": "bold", "expected_live": "live", "force": False}],
}
NAMES = {"name": ["news", "news", "news", "other", "x" * 300], "id": ["d", "none", "a/b", "\x00"],
         "candidate": ["bold", "live", "é"]}  # fmt: skip


def changed(rng, value, often=0.25):
    """A value in which some parts are replaced, left out or repeated."""
    if rng.random() < often / 3:
        return rng.choice(ODD)
    if isinstance(value, dict):
        made = {k: changed(rng, v, often) for k, v in value.items() if rng.random() > often / 4}
        if rng.random() < often / 3:
            made[rng.choice(["", "x", "k", "at", "type", "value"])] = rng.choice(ODD)
        return made
    if isinstance(value, list):
        made = [changed(rng, each, often) for each in value]
        return made * rng.randint(0, 3) if rng.random() < often / 3 else made
    return value


def body(rng, kind):
    """Bytes of a body, and its media type."""
    if kind is None:
        return b"", ""
    found = BODIES.get(kind.__name__) or [{"columns": {"topic": "sport"}, "paused": True}]
    raw = json.dumps(changed(rng, rng.choice(found), rng.choice((0.0, 0.25)))).encode()
    if rng.random() < 0.1:
        raw = raw[: rng.randrange(len(raw) + 1)] + rng.randbytes(rng.randrange(8))
    return raw, rng.choice(["application/json"] * 8 + ["application/toml", "text/plain", ""])


def made_up(rng):
    """Method, path, body and headers of a request."""
    route = rng.choice(ROUTES)
    while route.path.endswith(RARE) and rng.random() > 0.02:
        route = rng.choice(ROUTES)
    path = route.path
    new = route.path == "/v1/loops/{name}" and route.method == "PUT" and rng.random() < 0.5
    for part in [part[1:-1] for part in path.split("/") if part[:1] == "{"]:
        name = rng.choice(["second", "third"] if new else NAMES.get(part, ["a", "b", "x" * 300]))
        path = path.replace(f"{{{part}}}", quote(name, safe=""))
    if route.query and rng.random() < 0.5:
        path += f"?{rng.choice(route.query)}={quote(str(rng.choice(ODD[:-1])), errors='ignore')}"
    raw, media = body(rng, route.body)
    method = route.method if rng.random() < 0.97 else rng.choice(["PUT", "HEAD", "OPTIONS", "X"])
    return method, path, raw, {"content-type": media} if media else {}


def store(statuses):
    """Add the counts of a long run to those that are stored, for the page of promises."""
    counts = Counter({str(status): n for status, n in statuses.items()})
    if STORED.exists() and SEED != 11:
        rows = [line.split(",") for line in STORED.read_text().splitlines()[1:]]
        counts.update({status: int(n) for status, n in rows if status != "all"})
    rows = [("answer", "requests"), *sorted({"500": 0, **counts}.items())]
    rows.append(("all", counts.total()))
    text = "".join(f"{status},{n}\n" for status, n in rows)
    STORED.write_text(text)


@pytest.mark.slow
def test_requests_that_are_nearly_right(tmp_path):
    rng, statuses, end = random.Random(SEED), Counter(), time.monotonic() + SECONDS
    served = Process(tmp_path, "--open", "--rate", "1e9")
    until_ready(served.port)
    try:
        assert ask(served.port, "PUT", "/v1/loops/news", NEWS)[0] == 201
        bold = {"exploration": {"type": "Floor", "uniform": 0.5}}
        assert ask(served.port, "PUT", "/v1/loops/news/candidates/bold", bold)[0] == 201
        link = http.client.HTTPConnection("127.0.0.1", served.port, timeout=600 if LONG else 60)
        for _ in range(REQUESTS):
            if time.monotonic() > end:
                break
            asked = made_up(rng)
            try:
                link.request(*asked)
                answer = link.getresponse()
                text = answer.read()
            except (http.client.HTTPException, ConnectionError):  # closed after a bad request
                link.close()
                statuses["closed"] += 1
                continue
            statuses[answer.status] += 1
            assert answer.status not in (500, 502), (asked, text)
            if answer.status >= 400 and asked[0] != "HEAD":
                said = {"detail": ""} if answer.status == 400 else json.loads(text)
                assert {"detail", "errorDetails"} & said.keys(), (asked, text)  # one of OFREP's own
                assert answer.status == 400 or all(map(str, said.values())), (asked, text)
        link.close()
        assert ask(served.port, "POST", "/v1/loops/news/decisions", {**DECISION, "id": "last",
                   "at": None})[0] == 200  # fmt: skip
    finally:
        code = served.stop(signal.SIGTERM)
    assert code in (0, -signal.SIGTERM)
    assert {200, 201, 404, 405, 409, 415, 422} <= statuses.keys(), statuses
    assert statuses["closed"] < statuses.total() / 20
    assert not [line for line in served.lines if json.loads(line)["level"] == "error"]
    if LONG:
        store(statuses)
