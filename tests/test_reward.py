"""Rewards in any unit: inside and outside, what is clipped, and what is refused."""

import logging
import math
import pickle
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from driftbandit import (
    AutoDOMD,
    Bandit,
    Binomial,
    Bounded,
    Category,
    Features,
    Number,
    Recipe,
    Reward,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)
numbers = st.floats(-1e6, 1e6)
goals = st.sampled_from(["max", "min"])


@quick
@given(numbers, numbers, numbers, goals)
def test_inside_is_the_place_in_the_range_and_outside_leads_back(low, high, value, goal):
    assume(high - low > 1e-3)
    reward = Reward(low, high, goal=goal)
    inside, clipped = reward.inside(value)
    kept = min(max(value, low), high)
    place = (kept - low) / (high - low)
    assert inside == pytest.approx(1.0 - place if goal == "min" else place, abs=1e-9)
    assert 0.0 <= inside <= 1.0
    assert clipped == (not low <= value <= high)
    assert reward.outside(inside) == pytest.approx(kept, abs=1e-9 * (high - low) + 1e-9)


@quick
@given(st.integers(-50, 50), st.integers(1, 60), st.integers(-200, 200), goals)
def test_counts_are_successes_out_of_the_range(low, tries, value, goal):
    reward = Reward(low, low + tries, goal=goal, counts=True)
    inside, clipped = reward.inside(value)
    kept = sorted([low, value, low + tries])[1]
    assert inside == (low + tries - kept if goal == "min" else kept - low)
    assert clipped == (kept != value)
    assert reward.family == Binomial(tries)
    assert reward.family.contains(inside)
    assert reward.outside(inside) == pytest.approx(kept)


def test_the_ends_of_the_range_are_worst_and_best():
    for low, high in [(0.0, 1.0), (-3.7, 0.1), (1e-7, 3e-7), (-1e100, 1e100)]:
        ends = [Reward(low, high).inside(v)[0] for v in (low, high)]
        assert ends == [0.0, 1.0]
        assert [Reward(low, high, goal="min").inside(v)[0] for v in (high, low)] == [0.0, 1.0]


@pytest.mark.parametrize(
    "value", [1, 1.0, True, np.True_, np.float32(1), np.int8(1), Decimal(1), np.array(1.0)]
)
def test_numbers_of_many_kinds_are_rewards(value):
    assert Reward(0, 1).inside(value) == (1.0, False)


def test_infinity_is_out_of_range():
    assert Reward(0, 2000, goal="min").inside(math.inf) == (0.0, True)
    assert Reward(0, 5, counts=True).inside(-math.inf) == (0.0, True)


@pytest.mark.parametrize("value", [math.nan, "1", None, [1.0], b"1", 1j, {"r": 1}])
@pytest.mark.parametrize("reward", [Reward(0, 1), Reward(0, 5, counts=True)])
def test_what_is_no_number_is_refused(reward, value):
    with pytest.raises(ValueError, match="a reward must be a number from 0 to") as error:
        reward.inside(value)
    assert "\n" not in str(error.value)


def test_other_rewards_that_are_refused():
    with pytest.raises(ValueError, match="got True"):  # conversions are not euros
        Reward(0, 500).inside(True)
    with pytest.raises(ValueError, match="drop counts=True"):
        Reward(0, 5, counts=True).inside(2.5)
    with pytest.raises(ValueError, match="widen the range, or use invalid='clip'"):
        Reward(0, 5, invalid="error").inside(5.1)
    assert Reward(0, 5, invalid="error").inside(5.0) == (1.0, False)


# Declarations


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Reward(1, 1), "low must be below high"),
        (lambda: Reward(5, 0), "goal='min'"),
        (lambda: Reward(0, math.inf), "high must be a number"),
        (lambda: Reward("0", 1), "low must be a number"),
        (lambda: Reward(0, 1, goal="up"), r"goal must be one of \('max', 'min'\), got 'up'"),
        (lambda: Reward(0, 1, goal=["max"]), "goal must be one of"),
        (lambda: Reward(0, 1, invalid=None), "invalid must be one of"),
        (lambda: Reward(0, 1, counts=1), "counts must be True or False"),
        (lambda: Reward(0, 1.5, counts=True), "high - low must be a whole number.*got 1.5"),
        (lambda: Reward(0, 1, wait="soon"), "wait must be a number of seconds"),
        (lambda: Reward(0, 1, wait=-1), "wait must be"),
        (lambda: Reward(0, 1, wait=9, missing=2), "missing must be a reward from 0 to 1, got 2"),
        (lambda: Reward(0, 1, wait=9, missing="0"), "missing must be a number from 0 to 1"),
        (lambda: Reward(0, 9, wait=9, counts=True, missing=0.5), "drop counts=True"),
    ],
)
def test_declarations_that_are_refused(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "reward",
    [
        Reward(0, 1),
        Reward(0, 500, wait=timedelta(days=1), missing=0),
        Reward(5, 2000, goal="min", wait="10s", missing=2000, invalid="error"),
        Reward(0, 12, counts=True),
    ],
)
def test_declarations_go_to_json_and_pickles_and_back(reward):
    assert Recipe.from_dict(reward.to_dict()) == reward
    assert pickle.loads(pickle.dumps(reward)) == reward
    assert isinstance(reward.wait, float)
    assert isinstance(reward.low, float)


def test_a_missing_reward_that_nobody_waits_for_is_said_in_the_log(caplog):
    with caplog.at_level(logging.WARNING):
        Reward(0, 1, wait="1s", missing=0)
        assert not caplog.records
        Reward(0, 1, missing=0)
    assert "pass wait=" in caplog.text


def test_features_take_a_reward():
    features = Features(context={"age": Number(18, 90)}, arm={"genre": Category(["rock", "jazz"])})
    assert features.problem(Reward(0, 500)).family == Bounded()
    assert features.problem(Reward(0, 7, counts=True)).family == Binomial(7)
    with pytest.raises(ValueError, match=r"reward must be a Reward\(0, 1\) or a family"):
        features.problem((0, 1))


# Learning


def trained(reward, values):
    rng = np.random.default_rng(5)
    bandit = Bandit(
        AutoDOMD(problem=Features(arm={"price": Number(0, 9)}, dim="exact").problem(reward))
    )
    d = bandit.theta.size
    for value in values:
        x = rng.uniform(-1.0, 1.0, size=d) / math.sqrt(d)  # norm at most 1, whatever d is
        bandit.update(x, reward.inside(value)[0])
    return bandit


def row_of(bandit):
    return bandit.policy.rows(bandit.memory)[0]


def test_a_learner_does_not_know_the_unit():
    """Euros, cents, euros above a fixed cost, or what is missing from 512: the same learner."""
    euros = np.random.default_rng(4).integers(0, 512, size=80).astype(float)
    expected = row_of(trained(Reward(0, 512), euros))
    for reward, values in (
        (Reward(0, 51_200), 100.0 * euros),
        (Reward(-40, 472), euros - 40.0),
        (Reward(0, 512, goal="min"), 512.0 - euros),
    ):
        np.testing.assert_allclose(row_of(trained(reward, values)), expected, rtol=1e-9)
