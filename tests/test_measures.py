"""Measures beside regret, against loops over all windows."""

import numpy as np
import pytest

from driftbandit import Bernoulli, Gaussian, Greedy, Oracle, SignFlip, Uniform, measures, simulate


def slow_recovery(row, change, share, length):
    """The first end of a window after the change with enough reward, tried one by one."""
    before = row[change - length : change].mean()
    for end in range(change + length, len(row) + 1):
        if row[end - length : end].mean() >= share * before:
            return end - change
    return np.inf


@pytest.mark.parametrize("seed", range(3))
def test_measures_are_what_a_loop_over_windows_finds(seed):
    rng = np.random.default_rng(seed)
    regret, rewards = np.maximum(rng.uniform(-0.5, 1, (4, 60)), 0.0), rng.uniform(0, 1, (4, 60))
    windows = [[row[s : s + 7].mean() for s in range(54)] for row in regret]
    np.testing.assert_allclose(measures.worst_window(regret, 7), np.max(windows, axis=1))
    np.testing.assert_allclose(measures.moving_means(regret, 7), windows)
    rates = [sum(r == 0.0 for r in row) / 60 for row in regret]
    np.testing.assert_allclose(measures.best_arm_rate(regret), rates)
    for share in (0.8, 1.3, 5.0):
        slow = [slow_recovery(row, 20, share, 6) for row in rewards]
        found = measures.recovery_time(rewards, 20, share=share, length=6)
        np.testing.assert_array_equal(found, slow)
    assert np.isinf(found).all()


def test_the_oracle_needs_no_recovery_and_a_policy_that_never_forgets_does():
    world = SignFlip(horizon=600, radius=3.0, family=Gaussian(0.01, 4.0))
    oracle = simulate(Oracle(problem=world.problem), world, range(3))
    stubborn = simulate(Greedy(problem=world.problem, discount=1.0), world, range(3))
    chance = simulate(Uniform(problem=world.problem), world, range(3))
    assert (oracle.best_arm_rate == 1.0).all()
    assert (oracle.worst_window(50) <= 1e-12).all()
    assert (oracle.recovery(300, length=50) == 50).all()
    assert (stubborn.recovery(300, length=50) > 60).all()
    assert (stubborn.worst_window(50) > 0.5).all()
    assert chance.best_arm_rate.mean() == pytest.approx(1 / 30, abs=0.02)


def test_rewards_are_counted_from_the_smallest_possible_one():
    """95 % of a negative reward would be more than all of it."""
    rewards = np.full((1, 40), -1.0)
    assert measures.recovery_time(rewards, 20, length=10, low=-2.0) == 10
    assert Bernoulli().low == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: measures.worst_window(x, 0), "length"),
        (lambda x: measures.worst_window(x, 41), "does not fit"),
        (lambda x: measures.recovery_time(x, 5, length=10), "before and after"),
        (lambda x: measures.recovery_time(x, 35, length=10), "before and after"),
    ],
)
def test_windows_that_do_not_fit_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.zeros((2, 40)))
