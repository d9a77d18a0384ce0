"""The rivals that came later, each against its slow reference and the ordering its paper shows."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import erfinv, ndtr

import naive
import naive_newer
from driftbandit import (
    DAL,
    DGLMTS,
    IDS,
    LARL,
    SWGLMTS,
    Bandit,
    Bernoulli,
    Binomial,
    DLinTS,
    DLinUCB,
    DRandLinUCB,
    DynamicLinUCB,
    FixedArms,
    FreshArms,
    Gaussian,
    GivenArms,
    LBWeightUCB,
    LinUCB,
    Poisson,
    Problem,
    RestartedSAVE,
    RestartedWeightedOFUL,
    SignFlip,
    Simulated,
    Stationary,
    SWLinUCB,
    WSBLinTS,
    WSBLinUCB,
    WSBRandLinUCB,
    simulate,
)
from driftbandit.checks import check_policy
from driftbandit.policies.ids import best_pair, regret_and_information
from driftbandit.theory import detection, rivals
from odd import ODD, P, S, close, odd, span

GAMMA, LAM, DELTA, SCALE, T = 0.9, 0.7, 0.05, 0.3, 200
DISCOUNT, HORIZON = {"gamma": GAMMA}, {"horizon": T}
# policy, reference, numbers of the policy, numbers of the reference
PAIRS = {
    "D-LinTS": (DLinTS, naive_newer.NaiveDLinTS, {"discount": GAMMA}, DISCOUNT),
    "D-LinTS inflated": (
        DLinTS,
        naive_newer.NaiveDLinTS,
        {"discount": GAMMA, "inflated": True},
        DISCOUNT | {"inflated": True},
    ),
    "D-RandLinUCB": (DRandLinUCB, naive.NaiveDLinUCB, {"discount": GAMMA}, DISCOUNT),
    "WSB-LinUCB": (WSBLinUCB, naive_newer.NaiveWSB, {"discount": GAMMA}, DISCOUNT | HORIZON),
    "WSB-RandLinUCB": (
        WSBRandLinUCB,
        naive_newer.NaiveWSB,
        {"discount": GAMMA},
        DISCOUNT | HORIZON,
    ),
    "WSB-LinTS": (WSBLinTS, naive_newer.NaiveWSBLinTS, {"discount": GAMMA}, DISCOUNT | HORIZON),
    "WSB-LinTS inflated": (
        WSBLinTS,
        naive_newer.NaiveWSBLinTS,
        {"discount": GAMMA, "inflated": True},
        DISCOUNT | HORIZON | {"inflated": True},
    ),
}
WINDOW = {"window": 9}
PAIRS |= {
    "D-GLM-TS": (DGLMTS, naive_newer.NaiveDGLMTS, {"discount": GAMMA}, DISCOUNT),
    "SW-GLM-TS": (SWGLMTS, naive_newer.NaiveSWGLMTS, WINDOW, WINDOW),
    "IDS": (IDS, naive_newer.NaiveDGLMTS, {"discount": GAMMA}, DISCOUNT),
}
LINKS = {
    "Bernoulli": (Bernoulli(), naive.bernoulli()),
    "Binomial": (Binomial(3), naive.binomial(3)),
    "Gaussian": (Gaussian(0.5, 2.0), naive.gaussian(0.5, 4.0)),  # the rivals' R is the range
    "Poisson": (Poisson(12), naive.poisson(12)),
}


def pair(name, family, S, **more):
    kind, reference, numbers, naive_numbers = PAIRS[name]
    ours, theirs = LINKS[family]
    shared = {"delta": DELTA, "scale": SCALE}
    problem = Problem(dim=3, family=ours, radius=S, horizon=T)
    policy = kind(problem=problem, regularization=LAM, **shared, **numbers, **more)
    return policy, reference(dim=3, link=theirs, S=S, lam=LAM, **shared, **naive_numbers)


def rounds(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, 4, 3)) / math.sqrt(3), rng.random(n)


def check_scores(policy, reference, n=14):
    """Play the reference's choices, and compare what both think of every arm."""
    bandit = Bandit(policy)
    for X, u in zip(*rounds(n)):
        mean, bonus = reference.index(X)
        scores = bandit.scores(X)
        np.testing.assert_allclose(scores.mean, mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(scores.bonus, bonus, rtol=1e-6)
        arm = reference.choose(X)
        reward = float(policy.problem.family.draw(1.5 * X[arm, 0] + 0.8, u))
        bandit.update(X[arm], reward)
        reference.update(X[arm], reward)


@pytest.mark.parametrize(("family", "S"), [("Bernoulli", 1.0), ("Gaussian", 0.5), ("Poisson", 0.2)])
@pytest.mark.parametrize("name", PAIRS)
def test_a_rival_is_its_slow_reference(name, family, S):
    check_scores(*pair(name, family, S))


@pytest.mark.parametrize("family", LINKS)
def test_centred_rewards_are_regressed_without_mu_of_zero(family):
    ours, theirs = LINKS[family]
    numbers = {"delta": DELTA, "scale": SCALE}
    problem = Problem(dim=3, family=ours, radius=1.0, horizon=T)
    policy = DLinUCB(problem=problem, regularization=LAM, discount=GAMMA, centre=True, **numbers)
    zero = float(theirs.mu(0.0))
    reference = naive_newer.NaiveCentredDLinUCB(
        dim=3, link=theirs, S=1.0, lam=LAM, gamma=GAMMA, zero=zero, **numbers
    )
    check_scores(policy, reference)


@pytest.mark.parametrize("family", ["Bernoulli", "Gaussian"])
def test_weighted_oful_is_its_slow_reference(family):
    ours, theirs = LINKS[family]
    numbers = {"delta": DELTA, "scale": SCALE, "period": 9}
    problem = Problem(dim=3, family=ours, radius=1.0, horizon=T)
    policy = RestartedWeightedOFUL(problem=problem, regularization=LAM, **numbers)
    deviation = 0.5 if family == "Bernoulli" else math.sqrt(0.5)
    reference = naive_newer.NaiveRestartedOFUL(
        dim=3, link=theirs, S=1.0, lam=LAM, deviation=deviation, **numbers
    )
    check_scores(policy, reference, 30)


@pytest.mark.parametrize(("family", "period"), [("Bernoulli", 9), ("Gaussian", 5000)])
def test_save_is_its_slow_reference(family, period):
    """With the long period some layers estimate their variance."""
    ours, theirs = LINKS[family]
    numbers = {"delta": DELTA, "scale": 1e-3, "period": period}
    problem = Problem(dim=3, family=ours, radius=1.0, horizon=T)
    reference = naive_newer.NaiveRestartedSAVE(dim=3, link=theirs, S=1.0, lam=LAM, **numbers)
    check_scores(RestartedSAVE(problem=problem, **numbers), reference, 30)


@pytest.mark.parametrize("kind", [RestartedWeightedOFUL, RestartedSAVE])
def test_a_restart_forgets_all_but_the_number_of_rounds(kind):
    policy = kind.from_theory(Problem(dim=3, radius=1.0, horizon=T, path_length=1.0), period=5)
    memory, fresh = policy.init(2), policy.init(2)
    for t, X in enumerate(rounds(10)[0], start=1):
        memory = policy.update(memory, X[:2], np.ones(2))
        same = [np.array_equal(a, b) for a, b in zip(memory[:-1], fresh[:-1])]
        assert all(same) == (t % 5 == 0)
        assert (memory.t == t).all()


def test_dlinucb_is_its_slow_reference_through_two_changes():
    """Rewards that no model can hold on to: models come, go, and make room for others."""
    family, numbers = Gaussian(0.01, 4.0), {"recent": 5, "doubt": 0.5, "spare": 0.1}
    problem = Problem(dim=3, family=family, radius=1.0, horizon=T)
    shared = {"delta": 0.5, "scale": 0.05}
    policy = DynamicLinUCB(problem=problem, regularization=LAM, **shared, **numbers)
    reference = naive_newer.NaiveDynamicLinUCB(
        dim=3, link=naive.gaussian(0.01, 8.0), S=1.0, lam=LAM, **shared, **numbers
    )
    bandit = Bandit(policy)
    for t, (X, u) in enumerate(zip(*rounds(160, seed=5))):
        mean, bonus = reference.index(X)
        scores = bandit.scores(X)
        np.testing.assert_allclose(scores.mean, mean, atol=1e-8)
        np.testing.assert_allclose(scores.bonus, bonus, rtol=1e-8)
        arm = reference.choose(X)
        level = (0.0, 3.0, -3.0, 0.0)[t // 40]
        reward = float(family.draw(level + X[arm, t % 2], u))
        bandit.update(X[arm], reward)
        reference.update(X[arm], reward)
    assert reference.created > 6
    assert max(reference.most) > 2  # more than there is room for at first


@pytest.mark.parametrize("order", [1, 3])
def test_larl_is_its_slow_reference(order):
    problem = Problem(dim=3, family=Gaussian(0.5, 2.0))
    policy = LARL(problem=problem, order=order, regularization=LAM, bonus=SCALE)
    reference = naive_newer.NaiveLARL(
        dim=3, link=naive.gaussian(0.5, 4.0), S=1.0, lam=LAM, delta=DELTA, scale=SCALE, order=order
    )
    check_scores(policy, reference)


def test_larl_does_not_depend_on_the_unit_of_the_contexts():
    small, large = (LARL(problem=Problem(dim=3, context_norm=L)) for L in (1.0, 20.0))
    a, b = small.init(1), large.init(1)
    for X, u in zip(*rounds(12)):
        np.testing.assert_allclose(small.scores(a, X[None]), large.scores(b, 20 * X[None]))
        reward = np.array([float(u < 0.5)])
        a, b = small.update(a, X[:1], reward), large.update(b, 20 * X[:1], reward)


def test_constants_of_dlinucb():
    assert detection.dlinucb_tolerance(0.5, 0.1) == close(0.5 * math.sqrt(2) * erfinv(0.9))
    expected = [0.5, math.sqrt(math.log(20) / 2), math.sqrt(math.log(20) / 14)]
    np.testing.assert_allclose(detection.dlinucb_doubt(np.array([0, 1, 7]), 0.05), expected)


def test_constants_of_the_variance_weighted_rivals():
    d, T, V, R = 3, 700, 700 * 0.6 * 0.31, span
    assert rivals.reward_deviation(ODD) == close(math.sqrt(0.6 * 0.31))
    assert rivals.reward_deviation(odd(g=50.0)) == close(span / 2)
    short = d ** (1 / 6) * (T / P) ** (1 / 3)
    assert rivals.oful_period(ODD) == int(max(d**0.25 * (V / P) ** 0.5, short))
    assert rivals.oful_period(odd(g=1e-6)) == int(short)
    assert rivals.oful_period(replace(ODD, path_length=0.0)) == T
    assert rivals.save_period(ODD) == int(max((d**2 * V * T / P**2) ** 0.2, (d * T / P) ** (1 / 3)))
    assert rivals.save_period(odd(g=1e-6)) == int((d * T / P) ** (1 / 3))
    assert rivals.save_period(replace(ODD, path_length=0.0)) == T
    assert rivals.save_layers(1) == 1
    assert rivals.save_layers(100) == 10
    a, c2, k = R / 7, R / math.sqrt(d), 5.0
    logs = math.log(32 * (math.log(c2 / a) + 1) * k**2 / 0.03)
    noise = 12 * math.sqrt(d * math.log(1 + k / (a**2 * d * 1.7)) * logs)
    radius = noise + 30 * logs * R / c2 + math.sqrt(1.7) * S
    assert rivals.weighted_oful(ODD, k, lam=1.7, delta=0.03, period=49) == close(radius)
    first, then = math.log(4 * 50**2 * 9 / 0.03), math.log(4 * 49**2 * 9 / 0.03)
    for layer, var in ((2, R**2 * 6), (9, 0.8)):  # 2^9 >= 64 sqrt(first)
        size = 2.0**-layer
        spread = 8 * math.sqrt((8 * var + 6 * R**2 * first + 16 * size**2) * then)
        found = rivals.save_radius(ODD, layer, 6, 0.8, delta=0.03, period=49)
        assert found == close(size * (spread + 6 * R * then + S))
    assert rivals.oful_floor(ODD, 49) == close(R / 7)
    assert rivals.oful_caution(ODD) ** 4 == close(R**2 / d)


def test_a_centred_window_is_a_refit_on_the_window():
    problem, (arms, luck) = Problem(dim=3, radius=1.0, horizon=T), rounds(40, seed=4)
    bandit = Bandit(SWLinUCB(problem=problem, regularization=1.0, window=7, centre=True))
    refit = Bandit(LinUCB(problem=problem, regularization=1.0, centre=True))
    for X, u in zip(arms, luck):
        bandit.update(X[0], float(u < 0.5))
    for X, u in zip(arms[-7:], luck[-7:]):
        refit.update(X[0], float(u < 0.5))
    np.testing.assert_allclose(bandit.theta, refit.theta, atol=1e-12)


def played(policy, n, seed=3):
    """The memory of n learners that saw the same twenty rounds."""
    memory, (arms, luck) = policy.init(n), rounds(20, seed)
    for X, u in zip(arms, luck):
        memory = policy.update(memory, np.tile(X[0], (n, 1)), np.full(n, float(u < 0.6)))
    return memory


@pytest.mark.parametrize("kind", [DRandLinUCB, WSBRandLinUCB])
def test_all_bonuses_of_a_round_share_one_random_factor(kind):
    problem = Problem(dim=3, radius=1.0, horizon=T)
    policy = kind(problem=problem, regularization=1.0, discount=0.95)
    memory, arms = played(policy, 50), np.tile(rounds(8, seed=9)[0].reshape(1, 32, 3), (50, 1, 1))
    noise = np.random.default_rng(8).standard_normal((50, 1))
    mean, bonus, _ = policy.scores(memory, arms)
    expected = [np.argmax(m + abs(z[0]) * b) for m, b, z in zip(mean, bonus, noise)]
    np.testing.assert_array_equal(policy.choose(memory, arms, noise), expected)
    assert len(set(expected)) > 1
    with pytest.raises(ValueError, match=r"standard normals of shape \(n, 1\)"):
        policy.choose(memory, arms)


@pytest.mark.parametrize("kind", [DLinTS, WSBLinTS])
def test_a_sampler_draws_with_the_deviations_it_shows(kind):
    """Choices between opposite arms follow the normal law of the sampled x'theta."""
    problem = Problem(dim=3, radius=1.0, horizon=T)
    policy = kind(problem=problem, regularization=1.0, discount=0.95)
    memory, x = played(policy, 4000), np.array([0.2, 0.5, -0.4])
    arms = np.tile([x, -x], (4000, 1, 1))
    noise = np.random.default_rng(8).standard_normal((4000, policy.noise_size))
    share = (policy.choose(memory, arms, noise) == 0).mean()
    mean, deviation, _ = policy.scores(memory, arms)
    expected = ndtr(mean[0, 0] / deviation[0, 0])
    assert 0.1 < expected < 0.9
    assert share == pytest.approx(expected, abs=0.03)


def test_constants_of_the_linear_samplers():
    assert rivals.lin_ts_inflation() == close(math.sqrt(14))
    assert rivals.rand_lin_ucb_deviation(ODD) == 0.4
    assert rivals.wsb_prior(ODD, 2.5, lam=1.7) == close(1.7 * S / math.sqrt(2.5))
    assert rivals.wsb_prior(ODD, 1.7, lam=1.7) == close(math.sqrt(1.7) * S)
    problem = replace(ODD, horizon=700)
    assert DRandLinUCB.from_theory(problem).scale == 0.4
    for kind in (DLinTS, DRandLinUCB):
        assert kind.from_theory(problem).regularization == rivals.random_lin_lam(problem) == 1.0
    sampler = DLinTS.from_theory(problem)
    assert sampler.width(sampler.init(1))[0] == close(math.sqrt(0.6 * 0.31))


def test_the_prior_costs_less_once_there_are_data():
    problem = Problem(dim=3, radius=1.0, horizon=T, context_norm=2.0)
    numbers = {"regularization": 3.0, "discount": 1.0}
    ours = WSBLinUCB(problem=problem, **numbers)
    plain = LBWeightUCB(problem=problem, **numbers, time_uniform=True)
    assert ours.width(ours.init(1)) == close(plain.width(plain.init(1)))
    a, b = ours.init(1), plain.init(1)
    for X in rounds(60)[0]:
        a, b = ours.update(a, X[:1], np.ones(1)), plain.update(b, X[:1], np.ones(1))
    assert ours.width(a)[0] < plain.width(b)[0] - 0.4


def test_the_posterior_of_gaussian_rewards_is_bayesian_ridge_regression():
    """Exact there: precision lambda I + X'X / g, whatever the unit of the contexts."""
    family, (arms, luck) = Gaussian(0.5, 9.0), rounds(30, seed=6)
    problem = Problem(dim=3, family=family, radius=1.0, horizon=T)
    policy = SWGLMTS(problem=problem, regularization=2.0, window=12)
    memory, X, r = policy.init(1), arms[:, 0], family.draw(arms[:, 0, 0], luck)
    for x, y in zip(X, r):
        memory = policy.update(memory, x[None], np.array([y]))
    precision = 2.0 * np.eye(3) + X[-12:].T @ X[-12:] / 0.5
    mean = np.linalg.solve(precision, X[-12:].T @ r[-12:] / 0.5)
    np.testing.assert_allclose(memory.H[0], precision, rtol=1e-9)
    np.testing.assert_allclose(memory.theta[0], mean, atol=1e-9)


def test_a_posterior_predicts_with_its_own_deviations():
    """The interval does not depend on how widely the policy explores."""
    problem = Problem(dim=3, family=Gaussian(0.5, 9.0), radius=1.0, horizon=T)
    wide, plain = (
        Bandit(DGLMTS(problem=problem, regularization=2.0, discount=0.9, scale=scale))
        for scale in (7.0, 1.0)
    )
    X = np.array([[0.3, 0.1, -0.5]])
    for bandit in (wide, plain):
        bandit.update(X[0], 1.0)
        mean, lower, upper = bandit.predict(X, level=0.95)
        precision = 2.0 * np.eye(3) + X.T @ X / 0.5
        deviation = math.sqrt(X[0] @ np.linalg.solve(precision, X[0]))
        np.testing.assert_allclose(upper - mean, 1.959964 * deviation, rtol=1e-6)
        np.testing.assert_allclose(mean - lower, 1.959964 * deviation, rtol=1e-6)


def test_tunings_of_glm_thompson_sampling():
    jumps, drift = ODD, replace(ODD, change_points=None)
    assert rivals.glm_ts_prior(ODD) == close(3 / S**2)
    assert rivals.glm_ts_discount(jumps) == rivals.d_glucb_discount(jumps)
    assert rivals.glm_ts_discount(drift) == rivals.scb_weight_discount(drift)
    assert rivals.glm_ts_window(jumps) == rivals.sw_glucb_window(jumps)
    assert rivals.glm_ts_window(drift) == rivals.linear_window(drift)


@pytest.mark.parametrize("seed", range(5))
def test_no_mixture_of_arms_has_a_smaller_information_ratio(seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((4, 60)) + rng.uniform(0, 1.5, (4, 1))
    a, b, q = (x[0] for x in best_pair(*regret_and_information(values[None])))
    pi = np.zeros(4)
    pi[a] += q
    pi[b] += 1 - q
    found = naive_newer.information_ratio(pi, values)
    others = [*rng.dirichlet(np.full(4, 0.3), 400), *np.eye(4)]
    assert found <= min(naive_newer.information_ratio(other, values) for other in others) + 1e-12


def test_ids_plays_its_two_arms_with_their_probabilities():
    problem = Problem(dim=3, radius=1.0, horizon=T)
    policy = IDS(problem=problem, regularization=3.0, discount=0.95)
    one = played(policy, 1)
    memory = type(one)(*(np.repeat(array, 3000, axis=0) for array in one))
    arms = np.tile(rounds(2, seed=17)[0].reshape(1, 8, 3), (3000, 1, 1))
    noise = np.random.default_rng(1).standard_normal((3000, 1))
    choice = policy.choose(memory, arms, noise)
    a, b, q = best_pair(*regret_and_information(policy.values(one, arms[:1])))
    assert 0.05 < q[0] < 0.95
    assert set(choice) == {a[0], b[0]}
    assert (choice == a[0]).mean() == pytest.approx(q[0], abs=0.03)


def test_ids_knows_when_there_is_nothing_to_learn():
    delta, v = np.array([[0.3, 0.0, 0.2]]), np.zeros((1, 3))
    for more in (0.0, 0.1):  # with 0.1 every ratio is infinite
        a, _, q = best_pair(delta + more, v)
        assert (a[0], q[0]) == (1, 1.0)


@pytest.mark.parametrize("family", ["Bernoulli", "Gaussian"])
def test_dal_is_its_slow_reference_through_a_change(family):
    ours, theirs = LINKS[family]
    problem = Problem(dim=3, family=ours, radius=1.0, horizon=T)
    inner = {"delta": DELTA, "scale": SCALE}
    base = LinUCB(problem=problem, regularization=LAM, **inner)
    policy = DAL(problem=problem, base=base, delta=0.5)
    reference = naive_newer.NaiveDAL(
        dim=3,
        link=theirs,
        S=1.0,
        lam=LAM,
        delta=0.5,
        horizon=T,
        base=lambda: naive.NaiveLinUCB(dim=3, link=theirs, S=1.0, lam=LAM, **inner),
    )
    memory = policy.init(1)
    for t, (X, u) in enumerate(zip(*rounds(150, seed=1))):
        arm = int(policy.choose(memory, X[None])[0])
        assert arm == reference.choose(X)
        reward = float(ours.draw(-4.0 if t < 75 else 4.0, u))
        memory = policy.update(memory, X[arm][None], np.array([reward]))
        reference.update(X[arm], reward)
    assert memory.restarts[0] == reference.episode - 1 == 1
    assert memory.tau[0] == reference.rounds


def test_dal_forces_every_axis_in_its_share_of_the_rounds():
    problem = Problem(dim=3, radius=1.0, horizon=2000)
    policy, forced = DAL.from_theory(problem), []
    memory = policy.init(1)
    for X in rounds(400)[0]:
        forced.append(int(policy.directions(memory)[0]))
        arm = int(policy.choose(memory, X[None])[0])
        if forced[-1] >= 0:
            assert arm == np.argmax(X[:, forced[-1]])
        memory = policy.update(memory, X[arm][None], np.ones(1))
    share = math.sqrt(3 * math.log(2000) / 2000)
    assert np.mean(np.array(forced) >= 0) == pytest.approx(share, abs=0.01)
    assert {forced.count(axis) for axis in range(3)} <= {14, 15}
    assert memory.base_t[0] == forced.count(-1)  # the base learns in free rounds only


def test_dal_raises_no_false_alarm_and_its_theorem_is_more_cautious():
    world = Stationary(horizon=600, dim=2, radius=1.0)
    policy, last = DAL.from_theory(world.problem, base="LinUCB", scale=0.2), {}
    simulate(policy, world, range(10), watch=lambda t, memory, theta: last.update(memory=memory))
    assert last["memory"].restarts.sum() == 0
    for n in (2, 10, 1000):
        logs = math.log(4 * n**1.5 / 0.1)
        assert detection.glr_threshold(n, 0.1) == close(logs)
        proven = 6 * math.log(1 + math.log(n)) + 2.5 * logs + 11
        assert detection.glr_threshold(n, 0.1, "theorem") == close(proven)
    assert detection.dal_share(3, 2, 1000.0) == close(math.sqrt(6 * math.log(1000) / 1000))
    assert detection.dal_share(30, 5, 100.0) == 0.5
    assert detection.dal_period(3, 2, 1000.0) == math.ceil(3 / math.sqrt(6 * math.log(1000) / 1000))
    with pytest.raises(ValueError, match="'theorem'"):
        replace(policy, reading="proof")


@pytest.mark.parametrize("base", ["GLBOMD", "LinUCB", "GLMUCB", "DLinTS"])
def test_dal_wraps_any_base(base):
    known = Problem(dim=2, radius=1.0, horizon=100, path_length=1.0, change_points=1)
    check_policy(DAL.from_theory(known, base=base, scale=0.3))


# Orderings that the papers show, in short versions of their settings


def regret(policy, world, seeds=range(2)):
    return simulate(policy, world, seeds).total.mean()


def flips():
    """Kim and Tewari's setting: 10 arms in 10 dimensions, ||x|| <= 2.9, ||theta|| = 2, noise of
    variance 0.15; theta flips. Their arms are Criteo's; ours are random."""
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((1000, 10, 10))
    arms *= 2.9 / np.linalg.norm(arms, axis=-1).max()
    family = Gaussian(0.15, 6.0)
    return SignFlip(horizon=1000, dim=10, radius=2.0, family=family, arms=GivenArms(arms))


def test_random_exploration_beats_d_linucb_as_in_kim_and_tewari():
    """With lambda = 1; `scale` undoes that the optimists' sub-Gaussian constant is the bound 6."""
    world = flips()
    lam = 1.0 / world.problem.context_norm**2
    optimism = regret(DLinUCB.from_theory(world.problem, regularization=lam, scale=0.1), world)
    for kind, scale in ((DLinTS, 1.0), (DRandLinUCB, 0.4 * 0.1)):
        policy = kind.from_theory(world.problem, regularization=lam, scale=scale)
        assert regret(policy, world) < 0.85 * optimism


def test_the_posteriors_radius_beats_the_least_squares_one_as_in_werge_et_al():
    world = SignFlip(horizon=1000, family=Gaussian(0.15, 1.0), arms=FreshArms(10))
    plain = LBWeightUCB.from_theory(world.problem, time_uniform=True)
    posterior = WSBLinUCB.from_theory(world.problem)
    random = WSBRandLinUCB.from_theory(world.problem)
    assert regret(posterior, world) < 0.99 * regret(plain, world)
    assert regret(random, world) < 0.95 * regret(posterior, world)


def test_directed_sampling_beats_thompson_sampling_as_in_russo_and_van_roy():
    """Their linear bandit: 30 fixed arms in 5 dimensions, Gaussian rewards, 250 rounds."""
    family = Gaussian(0.1, 4.0)
    world = Stationary(horizon=250, dim=5, family=family, arms=FixedArms(30))
    directed = IDS.from_theory(world.problem, discount=1.0)
    sampled = DGLMTS.from_theory(world.problem, discount=1.0)
    assert regret(directed, world, range(6)) < regret(sampled, world, range(6))


def test_a_watched_base_beats_the_base_as_in_gerogiannis_et_al():
    """Not MASTER over the same base, though: that is ahead in a world as short as this."""
    world = SignFlip(horizon=1500, dim=2, radius=3.0)
    base = regret(LinUCB.from_theory(world.problem, scale=0.2), world)
    watched = regret(DAL.from_theory(world.problem, base="LinUCB", scale=0.2), world)
    assert watched < 0.75 * base


@pytest.mark.parametrize("kind", [RestartedWeightedOFUL, RestartedSAVE])
def test_less_variance_is_less_regret_as_in_wang_et_al(kind):
    """Their bounds fall with the variance of rewards; the bound on a reward stays."""
    found = {}
    for variance in (0.01, 0.5):
        world = SignFlip(horizon=600, dim=3, family=Gaussian(variance, 3.0), arms=FreshArms(10))
        policy = kind.from_theory(world.problem, period=100, scale=0.002)
        found[variance] = regret(policy, world)
    assert found[0.01] < 0.9 * found[0.5]


def test_dlinucb_finds_the_change_points_as_in_wu_et_al():
    """And not where rewards are 0 or 1: noise as large as that excuses every error, as Russac et
    al. 2019 saw."""
    clear = SignFlip(horizon=800, dim=3, family=Gaussian(0.01, 1.5), arms=FreshArms(10))
    noisy, last = replace(clear, family=Bernoulli()), {}
    team, found = DynamicLinUCB.from_theory(clear.problem, scale=0.2), {}
    discounted = DLinUCB.from_theory(clear.problem, scale=0.2)
    assert regret(team, clear) < 0.75 * regret(discounted, clear)
    for world in (clear, noisy):
        policy = DynamicLinUCB.from_theory(world.problem, scale=0.2)
        simulate(policy, world, range(2), watch=lambda t, memory, theta: last.update(m=memory))
        found[world] = last["m"].created.tolist()
    assert found == {clear: [2, 2], noisy: [1, 1]}


@dataclass(frozen=True, kw_only=True)
class HiddenState(Simulated):
    """Two arms whose means rise and fall with one hidden autoregressive state, against each other
    (the latent AR bandit of Trella et al.)."""

    @property
    def path_length(self):
        return float(self.horizon)

    def _path(self, rng):
        state, steps = np.zeros(self.horizon), 0.3 * rng.standard_normal(self.horizon)
        for t in range(1, self.horizon):
            state[t] = 0.9 * state[t - 1] + steps[t]
        level = np.clip(state, -1.4, 1.4)
        return level[:, None] * np.array([0.7, -0.7])


def test_predicting_the_state_beats_forgetting_as_in_trella_et_al():
    arms, family = GivenArms(np.eye(2)), Gaussian(0.1, 3.0)
    world = HiddenState(horizon=800, dim=2, radius=1.4, family=family, arms=arms)
    predicted = regret(LARL(problem=world.problem), world)
    still = regret(LinUCB.from_theory(world.problem, scale=0.2), world)
    window = regret(SWLinUCB.from_theory(world.problem, scale=0.2, window=20), world)
    assert predicted < 0.9 * min(still, window)
