"""Loops as flags by OpenFeature's protocol: with its official client, and by plain HTTP."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from driftbandit import track_rewards
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.limits import Limits
from serving import ARMS, NEWS, ask, in_thread

FLAG = "/ofrep/v1/evaluate/flags/"
AGE = {"age": 30, "targetingKey": "ann"}


@pytest.fixture(scope="module")
def port(tmp_path_factory, no_wait_for_the_disk):
    with in_thread(tmp_path_factory.mktemp("flags") / "a.db", limits=Limits(rate=1e6)) as port:
        assert ask(port, "PUT", "/v1/loops/news", {**NEWS, "arms": ARMS})[0] == 201
        yield port


@pytest.fixture
def client(port):
    api.set_provider(OFREPProvider(f"http://127.0.0.1:{port}"))
    yield api.get_client()
    api.shutdown()


def evaluated(port, loop, context, **more):
    status, found, head = ask(port, "POST", FLAG + loop, {"context": context}, **more)
    assert head["content-type"] == "application/json"
    return status, found


def failed(port, loop, context):
    """Status and code of an evaluation without a value."""
    status, found = evaluated(port, loop, context)
    assert set(found) == {"key", "errorCode", "errorDetails"}
    assert found["key"] == loop
    assert found["errorDetails"]
    return status, found["errorCode"]


def test_the_official_client_decides_and_the_reward_counts(port, client):
    context = EvaluationContext("ann", {"age": 30, "app": "shop 1.2", "beta": True})
    found = client.get_string_details("news", "none", context)
    told = found.flag_metadata
    assert found.error_code is None
    assert found.value == found.variant in ARMS
    assert (found.reason, told["role"]) == (Reason.SPLIT, "active")
    assert 0.0 < told["propensity"] <= 1.0
    assert told["ignored"] == "app, beta"
    path = f"/v1/loops/news/decisions/{told['decision_id']}"
    assert ask(port, "PUT", f"{path}/reward", {"value": 1})[1] == {"outcome": "counted"}
    assert ask(port, "GET", f"{path}/why")[1]["agrees"] is True


def test_the_official_client_gets_its_own_default_if_there_is_no_value(client):
    right = EvaluationContext("ann", {"age": 30})
    cases = [
        ("nothing", right, ErrorCode.FLAG_NOT_FOUND),
        ("news", EvaluationContext("ann", {"age": "old"}), ErrorCode.INVALID_CONTEXT),
    ]
    for flag, context, code in cases:
        found = client.get_string_details(flag, "none", context)
        assert (found.value, found.reason, found.error_code) == ("none", Reason.ERROR, code)
    assert client.get_boolean_details("news", False, right).error_code == ErrorCode.TYPE_MISMATCH


def test_an_evaluation_is_the_decision_that_the_native_route_makes(port):
    """The arms, the probabilities and the log are the same; only the words differ."""
    native = ask(port, "POST", "/v1/loops/news/decisions", {"context": {"age": 30}, "key": "ann"})
    before = ask(port, "GET", "/v1/loops/news/health")[1]["counts"]["decide"]
    status, found = evaluated(port, "news", {**AGE, "app": "shop 1.2"})
    assert status == 200
    assert set(found) == {"key", "value", "variant", "reason", "metadata"}
    assert ask(port, "GET", "/v1/loops/news/health")[1]["counts"]["decide"] == before + 1
    shares = native[1]["probabilities"]
    assert found["metadata"]["propensity"] == pytest.approx(shares[found["value"]])
    rows = ask(port, "GET", "/v1/loops/news/log")[1].decode().splitlines()
    (row,) = [each for each in rows if found["metadata"]["decision_id"] in each]
    assert '"key":"ann"' in row
    assert "shop 1.2" not in row


def test_reasons_say_who_chose(port):
    """The default needs its name in the context, because OpenFeature does not send its own."""
    for loop, more in {"apprentice": {"mode": "apprentice"}, "held": {"holdout": 0.5}}.items():
        assert ask(port, "PUT", f"/v1/loops/{loop}", {**NEWS, "arms": ARMS, **more})[0] == 201
        assert failed(port, loop, AGE) == (400, "INVALID_CONTEXT")
    for _ in range(40):  # an apprentice explores, too
        found = evaluated(port, "apprentice", {**AGE, "defaultVariant": "b"})[1]
        assert found["reason"] == {"a": "SPLIT", "b": "DEFAULT"}[found["value"]]
    seen = set()
    for k in range(40):
        context = {"age": 30, "targetingKey": f"user {k}", "defaultVariant": "a"}
        found = evaluated(port, "held", context)[1]
        assert found["reason"] == "SPLIT"
        seen.add(found["metadata"]["role"])
    assert seen == {"active", "holdout"}


def test_paused_arms_are_no_variants(port):
    assert ask(port, "PUT", "/v1/loops/few", {**NEWS, "arms": ARMS})[0] == 201
    ask(port, "PATCH", "/v1/loops/few/arms/a", {"paused": True})
    assert {evaluated(port, "few", AGE)[1]["value"] for _ in range(10)} == {"b"}
    ask(port, "DELETE", "/v1/loops/few/arms/a")
    ask(port, "DELETE", "/v1/loops/few/arms/b")
    assert failed(port, "few", AGE) == (400, "INVALID_CONTEXT")
    found = evaluated(port, "few", {**AGE, "defaultVariant": "none"})[1]
    assert (found["value"], found["reason"]) == ("none", "DISABLED")


def test_errors_are_those_of_the_protocol(port):
    assert ask(port, "PUT", "/v1/loops/plain", NEWS)[0] == 201
    assert failed(port, "plain", AGE) == (400, "GENERAL")
    assert failed(port, "nothing", AGE) == (404, "FLAG_NOT_FOUND")
    assert failed(port, "news", 7) == (400, "PARSE_ERROR")
    for wrong in (7, "", ["ann"]):
        assert failed(port, "news", {**AGE, "targetingKey": wrong}) == (400, "INVALID_CONTEXT")
    status, found, _ = ask(port, "POST", FLAG + "news", raw=b"{")
    assert (status, found["errorCode"]) == (400, "PARSE_ERROR")
    status, found, _ = ask(port, "POST", FLAG + "news", {})
    assert (status, found["reason"]) == (200, "SPLIT")  # a number may be missing


def test_a_column_that_only_a_candidate_reads_reaches_it(port):
    assert ask(port, "PUT", "/v1/loops/two", {**NEWS, "arms": ARMS})[0] == 201
    context = {**NEWS["features"]["context"], "night": {"type": "Flag"}}
    wider = {"features": {**NEWS["features"], "context": context}}
    status, made, _ = ask(port, "PUT", "/v1/loops/two/candidates/wider", wider)
    assert status == 201, made
    found = evaluated(port, "two", {**AGE, "night": True, "app": "shop"})[1]
    rows = ask(port, "GET", "/v1/loops/two/log")[1].decode().splitlines()
    (row,) = [each for each in rows if found["metadata"]["decision_id"] in each]
    assert "night" in row


@pytest.fixture(scope="module")
def flags(tmp_path_factory, no_wait_for_the_disk):
    """A service with a sticky flag, one that is not, and a loop that is no flag."""
    with in_thread(tmp_path_factory.mktemp("bulk") / "a.db", limits=Limits(rate=1e6)) as port:
        for name, more in {"once": {"arms": ARMS}, "plain": {}}.items():
            assert ask(port, "PUT", f"/v1/loops/{name}", {**NEWS, **more})[0] == 201
        sticky = {**NEWS, "arms": ARMS, "sticky": "7d"}
        assert ask(port, "PUT", "/v1/loops/banner", sticky)[0] == 201
        yield port


def bulk(port, context, tag=None):
    head = {} if tag is None else {"if-none-match": tag}
    return ask(port, "POST", FLAG.rstrip("/"), {"context": context}, headers=head)


def test_all_flags_at_once_and_only_if_they_have_changed(flags):
    status, found, head = bulk(flags, AGE)
    banner, once = found["flags"]
    assert (status, banner["key"], banner["reason"]) == (200, "banner", "SPLIT")
    assert (once["key"], once["errorCode"]) == ("once", "GENERAL")
    assert "not sticky" in once["errorDetails"]
    assert evaluated(flags, "banner", {**AGE, "age": 80})[1]["value"] == banner["value"]
    for tag in (head["etag"], f'"other", {head["etag"]}'):
        status, text, again = bulk(flags, {**AGE, "age": 50}, tag)
        assert (status, text, again["etag"]) == (304, b"", head["etag"])
    assert bulk(flags, {**AGE, "targetingKey": "bob"}, head["etag"])[0] == 200
    ask(flags, "PATCH", f"/v1/loops/banner/arms/{banner['value']}", {"paused": True})
    status, changed, now = bulk(flags, AGE, head["etag"])
    assert (status, now["etag"] != head["etag"]) == (200, True)
    assert changed["flags"][0]["value"] != banner["value"]
    ask(flags, "PATCH", f"/v1/loops/banner/arms/{banner['value']}", {"paused": False})
    assert ask(flags, "GET", "/v1/loops/banner/health")[1]["counts"]["decide"] == 3
    assert "decide" not in ask(flags, "GET", "/v1/loops/once/health")[1]["counts"]


def test_errors_of_all_flags_are_those_of_the_protocol(flags):
    status, found, _ = bulk(flags, {"age": 30})
    assert (status, found["errorCode"]) == (400, "TARGETING_KEY_MISSING")
    status, found = evaluated(flags, "banner", {"age": 30})
    assert (status, found["errorCode"]) == (400, "TARGETING_KEY_MISSING")
    for raw, code in ((b"{", "PARSE_ERROR"), (b'{"context": {"targetingKey": 7}}', None)):
        status, found, _ = ask(flags, "POST", FLAG.rstrip("/"), raw=raw)
        assert (status, found["errorCode"]) == (400, code or "INVALID_CONTEXT")
        assert set(found) == {"errorCode", "errorDetails"}
    status, found, _ = bulk(flags, {**AGE, "age": "old"})
    assert (status, found["flags"][0]["errorCode"]) == (200, "INVALID_CONTEXT")


def test_all_flags_count_for_the_rate_once_for_every_loop(tmp_path, no_wait_for_the_disk):
    with in_thread(tmp_path / "a.db", limits=Limits(rate=10.0)) as port:
        for k in range(8):
            sticky = {**NEWS, "arms": ARMS, "sticky": "7d"}
            assert ask(port, "PUT", f"/v1/loops/flag{k}", sticky)[0] == 201
        time.sleep(1.1)  # the rate of the declarations is over
        statuses = [bulk(port, AGE)[0] for _ in range(12)]
        assert statuses[0] == 200
        assert 429 in statuses  # 12 requests are few, 96 decisions are not


def test_a_tracked_event_is_the_reward(flags, caplog):
    url, ann = f"http://127.0.0.1:{flags}", EvaluationContext("ann", {"age": 30})
    api.set_provider(track_rewards(OFREPProvider(url), url, {"purchase": ["banner"]}))
    client = api.get_client()
    before = ask(flags, "GET", "/v1/loops/banner/health")[1]["counts"].get("reward counted", 0)
    client.track("purchase", ann)
    assert "banner was not evaluated for this key" in caplog.text
    id = client.get_string_details("banner", "none", ann).flag_metadata["decision_id"]
    client.track("purchase", ann, TrackingEventDetails(0.25))
    client.track("other", ann)
    api.shutdown()
    counts = ask(flags, "GET", "/v1/loops/banner/health")[1]["counts"]
    assert counts["reward counted"] == before + 1
    rows = ask(flags, "GET", "/v1/loops/banner/log")[1].decode().splitlines()
    (row,) = [json.loads(each) for each in rows if id in each]
    assert row["reward"] == 0.25


def test_it_needs_a_key_with_the_role_decide(tmp_path):
    keys = ApiKeys(tmp_path / "a.db")
    admin, reader = keys.create("me", ["admin"]), keys.create("it", ["read"])
    decider = keys.create("web", ["decide"])
    with in_thread(tmp_path / "a.db", open_access=False) as port:
        assert ask(port, "PUT", "/v1/loops/news", {**NEWS, "arms": ARMS}, admin)[0] == 201
        assert evaluated(port, "news", AGE)[0] == 401
        assert evaluated(port, "news", AGE, key=reader)[0] == 403
        assert evaluated(port, "news", AGE, key=decider)[0] == 200
    keys.close()


@pytest.mark.slow
def test_the_page_runs(tmp_path, no_wait_for_the_disk):
    """A stranger declares, decides and rewards by what the page says; Node's part is played where
    the packages are (test_typescript.py)."""
    page = (Path(__file__).parents[2] / "docs" / "openfeature.md").read_text()
    shell, program = (
        re.findall(rf"```{kind}\n(.*?)```", page, flags=re.S) for kind in ("sh", "py")
    )
    with in_thread(tmp_path / "shop.db") as port:
        run = {"env": os.environ | {"URL": f"http://127.0.0.1:{port}"}, "text": True}
        subprocess.run(["bash", "-euc", *shell], check=True, capture_output=True, **run)
        done = subprocess.run([sys.executable, "-c", *program], capture_output=True, **run)
    assert done.returncode == 0, done.stderr
    value, reason, _, outcome = done.stdout.split()
    assert (value in ("summer", "winter"), reason, outcome) == (True, "SPLIT", "corrected")
