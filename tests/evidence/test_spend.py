"""What candidates would spend of a loop's budgets, next to what they would earn."""

import math

import numpy as np
import polars as pl
import pytest

from driftbandit import (
    DOMD,
    Always,
    Budget,
    Category,
    Default,
    Features,
    Log,
    Logged,
    Loop,
    Number,
    Reward,
    Thompson,
    Uniform,
    evaluate,
)
from driftbandit.estimators.spend import Spent

ARMS = {name: {"m": name, "cost": cost} for name, cost in (("s", 0.1), ("m", 1.0), ("l", 10.0))}
GOOD = {"s": 0.5, "m": 0.7, "l": 0.9}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """Bills grow with x, so that what arms cost on average is not what they cost for all."""
    path, rng = tmp_path_factory.mktemp("spend") / "a.db", np.random.default_rng(3)
    with Loop(
        path,
        features=Features(context={"x": Number(0, 1)}, arm={"m": Category([*ARMS])}),
        reward=Reward(0, 1),
        policy=DOMD,
        arms=ARMS,
        budget=Budget("cost", mean=4.0),
        exploration=Thompson(0.5),
        training="inline",
    ) as loop:
        for k in range(900):
            x = float(rng.random())
            made = loop.decide({"x": x}, default="s", id=f"d{k}")
            if k % 10:  # some bills never come
                loop.metric(made.id, "cost", 99.0)
                loop.metric(
                    made.id, "cost", 2.0 * x * ARMS[made.arm]["cost"]
                )  # the last one counts
            loop.reward(made.id, float(rng.random() < GOOD[made.arm]))
        loop.export(path.with_suffix(".parquet"))
    return path


CANDIDATES = {"large": Always("l"), "uniform": Uniform(), "logged": Logged(), "small": Default()}


def reference(path, candidate):
    """Row by row from the ledger's own events."""
    found = []
    with Loop(path, training="inline") as loop:
        rows = loop.log().to_dicts()
        spends = {e.id: e.read().spend["cost"] for e in loop.ledger.read() if e.kind == "decide"}
    for row in rows:
        costs, h, names = spends[row["id"]].costs, row["probabilities"], row["names"]
        k = names.index(row["arm"])
        pi = {
            "large": [name == "l" for name in names],
            "uniform": [1.0 / len(names)] * len(names),
            "logged": h,
            "small": [name == "s" for name in names],
        }[candidate]
        bills = [each["value"] for each in row["metrics"]]
        bill = bills[-1] if bills else costs[k]
        found.append(math.fsum(map(math.prod, zip(pi, costs))) + pi[k] / h[k] * (bill - costs[k]))
    return np.array(found)


@pytest.mark.parametrize("kind", ["ledger", "export", "copy"])
def test_spend_against_the_reference(ledger, kind, tmp_path):
    path = ledger.with_suffix(".parquet") if kind == "export" else ledger
    log = Log.read(path)
    if kind == "copy":
        log = Log.read(log.write(tmp_path / "copy.parquet"))
    found = evaluate(log, CANDIDATES).values
    for name in CANDIDATES:
        rows, spent = reference(ledger, name), found[name].spend["cost"]
        assert spent.value == pytest.approx(rows.mean(), rel=1e-9)
        assert spent.high - spent.value == pytest.approx(
            1.959964 * rows.std(ddof=1) / math.sqrt(len(rows)), rel=1e-6
        )
        assert spent.bound == pytest.approx(4.0)
    assert found["large"].spend["cost"].low < 10.0 < found["large"].spend["cost"].high
    assert found["small"].spend["cost"].value == pytest.approx(0.1, rel=0.2)


def test_a_policy_decides_at_the_logged_prices(ledger):
    """Without them, it would play the best arm whatever it costs."""
    found = evaluate(Log.read(ledger), {"new": DOMD, "large": Always("l")}, over="large")
    assert found.values["new"].spend["cost"].value < 6.0
    assert found.values["large"].spend["cost"].keeps is False


def test_the_report_says_who_keeps_the_budget(ledger):
    found = evaluate(Log.read(ledger), CANDIDATES, over="small")
    keeps = {name: worth.spend["cost"].keeps for name, worth in found.values.items()}
    assert keeps["small"] is True
    assert keeps["large"] is False
    assert "## Spend" in found.markdown()
    assert found.to_dict()["values"]["large"]["spend"]["cost"]["bound"] == pytest.approx(4.0)


def test_a_winner_that_overspends_is_told():
    rng, rows = np.random.default_rng(6), []
    spend = '{"cost": {"price": 0.1, "bound": 1.0, "costs": [0.1, 10.0]}}'
    for action in rng.choice(["s", "l"], 500).tolist():
        rows.append({"context": "{}", "arms": ["s", "l"], "action": action, "spend": spend})
        rows[-1] |= {"probabilities": [0.5, 0.5], "reward": float(rng.random() < GOOD[action])}
    found = evaluate(Log.read(pl.DataFrame(rows)), {"l": Always("l"), "s": Always("s")})
    assert found.differences[0].better == 1
    assert "But l would spend 1000 % (1000 % to 1000 %) of budget 'cost'." in found.verdict


def test_words():
    assert Spent(1.0, 0.9, 1.04, 1.0).keeps is True
    assert Spent(1.0, 0.9, 1.1, 1.0).keeps is None
    assert Spent(1.2, 1.1, 1.3, 1.0).keeps is False
    assert Spent(1.2, 1.1, 1.3, 1.0).words() == "120 % (110 % to 130 %)"


def test_a_log_without_budgets_has_no_spend(ledger, tmp_path):
    rows = [
        {"context": {"x": 0.5}, "arms": ["a", "b"], "action": "a", "reward": 1}
        | {"probabilities": [0.5, 0.5]}
        for _ in range(20)
    ]
    frame = pl.DataFrame([row | {"context": '{"x": 0.5}'} for row in rows])
    found = evaluate(Log.read(frame), {"uniform": Uniform()})
    assert found.values["uniform"].spend == {}
    assert "Spend" not in found.markdown()
    wrong = frame.with_columns(
        spend=pl.lit('{"cost": {"price": 1, "bound": 1, "costs": [1]}}')  # of two arms
    )
    with pytest.raises(ValueError, match="a spend that does not fit its arms"):
        evaluate(Log.read(wrong), {"uniform": Uniform()})
