"""AutoDOMD against a slow twin in NumPy, its invariants, and what it says of its world."""

import math
import threading

import numpy as np
import pytest

from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Bernoulli,
    Binomial,
    Circle,
    Gaussian,
    Jumps,
    Poisson,
    Problem,
    SignFlip,
    Stationary,
    simulate,
)
from driftbandit.policies.auto import FORGETFUL
from naive_auto import MixtureReference, grid_of

FAMILIES = [Bernoulli(), Binomial(4), Gaussian(0.25, 6.0)]


@pytest.mark.parametrize("radius", [0.5, 3.0, None])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_twin(family, radius):
    """Rounds with a change, so that learners are renewed and projected."""
    world = SignFlip(horizon=300, dim=3, radius=radius or 2.0, family=family)
    policy = AutoDOMD(problem=world.problem if radius else Problem(dim=3, family=family))
    twin, memory = MixtureReference(policy), policy.init(1)
    (block,) = world.blocks([3], 300)
    for arms, theta, luck in zip(block.arms, block.theta, block.luck):
        choice = int(policy.choose(memory, arms)[0])
        if memory.t[0] > 5:  # the first rounds tie up to rounding
            assert choice == twin.choose(arms[0])
        x = arms[:, choice]
        r = family.draw(x @ theta[0], luck)
        memory = policy.update(memory, x, r)
        twin.update(x[0], float(r[0]))
    np.testing.assert_allclose(memory.thetas[0], twin.thetas, atol=1e-7)
    Hs = memory.kept[0, :, None, None] * memory.Hs[0]
    np.testing.assert_allclose(Hs, twin.Hs, rtol=1e-7, atol=1e-8)
    inverses = memory.Ps[0] / memory.kept[0, :, None, None]
    np.testing.assert_allclose(inverses, np.linalg.inv(twin.Hs), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(memory.weights[0], twin.tracks, atol=1e-7)
    gains = np.stack([memory.gains[0], memory.stiffness[0]], axis=-1)
    np.testing.assert_allclose(gains, twin.gains, rtol=1e-6)
    levels = np.stack([memory.levels[0], memory.firmness[0]], axis=-1)
    np.testing.assert_allclose(levels, twin.levels, rtol=1e-6, atol=1e-9)
    assert memory.drift[0] == pytest.approx(twin.drift, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(memory.rounds[0], twin.rounds, rtol=1e-9)
    assert twin.renewals > 0 or radius == 0.5
    theta, V = twin.moments()
    np.testing.assert_allclose(memory.theta[0], theta, atol=1e-7)
    np.testing.assert_allclose(np.linalg.inv(memory.H[0]), V, rtol=1e-6, atol=1e-9)


@pytest.mark.kernel
def test_one_learner_is_domd_with_eta_1():
    """A grid of one is DOMD: the mixture, its gains and renewals change nothing."""
    world = Circle(horizon=120, dim=3, radius=2.0)
    for gamma, lam in ((0.9, 1.8), (1.0, 2.0)):  # refilled always, and never
        grid = {"discounts": [gamma], "regularizations": [2.0], "paces": []}
        one = AutoDOMD(problem=world.problem, bonus=1.0, widening=0.0, **grid)
        domd = DOMD(problem=world.problem, discount=gamma, regularization=lam, step=1.0, bonus=1.0)
        mine, its = simulate(one, world, (0, 1)), simulate(domd, world, (0, 1))
        assert np.array_equal(mine.choices[:, 5:], its.choices[:, 5:])


@pytest.mark.parametrize("pool", ["mixture", "leader"])
def test_bandit_is_the_policy_and_continues_from_a_file(pool, tmp_path):
    world = Jumps(horizon=300, jumps=2, dim=3, radius=2.0)
    policy = AutoDOMD(problem=world.problem, pool=pool)
    (block,) = world.blocks([1], 300)
    bandit, memory = Bandit(policy), policy.init(1)
    for t, (arms, theta, luck) in enumerate(zip(block.arms, block.theta, block.luck)):
        if t == 150:
            bandit.save(tmp_path / "bandit.npz")
            bandit = Bandit.load(tmp_path / "bandit.npz")
            bandit.forget(7)
            memory = policy.forget(memory, 7)
        choice = bandit.choose(arms[0])
        assert choice == policy.choose(memory, arms)[0]
        r = world.family.draw(arms[:, choice] @ theta[0], luck)
        bandit.update(arms[0, choice], float(r[0]))
        memory = policy.update(memory, arms[:, choice], r)
    for name, mine, its in zip(memory._fields, bandit.memory, memory):
        np.testing.assert_array_equal(mine, its, err_msg=name)


def test_contexts_of_another_length_change_nothing():
    """x L with the radius divided by L is the same problem."""
    L, d = 4.0, 3
    rng = np.random.default_rng(5)
    plain = Bandit(AutoDOMD(problem=Problem(dim=d, radius=2.0)))
    scaled = Bandit(AutoDOMD(problem=Problem(dim=d, radius=2.0 / L, context_norm=L)))
    for t in range(200):
        arms = rng.standard_normal((8, d))
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
        choice = plain.choose(arms)
        assert t < 5 or choice == scaled.choose(L * arms)
        reward = float(rng.random() < 0.5 + 0.4 * arms[choice, 0])
        plain.update(arms[choice], reward)
        scaled.update(L * arms[choice], reward)
    np.testing.assert_allclose(scaled.theta, plain.theta / L, rtol=1e-7)


def test_mixture_predicts_as_the_fixed_share_bound_says():
    """Without renewals and gains, the mixture's log loss is at most any learner's plus
    log(1/prior) - sum_t log(1 - share_t), whoever chose the data (docs/theory.md)."""
    world = Circle(horizon=600, dim=3, radius=2.0)
    options = {"renewal": 1e6, "rescaling": False, "share": 1e-2, "levels": 0.0}
    options["paces"] = ()
    policy = AutoDOMD(problem=world.problem, **options)
    memory, (block,) = policy.init(1), world.blocks([2], 600)
    mixture, learners = 0.0, np.zeros(memory.weights.shape[2])
    for arms, theta, luck in zip(block.arms, block.theta, block.luck):
        x = arms[:, policy.choose(memory, arms)[0]]
        r = world.family.draw(x @ theta[0], luck)
        p = world.family.mu(memory.thetas[0] @ x[0])
        likelihood = np.where(r[0] == 1.0, p, 1.0 - p)
        mixture -= math.log(memory.weights[0, 0] @ likelihood)
        learners -= np.log(likelihood)
        memory = policy.update(memory, x, r)
    shares = np.minimum(1e-2, 1.0 / np.arange(1, 601))
    shares[0] = 1e-2
    bounds = learners - np.log(policy.prior[0]) - np.log1p(-shares).sum()
    assert mixture <= bounds.min()
    assert mixture > learners.min() - 1.0  # and the bound is no empty word: nobody is far better


def states(world, seed=0):
    """What `explain` says before every round."""
    bandit, (block,) = Bandit(AutoDOMD(problem=world.problem)), world.blocks([seed], world.horizon)
    said = []
    for arms, theta, luck in zip(block.arms[:, 0], block.theta[:, 0], block.luck[:, 0]):
        said.append(bandit.explain())
        x = arms[bandit.choose(arms)]
        bandit.update(x, float(world.family.draw(x @ theta, luck)))
    return said, bandit


def test_it_says_what_the_world_does():
    still, _ = states(Stationary(horizon=2000, radius=2.0))
    assert still[0].state == "learning"
    assert sum(e.state == "stationary" for e in still[1000:]) > 900
    moving, _ = states(Circle(horizon=2000, radius=3.0, turns=5))
    assert sum(e.state == "drifting" for e in moving[1000:]) > 700
    assert moving[-1].memory < 200 < 500 < still[-1].memory
    jump = Jumps(horizon=2000, jumps=1, radius=3.0)
    said, _ = states(jump, seed=4)
    moment = int(np.flatnonzero(np.diff(jump.path(4)[:, 0]))[0])
    assert any(e.state == "just changed" for e in said[moment : moment + 100])


def test_the_grid_reaches_as_far_as_the_horizon():
    """Five memories of a long life, each with one regularization, as far as it can matter."""
    problems = Problem(dim=5), Problem(dim=5, radius=1.0, horizon=9000), Problem(dim=60)
    shape = [AutoDOMD(problem=problem).prior.shape for problem in problems]
    assert shape == [(2, 7 * 5 + 5 + 3), (2, 7 * 3 + 2 + 3), (2, 6 * 5 + 5 - 5 + 3)]
    policy = AutoDOMD(problem=Problem(dim=5))
    gamma, lam, _ = grid_of(policy)
    lam = np.where(gamma < 1.0, lam / FORGETFUL, lam)
    steady = policy.prior[0]
    alike = (gamma > 0.999) & np.isclose(lam, 2.0) & (steady > 0.0)
    assert alike.sum() == 6
    assert steady[alike].sum() == pytest.approx(steady[(gamma == 1.0) & (lam == 0.1)])
    assert policy.prior.sum() == pytest.approx(1.0)
    assert AutoDOMD(problem=Problem(dim=5), paces=[]).prior.shape == (2, 7 * 5 + 5)


def test_balls_grow_with_the_memory_where_the_slope_does_not():
    longer = AutoDOMD(problem=Problem(dim=5, context_norm=2.0), discounts=[0.9, 0.998, 1.0])
    np.testing.assert_allclose(grid_of(longer)[2][:3], [5.0, 25.0, 50.0])
    log_link = AutoDOMD(problem=Problem(dim=5, family=Poisson(bound=9)))
    np.testing.assert_allclose(grid_of(log_link)[2], 10.0)
    assert set(grid_of(AutoDOMD(problem=Problem(dim=5, radius=3.0)))[2]) == {3.0}


def test_a_missing_intercept_shows():
    """Clicks of 2 %: without a constant feature all arms have a level that no theta explains."""
    levels = []
    for constant in ([], [0.7]):
        bandit, rng = (
            Bandit(AutoDOMD(problem=Problem(dim=3 + len(constant)))),
            np.random.default_rng(4),
        )
        for _ in range(1500):
            arms = rng.uniform(-0.4, 0.4, (5, 3))
            arms = np.column_stack([arms, np.tile(constant, (5, 1))])
            choice = bandit.choose(arms)
            rate = 1 / (1 + math.exp(3.9 - 2 * arms[choice, 0]))
            bandit.update(arms[choice], float(rng.random() < rate))
        levels.append(bandit.explain().intercept_shift)
    assert levels[0] < -0.5
    assert abs(levels[1]) < 0.1


def test_an_explanation_adds_up():
    said, _ = states(Stationary(horizon=300))
    last = said[-1]
    assert sum(last.discounts.values()) == pytest.approx(1.0)
    assert sum(last.regularizations.values()) == pytest.approx(1.0)
    assert 0 < last.memory <= 300
    with pytest.raises(ValueError, match="AutoDOMD"):
        Bandit(DOMD(problem=Problem(dim=3))).explain()
    with pytest.raises(ValueError, match="AutoDOMD"):
        Bandit(DOMD(problem=Problem(dim=3))).plot_memory()


@pytest.mark.parametrize("rounds", [1, 127, 128, 129, 256, 257, 1000])
def test_history_keeps_evenly_spaced_rounds(rounds):
    problem = Problem(dim=1, radius=1.0)
    policy = AutoDOMD(problem=problem, discounts=[1.0], regularizations=[1.0], paces=[])
    memory = policy.init(1)
    for _ in range(rounds):
        memory = policy.update(memory, np.ones((1, 1)), np.ones(1))
    t, (values,) = policy.memory_over_time(memory)
    np.testing.assert_allclose(values, t)  # one learner that never forgets rests on all rounds
    assert 64 <= len(t) <= 128 or len(t) == rounds
    assert t[-1] > rounds - (t[1] - t[0] if len(t) > 1 else 1)


def test_plot_memory():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    _, bandit = states(Stationary(horizon=200))
    ax = bandit.plot_memory(ax=plt.figure().gca(), color="C1")
    (line,) = ax.get_lines()
    assert "memory" in ax.get_ylabel()
    assert len(line.get_xdata()) == 100
    plt.close("all")


def test_without_a_radius():
    """A signal far beyond the paper's unit ball is found without being told its size."""
    world = Stationary(horizon=1500, radius=6.0, dim=3)
    blind = AutoDOMD(problem=Problem(dim=3))
    run = simulate(blind, world, range(4))
    told = simulate(AutoDOMD(problem=world.problem), world, range(4))
    assert run.mean()[-1] < 2.0 * told.mean()[-1] + 10.0


def test_a_floor_above_the_curvature_is_not_sane():
    bandit = Bandit(AutoDOMD(problem=Problem(dim=3)))
    for t in range(40):
        bandit.update(np.eye(3)[t % 3], t % 2)
    memory = bandit.memory
    assert bandit.policy.sane(memory)
    memory.floor[0] = 1.01 * np.linalg.eigvalsh(memory.H[0])[0]
    assert not bandit.policy.sane(memory)


def test_threads_share_a_bandit():
    bandit = Bandit(AutoDOMD(problem=Problem(dim=3, radius=1.0)))
    x = np.array([0.6, 0.0, 0.8])

    def work():
        for _ in range(200):
            bandit.choose(x[None])
            bandit.update(x, 1.0)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert bandit.rounds == 800
    assert bandit.policy.sane(bandit.memory)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"discounts": []}, "discounts"),
        ({"discounts": [0.9, 0.9]}, "discounts"),
        ({"discounts": [1.1]}, "discounts"),
        ({"discounts": "fast"}, "discounts"),
        ({"regularizations": [0.0]}, "regularizations"),
        ({"regularizations": 3.0}, "regularizations"),
        ({"paces": [0.9, 0.9]}, "paces"),
        ({"paces": 0.9}, "paces"),
        ({"paces": [1.5]}, "paces"),
        ({"paces": np.linspace(0.1, 0.9, 334)}, "paces must be 333 at most"),
        ({"share": 1.0}, "share"),
        ({"share": -0.1}, "share"),
        ({"renewal": 0.0}, "renewal"),
        ({"bonus": -1.0}, "bonus"),
        ({"widening": -1.0}, "widening"),
        ({"pool": "committee"}, "pool"),
        ({"rescaling": 1}, "rescaling"),
        ({"exploration": "luck"}, "exploration"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options, word):
    with pytest.raises(ValueError, match=word):
        AutoDOMD(problem=Problem(dim=3), **options)


def clicks_after_a_change(policy, n=8, half=1500):
    """Clicks per visitor at the end of either half. Four offers, visitors of two kinds; tastes
    change, but for one offer that is fair before and after."""
    kinds = np.eye(4)
    menus = [np.array([[0.5, s, *k, *(s * k)] for k in kinds]) / np.sqrt(2.75) for s in (-0.5, 0.5)]
    chances = np.full((2, 2, 4), 0.08)
    chances[:, :, 3] = 0.25
    chances[0, [0, 1], [0, 1]] = chances[1, [0, 1], [1, 2]] = 0.6
    rng = np.random.default_rng(3)
    memory, clicks = policy.init(n), np.zeros((2 * half, n))
    for t in range(2 * half):
        who = rng.integers(2, size=n)
        arms = np.array([menus[k] for k in who])
        choice = policy.choose(memory, arms)
        clicks[t] = rng.random(n) < chances[t // half, who, choice]
        memory = policy.update(memory, arms[np.arange(n), choice], clicks[t])
    return clicks[half - 300 : half].mean(), clicks[-300:].mean()


def test_arms_that_were_bad_before_a_change_are_tried_again():
    before, after = clicks_after_a_change(AutoDOMD(problem=Problem(dim=10)))
    stuck = clicks_after_a_change(AutoDOMD(problem=Problem(dim=10), reverts=False))[1]
    assert before > 0.55
    assert after > 0.5
    assert after > stuck + 0.1
