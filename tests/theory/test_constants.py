"""The theory at generic constants: no letter of the paper is 1 here, and no two are equal.

Every expected value is the paper's formula, written again with plain letters.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from driftbandit import Bernoulli, Binomial, Circle, Gaussian, Poisson, Problem, theory
from driftbandit.theory import piecewise
from odd import ODD, G, M, P, R, S, T, c, close, d, delta, g, k, odd, span


@pytest.mark.parametrize(("sharp", "m"), [(False, R), (True, M)])
def test_step_and_price(sharp, m):
    assert theory.concordance(ODD, sharp=sharp) == m
    assert theory.eta(ODD, sharp=sharp) == close(1 + m * S)
    assert theory.alpha(ODD, sharp=sharp) == close(3 * (1 + m * S) / 2)
    assert theory.iota(ODD, sharp=sharp) == close(math.sqrt(2 * (1 + m * S) * k / g))


@pytest.mark.parametrize(
    ("lam", "m", "share"), [(theory.lam, R, 32 * d / 7), (theory.sharp_lam, M, 1.0)]
)
def test_lambda_part_by_part(lam, m, share):
    eta = 1 + m * S
    first, second = 6 * eta * m * k * S / g, share * 1.5 * eta * m**2
    assert min(first, second) > c / g
    assert lam(ODD) == close(max(first, second))
    assert lam(odd(k=0.1)) == close(second)
    assert lam(odd(k=50.0)) == close(6 * eta * m * 50.0 * S / g)
    assert lam(odd(c=500.0)) == close(500.0 / g)


@pytest.mark.parametrize(("sharp", "m"), [(False, R), (True, M)])
def test_glb_omds_lambda_part_by_part(sharp, m):
    eta = 1 + m * S
    assert theory.glb_omd_lam(ODD, sharp=sharp) == close(14 * d * eta * m**2)
    assert theory.glb_omd_lam(odd(k=50.0), sharp=sharp) == close(6 * eta * m * S * 50.0 / g)


def test_sharp_constants_of_the_families():
    families = Bernoulli(), Binomial(6), Gaussian(0.5, 4.0), Poisson(9)
    assert [f.self_concordance for f in families] == [1.0, 1.0, 0.0, 1.0]
    paper = [theory.concordance(Problem(dim=2, radius=1.0, family=f)) for f in families]
    assert paper == [1.0, 6.0, 4.0, 9.0]
    linear = Problem(dim=2, radius=3.0, family=Gaussian(0.5, 4.0))
    assert theory.eta(linear, sharp=True) == 1.0
    assert theory.sharp_lam(linear) == 1 / 0.5


def test_the_paper_is_the_default():
    """`sharp` has to be asked for, everywhere."""
    moves = np.ones(3)
    for value in (
        theory.concordance,
        theory.eta,
        theory.alpha,
        theory.iota,
        theory.glb_omd_lam,
        theory.C_pw,
        lambda p, **sharp: theory.D_gamma(p, 0.93, **sharp),
        lambda p, **sharp: piecewise.tail(p, 0.93, 5, **sharp),
        lambda p, **sharp: theory.best_D(p, 0.93, **sharp),
        lambda p, **sharp: theory.regret_bound_drifting(p, delta=delta, **sharp),
        lambda p, **sharp: theory.regret_bound_piecewise(p, delta=delta, **sharp),
        lambda p, **sharp: theory.drift_budget(p, moves, gamma=0.9, **sharp)[-1],
        lambda p, **sharp: theory.least_discount(p, delta=delta, **sharp),
    ):
        problem = odd(k=10.0, M=0.02)
        assert value(problem) == value(problem, sharp=False) != value(problem, sharp=True)


@pytest.mark.parametrize(
    ("log_round", "log_mass"), [(0.0, 0.0), (1.0, 0.0), (3.0, 0.0), (0.0, 1.0), (0.0, 2.5)]
)
def test_a_radius_without_some_of_its_parts(log_round, log_mass):
    radius = theory.Radius(7.0, log_round, log_mass, 0.3, 0.9)
    square = 7.0 + log_round * math.log(4) + log_mass * math.log(1 + 0.3 * (1 + 0.9 + 0.81))
    assert theory.beta(radius, 4.0) == close(math.sqrt(square))


def factor_by_hand(lam, eta, m):
    """alpha C(m^2 alpha / lam), in place of the paper's 3 eta."""
    alpha = eta / (1 - 2 * eta * m * k * S / (g * lam))
    v = m**2 * alpha / lam
    density = lambda y: math.exp(-y * y / 2 / v) / math.sqrt(2 * math.pi * v)  # noqa: E731
    gap = lambda y: 2 * (math.expm1(y) - y) * density(y)  # noqa: E731
    return alpha * integrate.quad(gap, 0, 12 * math.sqrt(v) + v, epsabs=1e-13)[0] / v


def beta_by_hand(t, *, gamma, lam, eta, noise=R**2, factor=None):
    factor = 3 * eta if factor is None else factor
    n = sum(gamma**s for s in range(t - 1))
    return math.sqrt(
        4 * lam * S**2
        + 2 * eta * (1 + noise / (g * k)) * math.log(math.pi**2 * t**2 / (3 * delta))
        + 2 * eta * (factor + 0.5) * d * math.log(1 + k * n / (lam * d * g))
    )


@pytest.mark.parametrize("t", [1, 2, 50])
def test_radius(t):
    numbers = {"gamma": 0.9, "lam": 2.3, "eta": 1.9}
    radius = theory.domd_radius(ODD, **numbers, delta=delta)
    assert theory.beta(radius, t) == close(beta_by_hand(t, **numbers))


@pytest.mark.parametrize("lam", [4.5, 7.0, 300.0])
@pytest.mark.parametrize("t", [1, 2, 50])
def test_sharp_radius(lam, t):
    numbers = {"gamma": 0.9, "lam": lam, "eta": 1.9}
    radius = theory.sharp_radius(ODD, **numbers, delta=delta)
    known = {"noise": span**2 / 4, "factor": factor_by_hand(lam, 1.9, M)}
    assert theory.beta(radius, t) == close(beta_by_hand(t, **numbers, **known))


def test_glb_omds_radius():
    radius = theory.glb_omd_radius(ODD, lam=2.3, eta=1.9, delta=delta)
    growth = d * (6 * 1.9**2 + 1.9) * math.log(1 + k * 49 / (2.3 * d * g))
    square = 4 * 2.3 * S**2 + 2 * 1.9 * math.log(1 / delta) + growth
    assert theory.beta(radius, 50) == close(math.sqrt(square))


def test_radius_is_valid_for_rewards_on_both_sides_of_zero():
    """On [-b, b] the lemma needs (2b)^2/4 = b^2, which is the paper's R^2."""
    gaussian = Problem(dim=3, radius=1.2, family=Gaussian(0.4, 5.0))
    numbers = {"gamma": 0.9, "lam": 2.3, "eta": 1.9, "delta": delta}
    paper, sharp = (f(gaussian, **numbers) for f in (theory.domd_radius, theory.sharp_radius))
    assert paper[:2] == sharp[:2]


def test_tuned_discounts():
    drifting = math.sqrt(math.sqrt(k) * P / (d * T))
    piecewise = (G * math.sqrt(c) / (k * d * T)) ** (2 / 3)
    assert theory.forgetting_drifting(ODD) == close(drifting)
    assert theory.forgetting_piecewise(ODD) == close(piecewise)
    assert theory.discount(ODD) == close(1 - piecewise)
    assert theory.discount(replace(ODD, change_points=None)) == close(1 - drifting)


@pytest.mark.parametrize(
    ("forgetting", "gamma", "case"),
    [
        (0.0, 0.99, "calm"),
        (0.0099, 0.99, "calm"),
        (0.01, 0.99, "interior"),
        (0.3, 0.7, "interior"),
        (0.99, 0.01, "interior"),
        (0.991, 0.01, "restless"),
        (7.0, 0.01, "restless"),
    ],
)
def test_clipping_and_cases_to_the_border(forgetting, gamma, case):
    assert theory.clip_discount(forgetting, 100) == close(gamma)
    assert theory.domd.case(forgetting, 100) == case


def test_two_rounds_are_enough():
    assert theory.clip_discount(0.0, 2) == theory.clip_discount(1.0, 2) == 0.5


def bound_by_hand(gamma, m, noise):
    eta, sharp = 1 + m * S, m == M
    lam = max(6 * eta * m * k * S / g, 1.5 * eta * m**2 * (1 if sharp else 32 * d / 7), c / g)
    potential = (2 * g / c) * (
        d * math.log(1 + k / (lam * d * g * (1 - gamma))) + T * d * math.log(1 / gamma)
    )
    factor = factor_by_hand(lam, eta, m) if sharp else 3 * eta
    beta = beta_by_hand(T, gamma=gamma, lam=lam, eta=eta, noise=noise, factor=factor)
    price = math.sqrt(2 * eta * k / g) / math.sqrt(lam)
    return 2 * k * beta * math.sqrt(T * potential), price, lam, potential


SIDES = [(False, R, R**2), (True, M, span**2 / 4)]


@pytest.mark.parametrize(("sharp", "m", "noise"), SIDES)
def test_drifting_bound(sharp, m, noise):
    gamma = 0.93
    exploration, price, lam, potential = bound_by_hand(gamma, m, noise)
    assert theory.elliptical_potential(ODD, gamma, lam) == close(potential)
    expected = 2 * k * S + exploration + 4 * k * price * P / (1 - gamma) ** 1.5
    found = theory.regret_bound_drifting(ODD, gamma=gamma, delta=delta, sharp=sharp)
    assert found == close(expected)


@pytest.mark.parametrize(("sharp", "m", "noise"), SIDES)
def test_piecewise_bound(sharp, m, noise):
    gamma = 0.93
    exploration, price, _, _ = bound_by_hand(gamma, m, noise)
    r = 2 * k * S  # 0.744, less than the range 2.9
    assert r < span
    expected = min(
        r * (G * D + 1)
        + exploration
        + 8 * S * k * price * G * gamma ** (D / 2) / (1 - gamma) ** 1.5
        for D in range(1, 500)
    )
    found = theory.regret_bound_piecewise(ODD, gamma=gamma, delta=delta, sharp=sharp)
    assert found == close(expected)


def test_bounds_take_their_theorems_discount():
    for bound, forgetting in (
        (theory.regret_bound_drifting, theory.forgetting_drifting),
        (theory.regret_bound_piecewise, theory.forgetting_piecewise),
    ):
        gamma = 1 - forgetting(ODD)
        assert bound(ODD, delta=delta) == close(bound(ODD, gamma=gamma, delta=delta))


@pytest.mark.parametrize("bound", [theory.regret_bound_drifting, theory.regret_bound_piecewise])
@pytest.mark.parametrize(
    ("gamma", "delta"), [(1.0, 0.1), (0.0, 0.1), (0.9, 0.0), (0.9, 1.01), (1.2, 0.1)]
)
def test_bounds_outside_their_conditions_are_refused(bound, gamma, delta):
    with pytest.raises(ValueError, match="the bound needs"):
        bound(ODD, gamma=gamma, delta=delta)


def test_a_failure_probability_of_one_is_allowed():
    assert theory.regret_bound_drifting(ODD, gamma=0.9, delta=1.0) > 0


@pytest.mark.parametrize(
    ("family", "radius", "cost"),
    [
        (Bernoulli(), 1.0, 0.5),  # 2 k S
        (Bernoulli(), 3.0, 1.0),  # the range
        (Gaussian(1.0, 5.0), 1.0, 2.0),  # 2 S: the paper's R would be 5
        (Gaussian(1.0, 2.0), 3.0, 4.0),  # the range 2 b: the paper's R would be 2, too little
    ],
)
def test_a_bad_round_costs_the_range_or_2kS(family, radius, cost):
    problem = Problem(dim=2, radius=radius, family=family)
    assert theory.worst_round(problem) == cost


def test_no_round_costs_more_than_the_worst():
    rng = np.random.default_rng(0)
    for family in (Bernoulli(), Binomial(3), Gaussian(1.0, 2.0), Poisson(12)):
        problem = Problem(dim=2, radius=1.3, family=family)
        z = rng.uniform(-1.3, 1.3, 1000)
        means = np.clip(family.mu(z), family.link.low, family.link.high)
        assert np.ptp(means) <= theory.worst_round(problem)


@pytest.mark.parametrize(("sharp", "m", "noise"), SIDES)
def test_window_of_the_piecewise_proof(sharp, m, noise):
    gamma = 0.93
    _, price, _, _ = bound_by_hand(gamma, m, noise)
    assert 8 * S * k * price < math.e
    assert theory.C_pw(ODD, sharp=sharp) == math.e
    D = math.ceil(2 * math.log(math.e * T / (1 - gamma)) / math.log(1 / gamma))
    assert theory.D_gamma(ODD, gamma, sharp=sharp) == D
    left = 8 * S * k * price * gamma ** (17 / 2) / (1 - gamma) ** 1.5
    assert piecewise.tail(ODD, gamma, 17, sharp=sharp) == close(left)


def test_constant_of_the_piecewise_proof_beyond_e():
    steep = odd(k=1.5)
    eta = 1 + R * S
    lam = 32 * 1.5 * eta * d * R**2 / 7
    expected = 8 * S * 1.5 * math.sqrt(2 * eta * 1.5 / g) / math.sqrt(lam)
    assert expected > math.e
    assert theory.C_pw(steep) == close(expected)
    eta = 1 + M * S
    lam = 6 * eta * M * 1.5 * S / g
    assert lam > 1.5 * eta * M**2
    expected = 8 * S * 1.5 * math.sqrt(2 * eta * 1.5 / g) / math.sqrt(lam)
    assert theory.C_pw(steep, sharp=True) == close(expected)
    assert theory.C_pw(steep, lam=lam / 4, sharp=True) == close(2 * expected)
    D = math.ceil(2 * math.log(expected * T / 0.07) / math.log(1 / 0.93))
    assert theory.D_gamma(steep, 0.93, sharp=True) == D


@pytest.mark.parametrize("gamma", [0.02, 0.5, 0.9, 0.99, 0.9999])
@pytest.mark.parametrize("sharp", [False, True])
def test_best_window_is_the_least_of_all(gamma, sharp):
    D = np.arange(1, 200_000)
    costs = theory.worst_round(ODD) * D + piecewise.tail(ODD, gamma, D, sharp=sharp)
    assert theory.best_D(ODD, gamma, sharp=sharp) == D[costs.argmin()]


@pytest.mark.parametrize("D", [1, 2, 5, 40])
@pytest.mark.parametrize("moments", [(1, 8, 9, 20), (3, 4, 15, 29)])
def test_good_rounds_are_their_definition(D, moments):
    values = np.array([[0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])  # comes back
    path = values[np.searchsorted(moments, np.arange(30), side="right")]
    good = [
        all((path[s] == path[t]).all() for s in range(max(t - D, 0), t)) for t in range(len(path))
    ]
    np.testing.assert_array_equal(theory.good_rounds(path, D), good)
    assert 0 < (~np.array(good)).sum() <= theory.bad_round_bound(4, D) == 4 * D


def test_a_window_is_one_round_or_more():
    for wrong in (
        lambda: theory.good_rounds(np.zeros((5, 2)), 0),
        lambda: theory.bad_round_bound(3, 0),
    ):
        with pytest.raises(ValueError, match="1 round or more"):
            wrong()


def test_terms_for_any_discount():
    first, second = k / math.sqrt(c) * d * math.sqrt(T), k / math.sqrt(c) * d * T * math.sqrt(0.2)
    drift = k**1.5 / math.sqrt(c) * P / 0.2**1.5
    assert theory.terms_drifting(ODD, 0.8) == close((first, second, drift))
    assert theory.terms_piecewise(ODD, 0.8) == close((first, second, G / 0.2))


@pytest.mark.parametrize(
    ("path_length", "order"),
    [
        (1e-3, k / math.sqrt(c) * d * math.sqrt(T)),
        (2.1, k ** (9 / 8) / math.sqrt(c) * d**0.75 * P**0.25 * T**0.75),
        (9000.0, k**1.5 / math.sqrt(c) * 13500.0),
    ],
)
def test_order_of_theorem_2(path_length, order):
    assert theory.order_drifting(replace(ODD, path_length=path_length)) == close(order)


@pytest.mark.parametrize(
    ("changes", "order"),
    [
        (0, k / math.sqrt(c) * d * math.sqrt(T)),
        (4, k ** (2 / 3) / c ** (1 / 3) * d ** (2 / 3) * 4 ** (1 / 3) * T ** (2 / 3)),
        (5000, 5000),
    ],
)
def test_order_of_theorem_3(changes, order):
    assert theory.order_piecewise(replace(ODD, change_points=changes)) == close(order)


def test_orders_are_their_terms_in_balance():
    """Inside, the tuned discount makes the last two terms equal to the order; at the borders of
    the three cases neighbouring orders meet."""
    inside = replace(ODD, change_points=None)
    terms = theory.terms_drifting(inside, theory.discount(inside))
    assert terms.forgetting == close(terms.drift) == close(theory.order_drifting(inside))
    terms = theory.terms_piecewise(ODD, theory.discount(ODD))
    assert terms.forgetting == close(terms.drift) == close(theory.order_piecewise(ODD))
    low = d / (math.sqrt(k) * T) / 1.5
    below, above = (
        theory.order_drifting(replace(ODD, path_length=low * f)) for f in (1 - 1e-9, 1 + 1e-9)
    )
    assert below == close(above)


# Beyond the paper


def test_rebalanced_discount_and_order():
    forgetting = math.sqrt(math.sqrt(k * c) * P / (d**1.5 * T))
    assert theory.forgetting_rebalanced(ODD) == close(forgetting)
    order = k ** (9 / 8) * c ** (-3 / 8) * d ** (5 / 8) * P**0.25 * T**0.75
    assert theory.order_rebalanced(ODD) == close(order)
    calm, restless = (replace(ODD, path_length=p) for p in (1e-4, 1e5))
    assert theory.order_rebalanced(calm) == close(k / math.sqrt(c) * d * math.sqrt(T))
    assert theory.order_rebalanced(restless) == close(k**1.5 * 1.5e5 / math.sqrt(d))


def test_rebalancing_makes_its_two_terms_equal():
    """(k/sqrt(c)) d T sqrt(1-gamma) and k^{3/2} d^{-1/2} P (1-gamma)^{-3/2}."""
    u = theory.forgetting_rebalanced(ODD)
    forgetting = theory.terms_drifting(ODD, 1 - u).forgetting
    drift = k**1.5 * d**-0.5 * P * u**-1.5
    assert forgetting == close(drift) == close(theory.order_rebalanced(ODD))


def test_price_of_drift_over_lambda_has_no_c():
    for problem in (ODD, odd(k=50.0), odd(c=50.0), Circle(radius=3.0).problem):
        family = problem.family
        price = theory.iota(problem) / math.sqrt(theory.lam(problem))
        free = math.sqrt(7 * problem.k_mu / (24 * family.g * problem.dim * family.R**2))
        assert price <= free * (1 + 1e-12)
    assert price == close(free)  # Bernoulli: lambda is its second part


@pytest.mark.parametrize(
    ("S", "paper", "rebalanced", "least"),
    [(1.0, 52130, 36754, 30839), (3.0, 399543, 226124, 151856)],
)
def test_bounds_side_by_side(S, paper, rebalanced, least):
    """An independent audit found 52,130 to 30,839 and 399,543 to 151,861."""
    problem = Circle(radius=S).problem
    ours = theory.clip_discount(theory.forgetting_rebalanced(problem), 5000)
    best = theory.least_discount(problem, delta=0.01)
    discounts = theory.discount(problem), ours, best
    found = [theory.regret_bound_drifting(problem, gamma=gamma, delta=0.01) for gamma in discounts]
    assert found == close([paper, rebalanced, least], rel=1e-4)


def test_least_discount_is_least():
    best = theory.least_discount(ODD, delta=delta, sharp=True)
    bound = theory.regret_bound_drifting(ODD, gamma=best, delta=delta, sharp=True)
    for gamma in 1 - np.geomspace(1 / T, 1 - 1 / T, 300):
        other = theory.regret_bound_drifting(ODD, gamma=gamma, delta=delta, sharp=True)
        assert bound <= other * (1 + 1e-9)
    assert 1 / T <= theory.least_discount(replace(ODD, path_length=0.0), delta=delta) < 1


def test_observed_radius_is_the_determinants():
    rng = np.random.default_rng(2)
    lam, eta, gamma = 2.3, 1.9, 0.9
    X = rng.standard_normal((8, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    weights = gamma ** np.arange(7, -1, -1) * rng.uniform(c, k, 8) / g
    H = lam * np.eye(d) + (X.T * weights) @ X
    radius = theory.domd_radius(ODD, gamma=gamma, lam=lam, eta=eta, delta=delta)
    square = (
        4 * lam * S**2
        + 2 * eta * (1 + R**2 / (g * k)) * math.log(math.pi**2 * 81 / (3 * delta))
        + 2 * eta * (3 * eta + 0.5) * (math.log(np.linalg.det(H)) - d * math.log(lam))
    )
    found = theory.observed_beta(radius, 9, np.stack([[H, lam * np.eye(d)]]), lam)
    assert found.shape == (1, 2)
    assert found[0, 0] == close(math.sqrt(square))
    assert found[0, 1] < found[0, 0] < theory.beta(radius, 9)


def test_drift_budget_is_iota_times_the_kernel():
    rng = np.random.default_rng(3)
    path = rng.standard_normal((30, d))
    moves = np.linalg.norm(np.diff(path, axis=0), axis=1)
    for sharp, m in ((False, R), (True, M)):
        iota = math.sqrt(2 * (1 + m * S) * k / g)
        expected = iota * 1.5 * theory.drift_kernel(path, 0.9)  # contexts of norm 1.5
        found = theory.drift_budget(ODD, moves, gamma=0.9, sharp=sharp)
        np.testing.assert_allclose(found, expected)
    assert (theory.drift_budget(ODD, np.zeros(4), gamma=0.9) == np.zeros(5)).all()
    for wrong in (-moves, moves - moves[3], path):
        with pytest.raises(ValueError, match="lengths of the moves"):
            theory.drift_budget(ODD, wrong, gamma=0.9)
