"""Many calls at once give what they give one after the other."""

import time

import pytest

from driftbandit import DOMD, Category, Features, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.writing import writer

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(context={"age": Number(18, 90)}, arm={"topic": Category(["x", "y"])})
ARMS = {"a": {"topic": "x"}, "b": {"topic": "y"}}


def opened(path):
    options = {"policy": DOMD, "clock": "events", "training": "inline", "exploration": 0.3}
    return Loop(path, features=FEATURES, reward=Reward(0, 1, wait=50, missing=0), **options)


def calls(k):
    """A decision, a reward for one before, and now and then a cancel or a mistake."""
    decide = {"context": {"age": 20 + k % 50}, "arms": ARMS, "id": f"d{k}", "at": 10.0 * k}
    yield "decide", decide
    yield "reward", {"id": f"d{k // 2}", "value": k % 2, "at": 10.0 * k}
    if k % 7 == 0:
        yield "cancel", {"id": f"d{k}", "at": 10.0 * k}
        yield "decide", decide | {"context": {"years": 3}}
        yield "reward", {"id": f"d{k}", "value": "much"}


def alone(loop, kind, options):
    try:
        return getattr(loop, kind)(**options)
    except ValueError as error:
        return error


def test_together_is_one_after_the_other(tmp_path):
    """Where training waits for the caller, a group decides with what was trained before it; so
    groups hold one decision here."""
    with opened(tmp_path / "one.db") as one, opened(tmp_path / "many.db") as many:
        for k in range(60):
            single = [alone(one, *call) for call in calls(k)]
            group = many.submit_many(list(calls(k)))
            assert [str(each) for each in group] == [str(each) for each in single]
        assert one.digest == many.digest
        assert one.counts == many.counts
        assert one.log().equals(many.log())


@pytest.mark.parametrize(
    "odd",
    [
        {"context": {"years": 3}},
        {"context": {"age": 30, "more": 1}},
        {"arms": {}},
        {"arms": {}, "default": "a"},
        {"arms": ARMS, "k": 2},
        {"arms": 5},
    ],
)
def test_one_of_a_group_is_refused_or_unlike_the_others(tmp_path, odd):
    """Rows of a group are encoded together; the answers are those of one after the other."""
    asked = [("decide", {"context": {"age": 20 + k}, "arms": ARMS, "id": f"{k}"}) for k in range(6)]
    asked[3] = "decide", asked[3][1] | odd
    with opened(tmp_path / "one.db") as one, opened(tmp_path / "many.db") as many:
        group = many.submit_many(asked)
        assert [str(each) for each in group] == [str(alone(one, *call)) for call in asked]
        assert one.counts == many.counts


def test_a_group_of_decisions_is_audited_and_repeated(tmp_path):
    asked = [("decide", {"context": {"age": 20 + k}, "arms": ARMS, "id": f"{k % 20}"})
             for k in range(40)]  # fmt: skip
    with Loop(tmp_path / "a.db", features=FEATURES, reward=Reward(0, 1), policy=DOMD) as loop:
        made = loop.submit_many(asked)
        assert all(not isinstance(each, ValueError) for each in made[:20])
        assert all("used for another" in str(each) for each in made[20:])
        assert loop.submit_many(asked[:20]) == made[:20]
        assert loop.counts["decide"] == 20
        assert all(audit.agrees for audit in loop.audits())
        (wrong,) = loop.submit_many([("erase", {})])
        kinds = "'decide', 'record_fallback', 'reward', 'prefer', 'cancel', 'metric'"
        assert f"one of {kinds}" in str(wrong)
        assert loop.submit_many([]) == []
    with pytest.raises(LedgerError, match="closed"):
        loop.submit_many(asked)


def test_after_a_batch_no_caller_waits_for_as_many_others(monkeypatch):
    """The writer waits for callers that it has just served; a batch is one of them."""
    monkeypatch.setattr(writer, "MOST_LINGER", 1.0)
    with Loop(":memory:", features=FEATURES, reward=Reward(0, 1), policy=DOMD) as loop:
        append = loop.ledger.append

        def slow(*given):
            time.sleep(0.3)
            append(*given)

        monkeypatch.setattr(loop.ledger, "append", slow)
        spent = []
        for _ in range(3):
            loop.submit_many([("decide", {"context": {"age": 30}, "arms": ARMS})] * 20)
            begun = time.monotonic()
            loop.decide({"age": 30}, ARMS)
            spent.append(time.monotonic() - begun)
        assert min(spent) < 0.4  # and not half of a write more
