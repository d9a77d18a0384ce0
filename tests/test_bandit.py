"""What applications hold: input, files, threads."""

import copy
import math
import threading

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from driftbandit import (
    DOMD,
    GLBOMD,
    AutoDOMD,
    Bandit,
    Bernoulli,
    Binomial,
    Gaussian,
    Greedy,
    LinUCB,
    Oracle,
    Poisson,
    Problem,
    Stationary,
    Uniform,
)
from driftbandit.checks import policy_checks

POLICIES = [
    DOMD(problem=Problem(dim=3)),
    DOMD.from_theory(Problem(dim=3, radius=1.0, horizon=100, path_length=2.0), scale=0.2),
    DOMD(problem=Problem(dim=1, radius=0.2, context_norm=5.0)),
    DOMD(problem=Problem(dim=40, family=Gaussian(1.0, 6.0))),
    GLBOMD.from_theory(Problem(dim=3, radius=1.0)),
    Greedy(problem=Problem(dim=3), half_life=30),
    Uniform(problem=Problem(dim=3)),
    Oracle(problem=Problem(dim=3)),
]


@pytest.mark.kernel
@pytest.mark.parametrize("check", policy_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: repr(policy)[:40])
def test_contract(policy, check):
    check(policy)


def trained(policy=POLICIES[0], rounds=50):
    bandit, rng = Bandit(policy), np.random.default_rng(1)
    for _ in range(rounds):
        arms = np.clip(rng.standard_normal((6, 3)) / 4, -0.5, 0.5)
        bandit.update(arms[bandit.choose(arms)], int(rng.random() < 0.7))
    return bandit


class Sub(np.ndarray):
    """An array by another name."""


ARMS = np.random.default_rng(2).uniform(-0.5, 0.5, (6, 3))


def test_lists_strided_and_single_precision_arms_are_welcome():
    bandit = trained()
    expected = bandit.choose(ARMS)
    strided = np.repeat(ARMS, 2, axis=1)[:, ::2]
    frozen = ARMS.copy()
    frozen.flags.writeable = False
    for arms in (ARMS.tolist(), strided, np.asfortranarray(ARMS), frozen):
        assert bandit.choose(arms) == expected
    assert bandit.choose(ARMS.astype(np.float32)) == expected
    assert bandit.choose(np.eye(3, dtype=int)) in range(3)


def test_arrays_that_only_look_plain_are_read_as_numbers():
    """Compiled code takes float64 arrays of two axes on trust; these have gaps or swapped bytes."""
    bandit = trained()
    expected = bandit.choose(ARMS)
    packed = np.zeros(ARMS.size * 8 + 1, dtype=np.uint8)
    crooked = packed[1:].view(np.float64).reshape(ARMS.shape)
    crooked[:] = ARMS
    alone = np.lib.stride_tricks.as_strided(ARMS[:1], strides=(999 * 8, 8))
    for arms in (crooked, ARMS.astype(">f8"), ARMS[::-1][::-1], pd.DataFrame(ARMS), ARMS.view(Sub)):
        assert bandit.choose(arms) == expected
    assert bandit.choose(alone) == 0
    assert bandit.choose(ARMS[:, ::-1]) == bandit.choose(ARMS[:, ::-1].copy())
    other = trained()
    for x in (crooked[0], pd.Series(ARMS[0]), ARMS[0].astype(">f8"), np.repeat(ARMS[0], 2)[::2]):
        bandit.update(x, 1)
        other.update(ARMS[0].copy(), 1)
    np.testing.assert_array_equal(bandit.theta, other.theta)


@pytest.mark.parametrize("dim", [3, 31, 32, 40])
def test_a_bandit_chooses_and_learns_as_its_policy_does_alone(dim):
    """The factor that a bandit carries from round to round is that of its memory."""
    policy, rng = DOMD(problem=Problem(dim=dim, radius=0.5)), np.random.default_rng(3)
    bandit, memory = Bandit(policy), policy.init(1)
    for t in range(120):
        arms = rng.uniform(-1.0, 1.0, (1, 9, dim)) / np.sqrt(dim)
        arm = bandit.choose(arms[0])
        assert arm == policy.choose(memory, arms)[0]
        bandit.update(arms[0, arm], t % 2)
        memory = policy.update(memory, arms[:, arm], np.array([t % 2.0]))
        if t % 40 == 39:
            bandit.forget(3)
            memory = policy.forget(memory, 3)
    np.testing.assert_array_equal(bandit.curvature, memory.H[0])
    np.testing.assert_array_equal(bandit.theta, memory.theta[0])


@pytest.mark.parametrize("reward", [1, 1.0, True, np.int64(1), np.float32(1), np.bool_(True)])
def test_rewards_of_every_numeric_type_are_the_same_reward(reward):
    a, b = trained(), trained()
    a.update(ARMS[0], reward)
    b.update(ARMS[0], 1.0)
    np.testing.assert_array_equal(a.theta, b.theta)


def test_scores_and_predictions_agree():
    bandit = trained()
    mean, bonus, upper = bandit.scores(ARMS)
    np.testing.assert_allclose(upper, mean + bonus)
    np.testing.assert_allclose(mean, ARMS @ bandit.theta)
    assert np.argmax(upper) == bandit.choose(ARMS)
    prediction = bandit.predict(ARMS)
    np.testing.assert_allclose(prediction.mean, Bernoulli().mu(mean))
    np.testing.assert_allclose(prediction.upper, Bernoulli().mu(upper))
    assert (prediction.lower < prediction.mean).all()
    one_deviation = bandit.predict(ARMS, level=2 * norm.cdf(1) - 1)  # the bonus of this policy
    np.testing.assert_allclose(one_deviation.upper, prediction.upper)


def test_views_are_read_only():
    bandit = trained()
    for view in (bandit.theta, bandit.curvature):
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0.0
    bandit.update(ARMS[0], 1)
    assert bandit.rounds == 51


def test_late_rewards_in_any_order_are_just_updates():
    bandit = trained()
    played = [(ARMS[bandit.choose(ARMS)], r) for r in (1, 0, 1)]
    for x, r in reversed(played):
        bandit.update(x, r)
    assert bandit.rounds == 53


def test_memory_stays_the_same_size():
    assert trained(rounds=5).memory_bytes == trained(rounds=500).memory_bytes == 8 * (4 + 3 + 9)


def test_file_is_an_npz_of_plain_arrays(tmp_path):
    path = tmp_path / "model.npz"
    bandit = trained()
    bandit.save(path)
    with np.load(path, allow_pickle=False) as archive:
        assert set(archive.files) == {"header", "row"}
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]
    assert repr(Bandit.load(path)) == repr(bandit)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    trained().save(path)
    before = path.read_bytes()
    full = lambda *a, **k: (_ for _ in ()).throw(OSError("disk full"))  # noqa: E731
    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="disk full"):
        trained(rounds=60).save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


def test_a_future_file_asks_for_an_upgrade(tmp_path, monkeypatch):
    monkeypatch.setattr("driftbandit.files.VERSION", 99)
    trained().save(tmp_path / "model.npz")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="upgrade"):
        Bandit.load(tmp_path / "model.npz")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Bandit.load(tmp_path / "none.npz")


def test_copies_are_independent():
    bandit = trained()
    twin = copy.deepcopy(bandit)
    twin.update(ARMS[0], 1)
    assert (bandit.rounds, twin.rounds) == (50, 51)


@pytest.mark.parametrize("policy", [POLICIES[0], POLICIES[6]], ids=["compiled", "plain"])
def test_threads_may_share_a_bandit(policy):
    """No update is lost."""
    bandit = Bandit(policy)

    def work():
        for _ in range(300):
            bandit.update(ARMS[bandit.choose(ARMS)], 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bandit.rounds == 1200


def test_a_saved_memory_is_never_half_an_update(tmp_path):
    """With gamma = 1 and the identity link H tells the number of rounds: lambda I + t x x'."""
    policy = GLBOMD(problem=Problem(dim=40, family=Gaussian(1.0, 4.0)), regularization=1.0)
    bandit, x, done = Bandit(policy), np.eye(40)[0], threading.Event()

    def work():
        while not done.is_set():
            bandit.update(x, 1.0)

    thread = threading.Thread(target=work)
    thread.start()
    for _ in range(30):
        bandit.save(tmp_path / "model.npz")
        loaded = Bandit.load(tmp_path / "model.npz")
        assert loaded.curvature[0, 0] == pytest.approx(1.0 + loaded.rounds, rel=1e-9)
    done.set()
    thread.join()
    assert bandit.rounds > 30


def test_a_policy_without_estimate_says_so():
    bandit = Bandit(Uniform(problem=Problem(dim=3)))
    with pytest.raises(AttributeError, match="keeps no theta"):
        _ = bandit.theta
    with pytest.raises(ValueError, match="no way to age"):
        bandit.forget(3)


@pytest.mark.parametrize(
    "family", [Bernoulli(), Binomial(10), Gaussian(1.0, 8.0), Poisson(40)], ids=repr
)
@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_intervals_cover_in_a_world_that_stands_still(family, radius):
    """95 % intervals of x'theta cover at least 85 % of the time, families and radii alike."""
    if isinstance(family, Poisson) and radius > 1:
        radius = 1.5  # e^3 events a round would be clipped
    world = Stationary(horizon=1500, dim=3, radius=radius, family=family)
    policy = DOMD(problem=world.problem, half_life=300)
    memory, covered = policy.init(30), []
    (block,) = world.blocks(range(30), world.horizon)
    for t, (arms, theta, luck) in enumerate(zip(block.arms, block.theta, block.luck)):
        x = arms[np.arange(30), policy.choose(memory, arms)]
        if t > 500 and t % 50 == 0:
            deviation = policy.deviation(memory, arms)
            gap = np.abs(np.einsum("nad,nd->na", arms, memory.theta - theta))
            covered.append((gap <= 1.96 * deviation).mean())
        memory = policy.update(memory, x, family.draw(np.einsum("nd,nd->n", x, theta), luck))
    assert np.mean(covered) >= 0.85


def test_linear_rivals_predict_on_the_scale_of_rewards():
    bandit = Bandit(LinUCB.from_theory(Problem(dim=3, radius=1.0)))
    for t in range(200):
        bandit.update([0.5, 0.0, 0.0], int(t % 5 < 4))
    np.testing.assert_allclose(
        bandit.predict([[0.5, 0, 0]]).mean, bandit.scores([[0.5, 0, 0]]).mean
    )


def test_a_rival_without_a_deviation_refuses_a_level():
    with pytest.raises(ValueError, match="no deviation"):
        Bandit(LinUCB.from_theory(Problem(dim=3, radius=1.0))).predict(ARMS, level=0.9)


@pytest.mark.parametrize(
    "rows",
    [
        [[0.1, 0.2], [0.3]],
        [[0.1], [0.2, 0.3, 0.4]],  # as many numbers as two rows of two
        [[0.1, "0.2"]],
        [[0.1, None]],
        [[0.1, 1j]],
        [[0.1, [0.2]]],
        [{0.1: 1.0, 0.2: 1.0}],
        [{0.1, 0.2}],
        [b"\0\1"],
        ["01"],
        [[0.1, 10**400]],
        [[0.1, math.nan]],
        [],
        [[]],
    ],
    ids=str,
)
def test_lists_that_are_no_arms_are_refused(rows):
    with pytest.raises(ValueError, match=r"real numbers|NaN"):
        Bandit(DOMD(problem=Problem(dim=2))).choose(rows)


def test_lists_of_any_numbers_are_arms():
    bandit = Bandit(DOMD(problem=Problem(dim=2)))
    bandit.update([0, 1], 1)
    for rows in ([[1, 0], [False, True]], [(0.5, 0.0), [0.0, 0.5]], [[0.1, 0], np.array([0, 0.2])]):
        assert bandit.choose(rows) == bandit.choose(np.array(rows, dtype=float))


@pytest.mark.parametrize("optimism", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("policy", [DOMD, AutoDOMD, Greedy])
def test_afford_takes_penalties_from_upper_bounds(policy, optimism):
    problem = Problem(dim=4)
    rng, bandit = np.random.default_rng(5), Bandit(policy(problem=problem))
    for _ in range(60):
        x = rng.standard_normal(4)
        bandit.update(x / np.linalg.norm(x), float(rng.random() < 0.5))
    for _ in range(40):
        X = rng.standard_normal((5, 4))
        X /= np.linalg.norm(X, axis=1)[:, None]
        penalty = 0.5 * rng.random(5)
        mean, _, upper = bandit.scores(X)
        bound = mean + optimism * (upper - mean)
        value = bound if bandit.policy.on_reward_scale else problem.family.mu(bound)
        assert bandit.afford(X, penalty, optimism=optimism) == int(np.argmax(value - penalty))
    if optimism == 1.0:
        assert bandit.afford(X, np.zeros(5)) == bandit.choose(X)
    assert bandit.afford([[1, 0, 0, 0]], [2]) == 0
    with pytest.raises(ValueError, match="norm"):
        bandit.afford(9.0 * X, penalty)
