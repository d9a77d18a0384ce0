"""Health: shares, calibration, values by the log's own propensities, and what changed."""

import importlib
import json
import logging
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from driftbandit import DOMD, AutoDOMD, Category, Features, Loop, Number, Reward
from driftbandit.loop.reporting import health as reports
from driftbandit.loop.reporting.policy_values import (
    SHOWN,
    Mean,
    Weight,
    bounded,
    default,
    itself,
    unbounded,
    uplift,
    value,
)

CLICKS = Reward(0, 1, wait=100, missing=0)
FEATURES = Features(
    context={"age": Number(0, 100, required=True)},
    arm={"name": Category(["a", "b", "c"], required=True)},
)
ARMS = {name: {"name": name} for name in "abc"}
TRUTH = {"a": 0.2, "b": 0.5, "c": 0.7}


def opened(**options):
    new = {"features": FEATURES, "reward": CLICKS, "policy": DOMD, "clock": "events"}
    return Loop(":memory:", **(new | {"training": "inline", "exploration": 0.3} | options))


def play(loop, n, truth=TRUTH, seed=0, start=0.0, k=None, **options):
    """Decisions a second apart, rewarded at once: with the arm's mean, the same for all."""
    rng = np.random.default_rng(seed)
    for t in start + np.arange(float(n)):
        made = loop.decide(
            {"age": float(rng.uniform(0, 100))}, ARMS, k=k, id=f"{seed} {t}", at=t, **options
        )
        for position, arm in enumerate(made.arms if k else [made.arm]):
            value = float(rng.random() < truth[arm])
            loop.reward(made.id, value, position=position if k else None, at=t)
    loop.close_windows(start + n + 1000.0)


def inside(found, truth):
    return found.low <= truth <= found.high


def test_values_by_the_logs_own_probabilities():
    with opened() as loop:
        play(loop, 600, default="b")
        found = loop.health()
        log = loop.log()
    assert inside(found.values["uniform"], np.mean(list(TRUTH.values())))
    assert inside(found.values["default"], TRUTH["b"])
    assert found.values["uniform"].high - found.values["uniform"].low < 0.25
    r, p = log["reward"].to_numpy(), log["probability"].to_numpy()
    w = 1.0 / (3.0 * p)  # the same by hand
    assert found.values["uniform"].mean == pytest.approx((w * r).sum() / w.sum())
    all_arms = np.array(log["probabilities"].to_list())
    second = (1.0 / (9.0 * all_arms)).sum()  # of pi^2/p over all arms that could have been drawn
    assert found.values["uniform"].effective == pytest.approx(600**2 / second)
    chosen = (log["arm"] == "b").to_numpy() / p
    assert found.values["default"].mean == pytest.approx((chosen * r).sum() / chosen.sum())
    assert found.values["loop"].mean == pytest.approx(r.mean())
    assert found.values["loop"].mean > found.values["uniform"].mean
    favourite = np.array([max(each) for each in log["probabilities"]])
    assert found.exploration_share == pytest.approx(np.mean(1.0 - favourite)) == pytest.approx(0.2)


@pytest.mark.parametrize("name", ["arms logged 1 in 10", "arms logged 1 in 100", "1 to 2 % clicks"])
def test_intervals_cover_the_truth(name, monkeypatch):
    """Of what uniform choices earn, and of what one arm does, in logs that say little."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    benchmark = importlib.import_module("benchmarks.coverage")
    held = benchmark.health_coverage(benchmark.HEALTH[name], 100, 5)
    assert held.keys() == {"uniform", "default"}
    assert min(held.values()) >= 0.93


def test_a_holdout_of_users_is_as_certain_as_its_number_of_users(monkeypatch):
    """Rows of a held user are drawn together: with 20 visits each, half of all intervals failed."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    benchmark = importlib.import_module("benchmarks.coverage")
    world = benchmark.HEALTH["users who differ, 20 visits each, holdout of 20 %"]
    assert benchmark.health_coverage(world, 50, 5)["default"] >= 0.9
    lines = benchmark.health_log(world, np.random.default_rng(1))
    held = [each for each in lines if each["role"] == "holdout"]
    users = {each["key"] for each in held}
    found = value(held, default, CLICKS)
    assert (found.rows, found.effective) == (len(held), pytest.approx(len(users)))
    assert found.mean == pytest.approx(np.mean([each["reward"] for each in held]))
    others = {each["key"] for each in lines} - users
    assert value(lines, itself, CLICKS).effective == pytest.approx(len(others))
    alone = [each | {"key": f"visit {t}"} for t, each in enumerate(held)]
    assert value(alone, default, CLICKS).effective == pytest.approx(len(held))


def test_a_slate_counts_with_what_was_before():
    """Under uniform choices every position earns the same here."""
    with opened(exploration=0.6) as loop:
        play(loop, 400, k=2, default=["b", "a"])
        found = loop.health()
        log = loop.log()
    assert found.recent == found.decisions == 400
    assert inside(found.values["uniform"], np.mean(list(TRUTH.values())))
    assert inside(found.values["default"], 0.5 * (TRUTH["a"] + TRUTH["b"]))
    p, r = log["probability"].to_numpy().reshape(-1, 2), log["reward"].to_numpy().reshape(-1, 2)
    w = np.cumprod(1.0 / (p * [3.0, 2.0]), axis=1)
    assert found.values["uniform"].mean == pytest.approx((w * r).sum() / w.sum())


def test_what_the_log_cannot_tell_is_unknown():
    with opened(exploration=0.0) as loop:
        play(loop, 50, default="b")
        found = loop.health()
        assert found.values["uniform"] is None
        assert found.values["default"] is None
        assert found.values["loop"].rows == 50
        assert any("never" in each or "ever" in each for each in found.concerns)
    with opened(holdout=0.5, exploration=0.3) as loop:
        play(loop, 300, default="b")
        found = loop.health()  # who is held out says nothing of uniform choices, but of the default
        log = loop.log()
        active = (log["role"] == "active").sum()
        assert found.values["uniform"].rows == active < 300
        assert found.values["default"].rows == 300
        assert inside(found.values["uniform"], np.mean(list(TRUTH.values())))


def test_shares():
    with opened() as loop:
        made = [loop.decide({"age": 5}, ARMS, id=str(t), at=float(t)) for t in range(10)]
        for each in made[:4]:
            loop.reward(each.id, 1, at=9.0)
        loop.reward(made[4].id, 7, at=9.0)  # out of range
        loop.cancel(made[5].id, at=9.0)
        loop.close_windows(109.0)
        loop.reward(made[6].id, 1, at=110.0)  # too late
        for k, each in enumerate(made):
            loop.metric(each.id, "revenue", k)
        found = loop.health()
        lines = {row["id"]: row["arm"] for row in loop.log().iter_rows(named=True)}
    assert (found.decisions, found.rewards, found.recent) == (10, 5, 10)
    assert found.missing == pytest.approx(4 / 9)
    assert found.cancelled == pytest.approx(1 / 10)
    assert found.clipped == found.late == pytest.approx(1 / 6)
    assert len(found.concerns) >= 2
    assert found.lag.examples == 0
    for arm, mean in found.metrics["revenue"].items():
        values = [k for k in range(10) if lines[str(k)] == arm]
        assert mean is None if len(values) < 2 else mean.mean == pytest.approx(np.mean(values))


def test_a_reward_from_after_its_window_is_late_even_if_nothing_has_closed_it():
    """With clock="events" time moves with events: no advance has come between."""
    with opened(reward=Reward(0, 1, wait=60, missing=0)) as loop:
        first = loop.decide({"age": 5}, ARMS, id="a", at=0.0)
        second = loop.decide({"age": 5}, ARMS, id="b", at=40.0)
        assert loop.reward(first.id, 1, at=100.0) == "late"
        assert loop.reward(second.id, 1, at=100.0) == "counted"
        loop.close_windows(500.0)
        rows = {row["id"]: row for row in loop.log().iter_rows(named=True)}
        assert (rows["a"]["reward"], rows["a"]["late"]) == (0.0, 1)
        assert (rows["b"]["reward"], rows["b"]["late"]) == (1.0, 0)


def test_calibration_shows_what_was_not_expected():
    with opened(policy=AutoDOMD) as loop:
        play(loop, 500)
        found = loop.health()
        assert found.state in ("learning", "stationary", "drifting", "just changed")
        assert found.memory > 50
        assert len(found.calibration) == 5
        assert sum(each.observed.rows for each in found.calibration) == 500
        expected = [each.expected for each in found.calibration]
        assert expected == sorted(expected)
        assert inside(found.bias, 0.0) or abs(found.bias.mean) < 0.1
        log = loop.log()
        assert found.bias.mean == pytest.approx((log["reward"] - log["mean"]).mean())
    with opened(policy=DOMD) as loop:
        play(loop, 400)
        play(loop, 60, dict.fromkeys(TRUTH, 0.0), seed=1, start=2000.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reports, "WINDOW", 120)
            found = loop.health()
        assert found.recent <= 61
        assert found.bias.high < 0.0


@pytest.mark.parametrize("n", [30, 500])
def test_the_curve_is_the_values_window_by_window(n):
    with opened() as loop:
        play(loop, n, default="b", start=7.0)
        loop.decide({"age": 5.0}, ARMS, id="open", at=3000.0)  # nothing is trained in its window
        curve, log = loop.health().curve, loop.log()
        log = log.filter(log["id"] != "open")
    width = curve[0].end - curve[0].start
    assert width == 30.0  # so that a window has 30 rows
    assert [window.rows for window in curve] == ([23, 7] if n == 30 else [30] * 15)
    for window in curve:
        assert window.start % width == 0.0
        part = log.filter((log["at"] >= window.start) & (log["at"] < window.end))
        r, p = part["reward"].to_numpy(), part["probability"].to_numpy()
        if window.rows < 2:
            assert window.values["loop"] is None
            continue
        assert window.values["loop"].mean == pytest.approx(r.mean())
        w = (part["arm"] == "b").to_numpy() / p
        if w.any():
            assert window.values["default"].mean == pytest.approx((w * r).sum() / w.sum())
    assert opened().health().curve == ()


@pytest.mark.parametrize("n", [30, 500])
def test_each_window_has_the_shares_of_arms(n):
    with opened() as loop:
        loop.cancel(loop.decide({"age": 5.0}, ARMS, id="never shown", at=7.0).id)
        play(loop, n, default="b", start=7.0)
        curve, log = loop.health().curve, loop.log()
    log = log.filter(log["id"] != "never shown")
    for window in curve:
        part = log.filter((log["at"] >= window.start) & (log["at"] < window.end))["arm"].to_list()
        assert window.shares == {arm: part.count(arm) / len(part) for arm in "abc"}


def test_shares_of_many_arms_are_those_of_the_most_frequent():
    arms = {f"arm {k}": {"name": "abc"[k % 3]} for k in range(3 * SHOWN)}
    with opened(exploration=1.0) as loop:
        for t in range(200):
            loop.reward(loop.decide({"age": 5.0}, arms, id=str(t), at=t).id, 1.0, at=t)
        loop.close_windows(2000.0)
        curve, played = loop.health().curve, loop.log()["arm"].to_list()
    counts = sorted((played.count(arm) for arm in arms), reverse=True)
    assert len({tuple(window.shares) for window in curve}) == 1
    assert sum(played.count(arm) for arm in curve[0].shares) == sum(counts[:SHOWN])
    assert all(sum(window.shares.values()) <= 1.0 for window in curve)


def shape(mean, low, high):
    return Mean(100, 100.0, mean, low, high)


@pytest.mark.parametrize("ours", [(0.4, 0.35, 0.46), (0.1, 0.0, 0.5), (0.0, 0.0, 0.2), (3, 2, 9)])
@pytest.mark.parametrize("other", [(0.25, 0.2, 0.31), (0.2, 0.01, 0.9), (5.0, 4.9, 5.2)])
def test_the_ends_of_the_uplift_are_where_an_end_of_the_difference_is_zero(ours, other):
    """The interval of a - q b has squared half-widths that add up; q is found by bisection."""
    a, b = shape(*ours), shape(*other)

    def low(q):
        return a.mean - q * b.mean - math.hypot(a.mean - a.low, q * (b.high - b.mean))

    def high(q):
        return a.mean - q * b.mean + math.hypot(a.high - a.mean, q * (b.mean - b.low))

    found = uplift(a, b)
    assert found.relative
    assert found.mean == pytest.approx(a.mean / b.mean - 1.0)
    assert found.low == pytest.approx(brentq(low, 0.0, 1e4) - 1.0, abs=1e-6)
    assert found.high == pytest.approx(brentq(high, 0.0, 1e4) - 1.0, abs=1e-6)
    assert found.low <= found.mean <= found.high


def test_uplift_says_which_one_is_better_by_the_goal():
    much, little, vague = shape(0.4, 0.38, 0.42), shape(0.2, 0.18, 0.22), shape(0.3, 0.1, 0.5)
    assert uplift(much, little).better is True
    assert uplift(little, much).better is False
    assert uplift(little, much, "min").better is True
    assert uplift(much, little, "min").better is False
    assert uplift(vague, little).better is None
    assert uplift(None, little) is None
    assert uplift(little, None) is None


def test_uplift_over_a_default_that_may_be_worth_nothing_is_a_difference():
    found = uplift(shape(3.0, 2.0, 4.0), shape(-1.0, -2.0, 1.0))
    assert not found.relative
    assert found[:3] == pytest.approx((4.0, 4.0 - math.hypot(1.0, 2.0), 4.0 + math.sqrt(2.0)))
    assert found.better is True


def test_uplift_holds_the_truth_as_often_as_it_says():
    """The loop's rows and the default's share draws, as they do in a log that explores."""
    rng, held = np.random.default_rng(7), 0
    for _ in range(400):
        is_default = rng.random(600) < 0.3
        r = (rng.random(600) < np.where(is_default, 0.3, 0.5)).astype(float)
        found = uplift(bounded(r, (0, 1)), bounded(r[is_default], (0, 1)))
        held += found.low <= (0.3 * 0.3 + 0.7 * 0.5) / 0.3 - 1.0 <= found.high
    assert held / 400 >= 0.94


def test_concerns_are_not_logged_every_second(caplog):
    with opened(exploration=0.0) as loop:
        play(loop, 5)
        for _ in range(3):
            assert loop.health().concerns == ["no arm is ever explored: pass exploration=0.02"]
    assert caplog.text.count("no arm is ever explored") == 1


@pytest.mark.parametrize("policy", [DOMD, AutoDOMD])
def test_what_changed_is_named(policy, caplog):
    """Arm c is liked less from a date on; nothing else changes."""
    with opened(policy=policy, exploration=1.0) as loop:
        play(loop, 600)
        then = 1650.0
        assert loop.health(since=then).changed == ()
        play(loop, 600, TRUTH | {"c": 0.05}, seed=1, start=1700.0)
        caplog.set_level(logging.WARNING)
        found = loop.health(since=then)
        assert found.changed[0].term == "name=c"
        assert found.changed[0].after < found.changed[0].before
        assert "name=b" not in [each.term for each in found.changed]
        assert "changed: name=c" in repr(found)
        theta = loop.runtime.learner.bandit.theta
        weight = loop.features.encode({"age": 50.0}, [ARMS["c"]])[0]
        place = loop.features.terms.index("name=c")
        assert found.changed[0].after == pytest.approx(weight[place] * theta[place])
        assert loop.health(since=-5.0).changed == ()  # before the first, anything was possible


def test_folded_terms_are_named_together():
    folded = Features(
        context={"age": Number(0, 100)}, arm={"name": Category(["a", "b", "c"])}, dim=5
    )
    labels, reach = folded.plan.labels, folded.plan.reach
    assert sorted(term for label in labels for term in label.split(" or ") if term) == sorted(
        folded.terms
    )
    assert reach.shape == (5,)
    exact = Features(context={"age": Number(0, 100)}, arm={"name": Category(["a", "b", "c"])})
    assert tuple(exact.plan.labels) == exact.terms
    X = np.abs(exact.encode({"age": 100.0}, ARMS)).max(axis=0)
    assert (exact.plan.reach + 1e-12 >= X).all()


def test_memory_in_rounds_and_in_time():
    with opened(policy=DOMD) as loop:
        play(loop, 300)
        discount = loop.declaration.policy.discount
        by_hand = (1.0 - discount**300) / (1.0 - discount)
        assert loop.health().memory == pytest.approx(by_hand)
    with opened(policy=DOMD, half_life="100s") as loop:
        play(loop, 300)
        now = loop.runtime.writer.clock
        by_hand = sum(0.5 ** ((now - t) / 100.0) for t in range(300))
        assert loop.health().memory == pytest.approx(by_hand)


def test_it_can_be_sent_and_read():
    money = Reward(0, 500, goal="min", wait=10, missing=500)
    with opened(reward=money) as loop:
        empty = loop.health()
        assert (empty.decisions, empty.bias, empty.values["loop"]) == (0, None, None)
        json.dumps(empty.to_dict(), allow_nan=False)
        play(loop, 60)
        found = loop.health(since=30.0)
    text = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert text["values"]["loop"]["mean"] == found.values["loop"].mean
    assert 0.0 <= found.values["loop"].mean <= 2.0  # raw: of 0 and 1 out of 500
    assert text["calibration"][0]["observed"]["rows"] >= 20
    assert "mean reward: loop" in repr(found)
    assert "uplift over the default: unknown" in repr(empty)
    with pytest.raises(ValueError, match="since must"):
        opened().health(since="yesterday")


def test_events_are_logged_and_nothing_is_printed(caplog, capsys):
    caplog.set_level(logging.INFO, "driftbandit.loop")
    with opened() as loop:
        loop.configure(exploration=0.1)
        loop.erase(key="nobody")
    words = " ".join(record.getMessage() for record in caplog.records)
    for what in ("is open", "decides by", "erased 0", "is closed"):
        assert what in words
    assert capsys.readouterr() == ("", "")


def test_few_equal_values_do_not_look_certain():
    found = bounded([0.0] * 10, (0.0, 1.0))
    assert found.low == 0.0
    assert 0.3 < found.high < 0.4  # the exact interval: 0.31
    assert bounded([1.0], (0.0, 1.0)) is None
    assert bounded([1.0, 1.0], (0.0, 1.0), [Weight(0.0)] * 2) is None
    assert unbounded([1.0]) is None
    assert math.isclose(unbounded([1.0, 3.0]).mean, 2.0)


@pytest.mark.parametrize("start", [0.0, 1e9])
def test_means_are_those_of_the_formula_far_from_zero_too(start):
    rng = np.random.default_rng(2)
    w, v = rng.random(50) ** 2, start + rng.random(50)
    mean = (w @ v) / w.sum()
    spread = ((w * (v - mean)) ** 2).sum()
    second, third = 2.0, 5.0  # means of the weights' squares and cubes
    floor = spread / (w @ w) * 50 * second / 50**2
    event = math.log(40.0) * max(mean - start, 1.0 - mean + start) * third / second / 50
    half = math.sqrt(1.96**2 * max(spread / w.sum() ** 2, floor) + event**2)
    weights = [Weight(each, 1.0, second, third) for each in w.tolist()]
    found = bounded(v.tolist(), (start, start + 1.0), weights)
    assert found.mean == pytest.approx(mean, rel=1e-15)
    assert found.effective == pytest.approx(50**2 / (50 * second))
    assert found.high - start == pytest.approx(min(mean - start + half, 1.0), rel=1e-4)
    plain = unbounded(v.tolist())
    assert plain.mean == pytest.approx(v.mean(), rel=1e-15)
    student = 2.0095752371292397 * v.std(ddof=1) / math.sqrt(50)
    assert plain.high - plain.mean == pytest.approx(student, rel=1e-5)


def line(rng, held):
    """Two arms: the loop plays the default once in a hundred decisions."""
    plays = held or rng.random() < 0.01
    p = [1.0, 0.0] if held else [0.01, 0.99]
    return {
        "role": "holdout" if held else "active", "names": ["a", "b"], "default": "a",
        "arm": "a" if plays else "b", "probability": p[0] if plays else p[1], "probabilities": p,
        "position": None, "status": "trained", "key": None,
        "reward": float(rng.random() < (0.3, 0.6)[not plays]),
    }  # fmt: skip


def test_explored_defaults_do_not_drown_the_holdout():
    """The value of the default is as certain as the holdout and the explored rows together."""
    rng, found, holdout = np.random.default_rng(5), [], []
    for _ in range(300):
        lines = [line(rng, k % 10 == 0) for k in range(1000)]
        found.append(value(lines, default, CLICKS))
        holdout.append(np.mean([each["reward"] for each in lines[::10]]))
    means = np.array([each.mean for each in found])
    assert abs(means.mean() - 0.3) < 3 * means.std() / np.sqrt(300)
    assert means.std() < 1.02 * np.std(holdout)  # three times that with plain weights
    assert np.mean([inside(each, 0.3) for each in found]) >= 0.93
    assert 100 < np.median([each.effective for each in found]) < 120
