"""Worlds: their contract, their paths, their arms."""

import math

import numpy as np
import pytest

from driftbandit import (
    Binomial,
    Circle,
    FixedArms,
    FreshArms,
    Gaussian,
    GivenArms,
    Jumps,
    RandomWalk,
    SignFlip,
    Stationary,
)
from driftbandit.checks import environment_checks

OWN = np.random.default_rng(0).standard_normal((6, 3)) / 2
WORLDS = [
    Circle(horizon=40),
    Circle(horizon=40, dim=2, radius=3.0, turns=2.5, family=Gaussian(1.0, 8.0)),
    SignFlip(horizon=41, dim=1),
    RandomWalk(horizon=40, stride=0.3, family=Binomial(5), arms=FixedArms(8)),
    Jumps(horizon=40, jumps=4, dim=3, arms=GivenArms(OWN)),
    Jumps(horizon=40, jumps=0),
    Stationary(horizon=40, dim=3, arms=GivenArms(np.tile(OWN, (40, 1, 1)))),
    Stationary(horizon=1),
]


@pytest.mark.parametrize("check", environment_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: repr(world)[:30])
def test_contract(world, check):
    check(world)


def test_circle_has_its_exact_path_length_and_closes():
    world = Circle(horizon=500, radius=3.0)
    P, changes = world.measure(3)
    assert pytest.approx(2 * 3.0 * 499 * math.sin(math.pi / 500)) == P
    assert changes == 499
    path = world.path(3)
    step = np.linalg.norm(path[1] - path[0])
    assert np.linalg.norm(path[0] - path[-1]) == pytest.approx(step)
    assert world.problem.change_points is None


def test_sign_flip_flips_in_the_middle():
    path = SignFlip(horizon=10).path(0)
    np.testing.assert_array_equal(path[5:], -path[:5])
    assert SignFlip(horizon=10, radius=3.0).measure(0) == (pytest.approx(6.0), 1)
    assert SignFlip(horizon=10).problem.change_points == 1


def test_jumps_happen_as_often_as_said():
    assert Jumps(horizon=100, jumps=7).measure(2)[1] == 7


def test_random_walk_steps_are_as_long_as_said_inside_the_ball():
    world = RandomWalk(horizon=2000, stride=0.05)
    path = world.path(1)
    moves = np.linalg.norm(np.diff(path, axis=0), axis=1)
    inside = np.linalg.norm(path[1:], axis=1) < 1 - 1e-9
    np.testing.assert_allclose(moves[inside], 0.05)
    assert 0.02 < (~inside).mean() < 0.9


def test_paths_differ_between_seeds_and_worlds_share_their_luck():
    a, b = Circle(horizon=20), SignFlip(horizon=20)
    assert not np.allclose(a.path(0), a.path(1))
    block_a, block_b = next(a.blocks((4,), 20)), next(b.blocks((4,), 20))
    np.testing.assert_array_equal(block_a.arms, block_b.arms)
    np.testing.assert_array_equal(block_a.luck, block_b.luck)


def test_fresh_arms_are_isotropic_unit_vectors():
    arms = FreshArms(30).stream(0, 3)(2000).reshape(-1, 3)
    np.testing.assert_allclose(np.linalg.norm(arms, axis=1), 1)
    np.testing.assert_allclose(arms.T @ arms / len(arms), np.eye(3) / 3, atol=0.01)


def test_given_arms_are_shuffled_per_seed_and_keep_their_norm():
    own = GivenArms(OWN)
    np.testing.assert_array_equal(own.stream(5, 3)(1)[0], OWN[own.order(5)])
    assert Stationary(dim=3, arms=own).problem.context_norm == np.linalg.norm(OWN, axis=1).max()
    assert own == GivenArms(OWN.copy())
    assert own != GivenArms(OWN[:3])
    with pytest.raises(ValueError, match="read-only"):
        own.arms[0, 0] = 1.0
