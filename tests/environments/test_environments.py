"""Worlds: their contract, their paths, their arms."""

import math

import numpy as np
import pytest

from driftbandit import (
    Binomial,
    Bursts,
    Circle,
    Composite,
    Fading,
    FixedArms,
    FreshArms,
    Gaussian,
    GivenArms,
    Jumps,
    Levels,
    OneCoordinate,
    RandomWalk,
    SignFlip,
    Stationary,
    Switching,
    random_environment,
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
    Switching(horizon=40, period=7, dim=3, radius=2.0),
    Bursts(horizon=60, bursts=3, length=10, dim=3, arms=FreshArms(5, shortest=0.2)),
    Bursts(horizon=30, bursts=1, length=5, dim=1),
    OneCoordinate(horizon=40, turns=1.3, radius=3.0, arms=FixedArms(4, intercept=0.5)),
    OneCoordinate(horizon=40, dim=1),
    Fading(horizon=40, last=0.2),
    Levels(horizon=40, level=-3.9, dim=3),
    Levels(horizon=40, spread=1.0, day=7, arms=FixedArms(4, intercept=0.8)),
    Composite(horizon=40),
    Composite(horizon=40, dim=1, jump=1.0, jumps=3),
    Composite(horizon=40, drift=1.0, harmonics=3, season=0.5, moving=0.1, radius=3.0),
    random_environment(5, horizon=40),
    random_environment(36, horizon=40),
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


def test_switching_alternates_between_two_regimes():
    path = Switching(horizon=35, period=10, dim=4).path(0)
    assert len(np.unique(path, axis=0)) == 2
    assert np.array_equal(path[:10], path[20:30])
    assert Switching(horizon=35, period=10).measure(0)[1] == 3


def test_bursts_rest_between_moves_along_the_sphere():
    world = Bursts(horizon=1000, bursts=3, length=50, dim=4, radius=2.0)
    path = world.path(1)
    np.testing.assert_allclose(np.linalg.norm(path, axis=1), 2.0)
    assert 3 * 49 <= world.measure(1)[1] <= 3 * 51
    assert world.measure(1)[0] <= world.path_length


def test_only_one_coordinate_moves():
    path = OneCoordinate(horizon=200, dim=4, swing=0.6, radius=2.0).path(0)
    assert np.ptp(path[:, 0]) == pytest.approx(2 * 0.6 * 2.0, rel=0.01)
    assert np.ptp(path[:, 1:], axis=0).max() == 0.0
    assert np.linalg.norm(path[0, 1:]) == pytest.approx(2.0 * 0.8)


def test_a_fading_signal_keeps_its_direction():
    path = Fading(horizon=100, last=0.1, radius=3.0, dim=4).path(0)
    size = np.linalg.norm(path, axis=1)
    np.testing.assert_allclose(size, np.linspace(3.0, 0.3, 100))
    np.testing.assert_allclose(path / size[:, None], np.tile(path[0] / 3.0, (100, 1)))


def test_levels_move_all_arms_alike_and_leave_the_ranking():
    world = Levels(horizon=95, level=-2.0, spread=0.7, day=10, radius=3.0, dim=4)
    (block,) = world.blocks((2,), 95)
    z = np.einsum("tnd,td->tn", block.arms[:, 0], block.theta[:, 0])
    ranks = np.einsum("tnd,d->tn", block.arms[:, 0, :, 1:], block.theta[0, 0, 1:])
    level = z - ranks
    np.testing.assert_allclose(level, np.tile(level[:, :1], (1, 30)))
    assert len(np.unique(level[:, 0].round(9))) == 10
    assert np.ptp(level[20:30]) < 1e-12
    assert np.abs(level + 2.0).max() <= 2 * 0.7 + 1e-12
    assert np.linalg.norm(block.theta[0, 0, 1:]) == pytest.approx(3.0)
    longest = np.linalg.norm(block.theta[:, 0], axis=1).max()
    assert longest <= world.problem.radius * (1.0 + 1e-12)  # rounding
    P, changes = world.measure(2)
    assert changes == world.change_points == 9
    assert world.path_length >= P
    still = Levels(level=-2.0)
    assert (still.path_length, still.change_points) == (0.0, 0)
    with pytest.raises(ValueError, match="needs arms with an intercept"):
        Levels(arms=FixedArms(8))


@pytest.mark.parametrize("kind", [FreshArms, FixedArms])
def test_arms_with_an_intercept_and_unequal_lengths(kind):
    arms = kind(50, shortest=0.3, intercept=0.6).stream(0, 4)(20)
    assert arms.shape == (20, 50, 4)
    assert (arms[..., 0] == 0.6).all()
    rest = np.linalg.norm(arms[..., 1:], axis=-1) / 0.8
    assert 0.3 <= rest.min() < 0.4
    assert 0.9 < rest.max() <= 1.0 + 1e-12


def test_a_composite_path_is_known_but_for_the_order_and_signs_of_its_coordinates():
    world = Composite(horizon=60, dim=6, drift=1.0, jump=1.0, jumps=3, radius=2.0)
    for seed in range(4):
        length, _ = world.measure(seed)
        assert length == pytest.approx(world.path_length)
        norms = np.linalg.norm(world.path(seed), axis=1)
        assert norms.max() == pytest.approx(2.0)
        np.testing.assert_allclose(norms, np.linalg.norm(world.path(0), axis=1))
    assert not np.allclose(world.path(0), world.path(1))
    assert world.change_points is None


def test_the_parts_of_a_composite_path_move_as_they_say():
    jumps = Composite(horizon=100, dim=4, jump=1.0, jumps=5)
    assert jumps.measure(2)[1] == jumps.change_points == 5
    sparse = Composite(horizon=100, dim=10, drift=1.0, moving=0.2).path(0)
    # The whole path is scaled to its largest norm, so what rests keeps its direction.
    assert (np.abs(np.diff(sparse, axis=0)).max(axis=0) > 1e-12).sum() == 2
    arms = FreshArms(4, intercept=0.5)
    level = Composite(horizon=100, dim=4, level=0.5, shifts=6, arms=arms)
    path = level.path(1)
    assert level.measure(1)[1] == 6
    np.testing.assert_array_equal(path[:, 1:], np.tile(path[0, 1:], (100, 1)))
    assert np.linalg.norm(path, axis=1).max() <= level.problem.radius
    smooth, rough = (Composite(horizon=500, drift=1.0, harmonics=k) for k in (1, 10))
    assert rough.path_length > 2.0 * smooth.path_length
    with pytest.raises(ValueError, match="a level needs arms with an intercept"):
        Composite(level=1.0, shifts=2)


def test_every_draw_is_an_environment_that_keeps_its_promises():
    kinds = set()
    for draw in range(60):
        world = random_environment(draw, horizon=50)
        kinds |= set(world.axes)
        assert np.linalg.norm(world.path(1), axis=1).max() <= world.problem.radius * (1 + 1e-12)
        assert type(world).from_dict(world.to_dict()) == world
    assert len(kinds) == 10
