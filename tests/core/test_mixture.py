"""AutoDOMD's kernels next to a slow twin, in few rounds: quick enough for every mutant."""

import math

import numpy as np
import pytest

import naive
from driftbandit import AutoDOMD, Bernoulli, Binomial, Bounded, Gaussian, Problem
from driftbandit.core import auto, domd
from driftbandit.core.layout import (
    FIRMNESS,
    FLOOR,
    GAIN,
    KEPT,
    LEVEL,
    POINTS,
    ROUNDS,
    STIFFNESS,
    THETA,
    WEIGHT,
    G,
    usual_at,
)
from naive_auto import MixtureReference

pytestmark = pytest.mark.kernel


def few(family, radius, dim=2, **options):
    """Six learners, whose weights part within a few rounds."""
    problem = Problem(dim=dim, family=family, radius=radius)
    grid = {"discounts": [0.6, 0.96, 1.0], "regularizations": [0.5, 4.0], "paces": []}
    return AutoDOMD(problem=problem, **(grid | options))


def agrees(memory, twin):
    np.testing.assert_allclose(memory.thetas[0], twin.thetas, atol=1e-8)
    kept = memory.kept[0, :, None, None]
    np.testing.assert_allclose(kept * memory.Hs[0], twin.Hs, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(memory.Ps[0] / kept, np.linalg.inv(twin.Hs), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(memory.kept[0], twin.kept, rtol=1e-12)
    np.testing.assert_allclose(memory.weights[0], twin.tracks, atol=1e-9)
    np.testing.assert_allclose(memory.gains[0], twin.gains[..., 0], rtol=1e-8)
    np.testing.assert_allclose(memory.stiffness[0], twin.gains[..., 1], rtol=1e-8)
    np.testing.assert_allclose(memory.levels[0], twin.levels[:, 0], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(memory.firmness[0], twin.levels[:, 1], rtol=1e-8)
    assert memory.drift[0] == pytest.approx(twin.drift, rel=1e-8, abs=1e-12)
    np.testing.assert_allclose(memory.rounds[0], twin.rounds, rtol=1e-12)
    theta, V = twin.moments()
    np.testing.assert_allclose(memory.theta[0], theta, atol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(memory.H[0]), V, rtol=1e-7, atol=1e-10)
    assert memory.floor[0] == pytest.approx(1 / np.abs(V).sum(axis=1).max())


def played(policy, rounds):
    """A flip of the sign half way, in large rewards: somebody is renewed."""
    twin, memory, rng = MixtureReference(policy), policy.init(1), np.random.default_rng(11)
    d, family, effective = policy.problem.dim, policy.problem.family, []
    for t in range(rounds):
        x = rng.standard_normal(d)
        x /= np.linalg.norm(x)
        z = (2.0 if t < rounds // 2 else -2.0) * x[0]
        r = float(family.draw(z, rng.random()))
        memory = policy.update(memory, x[None], np.array([r]))
        twin.update(x, r)
        effective.append(float(twin.weights @ twin.rounds))
    return twin, memory, effective


@pytest.mark.parametrize("radius", [0.5, 4.0])
@pytest.mark.parametrize("family", [Binomial(3), Gaussian(0.1, 6.0)], ids=repr)
def test_the_mixture_is_its_twin(family, radius):
    policy = few(family, radius, paces=[0.8])
    twin, memory, effective = played(policy, 30)
    agrees(memory, twin)
    np.testing.assert_allclose(memory.history[0, :30], effective, rtol=1e-8)
    usual = 0.0
    for t, rounds in enumerate(effective, start=1):
        usual += (math.log(rounds) - usual) / min(t, 500.0)
    assert memory.usual[0] == pytest.approx(usual)
    assert twin.renewals > 0 or radius < 1.0 or isinstance(family, Binomial)


def test_the_mixture_in_many_dimensions():
    policy = few(Gaussian(0.1, 6.0), 0.3, dim=33, discounts=[0.6, 0.99], regularizations=[0.5])
    twin, memory, _ = played(policy, 4)
    agrees(memory, twin)
    assert np.linalg.norm(memory.thetas[0, 0]) == pytest.approx(0.3)


def test_ageing_the_mixture():
    """Each learner forgets at its own pace, and is refilled when little is kept."""
    policy = few(Gaussian(0.1, 6.0), 4.0)
    twin, memory, _ = played(policy, 8)
    memory = policy.forget(memory, 3)
    for k, gamma in enumerate(twin.gamma):
        kept = twin.kept[k] * gamma**3
        twin.Hs[k], twin.kept[k] = gamma**3 * twin.Hs[k], kept
        if kept <= 0.9:
            twin.Hs[k] = twin.Hs[k] + (1 - kept) * twin.lam[k] * np.eye(2)
            twin.kept[k] = 1.0
    twin.rounds = twin.gamma**3 * twin.rounds
    agrees(memory, twin)


def test_the_leader_alone():
    policy = few(Gaussian(0.1, 6.0), 4.0, pool="leader")
    twin, memory, _ = played(policy, 12)
    lead = int(np.argmax(twin.weights))
    for now in (memory, policy.forget(memory, 0.5)):
        np.testing.assert_allclose(now.theta[0], now.thetas[0, lead], atol=1e-12)
        P = now.Ps[0, lead] / now.kept[0, lead]
        np.testing.assert_allclose(np.linalg.inv(now.H[0]), P, rtol=1e-9)


def test_the_mixture_refuses_what_domd_refuses():
    policy = few(Bernoulli(), 2.0)
    row = policy.fresh.copy()
    assert not auto.learn(policy.recipe, row, np.array([0.6, 0.9]), 1.0, 1.0, None)
    np.testing.assert_array_equal(row, policy.fresh)
    a, b, x = row.copy(), row.copy(), np.array([0.6, 0.8])
    assert auto.learn(policy.recipe, a, x, 1.0, 3.0, None)
    auto.age(policy.recipe, b, 2.0)
    assert auto.learn(policy.recipe, b, x, 1.0, 1.0, None)
    assert a[G] == 1.0
    np.testing.assert_allclose(a[THETA:-POINTS], b[THETA:-POINTS], rtol=1e-6, atol=1e-9)


def test_learning_reads_a_view_of_the_row():
    policy = few(Gaussian(0.1, 6.0), 0.9)
    _, memory, _ = played(policy, 5)
    a, b = memory.rows[0].copy(), memory.rows[0].copy()
    view = a[THETA : THETA + 2]
    auto.learn(policy.recipe, b, view.copy(), 1.0, 1.0, None)
    auto.learn(policy.recipe, a, view, 1.0, 1.0, None)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("rounds", [3, 128, 129, 130, 257, 300, 513])
def test_a_history_thins_itself_out(rounds):
    policy = few(Bernoulli(), 1.0, dim=1, discounts=[0.9], regularizations=[1.0])
    row, seen, usual = policy.fresh.copy(), [], 0.0
    for t in range(1, rounds + 1):
        auto.learn(policy.recipe, row, np.ones(1), 1.0, 1.0, None)
        seen.append(0.9 * seen[-1] + 1.0 if seen else 1.0)
        usual += (math.log(seen[-1]) - usual) / min(t, 500)
    assert row[auto.usual_at(1)] == pytest.approx(usual, rel=1e-9)
    stride = 2 ** max(0, math.ceil(math.log2(rounds / POINTS)))
    kept = seen[stride - 1 :: stride]
    np.testing.assert_allclose(row[-POINTS:][: len(kept)], kept)


def learners(row, d, n):
    """numbers, thetas, Hs and Ps of a row, which NumPy keeps alive."""
    ends = np.cumsum([THETA + d + d * d + 2, 10 * n, n * d, n * d * d, n * d * d])
    shapes = (10, n), (n, d), (n, d, d), (n, d, d)
    return [row[a:b].reshape(shape) for a, b, shape in zip(ends, ends[1:], shapes)]


def state(policy, weights, seed=3):
    """The arrays of learners with these weights, all different."""
    rng, row = np.random.default_rng(seed), policy.fresh.copy()
    d, n = policy.problem.dim, len(weights)
    numbers, thetas, Hs, Ps = learners(row, d, n)
    numbers[:] = rng.uniform(0.5, 1.5, numbers.shape)
    numbers[WEIGHT] = weights
    numbers[WEIGHT + 1] = 1e-18 * np.array(weights)  # the track with a level is far behind
    numbers[KEPT] = 0.91 + 0.01 * np.arange(n)
    thetas[:] = rng.standard_normal(thetas.shape)
    for H, P in zip(Hs, Ps):
        X = rng.standard_normal((4, d))
        H[:] = X.T @ X + np.eye(d)
        P[:] = np.linalg.inv(H)
    return row, numbers, thetas, Hs, Ps


def test_who_is_renewed_and_from_what():
    """Those with a longer memory than the leader's, more than 8 nats behind it."""
    policy = few(Bernoulli(), 2.0)
    lam = np.repeat([0.5, 4.0], 3) * np.tile([0.9, 0.9, 1.0], 2)
    for logs, lead, late in (
        ([-19.0, 0.0, -19.0, -19.0, -19.0, -8.5], 1, {2, 5}),
        ([-19.0, 0.0, -8.0, -1.0, -19.0, -9.0], 1, {5}),  # 8 nats are not enough
        ([-19.0, -29.0, -19.0, -19.0, 0.0, -8.5], 4, {2, 5}),
    ):
        _, numbers, thetas, Hs, Ps = state(policy, np.exp(logs))
        before, theta, others = numbers.copy(), thetas[lead].copy(), Hs.copy()
        kept = numbers[KEPT, lead]
        H = kept * Hs[lead] + (1 - kept) * lam[lead] * np.eye(2)
        auto.renew(policy.recipe, numbers, thetas, Hs, Ps, lead, np.empty(2))
        for k in range(6):
            if k in late:
                extra = max(0.0, lam[k] - lam[lead])
                np.testing.assert_allclose(Hs[k], H + extra * np.eye(2))
                known = Hs[k] - lam[k] * np.eye(2)  # what is more than the prior
                np.testing.assert_allclose(thetas[k], np.linalg.solve(Hs[k], known @ theta))
                np.testing.assert_allclose(Ps[k], np.linalg.inv(Hs[k]))
                assert numbers[WEIGHT, k] == pytest.approx(math.exp(-5.0))
                assert numbers[WEIGHT + 1, k] == pytest.approx(1e-18 * math.exp(-5.0))
                assert numbers[KEPT, k] == 1.0
                same = [GAIN, GAIN + 1, STIFFNESS, STIFFNESS + 1, LEVEL, FIRMNESS, ROUNDS]
                np.testing.assert_array_equal(numbers[same, k], before[same, lead])
            else:
                np.testing.assert_array_equal(numbers[:, k], before[:, k])
                np.testing.assert_array_equal(Hs[k], others[k])


def test_without_reversion_theta_is_the_leaders():
    """As version 0.2 learnt: its ledgers are replayed so."""
    policy = few(Bernoulli(), 2.0, reverts=False)
    _, numbers, thetas, Hs, Ps = state(policy, np.exp([-19.0, 0.0, -19.0, -19.0, -19.0, -19.0]))
    auto.renew(policy.recipe, numbers, thetas, Hs, Ps, 1, np.empty(2))
    np.testing.assert_array_equal(thetas[[2, 5]], thetas[[1, 1]])
    assert "reverts" not in policy.to_dict()
    assert type(policy).from_dict(policy.to_dict()) == policy
    assert policy.to_dict() | {"reverts": True} == few(Bernoulli(), 2.0).to_dict()


def test_the_bonus_widens_with_the_effective_memory():
    """Kernels and NumPy agree on the order of the arms, whatever the memory; a stored recipe that
    says nothing of it means a constant width."""
    policy, rng = few(Gaussian(1.0, 3.0), 2.0), np.random.default_rng(4)
    stored = {k: v for k, v in policy.to_dict().items() if k != "widening"}
    former = type(policy).from_dict(stored | {"bonus": 2.0})
    assert former.widening == 0.0
    assert "widening" not in former.to_dict()
    row, best, orders = policy.fresh.copy(), np.empty(40, np.int64), []
    row[THETA : THETA + 2] = 0.3, -0.2
    arms = rng.uniform(-0.7, 0.7, (40, 2))
    for memory, square in ((1.0, 1.75**2), (1e4, 1.75**2 + 1.4 * math.log(2)), (1e6, 9.524)):
        row[usual_at(2)] = math.log(memory)
        for learner, width in ((policy, math.sqrt(square)), (former, 2.0)):
            seen = learner.from_rows(row[None])
            _, bonus, upper = learner.scores(seen, arms[None])
            np.testing.assert_allclose(
                bonus, width * learner.deviation(seen, arms[None]), rtol=1e-4
            )
            domd.rank(learner.recipe, row, arms, np.empty(0), best, None)
            np.testing.assert_array_equal(best, np.argsort(-upper[0], kind="stable"))
            orders.append(tuple(best))
    assert orders[1] == orders[3] == orders[5]
    assert len(set(orders[::2])) == 3


def test_who_is_taught_with_a_level_is_renewed_without_one():
    """It goes on from the leader's theta, and is believed only with its level, which is 0 again;
    how firm a level is belongs to its pace."""
    policy = few(Bernoulli(), 2.0, discounts=[0.9], regularizations=[1.0], paces=[0.7, 0.99])
    _, numbers, thetas, Hs, Ps = state(policy, np.exp([0.0, -19.0, -8.5]))
    before = numbers.copy()
    auto.renew(policy.recipe, numbers, thetas, Hs, Ps, 0, np.empty(2))
    for k in (1, 2):
        np.testing.assert_array_equal(thetas[k], thetas[0])
        assert numbers[WEIGHT, k] == numbers[LEVEL, k] == 0.0
        assert numbers[WEIGHT + 1, k] == pytest.approx(math.exp(-5.0))
        assert numbers[FIRMNESS, k] == before[FIRMNESS, k]
        assert numbers[GAIN + 1, k] == before[GAIN + 1, 0]


def test_a_learner_that_is_taught_with_a_level_does_not_blame_the_arm():
    """Two arms are equal, one reward in ten. Then all rewards rise, but one arm is played."""
    policy = few(Bernoulli(), 9.0, discounts=[1.0], regularizations=[1.0], paces=[0.97])
    memory, arms = policy.init(1), np.array([[0.6, 0.8], [0.6, -0.8]])
    for t in range(400):
        reward = float(t // 2 % 10 < (1 if t < 300 else 9))
        x = arms[t % 2 if t < 300 else 0]
        memory = policy.update(memory, x[None], np.array([reward]))
    plain, taught = memory.thetas[0] @ (arms[0] - arms[1])
    assert plain > 2 * taught > 0
    assert memory.levels[0, 1] > 0.5


@pytest.mark.parametrize(("discounts", "lead"), [([0.5], 0), ([0.5, 1.0], 1)])
def test_ageing_follows_the_first_of_equals(discounts, lead):
    """Learners with the same discount have the same weight at first."""
    policy = few(Bernoulli(), 2.0, discounts=discounts, pool="leader")
    row, n = policy.fresh.copy(), 2 * len(discounts)
    auto.age(policy.recipe, row, 1.0)
    P = learners(row, 2, n)[3][lead]
    np.testing.assert_allclose(row[THETA + 2 : THETA + 6].reshape(2, 2), np.linalg.inv(P))


@pytest.mark.parametrize("size", [1.0, 1e-290, 1e290])
def test_the_leader_is_the_first_of_equals_and_has_weight_1(size):
    """Learners that predict alike keep their odds, whatever the size of their weights."""
    policy, weights = few(Bernoulli(), 2.0), np.array([0.1, 0.7, 0.7, 0.3, 0.7, 0.2])
    _, numbers, thetas, _, _ = state(policy, size * weights)
    thetas[:], numbers[LEVEL] = 0.0, 0.0
    lead = auto.judge(policy.recipe, 1.0, numbers, thetas, np.array([0.6, 0.8]), 1.0)
    assert lead == 1
    np.testing.assert_allclose(numbers[WEIGHT], weights / 0.7)


def test_a_share_goes_back_to_the_prior():
    policy, weights = few(Bernoulli(), 2.0, share=0.03), np.exp([-3.0, -1.0, -2.0, -7.0, -4.0, 0.0])
    _, numbers, *_ = state(policy, weights)
    numbers[WEIGHT + 1] = 0.3 * weights
    prior = np.outer([0.999, 0.001], policy.prior.sum(axis=0))
    for t, share in ((5.0, 0.03), (99.0, 0.01)):
        now = numbers.copy()
        auto.share(policy.recipe, now, t)
        expected = (1 - share) * np.outer([1.0, 0.3], weights) / (1.3 * weights.sum())
        np.testing.assert_allclose(now[WEIGHT : WEIGHT + 2], expected + share * prior)


def test_whose_weight_counts():
    for pool, expected in (("mixture", [0.5, 0.3, 0.2]), ("leader", [0.0, 1.0, 0.0])):
        policy, w = few(Bernoulli(), 2.0, pool=pool), np.empty(3)
        numbers = np.array([[0.1, 0.3, 0.2], [0.4, 0.0, 0.0]])
        auto.weigh(policy.recipe, numbers, 1, w)
        np.testing.assert_allclose(w, expected)


def test_suspicion_is_the_log_odds_of_those_who_forget():
    policy, numbers = few(Bernoulli(), 2.0), np.zeros((2, 6))
    numbers[0] = weights = np.array([0.2, 0.1, 0.3, 0.15, 0.05, 0.2])
    gamma = np.tile([0.6, 0.96, 1.0], 2)
    for t, short in ((5.0, []), (8.0, [0.6]), (74.9, [0.6]), (75.1, [0.6, 0.96])):
        part = min(max(weights[np.isin(gamma, short)].sum(), 1e-12), 1.0 - 1e-12)
        found = auto.suspicion(policy.recipe, numbers, t)
        assert found == pytest.approx(math.log(part / (1.0 - part)), rel=1e-4)


def test_suspicion_has_limits():
    policy = few(Bernoulli(), 2.0, discounts=[0.5, 1.0], regularizations=[1.0])
    for weights, t, odds in (
        ([1.0, 1.0], 6.0, 1e-12),  # a memory of just a third is not short
        ([1.0, 1.0], 6.1, 1.0),
        ([1.0, 1e-30], 9.0, 1e12),
        ([1e-30, 1.0], 9.0, 1e-12),
    ):
        numbers = np.array([weights, [0.0, 0.0]])
        found = auto.suspicion(policy.recipe, numbers, t)
        assert found == pytest.approx(math.log(odds), abs=1.0)


def test_ageing_follows_the_strongest_track():
    policy = few(Bernoulli(), 2.0, pool="leader")
    row, numbers, thetas, *_ = state(policy, [0.1, 0.2, 0.15, 0.1, 0.05, 0.05])
    numbers[WEIGHT + 1, 4] = 0.3
    auto.age(policy.recipe, row, 1.0)
    np.testing.assert_allclose(row[THETA : THETA + 2], thetas[4])


def test_what_is_pooled():
    """Everybody's theta, and the covariance of those with a thousandth of the weight or more."""
    policy, weights = few(Bernoulli(), 2.0), [0.4, 1e-3, 0.3, 9e-4, 0.2971, 1e-3]
    row, numbers, thetas, _, Ps = state(policy, weights)
    numbers[WEIGHT + 1] = 0.25 * numbers[WEIGHT]  # a learner's weight is that of both tracks
    numbers[WEIGHT] *= 0.75
    w = np.empty(6)
    auto.weigh(policy.recipe, numbers, 0, w)
    auto.pool(row, numbers, thetas, Ps, w, np.empty((2, 2)), np.empty(2))
    theta = np.array(weights) @ thetas
    V = sum(
        w * (P / kept + np.outer(v - theta, v - theta))
        for w, P, kept, v in zip(weights, Ps, numbers[KEPT], thetas)
        if w >= 1e-3
    )
    np.testing.assert_allclose(row[THETA : THETA + 2], theta)
    np.testing.assert_allclose(row[THETA + 2 : THETA + 6].reshape(2, 2), np.linalg.inv(V))
    assert row[FLOOR] == pytest.approx(1 / np.abs(V).sum(axis=1).max())


def test_a_dispersion_is_learnt_from_what_the_pool_predicts():
    naive.check_dispersion(few(Bounded(), 2.0), auto.learn)


@pytest.mark.parametrize(
    ("gamma", "rounds", "kept"),
    [(0.9, 2, 1.0), (0.9999, 3, 0.9999**2), (0.9999, 256, 0.9999**255), (0.9999, 257, 1.0)],
)
def test_lambda_is_refilled_in_portions(gamma, rounds, kept):
    """When a tenth is gone, and every 256 rounds."""
    policy = few(Bernoulli(), 1.0, dim=1, discounts=[gamma], regularizations=[1.0])
    row = policy.fresh.copy()
    for _ in range(rounds):
        auto.learn(policy.recipe, row, np.ones(1), 1.0, 1.0, None)
    assert learners(row, 1, 1)[0][KEPT, 0] == pytest.approx(kept, rel=1e-12)
