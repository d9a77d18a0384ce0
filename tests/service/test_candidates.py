"""Candidates over HTTP: shadow, trial, comparison, promotion, and the policy that acts."""

import threading
import time
from urllib.parse import quote

import pytest

from driftbandit import Client
from driftbandit.client.client import ServiceError
from driftbandit.loop.training.backfill import PastLearner
from driftbandit.service.http.auth import ApiKeys
from driftbandit.service.limits import Limits
from serving import ARMS, NEWS, ask, in_thread, until_ready

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

EVEN = NEWS | {
    "reward": {"low": 0, "high": 1},
    "exploration": 1.0,
}  # all arms alike
GREEDY = {"exploration": {"type": "Floor", "uniform": 0.0}}
VIP = {"context": NEWS["features"]["context"] | {"vip": {"type": "Flag"}}}
VIP |= {"arm": NEWS["features"]["arm"]}


@pytest.fixture(scope="module")
def port(tmp_path_factory, no_wait_for_the_disk):
    path = tmp_path_factory.mktemp("candidates") / "shop.db"
    with in_thread(path, limits=Limits(candidates=4)) as port:
        yield port


@pytest.fixture
def loop(port, request):
    """The path of a loop of its own for each test."""
    path = f"/v1/loops/{request.node.name[:60]}"
    assert ask(port, "PUT", path, EVEN)[0] == 201
    return path


def at(loop, candidate):
    return f"{loop}/candidates/{quote(candidate, safe='')}"


def play(port, loop, start, n, **options):
    """Every visitor likes b alone; all of it is trained when this returns."""
    with Client(f"http://127.0.0.1:{port}", loop.rpartition("/")[2], timeout=30) as client:
        for k in range(start, start + n):
            made = client.decide({"age": 18 + k % 70}, ARMS, id=f"d{k}", **options)
            client.reward(made.id, float(made.arm == "b"))
    settle(port, loop)
    return made


def settle(port, loop):
    end = time.monotonic() + 20
    while ask(port, "GET", f"{loop}/health")[1]["waiting"]:
        assert time.monotonic() < end


def listed(port, loop):
    found = ask(port, "GET", f"{loop}/candidates")[1]
    return found["acts"], {each["name"]: each["share"] for each in found["candidates"]}


def acts(port, loop):
    """Who acts, and the candidates with their shares; health says the same."""
    report = ask(port, "GET", f"{loop}/health")[1]["report"]
    assert (report["acts"], report["candidates"]) == listed(port, loop)
    return listed(port, loop)


def until(port, loop, expected):
    """What happens elsewhere, or in the background, is known here."""
    end = time.monotonic() + 20
    while listed(port, loop) != expected:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert acts(port, loop) == expected


def test_from_the_shadow_to_a_promotion(port, loop):
    assert acts(port, loop) == ("live", {})
    status, made, _ = ask(port, "PUT", at(loop, "greedy"), GREEDY)
    assert (status, made["share"], made["exploration"]["uniform"]) == (201, 0.0, 0.0)
    play(port, loop, 0, 5)
    assert acts(port, loop) == ("live", {"greedy": 0.0})
    assert ask(port, "PATCH", at(loop, "greedy"), {"share": 0.5})[1]["share"] == 0.5
    asked = {"candidate": "greedy", "expected_live": "live"}
    status, problem, headers = ask(port, "POST", f"{loop}/promotion", asked)
    assert (status, headers["content-type"]) == (409, "application/problem+json")
    (lead,) = problem["leads"]
    assert (lead["first"], lead["second"], lead["metric"]) == ("greedy", "live", None)
    assert (lead["rows"], lead["better"]) == (5, 0)
    assert lead["low"] < 0.0 < lead["high"]
    assert lead["more"] is None or lead["more"] > 0.0
    assert "not shown to be better" in problem["detail"]
    assert acts(port, loop) == ("live", {"greedy": 0.5})
    play(port, loop, 5, 195)
    compared = ask(port, "GET", f"{loop}/comparison")[1]
    (lead,) = (each for each in compared["leads"] if each["first"] == "greedy")
    assert 0.0 < lead["low"] < lead["value"] < lead["high"]
    assert (lead["better"], lead["rows"], compared["level"]) == (1, 195, 0.95)
    assert {"live", "greedy"} <= compared["values"].keys()
    assert compared["values"]["greedy"]["rows"] == 200
    assert any("greedy is better than live with 98.25 % confid" in w for w in compared["words"])
    status, found, _ = ask(port, "POST", f"{loop}/promotion", asked)
    assert (status, found) == (200, {"acts": "greedy", "candidates": []})
    assert ask(port, "POST", f"{loop}/promotion", asked)[1] == found  # the answer may be lost
    assert acts(port, loop) == ("greedy", {})
    assert ask(port, "GET", loop)[1]["settings"]["exploration"]["uniform"] == 0.0
    assert play(port, loop, 200, 1).probability == 1.0


def test_what_is_missing_is_said_in_rows(port, loop):
    ask(port, "PUT", at(loop, "greedy"), GREEDY)
    promotion = f"{loop}/promotion"
    status, problem, _ = ask(port, "POST", promotion, {"candidate": "greedy"})
    assert (status, "leads" in problem) == (409, False)
    assert "not compared" in problem["detail"]
    play(port, loop, 0, 12)
    status, problem, _ = ask(port, "POST", promotion, {"candidate": "greedy", "force": False})
    assert (status, problem["leads"][0]["rows"]) == (409, 12)
    assert problem["leads"][0]["more"] > 0
    assert "more rows like these are needed" in problem["detail"]
    for wrong in ("yes", 1, None):
        body = {"candidate": "greedy", "force": wrong}
        assert ask(port, "POST", promotion, body)[0] == 400
    other = ask(
        port, "POST", promotion, {"candidate": "greedy", "expected_live": "default", "force": True}
    )
    assert (other[0], "'live' acts now" in other[1]["detail"]) == (409, True)
    assert (
        ask(port, "POST", promotion, {"candidate": "greedy", "force": True})[1]["acts"] == "greedy"
    )
    assert ask(port, "GET", f"{loop}/health")[1]["counts"]["promote"] == 1


def test_a_trial_changes_probabilities(port, loop):
    def p(id):
        asked = {"context": {"age": 30}, "arms": ARMS, "id": id}
        return sorted(ask(port, "POST", f"{loop}/decisions", asked)[1]["probabilities"].values())

    ask(port, "PUT", at(loop, "greedy"), GREEDY)
    assert p("shadow") == [0.5, 0.5]
    assert ask(port, "PATCH", at(loop, "greedy"), {"share": 0.2, "effect": 0.1})[0] == 200
    assert ask(port, "GET", loop)[1]["settings"]["plans"] == {"greedy": [1, 0.1]}
    assert p("trial") == pytest.approx([0.4, 0.6])
    assert ask(port, "PATCH", at(loop, "greedy"), {"share": 0})[1]["share"] == 0.0
    assert p("ended") == [0.5, 0.5]
    for wrong, status in ((-0.1, 422), (1.0, 422), ("all", 400), (None, 400)):
        assert ask(port, "PATCH", at(loop, "greedy"), {"share": wrong})[0] == status


def test_a_proposal_can_be_repeated_and_must_not_differ(port, loop):
    policy = {"type": "DOMD"}
    body = {"features": VIP, "policy": policy, "half_life": "7d", **GREEDY}
    status, made, _ = ask(port, "PUT", at(loop, "vip"), body)
    assert (status, made["half_life"], made["policy"]["type"]) == (201, 7 * 86400.0, "DOMD")
    assert "vip" in made["features"]["context"]
    for same in (
        body,
        GREEDY,
        {"exploration": 0},
        {"features": VIP},
        {"policy": "DOMD", "half_life": 604800},
        {},
    ):
        assert ask(port, "PUT", at(loop, "vip"), same)[:2] == (200, made)
    others = {
        "half_life": {"policy": "DOMD", "half_life": "8d"},
        "exploration.uniform": {"exploration": 0.5},
        "features.context.vip": {"features": NEWS["features"]},
    }
    for field, other in others.items():
        status, problem, _ = ask(port, "PUT", at(loop, "vip"), other)
        assert status == 409
        assert field in {each["field"] for each in problem["difference"]}
    assert ask(port, "GET", at(loop, "vip"))[1] == made
    assert ask(port, "GET", f"{loop}/candidates")[1]["candidates"] == [made]


def test_a_candidate_learns_what_the_log_has_and_who_waits_asks_again(port, loop, monkeypatch):
    play(port, loop, 0, 12)
    here, go, learn = threading.Event(), threading.Event(), PastLearner.learn

    def slowly(*args):
        here.set()
        assert go.wait(20)
        learn(*args)

    monkeypatch.setattr(PastLearner, "learn", slowly)
    body, asked = {"features": VIP}, []
    first = threading.Thread(target=lambda: asked.append(ask(port, "PUT", at(loop, "vip"), body)))
    first.start()
    assert here.wait(20)
    for name in ("vip", "other"):
        status, problem, headers = ask(port, "PUT", at(loop, name), body)
        assert (status, headers["retry-after"]) == (503, "1")
        assert "ask again" in problem["detail"]
    assert ask(port, "PUT", at(loop, "cold"), body | {"history": False})[1]["history"] is False
    play(port, loop, 12, 5)  # decisions and training go on
    go.set()
    first.join()
    status, made, _ = asked[0]
    assert (status, made["history"]) == (201, True)
    for same in (body, body | {"history": True}, body | {"policy": "DOMD", "history": True}):
        assert ask(port, "PUT", at(loop, "vip"), same)[:2] == (200, made)
    status, problem, _ = ask(port, "PUT", at(loop, "vip"), body | {"history": False})
    assert (status, problem["difference"][0]["field"]) == (409, "history")
    assert ask(port, "PUT", at(loop, "x"), body | {"history": "yes"})[0] == 400


def test_a_proposal_may_be_toml(port, loop):
    toml = b'policy = "AutoDOMD"\n[exploration]\ntype = "Thompson"\nuniform = 0.1\ndraws = 20\n'
    kind = {"content-type": "application/toml"}
    status, made, _ = ask(port, "PUT", at(loop, "t"), raw=toml, headers=kind)
    assert (status, made["exploration"]["draws"], made["policy"]["type"]) == (201, 20, "AutoDOMD")
    status, problem, _ = ask(port, "PATCH", at(loop, "t"), raw=b"share = 1", headers=kind)
    assert (status, "application/json" in problem["detail"]) == (415, True)


def test_wrong_proposals_store_nothing(port, loop):
    before = ask(port, "GET", f"{loop}/health")[1]["counts"]
    wrong = [
        ({}, 422),
        ({"half_life": "7d"}, 422),
        ({"policy": "Own"}, 422),
        ({"policy": "AutoDOMD", "half_life": "7d"}, 422),
        ({"exploration": {"type": "Os"}}, 422),
        ({"features": {"context": 1}}, 422),
        ({"exploration": "much"}, 400),
        ([], 400),
    ]
    for body, status in wrong:
        found, problem, _ = ask(port, "PUT", at(loop, "x"), body)
        assert (found, "\n" in problem["detail"]) == (status, False), body
    assert ask(port, "GET", f"{loop}/health")[1]["counts"] == before


EVIL = '<img src=x onerror="alert(1)">'


def test_hostile_names(port, loop):
    names = ["a/b", "../..", EVIL, "__proto__"]
    for name in names:
        assert ask(port, "PUT", at(loop, name), GREEDY)[1]["name"] == name
        assert ask(port, "PATCH", at(loop, name), {"share": 0.1})[0] == 200
    play(port, loop, 0, 3)
    assert acts(port, loop) == ("live", dict.fromkeys(names, 0.1))
    found = ask(port, "GET", f"{loop}/comparison")[1]
    assert found["values"].keys() == {"live", *names}
    status, problem, _ = ask(port, "PUT", at(loop, "fifth"), GREEDY)
    assert (status, "at most 4" in problem["detail"]) == (422, True)
    for name in names:
        assert ask(port, "DELETE", at(loop, name))[0] == 200
        assert ask(port, "GET", at(loop, name))[0] == 404
        assert ask(port, "PUT", at(loop, name), GREEDY)[0] == 409  # taken forever
    wrong = {"live": 409, "default": 409, "\x07": 422, "x" * 201: 422, "a\nb": 422, "\u202e": 422}
    for name, status in wrong.items():
        assert ask(port, "PUT", at(loop, name), GREEDY)[0] == status, name
    assert ask(port, "PUT", f"{loop}/candidates/%ff", GREEDY)[0] == 400
    assert acts(port, loop) == ("live", {})


def test_unknown_candidates_and_loops(port, loop):
    calls = [("GET", None), ("PATCH", {"share": 0.1}), ("DELETE", None)]
    for method, body in calls:
        status, problem, _ = ask(port, method, at(loop, "unknown"), body)
        assert (status, "candidate" in problem["detail"]) == (404, True)
        assert ask(port, method, at("/v1/loops/nowhere", "x"), body)[0] == 404
    assert ask(port, "POST", f"{loop}/promotion", {"candidate": "unknown"})[0] == 404
    for rest in ("candidates", "comparison"):
        assert ask(port, "GET", f"/v1/loops/nowhere/{rest}")[0] == 404


def test_the_default_acts_after_a_demotion(port, loop):
    assert ask(port, "PATCH", loop, {"guard": True})[0] == 200
    play(port, loop, 0, 501, default="b")  # the guard looks every 100 rows; draws are by loop
    until(port, loop, ("default", {}))
    asked = {"candidate": "live", "expected_live": "default"}
    status, problem, _ = ask(port, "POST", f"{loop}/promotion", asked)
    assert (status, "live" in problem["detail"]) == (409, True)
    assert ask(port, "POST", f"{loop}/promotion", asked | {"force": True})[1]["acts"] == "live"


def test_a_client_compares_and_promotes(port, loop):
    ask(port, "PUT", at(loop, "greedy"), GREEDY)
    play(port, loop, 0, 8)
    with Client(f"http://127.0.0.1:{port}", loop.rpartition("/")[2], timeout=30) as client:
        assert client.compare()["acting"] == "live"
        with pytest.raises(ServiceError, match="not shown to be better") as refused:
            client.promote("greedy", expected_live="live")
        assert refused.value.problem["leads"][0]["rows"] == 8
        with pytest.raises(ServiceError, match="the guard has no metric 'cost'"):
            client.promote("greedy", not_worse={"cost": 0.1})
        assert client.promote("greedy", force=True) == "greedy"


def test_roles(tmp_path):
    keys = ApiKeys(tmp_path / "shop.db")
    made = {role: keys.create(role, [role]) for role in ("admin", "read", "decide", "reward")}
    loop = "/v1/loops/news"
    reads = [("GET", f"{loop}/candidates", None), ("GET", at(loop, "x"), None)]
    reads += [("GET", f"{loop}/comparison", None)]
    writes = [("PUT", at(loop, "x"), GREEDY), ("PATCH", at(loop, "x"), {"share": 0.1})]
    writes += [("POST", f"{loop}/promotion", {"candidate": "x", "force": True})]
    writes += [("DELETE", at(loop, "x"), None)]
    with in_thread(tmp_path / "shop.db", open_access=False) as port:
        assert ask(port, "PUT", loop, EVEN, key=made["admin"])[0] == 201
        assert ask(port, "PUT", at(loop, "x"), GREEDY, key=made["admin"])[0] == 201
        for call in [*reads, *writes]:
            assert ask(port, *call)[0] == 401
            assert ask(port, *call, key=made["decide"])[0] == 403
            assert ask(port, *call, key=made["reward"])[0] == 403
            assert ask(port, *call, key=made["read"])[0] == (200 if call in reads else 403)
    keys.close()


def test_who_does_not_train_says_who_to_ask(postgres):
    url, loop = postgres.url(), "/v1/loops/news"
    with in_thread(url) as one, in_thread(url) as two:
        assert ask(one, "PUT", loop, EVEN)[0] == 201
        until_ready(two)
        assert ask(two, "GET", loop)[0] == 200
        assert ask(one, "PUT", at(loop, "greedy"), GREEDY)[0] == 201
        calls = [("PUT", at(loop, "other"), GREEDY), ("DELETE", at(loop, "greedy"), None)]
        calls += [("POST", f"{loop}/promotion", {"candidate": "greedy", "force": True})]
        for call in calls:
            status, problem, _ = ask(two, *call)
            assert (status, "trained by another process" in problem["detail"]) == (409, True)
        until(two, loop, ("live", {"greedy": 0.0}))
        assert ask(two, "PATCH", at(loop, "greedy"), {"share": 0.5})[0] == 200
        until(one, loop, ("live", {"greedy": 0.5}))
        assert ask(one, *calls[-1])[1]["acts"] == "greedy"
        until(two, loop, ("greedy", {}))
