"""DOMD-GLB against its naive twin, its limits and its symmetries."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from driftbandit import (
    DOMD,
    GLBOMD,
    Bandit,
    Bernoulli,
    Binomial,
    Gaussian,
    Greedy,
    Poisson,
    Problem,
    theory,
)

pytestmark = pytest.mark.kernel

TWINS = [
    (Bernoulli(), naive.bernoulli()),
    (Binomial(4), naive.binomial(4)),
    (Gaussian(0.5, 3.0), naive.gaussian(0.5, 3.0)),
    (Poisson(20), naive.poisson(20)),
]


def stream(d, n_arms, rounds, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((rounds, n_arms, d))
    arms /= np.linalg.norm(arms, axis=-1, keepdims=True) / rng.random((rounds, n_arms, 1)) ** 0.2
    return arms, rng.random(rounds)


def play(bandit, family, arms, luck, truth=0.8):
    choices = []
    for X, u in zip(arms, luck):
        arm = bandit.choose(X)
        bandit.update(X[arm], float(family.draw(truth * X[arm, 0], u)))
        choices.append(arm)
    return choices


@pytest.mark.parametrize("S", [0.3, 2.0])  # 0.3: the projection is active most of the time
@pytest.mark.parametrize(("family", "link"), TWINS, ids=lambda v: repr(v)[:12])
def test_domd_is_the_naive_twin(family, link, S):
    problem = Problem(dim=3, family=family, radius=S)
    numbers = {"discount": 0.93, "regularization": 0.8, "step": 1.7, "delta": 0.05, "scale": 0.3}
    bandit = Bandit(DOMD(problem=problem, **numbers))
    twin = naive.NaiveDOMD(
        dim=3, link=link, S=S, gamma=0.93, lam=0.8, eta=1.7, delta=0.05, scale=0.3
    )
    arms, luck = stream(3, 6, 40)
    for X, u in zip(arms, luck):
        mean, bonus = twin.index(X)
        scores = bandit.scores(X)
        np.testing.assert_allclose(scores.mean, mean, atol=1e-9)
        np.testing.assert_allclose(scores.bonus, bonus, rtol=1e-9)
        arm = bandit.choose(X)
        assert arm == twin.choose(X)
        reward = float(family.draw(0.5 * X[arm, 0], u))
        bandit.update(X[arm], reward)
        twin.update(X[arm], reward)
        np.testing.assert_allclose(bandit.theta, twin.estimate(), atol=1e-9)
        np.testing.assert_allclose(bandit.curvature, twin.curvature(), rtol=1e-9, atol=1e-12)


def test_glb_omd_is_its_naive_twin_with_its_own_lambda_and_radius():
    problem = Problem(dim=3, radius=1.0)
    policy = GLBOMD.from_theory(problem, delta=0.05, scale=0.2)
    lam = theory.glb_omd_lam(problem)
    assert policy.regularization == lam
    twin = naive.NaiveGLBOMD(
        dim=3, link=naive.bernoulli(), S=1.0, lam=lam, eta=2.0, delta=0.05, scale=0.2
    )
    bandit = Bandit(policy)
    arms, luck = stream(3, 6, 40, seed=1)
    for X, u in zip(arms, luck):
        arm = bandit.choose(X)
        np.testing.assert_allclose(bandit.scores(X).upper, np.add(*twin.index(X)), rtol=1e-9)
        r = float(u < 0.5)
        bandit.update(X[arm], r)
        twin.choose(X)
        twin.update(X[arm], r)


def test_domd_with_gamma_one_and_glb_omds_numbers_is_glb_omd_bit_for_bit():
    problem = Problem(dim=4, radius=1.0)
    omd = GLBOMD(problem=problem, regularization=3.0, step=2.0, bonus=0.7)
    domd = DOMD(problem=problem, discount=1.0, regularization=3.0, step=2.0, bonus=0.7)
    arms, luck = stream(4, 8, 100, seed=2)
    a, b = Bandit(omd), Bandit(domd)
    assert play(a, Bernoulli(), arms, luck) == play(b, Bernoulli(), arms, luck)
    np.testing.assert_array_equal(a.theta, b.theta)
    np.testing.assert_array_equal(a.curvature, b.curvature)


def test_identity_link_without_forgetting_is_recursive_least_squares():
    """gamma = eta = 1 and an inactive projection: ridge regression on all data."""
    problem = Problem(dim=3, family=Gaussian(0.25, 50.0), radius=1e6)
    bandit = Bandit(DOMD(problem=problem, discount=1.0, regularization=2.0, step=1.0))
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 3)) * 0.5
    r = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(50)
    for x, y in zip(X, r):
        bandit.update(x / max(1, np.linalg.norm(x)), y)
    X = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    H = 2.0 * np.eye(3) + X.T @ X / 0.25
    np.testing.assert_allclose(bandit.theta, np.linalg.solve(H, X.T @ r / 0.25), rtol=1e-9)
    np.testing.assert_allclose(bandit.curvature, H, rtol=1e-12)


def test_permuting_arms_permutes_the_choice():
    arms, luck = stream(4, 9, 60, seed=4)
    bandit = Bandit(DOMD(problem=Problem(dim=4)))
    play(bandit, Bernoulli(), arms, luck)
    order = np.random.default_rng(5).permutation(9)
    for X in arms:
        assert order[bandit.choose(X[order])] == bandit.choose(X)


def test_rotating_the_features_rotates_theta():
    arms, luck = stream(4, 9, 80, seed=6)
    Q, _ = np.linalg.qr(np.random.default_rng(7).standard_normal((4, 4)))
    plain, turned = (Bandit(DOMD(problem=Problem(dim=4))) for _ in range(2))
    for X, u in zip(arms, luck):
        arm = plain.choose(X)
        assert turned.choose(X @ Q.T) == arm
        plain.update(X[arm], float(u < 0.4))
        turned.update(X[arm] @ Q.T, float(u < 0.4))
    np.testing.assert_allclose(turned.theta, Q @ plain.theta, atol=1e-10)


def test_longer_contexts_with_a_smaller_ball_are_the_same_problem():
    arms, luck = stream(3, 7, 80, seed=8)
    unit = DOMD(problem=Problem(dim=3, radius=2.0), delta=0.01, scale=0.2)
    tenfold = DOMD(problem=Problem(dim=3, radius=0.2, context_norm=10.0), delta=0.01, scale=0.2)
    a, b = Bandit(unit), Bandit(tenfold)
    assert play(a, Bernoulli(), arms, luck) == play(b, Bernoulli(), 10 * arms, luck, truth=0.08)
    np.testing.assert_allclose(a.theta, 10 * b.theta, atol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    gamma=st.floats(0.5, 1.0),
    lam=st.floats(0.01, 100.0),
    eta=st.floats(0.5, 5.0),
    S=st.floats(0.1, 5.0),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_memory_keeps_its_invariants(seed, gamma, lam, eta, S):
    """H symmetric, at least lambda, at most lambda + n_t k/g; theta in the ball."""
    policy = DOMD(problem=Problem(dim=3, radius=S), discount=gamma, regularization=lam, step=eta)
    bandit = Bandit(policy)
    arms, luck = stream(3, 4, 25, seed=seed)
    play(bandit, Bernoulli(), arms, luck)
    H, w = bandit.curvature, np.linalg.eigvalsh(bandit.curvature)
    np.testing.assert_array_equal(H, H.T)
    assert w[0] >= lam * (1 - 1e-9)
    assert w[-1] <= lam + 0.25 * theory.discounted_count(gamma, 26.0) + 1e-9
    assert np.linalg.norm(bandit.theta) <= S


def test_forgetting_n_steps_is_n_rounds_without_information():
    bandit = Bandit(DOMD(problem=Problem(dim=2), discount=0.9, regularization=2.0))
    arms, luck = stream(2, 3, 20, seed=9)
    play(bandit, Bernoulli(), arms, luck)
    theta, H = bandit.theta.copy(), bandit.curvature.copy()
    bandit.forget(7)
    np.testing.assert_allclose(bandit.curvature, 2 * np.eye(2) + 0.9**7 * (H - 2 * np.eye(2)))
    np.testing.assert_array_equal(bandit.theta, theta)
    assert bandit.rounds == 20


def test_presets():
    problem = Problem(dim=5, radius=1.0, horizon=5000, path_length=6.28)
    practical, proven = DOMD(problem=problem), DOMD.from_theory(problem)
    assert (practical.bonus, practical.regularization, practical.step) == (1.0, 1.0, 2.0)
    assert practical.discount == 2 ** (-1 / 200)
    assert (proven.scale, proven.delta, proven.bonus) == (1.0, 0.01, None)
    assert proven.regularization == theory.lam(problem)
    assert proven.discount == theory.discount(problem)
    assert DOMD.from_theory(problem, discount=0.5, step=1.0, bonus=2.0).bonus == 2.0
    assert DOMD(problem=problem, half_life=math.inf).discount == 1.0


def test_greedy_is_domd_without_a_bonus():
    arms, luck = stream(3, 5, 50, seed=10)
    problem = Problem(dim=3)
    a, b = Bandit(Greedy(problem=problem)), Bandit(DOMD(problem=problem, bonus=0.0))
    assert play(a, Bernoulli(), arms, luck) == play(b, Bernoulli(), arms, luck)
    assert (a.scores(arms[0]).bonus == 0).all()


def test_glb_omd_refuses_to_forget():
    with pytest.raises(ValueError, match="never forgets"):
        GLBOMD(problem=Problem(dim=2), discount=0.9)
