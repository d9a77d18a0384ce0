"""Every rival against its naive twin, its published numbers and its limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import naive
from driftbandit import (
    BVDGLMUCB,
    DGLUCB,
    DOMD,
    GLBOMD,
    GLMUCB,
    GLOC,
    MASTER,
    SCDGLUCB,
    SCSWGLUCB,
    SWGLUCB,
    Bandit,
    Bernoulli,
    Binomial,
    DLinUCB,
    Gaussian,
    GLBWeightUCB,
    LBWeightUCB,
    LinUCB,
    Poisson,
    Problem,
    RestartGLB,
    SCBPWWeightUCB,
    SCBWeightUCB,
    SWLinUCB,
    memory_bytes,
)
from driftbandit.mle import project_ball
from driftbandit.policies.catalogue import CATALOGUE
from driftbandit.theory import rivals

GAMMA, LAM, DELTA, SCALE, T = 0.9, 0.7, 0.05, 0.3, 200
DISCOUNT, WINDOW = {"gamma": GAMMA}, {"window": 9}
HORIZON = {"horizon": T}
# policy, twin, numbers of the policy, numbers of the twin
PAIRS = {
    "GLM-UCB": (GLMUCB, naive.NaiveGLMUCB, {}, {}),
    "GLM-UCB as MASTER's base": (GLMUCB, naive.NaiveGLMUCB, {"reading": "master"}, HORIZON),
    "RestartGLB": (RestartGLB, naive.NaiveRestartGLB, {"period": 8}, {"period": 8}),
    "RestartGLB projected": (
        RestartGLB,
        naive.NaiveRestartGLB,
        {"period": 8, "project": True},
        {"period": 8, "project": True},
    ),
    "D-GLUCB": (DGLUCB, naive.NaiveDGLUCB, {"discount": GAMMA}, DISCOUNT),
    "SW-GLUCB": (SWGLUCB, naive.NaiveSWGLUCB, WINDOW, WINDOW | HORIZON),
    "SC-D-GLUCB": (SCDGLUCB, naive.NaiveSCDGLUCB, {"discount": GAMMA}, DISCOUNT | HORIZON),
    "SC-SW-GLUCB": (SCSWGLUCB, naive.NaiveSCSWGLUCB, WINDOW, WINDOW | HORIZON),
    "BVD-GLM-UCB": (BVDGLMUCB, naive.NaiveBVDGLMUCB, {"discount": GAMMA}, DISCOUNT),
    "GLB-WeightUCB": (GLBWeightUCB, naive.NaiveGLBWeightUCB, {"discount": GAMMA}, DISCOUNT),
    "SCB-WeightUCB": (SCBWeightUCB, naive.NaiveSCBWeightUCB, {"discount": GAMMA}, DISCOUNT),
    "SCB-PW A": (
        SCBPWWeightUCB,
        naive.NaiveSCBPWWeightUCB,
        {"discount": GAMMA},
        DISCOUNT | HORIZON,
    ),
    "SCB-PW B": (
        SCBPWWeightUCB,
        naive.NaiveSCBPWWeightUCB,
        {"discount": GAMMA, "variant": "B"},
        DISCOUNT | HORIZON | {"variant": "B"},
    ),
    "GLOC": (GLOC, naive.NaiveGLOC, {}, {}),
    "LinUCB": (LinUCB, naive.NaiveLinUCB, {}, {}),
    "D-LinUCB": (DLinUCB, naive.NaiveDLinUCB, {"discount": GAMMA}, DISCOUNT),
    "SW-LinUCB": (SWLinUCB, naive.NaiveSWLinUCB, WINDOW, WINDOW),
    "LB-WeightUCB": (LBWeightUCB, naive.NaiveLBWeightUCB, {"discount": GAMMA}, DISCOUNT),
}
LINKS = {
    "Bernoulli": (Bernoulli(), naive.bernoulli()),
    "Binomial": (Binomial(3), naive.binomial(3)),
    "Gaussian": (Gaussian(0.5, 2.0), naive.gaussian(0.5, 4.0)),  # the rivals' R is the range
    "Poisson": (Poisson(12), naive.poisson(12)),
}
# S = 0.15 puts the estimate outside the ball most of the time: the projections are at work
SETTINGS = [
    ("Bernoulli", 1.0),
    ("Bernoulli", 0.15),
    ("Binomial", 0.3),
    ("Gaussian", 0.5),
    ("Poisson", 0.2),
]


def twins(name, family, S):
    kind, twin_kind, numbers, twin_numbers = PAIRS[name]
    ours, theirs = LINKS[family]
    shared = {"delta": DELTA, "scale": SCALE}
    problem = Problem(dim=3, family=ours, radius=S, horizon=T)
    policy = kind(problem=problem, regularization=LAM, **shared, **numbers)
    return policy, twin_kind(dim=3, link=theirs, S=S, lam=LAM, **shared, **twin_numbers)


def rounds(n, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.uniform(-1, 1, (n, 4, 3)) / math.sqrt(3)
    return arms, rng.random(n)


@pytest.mark.parametrize(("family", "S"), SETTINGS)
@pytest.mark.parametrize("name", PAIRS)
def test_rival_is_its_naive_twin(name, family, S):
    policy, twin = twins(name, family, S)
    bandit = Bandit(policy)
    for X, u in zip(*rounds(14)):
        mean, bonus = twin.index(X)
        scores = bandit.scores(X)
        np.testing.assert_allclose(scores.mean, mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(scores.bonus, bonus, rtol=1e-6)
        np.testing.assert_allclose(bandit.theta, twin.estimate(), atol=1e-6)
        arm = twin.choose(X)
        reward = float(policy.problem.family.draw(1.5 * X[arm, 0] + 0.8, u))
        bandit.update(X[arm], reward)
        twin.update(X[arm], reward)


@pytest.mark.parametrize("reading", ["master", "restart"])
def test_master_is_its_naive_twin_through_three_blocks(reading):
    problem = Problem(dim=3, radius=1.0, horizon=T)
    policy = MASTER.from_theory(
        problem, delta=DELTA, scale=SCALE, regularization=LAM, first_order=3, reading=reading
    )
    numbers = {"dim": 3, "link": naive.bernoulli(), "S": 1.0, "lam": LAM}
    numbers |= {"delta": DELTA, "scale": SCALE}
    arms, luck = rounds(40, seed=1)
    noise = np.random.default_rng(2).standard_normal((len(arms) + 1, 1, policy.noise_size))
    now = [0]
    twin = naive.NaiveMASTER(
        **numbers,
        horizon=T,
        n0=3,
        coins=lambda tau, m: ndtr(noise[now[0], 0, m]),
        base=None if reading == "master" else lambda: naive.NaiveGLMUCB(**numbers),
    )
    memory = policy.init(1)
    for t, (X, u) in enumerate(zip(arms, luck)):
        arm = int(policy.choose(memory, X[None], noise[t])[0])
        assert arm == twin.choose(X)
        reward = float(u < 0.5)
        memory = policy.update(memory, X[arm][None], np.array([reward]), noise[t])
        now[0] = t + 1
        twin.update(X[arm], reward)
    assert memory.order[0] == 5  # blocks of 8, 16 and 32 rounds


def shares(n):
    """Order m decides in a share p_m prod_{j<m} (1 - p_j) of a block, p_j = 2^-((n-j)/2)."""
    p = 2.0 ** (-(n - np.arange(n + 1)) / 2)
    return p * np.cumprod([1.0, *(1.0 - p[:-1])])


def test_masters_schedule_has_its_activity_shares():
    printed = [
        0.016,
        0.022,
        0.030,
        0.041,
        0.056,
        0.074,
        0.095,
        0.118,
        0.137,
        0.146,
        0.133,
        0.094,
        0.039,
    ]
    np.testing.assert_allclose(shares(12), printed, atol=6e-4)
    policy = MASTER.from_theory(Problem(dim=1, radius=1.0, horizon=2**12), first_order=6)
    memory, rng, counts = policy.init(1), np.random.default_rng(3), np.zeros(7)
    for _ in range(1000):
        for tau in range(2**6):
            memory.tau[0] = tau
            memory.start[0], _, m = policy._plan(memory, 0, rng.standard_normal(policy.noise_size))
            counts[m] += 1
    np.testing.assert_allclose(counts / counts.sum(), shares(6), atol=0.012)


@pytest.mark.parametrize("test", [1, 2])
def test_masters_alarms_fire_on_a_stream_made_for_them(test):
    """With thresholds lowered to practical size: rewards above, or far below, the promise."""
    problem = Problem(dim=1, radius=1.0, horizon=64)
    tiny = {"threshold": 1e-5, "first_order": 4, "scale": 0.0 if test == 1 else 1.0}
    policy = MASTER.from_theory(problem, **tiny)
    memory, noise = policy.init(1), np.zeros((1, policy.noise_size))
    x, reward = np.array([[0.1]]), np.array([1.0 if test == 1 else 0.0])
    for _ in range(16):
        memory = policy.update(memory, x, reward, noise)
    assert memory.restarts[0] > 0
    calm = MASTER.from_theory(problem, **(tiny | {"threshold": 1.0}))
    memory = calm.init(1)
    for _ in range(16):
        memory = calm.update(memory, x, reward, noise)
    assert memory.restarts[0] == 0


def test_restart_forgets_exactly_at_its_period():
    problem = Problem(dim=2, radius=1.0)
    bandit = Bandit(RestartGLB(problem=problem, regularization=1.0, period=5))
    fresh = Bandit(RestartGLB(problem=problem, regularization=1.0, period=5))
    for t in range(1, 11):
        bandit.update([0.5, 0.2], 1)
        if t % 5 == 0:
            np.testing.assert_array_equal(bandit.theta, [0, 0])
            np.testing.assert_array_equal(bandit.curvature, fresh.curvature)
            np.testing.assert_array_equal(
                bandit.scores(np.eye(2)).upper, fresh.scores(np.eye(2)).upper
            )
        else:
            assert bandit.theta[0] > 0


@pytest.mark.parametrize(("windowed", "whole"), [(SWGLUCB, DGLUCB), (SCSWGLUCB, SCDGLUCB)])
def test_sliding_window_is_a_refit_on_the_window(windowed, whole):
    problem, (arms, luck) = Problem(dim=3, radius=1.0, horizon=T), rounds(60, seed=4)
    bandit = Bandit(windowed(problem=problem, regularization=1.0, window=7))
    for X, u in zip(arms, luck):
        bandit.update(X[0], float(u < 0.5))
    refit = Bandit(whole(problem=problem, regularization=1.0, discount=1.0))
    for X, u in zip(arms[-7:], luck[-7:]):
        refit.update(X[0], float(u < 0.5))
    np.testing.assert_allclose(bandit.theta, refit.theta, atol=1e-9)
    np.testing.assert_allclose(bandit.curvature, refit.curvature, rtol=1e-12)
    assert bandit.memory_bytes == memory_bytes(bandit.policy.init(1))


@pytest.mark.parametrize("gamma", [1.0, 0.97])
def test_estimate_is_scikit_learns_weighted_penalised_fit(gamma):
    linear_model = pytest.importorskip("sklearn.linear_model")
    problem, (arms, luck) = Problem(dim=3, radius=50.0), rounds(80, seed=5)
    bandit = Bandit(DGLUCB(problem=problem, regularization=0.5, discount=gamma))
    X, r = arms[:, 0], (luck < 0.4 + 0.3 * np.sign(arms[:, 0, 0])).astype(float)
    for x, y in zip(X, r):
        bandit.update(x, y)
    model = linear_model.LogisticRegression(
        C=1 / 0.5, fit_intercept=False, tol=1e-12, max_iter=10_000
    )
    model.fit(X, r, sample_weight=gamma ** np.arange(80)[::-1])
    np.testing.assert_allclose(bandit.theta, model.coef_[0], atol=1e-7)


def test_poisson_estimate_is_scikit_learns():
    linear_model = pytest.importorskip("sklearn.linear_model")
    problem, (arms, luck) = (
        Problem(dim=3, family=Poisson(30), radius=50.0, horizon=T),
        rounds(80, seed=6),
    )
    bandit = Bandit(SCDGLUCB(problem=problem, regularization=0.5, discount=1.0))
    X = arms[:, 0]
    r = problem.family.draw(0.5 + X[:, 0], luck)
    for x, y in zip(X, r):
        bandit.update(x, y)
    model = linear_model.PoissonRegressor(
        alpha=0.5 / 80, fit_intercept=False, tol=1e-12, max_iter=10_000, solver="newton-cholesky"
    )
    model.fit(X, r)
    np.testing.assert_allclose(bandit.theta, model.coef_, atol=1e-7)


@pytest.mark.parametrize("kind", [GLMUCB, SCDGLUCB, GLOC, LinUCB], ids=lambda k: k.__name__)
def test_thompson_sampling_draws_from_the_curvature(kind):
    """Choices between two opposite arms follow the normal law of the sampled x'theta."""
    problem = Problem(dim=2, radius=1.0, horizon=T)
    more = {"discount": 0.99} if kind is SCDGLUCB else {}
    policy = kind(problem=problem, regularization=1.0, scale=0.5, exploration="thompson", **more)
    memory = policy.init(400)
    x = np.tile([0.6, 0.3], (400, 1))
    for _ in range(5):
        memory = policy.update(memory, x, np.ones(400))
    arms = np.tile([[0.6, 0.3], [-0.6, -0.3]], (400, 1, 1))
    noise = np.random.default_rng(8).standard_normal((400, policy.noise_size))
    share = (policy.choose(memory, arms, noise) == 0).mean()
    a, H, theta = arms[0, 0], memory.H[0], memory.theta[0]
    width = policy.width(memory)[0] / (1.0 if policy.linear else problem.k_mu)
    expected = ndtr(a @ theta / (width * math.sqrt(a @ np.linalg.solve(H, a))))
    assert share == pytest.approx(expected, abs=0.08)


def known(S, **more):
    return Problem(dim=5, radius=S, horizon=5000, **more)


@pytest.mark.parametrize("column", [0, 1], ids=["S=1", "S=3"])
def test_published_numbers_of_every_radius_and_tuning(column):
    """Logistic, T = 5000, d = 5, delta = 0.05, t = T, unscaled; (S = 1, S = 3)."""
    S = (1.0, 3.0)[column]
    drift, jump = known(S, path_length=2 * math.pi * S), known(S, change_points=1)

    def tuned(kind, problem, **numbers):
        return kind.from_theory(problem, delta=0.05, **numbers)

    def near(value, *expected):
        digits = str(expected[column])
        unit = 10.0 ** -(len(digits.split(".")[1]) if "." in digits else 0)
        assert abs(float(value) - expected[column]) <= unit, (value, expected[column])

    near(1 - tuned(DGLUCB, jump).discount, 0.001170, 0.001170)
    near(tuned(DGLUCB, jump, regularization=1.0).coefficient(5000.0), 7.4335, 31.2186)
    near(tuned(DGLUCB, jump).coefficient(5000.0), 7.4210, 33.8254)
    assert tuned(SWGLUCB, jump).window == 855
    near(tuned(SWGLUCB, jump, regularization=1.0).coefficient(5000.0), 9.2444, 39.2568)
    sc = tuned(SCDGLUCB, jump)
    near(sc.regularization, 42.5860, 42.5860)
    near(1 - sc.discount, 0.000680, 0.000417)
    near(sc.rho, 8.3304, 8.5273)
    near(sc.coefficient(5000.0), 46.811, 185.478)
    near(sc.coefficient(5000.0, inside=True), 14.508, 87.460)
    near(1 - tuned(BVDGLMUCB, drift).discount, 0.050106, 0.077757)
    near(tuned(BVDGLMUCB, drift).coefficient(5000.0), 4.6481, 18.1794)
    near(1 - tuned(BVDGLMUCB, drift, reading="quoted").discount, 0.003983, 0.008284)
    near(1 - tuned(SCDGLUCB, jump, reading="quoted").discount, 0.001170, 0.001170)
    near(1 - tuned(GLBWeightUCB, drift).discount, 0.003515, 0.002918)
    near(tuned(GLBWeightUCB, drift).coefficient(5000.0), 9.0476, 87.8679)
    near(1 - tuned(SCBWeightUCB, drift).discount, 0.007927, 0.013729)
    near(tuned(SCBWeightUCB, drift).coefficient(5000.0), 23.0934, 154.6815)
    near(tuned(SCBPWWeightUCB, jump).rho, 12.1201, 25.1978)
    near(tuned(SCBPWWeightUCB, jump).coefficient(5000.0), 23.6718, 156.8287)
    near(1 - tuned(LBWeightUCB, drift).discount, 0.015853, 0.027459)
    near(tuned(LBWeightUCB, drift).coefficient(5001.0), 3.8246, 8.1878)
    near(tuned(RestartGLB, drift).period, 251, 120)
    near(rivals.corrected_restart_period(drift), 39, 23)
    near(tuned(GLMUCB, drift).coefficient(5000.0), 4.2, 17.5)
    near(tuned(MASTER, drift).base.coefficient(5000.0), 69.9, 271.7)
    near(tuned(MASTER, drift, reading="restart").base.coefficient(5000.0), 4.2, 17.5)


def test_d_linucbs_first_radius_has_no_noise_mass():
    """The author's code holds gamma^(2 (t-1)) in round t: after no round, no squared weight."""
    problem = Problem(dim=3, radius=2.0)
    policy = DLinUCB(problem=problem, regularization=4.0, discount=0.5, delta=0.1)
    assert policy.coefficient(1.0) == pytest.approx(4.0 + 0.5 * math.sqrt(2 * math.log(10)))
    second = 2 * math.log(10) + 3 * math.log1p(1 / 12)
    assert policy.coefficient(2.0) == pytest.approx(4.0 + 0.5 * math.sqrt(second))


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (BVDGLMUCB, {"reading": "quotes"}, "reading must be one of .*'quoted'"),
        (SCDGLUCB, {"reading": 3}, "reading must be one of"),
        (BVDGLMUCB, {"reading": "quoted", "discount": 0.9}, "reading sets the discount"),
        (GLMUCB, {"reading": "quoted"}, "reading must be one of .*'master'"),
        (MASTER, {"reading": "original"}, "reading must be one of .*'restart'"),
    ],
)
def test_an_unknown_reading_is_refused(kind, options, words):
    with pytest.raises(ValueError, match=words):
        kind.from_theory(known(1.0, path_length=1.0, change_points=1), **options)


def test_a_given_base_keeps_its_own_reading():
    problem = known(1.0)
    base = GLMUCB(problem=problem, regularization=1.0)
    assert MASTER.from_theory(problem, base=base).base.reading == "restart"
    with pytest.raises(ValueError, match=r"reading: .* base"):
        MASTER.from_theory(problem, base=base, reading="master")
    with pytest.raises(ValueError, match="horizon"):
        GLMUCB(problem=Problem(dim=2, radius=1.0), regularization=1.0, reading="master")


BOUNDED, NOISE = "bounded rewards", "sub-Gaussian noise"
CONCORDANT, HARD = "bounded and self-concordant rewards", "O(t), no poly-time guarantee"
TABLE_1 = {
    RestartGLB: (NOISE, "c^-1 d^2/3 P^1/3 T^2/3", "O(T^2/3)", "O(T^2/3)"),
    BVDGLMUCB: (BOUNDED, "c^-1 d^9/10 P^1/5 T^4/5", HARD, "O(t)"),
    MASTER: (BOUNDED, "c^-1 d P^1/3 T^2/3; jumps: c^-1 d sqrt(Gamma T)", HARD, "O(t log t)"),
    GLBWeightUCB: (NOISE, "c^-3/4 d^3/4 P^1/4 T^3/4", HARD, "O(t)"),
    SCBWeightUCB: (CONCORDANT, "c^-1/2 d^3/4 P^1/4 T^3/4", HARD, "O(t)"),
    DGLUCB: (BOUNDED, "c^-1 d^2/3 Gamma^1/3 T^2/3", HARD, "O(t)"),
    SCDGLUCB: (CONCORDANT, "c^-1/3 d^2/3 Gamma^1/3 T^2/3", "O(t)", "O(t)"),
    SCBPWWeightUCB: (CONCORDANT, " d^2/3 Gamma^1/3 T^2/3", HARD, "O(t)"),
    DOMD: (
        BOUNDED,
        "c^-1/2 d^3/4 P^1/4 T^3/4; jumps: c^-1/3 d^2/3 Gamma^1/3 T^2/3",
        "O(1)",
        "O(1)",
    ),
}


@pytest.mark.parametrize("kind", TABLE_1, ids=lambda kind: kind.__name__)
def test_the_catalogue_holds_table_1_of_the_paper(kind):
    entry = next(e for e in CATALOGUE if e.policy is kind)
    assumes, regret, cost, memory = TABLE_1[kind]
    assert (entry.assumes, entry.cost, entry.memory) == (assumes, cost, memory)
    assert regret in entry.regret


@pytest.mark.parametrize("kind", [DGLUCB, SWGLUCB, SCDGLUCB, SCSWGLUCB, SCBPWWeightUCB, RestartGLB])
def test_a_world_without_changes_has_a_limit_not_a_nan(kind):
    policy = kind.from_theory(Problem(dim=2, radius=1.0, horizon=100, change_points=0))
    if hasattr(policy, "discount"):
        assert policy.discount == pytest.approx(1 - 1 / 100)
    else:
        assert getattr(policy, "window", None) == 100 or policy.period == 100
    assert np.isfinite(Bandit(policy).scores(np.eye(2)).upper).all()


@pytest.mark.parametrize(
    "kind", [BVDGLMUCB, GLBWeightUCB, SCBWeightUCB, LBWeightUCB, DLinUCB, SWLinUCB]
)
def test_a_world_without_drift_has_a_limit_not_a_nan(kind):
    policy = kind.from_theory(Problem(dim=2, radius=1.0, horizon=100, path_length=0.0))
    assert np.isfinite(Bandit(policy).scores(np.eye(2)).upper).all()


@pytest.mark.parametrize("gamma", [1.0, 0.5, 1e-3])
@pytest.mark.parametrize(
    "kind", [DGLUCB, SCDGLUCB, BVDGLMUCB, SCBWeightUCB, SCBPWWeightUCB, DLinUCB]
)
def test_every_discount_that_is_allowed_gives_numbers(kind, gamma):
    policy = kind(
        problem=Problem(dim=2, radius=1.0, horizon=50), regularization=1.0, discount=gamma
    )
    bandit = Bandit(policy)
    for t in range(30):
        bandit.update([0.5, 0.5 * (-1) ** t], t % 2)
        assert np.isfinite(bandit.scores(np.eye(2)).upper).all()


@pytest.mark.parametrize(
    ("kind", "numbers", "word"),
    [
        (DGLUCB, {"discount": 0.0}, "discount"),
        (DGLUCB, {"discount": 1.5}, "discount"),
        (SWGLUCB, {"window": 0}, "window"),
        (RestartGLB, {"period": 0}, "period"),
        (GLMUCB, {"exploration": "luck"}, "exploration"),
        (SCBPWWeightUCB, {"discount": 0.9, "variant": "C"}, "variant"),
        (GLOC, {"delta": 0.0}, "delta"),
    ],
)
def test_unusable_tuning_is_refused(kind, numbers, word):
    with pytest.raises(ValueError, match=word):
        kind(problem=Problem(dim=2, radius=1.0, horizon=50), regularization=1.0, **numbers)


def test_missing_knowledge_is_named():
    with pytest.raises(ValueError, match="change_points"):
        DGLUCB.from_theory(Problem(dim=2, radius=1.0, horizon=100, path_length=1.0))
    with pytest.raises(ValueError, match="path_length"):
        SCBWeightUCB.from_theory(Problem(dim=2, radius=1.0, horizon=100))
    with pytest.raises(ValueError, match="horizon"):
        SCDGLUCB(problem=Problem(dim=2, radius=1.0), regularization=1.0, discount=0.9)


@given(st.integers(1, 9), st.integers(0, 10**6), st.floats(0, 12), st.floats(1.0001, 1e4))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_ball_projection_meets_its_optimality_conditions(d, seed, digits, stretch):
    """v is optimal iff A (zeta - v) = nu v with nu >= 0, ||v|| = S; A has condition 10^digits."""
    rng = np.random.default_rng(seed)
    U, S = np.linalg.qr(rng.standard_normal((d, d)))[0], rng.uniform(0.05, 5.0)
    A = (U * 10.0 ** rng.uniform(-digits, 0.0, d)) @ U.T
    zeta = rng.standard_normal(d)
    zeta *= stretch * S / np.linalg.norm(zeta)
    v = project_ball(A, zeta, S)
    assert v @ v <= S * S
    assert np.linalg.norm(v) == pytest.approx(S, rel=1e-14)
    pull = A @ (zeta - v)
    nu = pull @ v / S**2
    assert nu >= 0
    scale = np.linalg.norm(A) * np.linalg.norm(zeta)
    np.testing.assert_allclose(pull, nu * v, rtol=0, atol=1e-14 * d * scale)


def test_ball_projection_leaves_the_ball_alone():
    A, zeta = np.diag([1.0, 9.0]), np.array([0.6, -0.8])
    np.testing.assert_array_equal(project_ball(A, zeta, 1.0), zeta)
    assert np.abs(project_ball(A, 3 * zeta, 1.0) - zeta).max() > 0.05  # it is no rescaling


@pytest.mark.parametrize("kind", [*dict.fromkeys(pair[0] for pair in PAIRS.values()), MASTER])
def test_a_rival_without_a_radius_says_what_to_pass(kind):
    known = Problem(dim=2, radius=1.0, horizon=100, path_length=1.0, change_points=1)
    blind, remedy = replace(known, radius=None), rf"{kind.__name__} needs radius: .*radius=\.\.\."
    with pytest.raises(ValueError, match=remedy):
        kind.from_theory(blind)
    with pytest.raises(ValueError, match=remedy):
        replace(kind.from_theory(known), problem=blind)
    with pytest.raises(ValueError, match=remedy):
        kind.from_theory(Problem(dim=2))  # before anything else that is missing


def test_time_uniform_radii_pay_for_every_round():
    problem = Problem(dim=2, radius=1.0, horizon=100)
    plain = DGLUCB(problem=problem, regularization=1.0, discount=0.9, delta=0.05)
    uniform = DGLUCB(
        problem=problem, regularization=1.0, discount=0.9, delta=0.05, time_uniform=True
    )
    paid = DGLUCB(problem=problem, regularization=1.0, discount=0.9, delta=0.0005)
    assert uniform.coefficient(10.0) == pytest.approx(paid.coefficient(10.0))
    assert uniform.coefficient(10.0) > plain.coefficient(10.0)


def test_memory_grows_where_it_is_said_to_grow():
    problem = Problem(dim=3, radius=1.0, horizon=T, change_points=1, path_length=1.0)
    arms, luck = rounds(100)
    for kind, grows in ((DGLUCB, True), (SWGLUCB, False), (GLOC, False), (LinUCB, False)):
        bandit = Bandit(kind.from_theory(problem, **({"window": 20} if kind is SWGLUCB else {})))
        before = bandit.memory_bytes
        for X, u in zip(arms, luck):
            bandit.update(X[0], float(u < 0.5))
        assert (bandit.memory_bytes > before) == grows == bool(bandit.policy.growing)


def test_master_takes_a_base_by_its_name():
    problem = Problem(dim=2, radius=1.0, horizon=100)
    named = MASTER.from_theory(problem, base="GLBOMD", scale=0.2, delta=0.02)
    assert named.base == GLBOMD.from_theory(problem, scale=0.2, delta=0.02)
    assert MASTER.from_theory(problem, base="GLMUCB") == MASTER.from_theory(problem)
    with pytest.raises(ValueError, match="name of one"):
        MASTER.from_theory(problem, base="Bernoulli")
    with pytest.raises(ValueError, match="set this in the base"):
        MASTER.from_theory(problem, base=named.base, scale=0.2)
