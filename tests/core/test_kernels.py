"""Kernels next to slow twins, in few rounds: quick enough to be run for every mutant."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import naive
from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Bernoulli,
    Binomial,
    Bounded,
    Family,
    Gaussian,
    Poisson,
    Problem,
)
from driftbandit.core import domd, links, projection
from driftbandit.core.compiled import COMPILED
from driftbandit.core.layout import BASIS, FLOOR, LIMIT, THETA, G, T
from driftbandit.core.linalg import dot, factor, inverse, inverse_norm, measure

pytestmark = pytest.mark.kernel

EPS = 2.0**-52


@dataclass(frozen=True)
class Cubic(Family):
    """A family of one's own: m(z) = z^2/2 + z^4/12."""

    @property
    def R(self):
        return 4.0

    def m(self, z):
        return 0.5 * z**2 + z**4 / 12

    def mu(self, z):
        return z + z**3 / 3

    def dmu(self, z):
        return 1 + z**2


FAMILIES = [Bernoulli(), Binomial(3), Gaussian(0.3, 4.0), Poisson(15), Cubic()]


def recipe(family=None, **options):
    numbers = {"discount": 0.8, "regularization": 0.7, "step": 1.6, "delta": 0.05, "scale": 0.4}
    problem = Problem(dim=2, family=family or Bernoulli(), radius=0.9)
    return DOMD(problem=problem, **(numbers | options))


# Links


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_links_are_the_families(family):
    q = recipe(family).recipe
    for z in (-710.0, -3.0, -0.4, 0.0, 0.7, 2.5, 710.0):
        mean, slope = links.mean_slope(q, z)
        assert (mean, slope) == pytest.approx((family.mu(z), family.dmu(z)), rel=1e-13)
        found = links.log_likelihood(q, 2.0, z)
        assert found == pytest.approx(2.0 * z - family.m(z), rel=1e-13)
    rewards = np.array([-5.0, -4.0, -1e-9, 0.0, 0.5, 1.0, 1.5, 3.0, 4.0, 15.0, 15.1, 16.0])
    assert [links.possible(q, r) for r in rewards] == family.contains(rewards).tolist()
    assert not links.possible(q, math.nan)


# Sums


def test_sums_of_products():
    x, y = np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.25, 2.0])
    assert dot(x, y) == 6.0
    assert measure(np.array([9.0, *x, 9.0]), 1, y) == (6.0, 14.0)
    assert measure(x, 0, y) == (6.0, 14.0)


@pytest.mark.parametrize(("d", "large"), [(3, None), (33, 1)])
def test_a_norm(d, large):
    rng = np.random.default_rng(2)
    A, F, x = naive_spd(rng, d), np.empty((d, d)), rng.standard_normal(d)
    factor(A, F, large)
    found = inverse_norm(F, x, np.empty(d), large)
    assert found == pytest.approx(math.sqrt(x @ np.linalg.solve(A, x)))


def test_a_pivot_without_a_digit_is_eps_of_its_diagonal():
    A, F, P = np.full((2, 2), 1e8), np.empty((2, 2)), np.empty((2, 2))
    factor(A, F, None)
    assert F[1, 1] == pytest.approx(1 / math.sqrt(EPS * 1e8))
    inverse(A, P, np.empty(2))
    assert P[1, 1] == pytest.approx(1 / (EPS * 1e8))


# Projections


def outside(d, seed, w=0.6, c=0.7):
    """A metric c A + w x x', and a point that is 1.4 times as long as the ball is wide."""
    rng = np.random.default_rng(seed)
    A, x, v = naive_spd(rng, d), rng.standard_normal(d), rng.standard_normal(d)
    v *= 1.4 * 0.8 / np.linalg.norm(v)
    return A, x, v, naive.ball_projection(c * A + w * np.outer(x, x), v, 0.8)


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_projection_by_factorisations(d):
    A, x, v, expected = outside(d, d)
    before = A.copy()
    projection.project(0.7, A, 0.6, x, v, 0.8, None)
    np.testing.assert_allclose(v, expected, atol=1e-8)
    assert 0.8 * (1 - 1e-12) <= np.linalg.norm(v) <= 0.8
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_projection_by_solves(d, inverted):
    A, x, v, expected = outside(d, d, c=1.0)
    B, u, c = np.empty((d, d)), np.linalg.solve(A, x), 0.7 if inverted else 1.0
    factor(A, B, None)
    B = c * np.linalg.inv(A) if inverted else B
    assert projection.project_by_solves(B, c, inverted, 0.6, x, u, v, 0.8)
    np.testing.assert_allclose(v, expected, atol=1e-8)
    assert 0.8 * (1 - 1e-12) <= np.linalg.norm(v) <= 0.8


def test_too_few_solves_say_so_and_leave_the_point(monkeypatch):
    A, x, v, _ = outside(9, 9, c=1.0)
    F, u, before = np.empty((9, 9)), np.linalg.solve(A, x), v.copy()
    factor(A, F, None)
    monkeypatch.setattr(projection, "STEPS", 2)
    if not COMPILED:  # compiled kernels keep the number they were compiled with
        assert not projection.project_by_solves(F, 1.0, False, 0.6, x, u, v, 0.8)
        np.testing.assert_array_equal(v, before)


def test_a_tridiagonal_system():
    rng = np.random.default_rng(6)
    a, b, y, c = 2 + rng.random(5), rng.random(5), rng.standard_normal(5), np.empty(5)
    T = np.diag(a) + np.diag(b[:4], 1) + np.diag(b[:4], -1)
    expected = np.linalg.solve(np.eye(5) + 0.9 * T, y)
    projection.solve_tridiagonal(a, b, 0.9, y, c)
    np.testing.assert_allclose(y, expected, rtol=1e-12)


@pytest.mark.parametrize("guess", [0.0, 0.3, 50.0])
def test_a_multiplier_from_any_guess(guess):
    rng = np.random.default_rng(8)
    a, b, y = 1 + rng.random(4), 0.3 * rng.random(4), np.zeros((3, 4))
    T = np.diag(a) + np.diag(b[:3], 1) + np.diag(b[:3], -1)
    nu = projection.multiplier(a, b, 2.0, 0.8, guess, y)
    v = np.linalg.solve(np.eye(4) + nu * T, np.eye(4)[0])
    assert 2.0 * np.linalg.norm(v) == pytest.approx(0.8, rel=1e-12)
    np.testing.assert_allclose(y[0], v, rtol=1e-10)


@pytest.mark.skipif(COMPILED, reason="compiled kernels call each other unseen")
def test_newtons_method_is_quick(monkeypatch):
    """Six decades of multipliers: a wrong slope still gets there, but in many more steps."""
    calls = []

    def counted(name):
        plain = getattr(projection, name)
        monkeypatch.setattr(projection, name, lambda *a: (calls.append(name), plain(*a))[1])

    for name in ("factor", "solve_tridiagonal", "solve"):
        counted(name)
    for S in (0.3, 0.01, 1e-4):
        rng = np.random.default_rng(1)
        A, x, v = naive_spd(rng, 4), rng.standard_normal(4), rng.standard_normal(4)
        projection.project(1.0, A, 0.6, x, v, S, None)
        a, b, y = 1 + rng.random(4), 0.4 + 0.3 * rng.random(4), np.zeros((3, 4))
        projection.multiplier(a, b, 2.0, S, 0.0, y)
    assert calls.count("factor") <= 13
    assert calls.count("solve_tridiagonal") <= 23
    calls.clear()
    A, x, v, _ = outside(40, 3, c=1.0)
    A += 9.0 * np.eye(40)
    F = np.empty((40, 40))
    factor(A, F, None)
    projection.project_by_solves(F, 1.0, False, 0.6, x, np.linalg.solve(A, x), v, 0.8)
    assert calls.count("solve") <= 19


def test_rounding_never_leaves_the_ball():
    rng = np.random.default_rng(4)
    for length in rng.uniform(0.8, 1.3, 300):
        v = rng.standard_normal(3)
        v *= length / np.linalg.norm(v)
        projection.shrink(v, math.sqrt(dot(v, v)), 0.8)
        assert 0.8 * (1 - 1e-14) <= math.sqrt(dot(v, v)) <= 0.8
    inside = np.array([0.1, 0.2])
    projection.shrink(inside, 0.3, 0.8)
    np.testing.assert_array_equal(inside, [0.1, 0.2])


# One row of DOMD


def row_after(policy, rounds, seed=0):
    rng, row = np.random.default_rng(seed), policy.fresh.copy()
    for _ in range(rounds):
        x = rng.standard_normal(2)
        x /= np.linalg.norm(x)
        assert domd.learn(policy.recipe, row, x, float(rng.random() < 0.7), 1.0, None)
    return row


def test_a_refused_reward_changes_nothing():
    policy = recipe()
    row, q = row_after(policy, 3), policy.recipe
    before = row.copy()
    good, long, short = np.array([0.6, 0.8]), np.array([0.6, 0.81]), np.array([1.0])
    for x, r in ((good, 0.5), (long, 1.0), (short, 1.0), (np.array([math.nan, 0.0]), 1.0)):
        assert not domd.learn(q, row, x, r, 1.0, None)
        assert not domd.learnable(q, x, r)
    np.testing.assert_array_equal(row, before)
    assert domd.learn(q, row, good, 1.0, 1.0, None)


def test_steps_age_the_memory_before_it_learns():
    policy, x = recipe(), np.array([0.6, -0.8])
    for steps in (2.0, 4.0):
        a, b = row_after(policy, 5), row_after(policy, 5)
        domd.learn(policy.recipe, a, x, 1.0, steps, None)
        domd.age_row(policy.recipe, b, steps - 1.0)
        domd.learn(policy.recipe, b, x, 1.0, 1.0, None)
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_a_context_may_be_a_view_of_the_row():
    policy = recipe(step=0.5)
    a, b = row_after(policy, 4), row_after(policy, 4)
    theta = a[THETA : THETA + 2]
    assert 0 < np.linalg.norm(theta) <= 1
    domd.learn(policy.recipe, b, theta.copy(), 1.0, 1.0, None)
    domd.learn(policy.recipe, a, theta, 1.0, 1.0, None)
    np.testing.assert_array_equal(a, b)


def test_ageing_keeps_the_floor():
    H, trace = np.array([[2.0, 0.3], [0.3, 1.5]]), 0.8 * 3.5 + 2 * 0.2 * 0.7
    expected = 0.8 * H + (0.2 * 0.7 + EPS * trace) * np.eye(2)
    domd.age(0.8, 0.7, H)
    np.testing.assert_allclose(H, expected, rtol=1e-16)


def test_the_floor_of_a_row_follows_its_curvature():
    """gamma floor + (1 - gamma) lambda, and every 16 rounds the inverse says how much more."""
    policy = recipe()
    row = row_after(policy, 4)
    row[FLOOR] = 5.0
    aged = row.copy()
    domd.age_row(policy.recipe, aged, 2.0)
    assert aged[FLOOR] == pytest.approx(0.64 * 5.0 + 0.36 * 0.7)
    domd.learn(policy.recipe, row, np.array([0.0, 1.0]), 1.0, 1.0, None)
    assert row[FLOOR] == pytest.approx(0.8 * 5.0 + 0.2 * 0.7)
    row, H = row_after(policy, 15), None
    row[FLOOR] = 0.1  # less than is known
    domd.learn(policy.recipe, row, np.array([0.0, 1.0]), 1.0, 1.0, None)
    H = row[THETA + 2 :].reshape(2, 2)
    assert row[T] == 16.0
    most = np.abs(np.linalg.inv(H)).sum(axis=1).max()
    assert row[FLOOR] == pytest.approx(1 / most)
    row = row_after(policy, 15)
    row[FLOOR] = 50.0  # more than the inverse says
    domd.learn(policy.recipe, row, np.array([0.0, 1.0]), 1.0, 1.0, None)
    assert row[FLOOR] == pytest.approx(0.8 * 50.0 + 0.2 * 0.7)


@pytest.mark.parametrize(("d", "rounds"), [(2, 16), (40, 20)])
def test_the_floor_is_looked_at_now_and_then(d, rounds):
    """Every max(16, d/2) rounds, and in no other."""
    policy = DOMD(problem=Problem(dim=d), discount=0.8, regularization=0.7)
    for t in {rounds - 1, rounds, 16, 4}:
        row = policy.fresh.copy()
        row[T], row[FLOOR] = t - 1.0, 0.1
        domd.learn(policy.recipe, row, np.eye(d)[0], 1.0, 1.0, None if d < 32 else 1)
        assert (row[FLOOR] == pytest.approx(0.8 * 0.1 + 0.2 * 0.7)) == (t != rounds)


def test_a_context_may_have_the_largest_length():
    q = recipe().recipe
    assert domd.is_context(q, q[LIMIT])
    assert not domd.is_context(q, q[LIMIT] * (1 + 2 * EPS))


def test_the_largest_row_sum():
    V = np.array([[1.0, -3.0, 0.5], [-3.0, 0.2, 1.0], [0.5, 1.0, 4.4]])
    assert domd.row_sum(V) == pytest.approx(5.9)


def test_the_longest_unit_vector_is_bounded_from_above_and_closely():
    H = np.diag([2.0, 3.0, 5.0])
    assert 1 / math.sqrt(2.0) <= domd.longest(2.0, H) <= (1 + 1e-6) / math.sqrt(2.0)
    most = 2.0 * (1 - 1e-6) - 8 * 4 * EPS * 1e13
    lost = domd.longest(2.0, np.diag([2.0, 3.0, 1e13 - 5.0]))
    assert lost == pytest.approx(1 / math.sqrt(most), rel=1e-8)
    assert lost > (1 + 1e-9) / math.sqrt(most) * (1 - 1e-12)
    assert domd.longest(2.0, np.diag([2.0, 3.0, 1e17])) == math.inf
    assert domd.longest(0.0, np.zeros((2, 2))) == math.inf
    assert domd.longest(2e-14, 1e-14 * H) == pytest.approx(1e7 * domd.longest(2.0, H))


def test_a_draw_has_the_shape_of_the_curvature():
    rng = np.random.default_rng(3)
    H = naive_spd(rng, 3)
    F, theta, noise = np.empty((3, 3)), rng.standard_normal(3), rng.standard_normal(3)
    factor(H, F, None)
    expected = theta + 0.7 * np.linalg.solve(np.linalg.cholesky(H).T, noise)
    np.testing.assert_allclose(drawn(theta, F, 0.7, noise), expected, rtol=1e-10)


def drawn(theta, F, width, noise):
    out = np.full(theta.size, np.nan)
    domd.draw(theta, F, width, noise, out)
    return out


def naive_spd(rng, d):
    X = rng.standard_normal((d + 2, d))
    return X.T @ X + 0.1 * np.eye(d)


@pytest.mark.parametrize("noise", [None, (0.4, -1.1)])
def test_ranking_is_the_definition(noise):
    policy = recipe()
    row, rng = row_after(policy, 9), np.random.default_rng(5)
    row[FLOOR] *= 0.9
    arms = rng.standard_normal((12, 2))
    arms *= 0.9 * rng.random((12, 1)) / np.linalg.norm(arms, axis=1, keepdims=True)
    arms[7] = arms[2]
    theta, H = row[THETA : THETA + 2], row[THETA + 2 :].reshape(2, 2)
    width = 0.4 * beta(policy, 10)
    values = arms @ theta + width * np.sqrt(np.einsum("ad,da->a", arms, np.linalg.solve(H, arms.T)))
    draw = np.empty(0)
    if noise is not None:
        F, draw = np.empty((2, 2)), np.array(noise)
        factor(H, F, None)
        values = arms @ drawn(theta, F, width, draw)
    for k in (1, 2, 5, 12):
        best = np.full(k, -7)
        first = domd.rank(policy.recipe, row, arms, draw, best, None)
        assert first == best[0]
        np.testing.assert_array_equal(best, np.argsort(-values, kind="stable")[:k])


def test_the_width_is_the_radius_of_the_coming_round():
    """An arm that is better by a millionth wins, on either side."""
    policy = recipe()
    row = row_after(policy, 9)
    theta, H = row[THETA : THETA + 2], row[THETA + 2 :].reshape(2, 2)
    along, across = theta / np.linalg.norm(theta), np.array([-theta[1], theta[0]])
    across = 0.5 * across / np.linalg.norm(across)

    def value(x):
        return x @ theta + 0.4 * beta(policy, 10) * math.sqrt(x @ np.linalg.solve(H, x))

    for edge, best in ((1e-6, 0), (-1e-6, 1)):
        arms = np.array([along * value(across) * (1 + edge) / value(along), across])
        assert domd.rank(policy.recipe, row, arms, np.empty(0), np.zeros(1, int), None) == best


def test_equal_arms_keep_their_order():
    policy = recipe()
    best, arms = np.zeros(2, dtype=int), np.full((5, 2), 0.3)
    assert domd.rank(policy.recipe, row_after(policy, 3), arms, np.empty(0), best, None) == 0
    np.testing.assert_array_equal(best, [0, 1])


def test_a_draw_in_one_dimension():
    policy = DOMD(problem=Problem(dim=1), discount=0.8, bonus=2.0)
    row, best = policy.fresh, np.zeros(1, dtype=int)
    arms = np.array([[0.5], [-1.0]])
    assert domd.rank(policy.recipe, row, arms, np.array([3.0]), best, None) == 0
    assert domd.rank(policy.recipe, row, arms, np.array([-3.0]), best, None) == 1


def beta(policy, t):
    twin = naive.NaiveDOMD(
        dim=2, link=naive.bernoulli(), S=0.9, gamma=0.8, lam=0.7, eta=1.6, delta=0.05
    )
    twin.rs = [0.0] * (t - 1)
    return twin.coefficient()


def test_what_cannot_be_ranked():
    policy = recipe()
    row, q, none = policy.fresh, policy.recipe, np.empty(0)
    arms = np.array([[0.6, 0.8], [0.1, 0.1]])
    for bad in (np.array([[0.6, 0.9], [0.1, 0.1]]), np.array([[0.6, 0.8], [math.nan, 0.1]])):
        assert domd.rank(q, row, bad, none, np.zeros(1, dtype=int), None) == -1
    assert domd.rank(q, row, arms, none, np.zeros(3, dtype=int), None) == -1
    assert domd.rank(q, row, arms, none, np.zeros(0, dtype=int), None) == -1
    assert domd.rank(q, row, np.ones((2, 1)) / 2, none, np.zeros(1, dtype=int), None) == -1
    assert domd.rank(q, row, arms, none, np.zeros(2, dtype=int), None) == 0


@pytest.mark.parametrize("d", [2, 33])
def test_learning_is_the_naive_twin_also_on_the_border_of_the_ball(d):
    policy = DOMD(
        problem=Problem(dim=d, radius=0.2), discount=0.9, regularization=0.5, step=2.5, bonus=1.0
    )
    twin = naive.NaiveDOMD(
        dim=d, link=naive.bernoulli(), S=0.2, gamma=0.9, lam=0.5, eta=2.5, delta=0.5, bonus=1.0
    )
    bandit, rng = Bandit(policy), np.random.default_rng(7)
    for _ in range(4):
        x = rng.standard_normal(d)
        x /= np.linalg.norm(x)
        bandit.update(x, 1.0)
        twin.update(x, 1.0)
        np.testing.assert_allclose(bandit.theta, twin.estimate(), atol=1e-8)
    np.testing.assert_allclose(bandit.curvature, twin.curvature(), rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(bandit.theta) == pytest.approx(0.2)


def test_a_dispersion_is_learnt_as_a_ratio_of_sums():
    naive.check_dispersion(DOMD(problem=Problem(dim=2, family=Bounded())), domd.learn)


@dataclass(frozen=True)
class Open(Gaussian):
    """A variance that is learnt, from the largest down."""

    learns_g = True


@pytest.mark.parametrize("g", [0.2, 30.0])
def test_a_learnt_dispersion_has_limits(g):
    policy = DOMD(problem=Problem(dim=1, family=Open(variance=g, bound=100.0)))
    row, x = policy.fresh.copy(), np.ones(1)
    for _ in range(20_000):
        domd.learn(policy.recipe, row, x, 0.5, 1.0, None)
    assert row[G] == pytest.approx(1e-3 * g)
    for t in range(500):
        domd.learn(policy.recipe, row, x, 100.0 * (-1) ** t, 1.0, None)
    assert row[G] == g


def test_a_learnt_dispersion_follows():
    policy = DOMD(problem=Problem(dim=1, family=Bounded()))
    row, x = policy.fresh.copy(), np.ones(1)
    for _ in range(3000):
        domd.learn(policy.recipe, row, x, 0.5, 1.0, None)
    assert row[BASIS] == pytest.approx(250.25)
    for t in range(3000):
        domd.learn(policy.recipe, row, x, float(t % 2), 1.0, None)
    assert 0.9 < row[G] <= 1.0


def test_a_known_dispersion_stays():
    policy = DOMD(problem=Problem(dim=1, family=Gaussian(variance=0.3)))
    row = policy.fresh.copy()
    for _ in range(20):
        domd.learn(policy.recipe, row, np.ones(1), 2.0, 1.0, None)
    assert row[G] == 0.3


@pytest.mark.parametrize("family", [Bernoulli(), Poisson(bound=20), Gaussian()], ids=repr)
@pytest.mark.parametrize("rare", [0.0, 0.5, 1.0])
def test_a_bonus_shrinks_where_rewards_are_rare(family, rare):
    """Next to a plain scan, at estimates on both sides of 0."""
    policy = AutoDOMD(problem=Problem(dim=3, family=family), rare=rare, bonus=2.0, widening=0.0)
    rng, row, best = np.random.default_rng(8), policy.fresh.copy(), np.empty(4, np.int64)
    H = np.diag([100.0, 3.0, 1.5])
    row[THETA + 3 : THETA + 12], row[FLOOR] = H.ravel(), 1.0
    changed = 0
    for level in (-4.0, -1.0, 0.0, 3.0) * 10:
        arms = rng.uniform(-0.4, 0.4, (12, 3))
        arms[:, 0] = 0.5
        theta = np.array([2.0 * level, *rng.standard_normal(2)])
        row[THETA : THETA + 3] = theta
        norm = np.sqrt(np.einsum("ad,d,ad->a", arms, 1 / np.diag(H), arms))
        top = min((arms @ theta).max(), 0.0)
        width = 2.0 * (family.dmu(top) / family.dmu(0.0)) ** rare
        domd.rank(policy.recipe, row, arms, np.empty(0), best, None)
        index = arms @ theta + width * norm
        np.testing.assert_array_equal(best, np.argsort(-index)[:4])
        scores = policy.scores(policy.from_rows(row[None]), arms[None])
        np.testing.assert_allclose(scores.mean[0] + scores.bonus[0], index)
        changed += np.argmax(arms @ theta + 2.0 * norm) != best[0]
    assert (changed > 0) == (rare > 0.0 and not isinstance(family, Gaussian))
