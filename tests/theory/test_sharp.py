"""The sharper theorem: a lambda without d, the rules that choose it, and what is played."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from driftbandit import (
    DOMD,
    GLBOMD,
    Bernoulli,
    Binomial,
    Circle,
    Gaussian,
    Greedy,
    Poisson,
    Problem,
    SignFlip,
    simulate,
    theory,
)
from driftbandit.theory.losses import bregman
from odd import ODD, M, S, c, g, k

FAMILIES = (Bernoulli(), Binomial(4), Gaussian(0.3, 4.0), Poisson(8))
DRIFT, FLIP = Circle(radius=1.0).problem, SignFlip(radius=3.0).problem
close = pytest.approx


def by_hand(v):
    """E[e^a - 1 - a] / v of a = |y|, y ~ N(0, v), by quadrature."""
    scaled = lambda u: 2 * (math.expm1(math.sqrt(v) * u) - math.sqrt(v) * u) / v  # noqa: E731
    density = lambda u: math.exp(-u * u / 2) / math.sqrt(2 * math.pi)  # noqa: E731
    return integrate.quad(lambda u: scaled(u) * density(u), 0, 12 + 2 * v, epsabs=1e-12)[0]


@pytest.mark.parametrize("v", [1e-4, 0.01, 0.3, 1.0, 2.9, 7.0])
def test_the_factor_is_its_integral(v):
    assert theory.divergence_factor(v) == close(by_hand(v), rel=1e-7)


def test_the_factor_grows_from_a_half():
    v = np.concatenate([[0.0], np.logspace(-12, 2, 300)])
    found = np.array([theory.divergence_factor(x) for x in v])
    assert found[0] == 0.5
    assert (np.diff(found) > 0).all()
    assert theory.divergence_factor(1e-6) == close(theory.divergence_factor(0.99999e-6), rel=1e-8)
    assert theory.divergence_factor(1.0) < 1.0
    assert theory.divergence_factor(2.904) < 2.0 < theory.divergence_factor(2.906)
    assert theory.divergence_factor(1e4) == math.inf


def random_step(rng, family, d, lam):
    """x, theta_{s+1}, A_s and H_{s+1} = A_s + omega x x' with A_s >= lambda I."""
    x, theta = rng.standard_normal((2, d))
    x, theta = x / np.linalg.norm(x), rng.uniform(0, 2) * theta / np.linalg.norm(theta)
    rows = rng.standard_normal((rng.integers(0, 2 * d), d))
    A = lam * np.eye(d) + rng.uniform(0, 0.1) * rows.T @ rows
    return x, theta, A, A + family.dmu(x @ theta) / family.g * np.outer(x, x)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("d", [5, 20, 50])
def test_the_lemma_at_the_least_lambda_in_any_dimension(family, d):
    """E D <= alpha C log det, and so <= 2 alpha log det, where lambda = alpha M^2."""
    rng, alpha = np.random.default_rng(d), 1.5 * (1 + family.self_concordance)
    for share in (1.0, 1 / 2.9):
        lam = max(share * alpha * family.self_concordance**2, 0.2)
        factor = theory.divergence_factor(alpha * family.self_concordance**2 / lam)
        assert factor <= 2.0
        for _ in range(50):
            x, theta, A, H = random_step(rng, family, d, lam)
            variance = alpha * x @ np.linalg.solve(H, x)
            gain = np.linalg.slogdet(H)[1] - np.linalg.slogdet(A)[1]
            left = bregman(family, np.array(x @ theta), np.array(variance))
            assert left <= factor * alpha * gain * (1 + 1e-9)


def test_far_below_the_factor_two_is_not_enough():
    """A Poisson slope e^z is as steep as |mu''| <= M mu' allows: 2 fails, C does not."""
    family, alpha, v = Poisson(8), 3.0, 6.0
    lam = alpha / v
    x, A = np.array([1.0]), np.array([[lam]])
    z = -6.0  # a small slope: log det is about omega s^2 / alpha
    H = A + family.dmu(z) * np.outer(x, x)
    left = bregman(family, np.array(z), np.array(alpha / H[0, 0]))
    gain = math.log(H[0, 0] / lam)
    assert 2 * alpha * gain < left < theory.divergence_factor(v) * alpha * gain


@pytest.mark.kernel
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("d", [5, 20, 50])
def test_every_sure_line_of_a_run_at_the_least_lambda(family, d):
    world = Circle(horizon=80, dim=d, radius=0.9, family=family)
    policy = DOMD.from_theory(
        world.problem, sharp=True, regularization=theory.sharp_lam(world.problem), discount=0.95
    )
    proof = theory.check(simulate(policy, world, seeds=range(2)))
    assert {"Lemma A.7", "Lemma A.7, sharp", "Lemma A.1"} <= {one.place for one in proof}
    assert all(one.holds for one in proof if one.sure), str(proof)


def test_alpha_has_the_familys_own_self_concordance():
    eta, lam = 1 + M * S, 40.0
    floor = 2 * eta * M * k * S / g
    assert theory.lam_floor(ODD) == close(floor)
    assert theory.lam_floor(ODD, step=3.0) == close(floor * 3.0 / eta)
    assert theory.sharp_alpha(ODD, lam) == close(eta / (1 - floor / lam))
    assert theory.sharp_alpha(ODD, lam, step=3.0) == close(3.0 / (1 - floor * 3.0 / eta / lam))
    factor = theory.divergence_factor(M**2 * theory.sharp_alpha(ODD, lam) / lam)
    assert theory.mix_factor(ODD, lam) == close(factor * theory.sharp_alpha(ODD, lam))


def test_the_floor_and_alpha():
    eta, floor = 2.0, 2 * 2.0 * 0.25 * 1.0  # 2 eta k S
    assert theory.lam_floor(DRIFT) == close(floor)
    assert theory.sharp_alpha(DRIFT, 3 * floor) == close(1.5 * eta)
    assert theory.sharp_alpha(DRIFT, 1e9) == close(eta)
    for lam in (floor, 0.5 * floor):
        with pytest.raises(ValueError, match="above 2 eta M k S / g = 1,"):
            theory.sharp_alpha(DRIFT, lam)
    assert theory.sharp_lam(DRIFT) == 3.0
    wide = Circle(radius=3.0).problem
    assert theory.sharp_lam(wide) == theory.sharp_lam(replace(wide, dim=50)) == 18.0


def played_beta(policy):
    """The radius that the policy uses in the last round of its horizon."""
    memory = policy.init(1)
    last = np.full_like(memory.t, policy.problem.horizon - 1)
    return policy.width(memory._replace(t=last))[0]


def beta_of_bound(problem, bound, lam, gamma):
    """beta_T, taken out of a bound on the regret."""
    k, T = problem.k_mu, problem.horizon
    price = math.sqrt(2 * theory.eta(problem, sharp=True) * k / problem.family.g / lam)
    if problem.change_points is None:
        rest = 2 * k * problem.S + 4 * k * price * problem.path_length / (1 - gamma) ** 1.5
    else:
        D = theory.best_D(problem, gamma, lam=lam, sharp=True)
        late = 8 * problem.S * k * price * gamma ** (D / 2) / (1 - gamma) ** 1.5
        changes = problem.change_points
        rest = theory.worst_round(problem) * (changes * D + 1) + changes * late
    potential = theory.elliptical_potential(problem, gamma, lam)
    return (bound - rest) / (2 * k * math.sqrt(T * potential))


@pytest.mark.parametrize("problem", [DRIFT, FLIP], ids=["drift", "flip"])
@pytest.mark.parametrize("objective", ["bound", "tracking"])
def test_the_played_radius_is_the_bounds(problem, objective):
    policy = DOMD.from_theory(problem, sharp=True, objective=objective)
    lam, gamma = policy.regularization, policy.discount
    bound = theory.sharp_bound(problem, lam, gamma, delta=0.01)
    assert theory.tuned(problem, objective, delta=0.01) == (lam, gamma, bound)
    assert played_beta(policy) == close(beta_of_bound(problem, bound, lam, gamma))


@pytest.mark.parametrize("problem", [DRIFT, FLIP], ids=["drift", "flip"])
def test_the_least_bound_is_least(problem):
    best = theory.least_bound(problem, delta=0.01)
    for lam in theory.lam_floor(problem) * np.array([1.02, 1.3, 2, 3, 5, 9, 30, 100, 1000]):
        for u in np.logspace(-3.6, -0.1, 25):
            assert best.bound <= theory.sharp_bound(problem, lam, 1 - u, 0.01) * (1 + 1e-9)
    near = [
        theory.sharp_bound(problem, best.lam * a, 1 - (1 - best.gamma) * b, 0.01)
        for a, b in ((1.02, 1), (0.98, 1), (1, 1.02), (1, 0.98))
    ]
    assert best.bound < min(near) < 1.001 * best.bound


def test_what_is_given_stays():
    free = theory.least_bound(DRIFT, delta=0.01)
    for name, value in (("lam", 50.0), ("gamma", 0.98)):
        bound = theory.least_bound(DRIFT, delta=0.01, **{name: value})
        assert getattr(bound, name) == value
        assert bound.bound > free.bound
    slow = DOMD.from_theory(DRIFT, sharp=True, half_life=100)
    assert slow.discount == close(2 ** (-1 / 100))
    assert slow.regularization == close(
        theory.least_bound(DRIFT, delta=0.01, gamma=slow.discount).lam
    )
    both = DOMD.from_theory(DRIFT, sharp=True, regularization=7.0, discount=0.9)
    assert (both.regularization, both.discount) == (7.0, 0.9)


def test_the_sharper_bound_is_smaller_and_more_so_in_more_dimensions():
    shares = []
    for d in (5, 20, 80):
        problem = Circle(radius=3.0, dim=d).problem
        paper = theory.regret_bound_drifting(problem, delta=0.01)
        shares.append(theory.least_bound(problem, delta=0.01).bound / paper)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] < 0.5


def linear_descent(rng, *, d, g, h, speed, jump, T):
    """Mean ||theta_t - theta*_t||^2 of theta += x (r - x'theta) / (g h), step 1, over T rounds."""
    n = 40
    theta, star = np.zeros((n, d)), np.zeros((n, d))
    star[:, 0] = jump
    total = 0.0
    for _ in range(T):
        total += ((theta - star) ** 2).sum(axis=1).mean()
        x = rng.standard_normal((n, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        miss = (x * (star - theta)).sum(axis=1) + math.sqrt(g) * rng.standard_normal(n)
        theta += x * (miss / (g * h))[:, None]
        star[:, 1] += speed
    return total / T


@pytest.mark.parametrize("h", [60.0, 200.0])
@pytest.mark.parametrize("moving", ["drift", "start"])
def test_tracking_error_is_that_of_mirror_descent(h, moving):
    """With a linear link w = 1; eta is 1, because M is 0."""
    d, T, g = 4, 8000, 0.5
    speed, jump = (0.002, 0.0) if moving == "drift" else (0.0, 1.5)
    found = linear_descent(np.random.default_rng(0), d=d, g=g, h=h, speed=speed, jump=jump, T=T)
    problem = Problem(
        dim=d,
        radius=jump or 1e-9,
        family=Gaussian(g, 4.0),
        horizon=T,
        path_length=speed * T,
    )
    assert found == close(theory.tracking_error(problem, h), rel=0.1)


def test_tracking_knows_jumps_and_standing_still():
    jumps = SignFlip(radius=1.0).problem
    w, g, T = math.sqrt(jumps.k_mu * jumps.c_mu), 1.0, 5000
    assert theory.tracking_curvature(jumps) == close(2 * math.sqrt(w * T / (g * 5)), rel=1e-4)
    still = replace(jumps, change_points=0)
    assert theory.tracking_curvature(still) == close(2 * math.sqrt(w * T / g), rel=1e-4)
    fast, slow = (replace(DRIFT, path_length=P) for P in (60.0, 1.0))
    assert theory.tracking_curvature(fast) < theory.tracking_curvature(slow)


def test_the_tracking_rule_never_widens_the_radius():
    """Where rewards alone give the curvature, lambda is where beta_T is least."""
    gamma = theory.discount(FLIP)
    least = theory.narrowest_lam(FLIP, gamma=gamma, delta=0.01)
    assert theory.tracking_lam(FLIP, gamma=gamma, delta=0.01) == least

    def width(lam):
        return played_beta(DOMD.from_theory(FLIP, sharp=True, regularization=lam, discount=gamma))

    assert width(least) < min(width(0.97 * least), width(1.03 * least))


@pytest.mark.parametrize("objective", ["bound", "tracking"])
def test_both_objectives_cope_with_every_family(objective):
    for family in FAMILIES:
        problem = Circle(dim=3, radius=0.7, horizon=400, family=family).problem
        policy = DOMD.from_theory(problem, sharp=True, objective=objective)
        assert policy.regularization > theory.lam_floor(problem)
        assert math.isfinite(played_beta(policy))


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="sharp=True"):
        DOMD.from_theory(DRIFT, objective="bound")
    with pytest.raises(ValueError, match="bound, tracking, got 'bond'"):
        DOMD.from_theory(DRIFT, sharp=True, objective="bond")
    with pytest.raises(ValueError, match="regularization above"):
        DOMD.from_theory(DRIFT, sharp=True, regularization=0.9)
    with pytest.raises(ValueError, match="raise it"):
        DOMD.from_theory(DRIFT, sharp=True, regularization=1.0001)


def test_the_others_are_as_they_were():
    paper = DOMD.from_theory(DRIFT)
    assert (paper.regularization, paper.sharp) == (theory.lam(DRIFT), False)
    radius = theory.domd_radius(
        DRIFT, gamma=paper.discount, lam=paper.regularization, eta=2.0, delta=0.01
    )
    assert played_beta(paper) == theory.beta(radius, 5000.0)
    assert GLBOMD.from_theory(DRIFT, sharp=True).regularization == theory.glb_omd_lam(
        DRIFT, sharp=True
    )
    assert Greedy.from_theory(DRIFT, sharp=True, objective="tracking").bonus == 0.0
    again = DOMD.from_dict(DOMD.from_theory(DRIFT, sharp=True).to_dict())
    assert again == DOMD.from_theory(DRIFT, sharp=True)


def test_rewards_give_a_part_of_the_curvature():
    """lambda is what is left, at constants of which no two are equal."""
    slow = replace(ODD, change_points=None, path_length=0.001, horizon=20_000)
    known = {"gamma": 0.93, "delta": 0.03}
    rewards = math.sqrt(k * c) / (ODD.dim * g * 0.07)
    left = theory.tracking_curvature(slow) - rewards
    assert left > 1.2 * theory.narrowest_lam(slow, **known)
    assert theory.tracking_lam(slow, **known) == close(left)


def test_tracking_error_at_odd_constants():
    drift, h, T = replace(ODD, change_points=None), 11.0, ODD.horizon
    eta, w = 1 + M * S, math.sqrt(k * c)
    tau = ODD.dim * g * h / (eta * w)
    noise, start = ODD.dim * eta / (2 * h), S**2 * tau / (2 * T)
    lag = (ODD.path_length * ODD.context_norm / T * tau) ** 2
    assert theory.tracking_error(drift, h) == close(noise + lag + start)
    assert theory.tracking_error(ODD, h) == close(noise + (4 * ODD.change_points + 1) * start)


def test_the_narrowest_radius_may_be_close_to_the_floor():
    wide = Circle(radius=3.0).problem
    gamma = theory.discount(wide)
    least = theory.narrowest_lam(wide, gamma=gamma, delta=0.01)
    assert 1.1 < least / theory.lam_floor(wide) < 2.0

    def width(lam):
        return played_beta(DOMD.from_theory(wide, sharp=True, regularization=lam, discount=gamma))

    assert width(least) < min(width(0.97 * least), width(1.03 * least))


def test_the_least_bound_never_forgets_faster_than_it_has_to():
    still = replace(DRIFT, path_length=0.0)
    assert theory.least_bound(still, delta=0.01).gamma == close(1 - 1 / 5000, abs=1e-9)
