"""Misfit: rewards that the declared columns cannot describe are noticed, and others are not."""

import numpy as np
import pytest

from driftbandit import Category, Features, Loop, Number, Reward, Vector
from driftbandit.loop.reporting.misfit import ALPHA, misfits

FEATURES = Features(
    context={"age": Number(18, 90), "taste": Vector(2)},
    arm={"price": Number(1, 12, curve=False), "kind": Category(["x", "y"])},
)
REWARD = Reward(0, 1)


def lines(rng, n, chance, believed):
    """Trained decisions as the log has them; `chance` and `believed` are of (price, kind, t/n)."""
    found = []
    for t in range(n):
        price, kind = float(rng.integers(1, 13)), "xy"[rng.integers(2)]
        arm = {"price": price, "kind": kind}
        found.append(
            {
                "status": "trained",
                "mean": believed(price, kind, t / n),
                "reward": float(rng.random() < chance(price, kind, t / n)),
                "arm": f"{price:g}{kind}",
                "names": [f"{price:g}{kind}"],
                "arms": [arm],
                "context": {"age": int(rng.integers(18, 90)), "taste": [1.0, 0.0]},
            }
        )
    return found


def flat(price, kind, when):
    return 0.3


def hump(price, kind, when):
    return 0.1 + 0.5 * np.exp(-((price - 5.0) ** 2) / 6.0)


def test_right_predictions_are_hardly_ever_a_misfit():
    rng = np.random.default_rng(0)
    wrong = [misfits(lines(rng, 500, hump, hump), FEATURES, REWARD) for _ in range(60)]
    assert np.mean([bool(each) for each in wrong]) <= ALPHA


def test_a_line_where_a_curve_is_needed_is_named():
    rng = np.random.default_rng(1)
    found = misfits(lines(rng, 1500, hump, flat), FEATURES, REWARD)
    price = next(each for each in found if each.what.startswith("price"))
    assert price.what == "price from 4.67 to 6.5"
    assert price.observed == pytest.approx(0.58, abs=0.08)
    assert price.expected == pytest.approx(0.3, abs=0.02)
    assert "declare price as a curve (curve=True) or as a category" in str(price)
    assert len([each for each in found if each.what.startswith("price")]) == 1


def test_a_change_that_is_learnt_is_no_misfit():
    rng = np.random.default_rng(2)

    def changed(price, kind, when):
        return 0.6 if when > 0.7 else 0.3

    def learnt(price, kind, when):
        return 0.6 if when > 0.75 else 0.3

    assert misfits(lines(rng, 2000, changed, learnt), FEATURES, REWARD) == ()


def test_a_model_that_is_wrong_everywhere_alike_has_no_cell_to_blame():
    rng = np.random.default_rng(3)
    assert misfits(lines(rng, 1000, flat, lambda *_: 0.5), FEATURES, REWARD) == ()


def test_units_are_those_of_the_reward():
    rng = np.random.default_rng(4)
    euros = Reward(0, 50, goal="min")
    rows = lines(rng, 1500, lambda price, kind, when: 0.6 if kind == "x" else 0.2, flat)
    for row in rows:
        row["reward"] = 50.0 * (1.0 - row["reward"])
    kind = misfits(rows, FEATURES, euros)[0]
    assert kind.observed == pytest.approx(20.0 if kind.what == "kind 'x'" else 40.0, abs=3)
    assert kind.expected == pytest.approx(30.0, abs=2)


def test_few_or_odd_values_are_no_reason_to_fail():
    rng = np.random.default_rng(5)
    rows = lines(rng, 300, hump, flat)
    for row in rows[::2]:
        row["arms"] = [{"price": None}]
        row["context"] = {}
    for row in rows[::3]:
        row["mean"] = None
    misfits(rows, FEATURES, REWARD)
    assert misfits([], FEATURES, REWARD) == ()


def test_health_says_what_to_declare():
    """A price that is a line: the loop settles at one end, and exploration shows the others."""
    features = Features(arm={"price": Number(1, 12, curve=False)})
    prices = {p: {"price": p} for p in (1, 5, 9, 12)}
    rng = np.random.default_rng(6)
    options = {"exploration": 0.4, "training": "inline", "seed": 0}
    with Loop(":memory:", features=features, reward=Reward(0, 1), **options) as loop:
        for _ in range(800):
            made = loop.decide({}, prices)
            loop.reward(made.id, float(rng.random() < hump(made.arm, "x", 0.0)))
        health = loop.health()
    assert any("declare price as a curve" in each for each in health.concerns)
    assert health.to_dict()["misfits"]
