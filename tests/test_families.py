"""Families against finite differences, SciPy's distributions and their own claims."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from driftbandit import Bernoulli, Binomial, Gaussian, Poisson

FAMILIES = [Bernoulli(), Binomial(5), Gaussian(0.5, 4.0), Poisson(40)]
Z = np.linspace(-6, 6, 49)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_each_derivative_is_the_slope_of_the_one_before(family):
    h = 1e-5
    for f, df in ((family.m, family.mu), (family.mu, family.dmu), (family.dmu, family.d2mu)):
        slope = (f(Z + h) - f(Z - h)) / (2 * h)
        np.testing.assert_allclose(df(Z), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_mean_and_variance_are_those_of_scipys_distribution(family):
    z = np.linspace(-2, 2, 9)
    twin = {
        Bernoulli: lambda: stats.bernoulli(special.expit(z)),
        Binomial: lambda: stats.binom(5, special.expit(z)),
        Gaussian: lambda: stats.norm(z, np.sqrt(0.5)),
        Poisson: lambda: stats.poisson(np.exp(z)),
    }[type(family)]()
    np.testing.assert_allclose(family.mu(z), twin.mean(), rtol=1e-12)
    np.testing.assert_allclose(family.g * family.dmu(z), twin.var(), rtol=1e-12)


@pytest.mark.parametrize("z", [-800.0, -40.0, 40.0, 800.0])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_everything_is_finite_far_out(family, z):
    values = [family.m(z), family.mu(z), family.dmu(z), family.d2mu(z)]
    assert np.isfinite(values).all()
    assert family.dmu(z) >= 0


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_scalars_arrays_and_pairs_are_the_same_numbers(family):
    z = np.array([[-800.0, -40.0, -1.5, 0.0], [0.5, 3.0, 40.0, 800.0]])
    for f in (family.m, family.mu, family.dmu, family.d2mu):
        assert f(z).shape == z.shape
        assert all(type(f(one)) is np.float64 for one in (0, 0.5, z[0, 0]))
        np.testing.assert_allclose(f(z), [[f(one) for one in row] for row in z], rtol=1e-15)
    mean, slope = family.mu_dmu(z)
    np.testing.assert_allclose(mean, family.mu(z), rtol=1e-15)
    np.testing.assert_allclose(slope, family.dmu(z), rtol=1e-15)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_mean_never_shares_memory_with_its_argument(family):
    assert not np.may_share_memory(family.mu(Z), Z)


def test_far_out_the_logistic_is_at_its_limit_and_the_log_link_saturates():
    far = np.array([-800.0, 800.0])
    np.testing.assert_array_equal(Bernoulli().mu(far), [0.0, 1.0])
    np.testing.assert_array_equal(Bernoulli().dmu(far), [0.0, 0.0])
    np.testing.assert_array_equal(Bernoulli().m(far), [0.0, 800.0])
    np.testing.assert_array_equal(Poisson(9).mu(far), [0.0, np.exp(709.0)])


def test_poisson_without_a_bound_says_what_to_pass():
    with pytest.raises(ValueError, match=r"Poisson needs bound, .*: Poisson\(bound=50\)"):
        Poisson()
    assert Poisson(bound=50) == Poisson(50)


@pytest.mark.parametrize(
    ("family", "possible", "impossible"),
    [
        (Bernoulli(), [0, 1.0], [0.5, -1, 2]),
        (Binomial(5), [0, 5], [2.5, 6, -1]),
        (Gaussian(0.5, 4.0), [-4.0, 0.123, 4.0], [4.1, -5]),
        (Poisson(40), [0, 40], [0.1, 41, -1]),
    ],
    ids=repr,
)
def test_the_support_is_known(family, possible, impossible):
    assert all(family.contains(r) for r in possible)
    assert not any(family.contains(r) for r in [*impossible, np.nan, np.inf, -np.inf])


def test_logistic_tails_keep_their_digits():
    z = np.array([-700.0, -30.0, 30.0, 700.0])
    np.testing.assert_allclose(Bernoulli().mu(z), special.expit(z), rtol=1e-14)
    np.testing.assert_allclose(Bernoulli().m(z), -special.log_expit(-z), rtol=1e-14)
    np.testing.assert_allclose(Bernoulli().dmu(z), np.exp(-np.abs(z)), rtol=1e-12)


@pytest.mark.parametrize("S", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_k_and_c_are_the_extreme_slopes_on_the_interval(family, S):
    slopes = family.dmu(np.linspace(-S, S, 2001))
    assert family.k_mu(S) == pytest.approx(slopes.max(), rel=1e-12)
    assert family.c_mu(S) == pytest.approx(slopes.min(), rel=1e-12)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_self_concordance_constant_holds(family):
    assert (np.abs(family.d2mu(Z)) <= family.self_concordance * family.dmu(Z) + 1e-15).all()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@given(z=st.floats(-5, 3), u=st.floats(0, 1, exclude_max=True))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_draws_are_in_the_support(family, z, u):
    assert family.contains(float(family.draw(z, u)))


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_draws_are_quantiles(family):
    """Stratified uniforms give the mean to within their spacing."""
    u = (np.arange(20_000) + 0.5) / 20_000
    draws = family.draw(np.full(u.size, 0.7), u)
    assert draws.mean() == pytest.approx(family.mu(0.7), abs=2e-3)
    assert draws.var() == pytest.approx(family.g * family.dmu(0.7), rel=2e-2)


def test_binomial_with_one_trial_is_bernoulli():
    z, u = np.linspace(-2, 2, 101), np.linspace(0, 0.999, 101)
    np.testing.assert_allclose(Binomial(1).mu(z), Bernoulli().mu(z))
    np.testing.assert_array_equal(Binomial(1).draw(z, u), Bernoulli().draw(z, u))


def test_check_values_of_c_mu():
    found = [Bernoulli().c_mu(S) for S in (1.0, 3.0, 5.0)]
    np.testing.assert_allclose(found, [0.19661, 0.045177, 0.0066481], rtol=3e-5)
