"""The catalogue of arms, shares and metrics over HTTP, and by the client."""

import pytest
from tests.serving import ARMS, NEWS, ask, in_thread

from driftbandit.client.client import Client, ServiceError


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with in_thread(tmp_path_factory.mktemp("arms") / "a.db") as port:
        yield port


def declared(port, loop, **more):
    status, made, _ = ask(port, "PUT", f"/v1/loops/{loop}", {**NEWS, "arms": ARMS, **more})
    assert status in (200, 201), made
    return f"/v1/loops/{loop}"


def test_add_pause_resume_and_retire(port):
    loop = declared(port, "news")
    added = {"columns": {"topic": "world"}}
    assert ask(port, "PUT", f"{loop}/arms/c d", added)[0] == 201
    assert ask(port, "PUT", f"{loop}/arms/c d", added)[0] == 200
    made = ask(port, "POST", f"{loop}/decisions", {"context": {"age": 30}})[1]
    assert set(made["probabilities"]) == {"a", "b", "c d"}
    assert ask(port, "PATCH", f"{loop}/arms/a", {"paused": True})[1]["paused"] is True
    named = {"context": {"age": 30}, "arms": ["a", "b"]}
    assert set(ask(port, "POST", f"{loop}/decisions", named)[1]["probabilities"]) == {"b"}
    assert ask(port, "PATCH", f"{loop}/arms/a", {"paused": False})[1]["paused"] is False
    left = ask(port, "DELETE", f"{loop}/arms/c d")[1]["arms"]
    assert [each["name"] for each in left] == ["a", "b"]
    assert declared(port, "news")  # as it was declared, or as it is
    assert ask(port, "PATCH", loop, {"shares": {"a": [0, 0.2]}})[0] == 200
    many = {"decisions": [{"context": {"age": k}} for k in range(20, 60)]}
    for each in ask(port, "POST", f"{loop}/batches", many)[1]["decisions"]:
        assert each["decision"]["probabilities"]["a"] <= 0.2


def test_refusals(port):
    loop = declared(port, "strict")
    assert ask(port, "PATCH", f"{loop}/arms/zz", {"paused": True})[0] == 404
    assert ask(port, "PUT", f"{loop}/arms/e", {"columns": {"colour": 1}})[0] == 422
    assert ask(port, "PUT", f"{loop}/arms/e", {"paused": True})[0] == 400
    differs = {**NEWS, "arms": {"a": {"topic": "world"}}}
    status, problem, _ = ask(port, "PUT", loop, differs)
    assert (status, problem["difference"][0]["field"]) == (409, "arms")
    plain = ask(port, "PUT", "/v1/loops/plain", NEWS)
    assert plain[0] == 201
    assert ask(port, "PUT", "/v1/loops/plain/arms/a", {"columns": {}})[0] == 409
    status, problem, _ = ask(port, "POST", "/v1/loops/plain/decisions", {"context": {"age": 3}})
    assert (status, "pass arms" in problem["detail"]) == (422, True)


def test_the_client_has_the_same(port):
    declared(port, "client")
    with Client(f"http://127.0.0.1:{port}", "client") as client:
        client.add_arm("c", {"topic": "sport"})
        client.pause_arm("a")
        made = client.decide({"age": 40})
        assert set(made.probabilities) == {"b", "c"}
        assert client.metric(made.id, "cost", 0.25) == "recorded"
        assert client.metric("nowhere", "cost", 0.25) == "unknown"
        client.resume_arm("a")
        client.retire_arm("c")
        assert set(client.decide({"age": 40}).probabilities) == {"a", "b"}
        assert client.health()["report"]["metrics"]["cost"] == {made.arm: None}
        with pytest.raises(ServiceError):
            client.pause_arm("c")


def test_a_budget_over_http(port):
    arms = {name: {**arm, "cost": cost} for (name, arm), cost in zip(ARMS.items(), (0.1, 5.0))}
    budget = {"metric": "cost", "mean": 1.0}
    loop = declared(port, "budget", arms=arms, budget=budget)
    assert declared(port, "budget", arms=arms, budget=budget)  # repeating it is safe
    for k in range(30):
        made = ask(port, "POST", f"{loop}/decisions", {"context": {"age": 20 + k}})[1]
        bill = {"value": 2.0 * arms[made["arm"]]["cost"]}
        path = f"{loop}/decisions/{made['id']}/metrics/cost"
        assert ask(port, "PUT", path, bill)[1] == {"outcome": "recorded"}
    found = ask(port, "GET", f"{loop}/health")[1]["report"]["budget"]["cost"]
    assert found["bound"] == 1.0
    assert found["decisions"] == 30
    assert found["spent"] > 5.0
    why = ask(port, "GET", f"{loop}/decisions/{made['id']}/why")[1]
    assert why["agrees"] is True
    assert ask(port, "PATCH", loop, {"budget": {"metric": "cost"}})[0] == 422
    assert ask(port, "PATCH", loop, {"budget": [{"metric": "cost", "mean": 2.0}]})[0] == 200
    assert ask(port, "PATCH", loop, {"budget": False})[0] == 200
    assert ask(port, "GET", f"{loop}/health")[1]["report"]["budget"] == {}
