"""The theorems' constants: printed values, limits, regimes, and bounds that hold."""

import math

import numpy as np
import pytest

from driftbandit import Bernoulli, Circle, Poisson, Problem, SignFlip, theory

S1 = Problem(dim=5, radius=1.0, horizon=5000, path_length=2 * math.pi)
S3 = Problem(dim=5, radius=3.0, horizon=5000, path_length=6 * math.pi)


def test_constants_of_the_papers_setting():
    assert (theory.eta(S1), theory.eta(S3)) == (2.0, 4.0)
    assert (theory.alpha(S1), theory.alpha(S3)) == (3.0, 6.0)
    assert theory.iota(S1) == pytest.approx(1.0)
    assert theory.lam(S1) == pytest.approx(32 * 3 * 5 / 7)  # 68.57
    assert theory.lam(S3) == pytest.approx(32 * 6 * 5 / 7)  # 137.14
    assert (theory.glb_omd_lam(S1), theory.glb_omd_lam(S3)) == (140.0, 280.0)


def test_lambda_is_the_largest_of_its_three_parts():
    sharp = Problem(dim=1, radius=30.0, family=Bernoulli())
    assert theory.lam(sharp) == pytest.approx(max(6 * 31 * 0.25 * 30, 32 * 46.5 / 7))
    tiny = Problem(dim=1, radius=1e-3, family=Poisson(3))
    assert theory.lam(tiny) >= tiny.c_mu


@pytest.mark.parametrize(
    ("problem", "lam", "first", "last"),
    [
        (S1, 140.0, 23.9, 26.6),
        (S3, 280.0, 100.5, 102.1),
        (S1, 5.0, 5.7, 23.3),
        (S3, 5.0, 14.3, 46.6),
    ],
)
def test_glb_omd_radius_has_its_printed_values(problem, lam, first, last):
    radius = theory.glb_omd_radius(problem, lam=lam, eta=theory.eta(problem), delta=0.05)
    assert theory.beta(radius, 1.0) == pytest.approx(first, abs=0.051)
    assert theory.beta(radius, 5000.0) == pytest.approx(last, abs=0.051)


def beta_by_hand(problem, t, *, gamma, lam, eta, delta):
    R, g, k, d, S = problem.family.R, problem.family.g, problem.k_mu, problem.dim, problem.S
    n = sum(gamma**s for s in range(t - 1))
    return math.sqrt(
        4 * lam * S**2
        + 2 * eta * (1 + R**2 / (g * k)) * math.log(math.pi**2 * t**2 / (3 * delta))
        + 2 * eta * (3 * eta + 0.5) * d * math.log(1 + k * n / (lam * d * g))
    )


@pytest.mark.parametrize("gamma", [0.5, 0.99, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("t", [1, 2, 10, 1000])
def test_domd_radius_is_the_formula_for_every_t_and_gamma(gamma, t):
    numbers = {"gamma": gamma, "lam": 7.0, "eta": 2.0, "delta": 0.05}
    found = theory.beta(theory.domd_radius(S1, **numbers), float(t))
    assert found == pytest.approx(beta_by_hand(S1, t, **numbers), rel=1e-9)


def test_radius_is_nondecreasing_and_continuous_at_gamma_one():
    def values(gamma):
        radius = theory.domd_radius(S1, gamma=gamma, lam=69.0, eta=2.0, delta=0.01)
        return np.array([theory.beta(radius, float(t)) for t in range(1, 300)])

    assert (np.diff(values(0.97)) >= 0).all()
    np.testing.assert_allclose(values(1 - 1e-12), values(1.0), rtol=1e-9)


def test_drift_kernel_is_the_double_sum():
    path, gamma = np.random.default_rng(1).standard_normal((30, 3)), 0.9
    moves = np.linalg.norm(np.diff(path, axis=0), axis=1)
    V = [
        sum(
            gamma ** ((t - 1 - p) / 2) * math.sqrt((1 - gamma**p) / (1 - gamma)) * moves[p - 1]
            for p in range(1, t)
        )
        for t in range(1, 31)
    ]
    np.testing.assert_allclose(theory.drift_kernel(path, gamma), V, rtol=1e-12)
    assert sum(V) <= 2 * moves.sum() / (1 - gamma) ** 1.5  # Lemma: summing the drift kernel


def test_drift_kernel_without_forgetting_is_the_limit():
    path = np.random.default_rng(2).standard_normal((20, 2))
    np.testing.assert_allclose(
        theory.drift_kernel(path, 1.0), theory.drift_kernel(path, 1 - 1e-10), rtol=1e-6
    )


def test_discount_of_a_drifting_world():
    expected = 1 - math.sqrt(math.sqrt(0.25) * 2 * math.pi / (5 * 5000))
    assert theory.discount(S1) == pytest.approx(expected)


def test_discount_of_a_piecewise_world():
    problem = SignFlip(radius=1.0).problem
    expected = 1 - (math.sqrt(problem.c_mu) / (0.25 * 5 * 5000)) ** (2 / 3)
    assert theory.discount(problem) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("path_length", "regime", "gamma"),
    [
        (0.0, "calm", 1 - 1 / 100),
        (1e-5, "calm", 1 - 1 / 100),
        (1.0, "interior", None),
        (1e9, "restless", 0.01),
    ],
)
def test_regimes_and_clipping_when_drifting(path_length, regime, gamma):
    problem = Problem(dim=2, radius=1.0, horizon=100, path_length=path_length)
    assert theory.regime(problem) == regime
    assert 1 / 100 - 1e-12 <= theory.discount(problem) < 1
    if gamma is not None:
        assert theory.discount(problem) == pytest.approx(gamma)


@pytest.mark.parametrize(("changes", "regime"), [(0, "calm"), (5, "interior"), (10**6, "restless")])
def test_regimes_when_piecewise(changes, regime):
    assert theory.regime(Problem(dim=2, radius=1.0, horizon=100, change_points=changes)) == regime


def test_regime_thresholds_are_the_theorems():
    """Theorem 2: interior from P_T = d / (sqrt(k) T) on, up to d T / sqrt(k) (1 - 1/T)^2."""
    d, T, k = 2, 100, 0.25
    low, high = d / (math.sqrt(k) * T), d * T / math.sqrt(k) * (1 - 1 / T) ** 2
    for P, regime in ((low * 0.999, "calm"), (low * 1.001, "interior"), (high * 1.001, "restless")):
        assert theory.regime(Problem(dim=d, radius=1.0, horizon=T, path_length=P)) == regime


def test_drifting_bound_by_hand():
    T, d, k, c, S, delta = 5000, 5, 0.25, S1.c_mu, 1.0, 0.01
    gamma, lam = theory.discount(S1), theory.lam(S1)
    beta_T = beta_by_hand(S1, T, gamma=gamma, lam=lam, eta=2.0, delta=delta)
    potential = (
        2 / c * (d * math.log(1 + k / (lam * d * (1 - gamma))) + T * d * math.log(1 / gamma))
    )
    drift = 4 * k * 1.0 / math.sqrt(lam) * 2 * math.pi / (1 - gamma) ** 1.5
    expected = 2 * k * S + 2 * k * beta_T * math.sqrt(T * potential) + drift
    assert theory.regret_bound_drifting(S1, delta=delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_piecewise_bound_is_the_minimum_over_all_D(radius):
    problem = SignFlip(radius=radius).problem
    gamma, lam, k, T = theory.discount(problem), theory.lam(problem), 0.25, 5000
    radius_T = theory.domd_radius(
        problem, gamma=gamma, lam=lam, eta=theory.eta(problem), delta=0.01
    )
    middle = (
        2
        * k
        * theory.beta(radius_T, T)
        * math.sqrt(T * theory.elliptical_potential(problem, gamma, lam))
    )
    tail = 8 * problem.S * k * theory.iota(problem) / math.sqrt(lam) / (1 - gamma) ** 1.5
    r = min(1.0, 2 * k * radius)  # rewards are 0 or 1
    brute = min(r * (D + 1) + tail * gamma ** (D / 2) for D in range(1, 30_000)) + middle
    assert theory.regret_bound_piecewise(problem, delta=0.01) == pytest.approx(brute, rel=1e-9)


def test_contexts_of_norm_L_are_the_paper_with_S_L():
    scaled = Problem(dim=5, radius=0.5, context_norm=4.0, horizon=5000, path_length=3.0)
    plain = Problem(dim=5, radius=2.0, horizon=5000, path_length=12.0)
    for f in (theory.eta, theory.lam, theory.iota, theory.discount, theory.glb_omd_lam):
        assert f(scaled) == f(plain)
    assert theory.regret_bound_drifting(scaled, delta=0.1) == theory.regret_bound_drifting(
        plain, delta=0.1
    )


def test_missing_knowledge_is_named():
    with pytest.raises(ValueError, match="horizon"):
        theory.discount(Problem(dim=2, radius=1.0, path_length=1.0))
    with pytest.raises(ValueError, match="path_length"):
        theory.discount(Problem(dim=2, radius=1.0, horizon=100))
    with pytest.raises(ValueError, match="at least 2"):
        theory.discount(Problem(dim=2, radius=1.0, horizon=1, path_length=1.0))


def test_a_bound_for_every_environment_of_the_paper():
    for environment in (Circle(radius=1.0), SignFlip(radius=3.0)):
        assert theory.regret_bound_drifting(environment.problem, delta=0.01) > 0
