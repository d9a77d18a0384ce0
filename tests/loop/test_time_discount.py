"""Forgetting in time: the arithmetic of ageing, and a world that changes while nobody visits."""

import math
import pickle

import numpy as np
import pytest

from driftbandit import DOMD, GLBOMD, AutoDOMD, Bandit, Greedy, Problem, Recipe, Uniform
from driftbandit.loop import time_discount

PROBLEM = Problem(dim=3)
DAY = 24 * time_discount.HOUR
TIMED = [
    time_discount.timed(DOMD(problem=PROBLEM), "7d"),
    time_discount.timed(AutoDOMD(problem=PROBLEM), "auto"),
]


def rows(rng, n):
    X = rng.normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def trained(policy, rounds=60, seed=0):
    """A bandit with some hours between its rewards."""
    bandit, rng = Bandit(policy), np.random.default_rng(seed)
    for x in rows(rng, rounds):
        elapsed = rng.exponential(2 * time_discount.HOUR)
        bandit.update(x, float(rng.random() < 0.6), steps=time_discount.steps(elapsed))
    return bandit


# Arithmetic


@pytest.mark.parametrize("half_life", ["3s", "30min", "7d", "52w", 4000.0])
def test_what_was_learnt_halves_in_a_half_life(half_life):
    bandit = trained(
        time_discount.timed(DOMD(problem=PROBLEM, regularization=2.0), half_life), rounds=5
    )
    learnt = bandit.curvature - 2.0 * np.eye(3)
    bandit.forget(time_discount.steps(time_discount.seconds(half_life)))
    np.testing.assert_allclose(bandit.curvature - 2.0 * np.eye(3), learnt / 2.0, atol=1e-12)


@pytest.mark.parametrize("elapsed", [0.0, 0.3, 40.0, 8 * time_discount.HOUR, 30 * DAY])
@pytest.mark.parametrize("policy", TIMED)
def test_an_aged_view_learns_as_an_update_with_steps(policy, elapsed):
    bandit = trained(policy)
    aged, steps = pickle.loads(pickle.dumps(bandit)), time_discount.steps(elapsed)
    aged.forget(steps)
    for each, own in ((bandit, steps), (aged, 0.0)):
        each.update([0.0, 0.6, 0.8], 1.0, steps=own)
    for one, other in zip(*(each.__getstate__()["memory"] for each in (bandit, aged)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("policy", TIMED)
def test_two_short_waits_are_one_long_wait(policy):
    one, two = trained(policy), trained(policy)
    one.forget(time_discount.steps(5 * time_discount.HOUR))
    two.forget(time_discount.steps(2 * time_discount.HOUR))
    two.forget(time_discount.steps(3 * time_discount.HOUR))
    exact = not isinstance(policy, AutoDOMD)  # which refills lambda in portions
    np.testing.assert_allclose(one.curvature, two.curvature, rtol=1e-12 if exact else 0.06)
    np.testing.assert_allclose(one.theta, two.theta, rtol=1e-12)


def test_time_that_runs_backwards_stands_still():
    assert time_discount.steps(-5.0) == time_discount.steps(0.0) == 0.0


def test_memories_run_from_an_hour_to_for_ever_and_are_named_in_seconds():
    policy = TIMED[1]
    named = time_discount.memories(Bandit(policy).explain().discounts)
    hours = [seconds / time_discount.HOUR for seconds in sorted(named)]
    np.testing.assert_allclose(hours, time_discount.MEMORIES, rtol=1e-9)
    assert sum(named.values()) == pytest.approx(1.0)
    assert Recipe.from_dict(policy.to_dict()) == policy


# A world


def play(policy, in_time, period, seed, days=12, rate=150):
    """Regret next to that of uniform choices where theta turns round in so many days, and nobody
    comes at night."""
    rng, n = np.random.default_rng(seed), days * rate
    bandit, lost = Bandit(policy), np.zeros(2)
    at = np.sort(rng.integers(days, size=n) + (8.0 + 12.0 * rng.beta(2, 2, size=n)) / 24.0)
    for before, now in zip(np.concatenate([at[:1], at]), at):
        angle, X = 2.0 * math.pi * now / period, rows(rng, 5)
        mean = 1.0 / (1.0 + np.exp(-2.0 * X @ [math.cos(angle), math.sin(angle), 0.0]))
        arm, steps = bandit.choose(X), time_discount.steps((now - before) * DAY) if in_time else 1.0
        bandit.update(X[arm], float(rng.random() < mean[arm]), steps=steps)
        lost += mean.max() - mean[arm], mean.max() - mean.mean()
    return lost[0] / lost[1], bandit


def test_memories_in_time_follow_a_world_that_turns_at_night():
    """Each night is a quarter of a turn. Rounds do not know that a night has passed."""
    timed, in_rounds = (
        np.mean([play(policy, in_time, period=2.0, seed=seed)[0] for seed in range(8)])
        for policy, in_time in ((TIMED[1], True), (AutoDOMD(problem=PROBLEM), False))
    )
    assert timed < 0.9 * in_rounds
    assert timed < 0.25


def test_in_a_world_at_rest_the_chosen_memory_is_long():
    regret, bandit = play(TIMED[1], True, period=math.inf, seed=3)
    weights = time_discount.memories(bandit.explain().discounts)
    assert sum(w for seconds, w in weights.items() if seconds > 3 * DAY) > 0.85
    assert regret < 0.06


def test_in_a_world_that_turns_it_is_short():
    _, bandit = play(TIMED[1], True, period=2.0, seed=3)
    weights = time_discount.memories(bandit.explain().discounts)
    assert sum(w for seconds, w in weights.items() if seconds <= 2 * DAY) > 0.8


# At the door


@pytest.mark.parametrize(
    ("policy", "half_life", "message"),
    [
        (DOMD(problem=PROBLEM), "auto", "use AutoDOMD"),
        (DOMD(problem=PROBLEM), "soon", "half_life must be a number of seconds"),
        (DOMD(problem=PROBLEM), "1s", "2 s or more"),
        (DOMD(problem=PROBLEM), math.inf, "half_life must be"),
        (DOMD(problem=PROBLEM), None, "half_life must be"),
        (DOMD(problem=PROBLEM, half_life=50), "7d", "counts rounds"),
        (Greedy(problem=PROBLEM, discount=0.9), "7d", "counts rounds"),
        (GLBOMD(problem=PROBLEM), "7d", "never forgets"),
        (AutoDOMD(problem=PROBLEM), "7d", "half_life='auto'"),
        (AutoDOMD(problem=PROBLEM, discounts=(0.9, 1.0)), "auto", "counts rounds"),
        (Uniform(problem=PROBLEM), "7d", "use DOMD or AutoDOMD"),
    ],
)
def test_what_is_refused(policy, half_life, message):
    with pytest.raises(ValueError, match=message) as error:
        time_discount.timed(policy, half_life)
    assert "\n" not in str(error.value)
