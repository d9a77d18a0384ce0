"""Kernels of linear algebra against NumPy and SciPy."""

import numpy as np
import pytest

from driftbandit import Problem
from driftbandit.core.domd import add_outer
from driftbandit.core.high_dim import LOOPS_BELOW
from driftbandit.core.linalg import EPS, factor, inverse, inverse_norm, measure, solve

pytestmark = pytest.mark.kernel

DIMS = [1, 2, 5, 31, 32, 50]


def spd(d, seed, floor=0.1):
    X = np.random.default_rng(seed).standard_normal((d + 2, d))
    return floor * np.eye(d) + X.T @ X


def flag(d):
    return None if d < LOOPS_BELOW else 1


def factored(A):
    F = np.full_like(A, np.nan)
    factor(A, F, flag(len(A)))
    return F


@pytest.mark.parametrize("d", DIMS)
def test_factor_is_L_D_L(d):
    A = spd(d, 0)
    F = factored(A)
    U, D = np.triu(F, 1) + np.eye(d), np.diag(np.diag(F) ** -2.0)
    np.testing.assert_allclose(U.T @ D @ U, A, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", DIMS)
def test_solve_and_norm_are_numpys(d):
    A, b = spd(d, 1), np.random.default_rng(2).standard_normal(d)
    u, y = np.empty(d), np.empty(d)
    solve(factored(A), b, u, flag(d))
    np.testing.assert_allclose(u, np.linalg.solve(A, b), rtol=1e-8, atol=1e-12)
    assert inverse_norm(factored(A), b, y, flag(d)) == pytest.approx(
        np.sqrt(b @ np.linalg.solve(A, b))
    )


@pytest.mark.parametrize("d", DIMS)
def test_inverse_is_numpys_and_symmetric(d):
    A, P = spd(d, 3), np.empty((d, d))
    inverse(A, P, np.empty(d))
    np.testing.assert_allclose(P, np.linalg.inv(A), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(P, P.T)


@pytest.mark.parametrize("d", DIMS)
def test_adding_an_outer_product_keeps_a_matrix_symmetric(d):
    A, x = spd(d, 6), np.random.default_rng(7).standard_normal(d)
    A = (A + A.T) / 2
    B = A.copy()
    add_outer(B, 0.7, x)
    np.testing.assert_array_equal(B, B.T)
    np.testing.assert_allclose(B, A + 0.7 * np.outer(x, x), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("d", DIMS)
def test_what_rounding_has_made_nearly_singular_still_factors(d):
    """A pivot without a digit counts as eps of its diagonal entry: never NaN."""
    x = np.random.default_rng(8).standard_normal(d)
    for floor in (1e-9, 1e-11, 1e-13):
        A, u, P = np.outer(x, x) + floor * np.eye(d), np.empty(d), np.empty((d, d))
        solve(factored(A), x, u, flag(d))
        inverse(A, P, np.empty(d))
        assert np.isfinite(u).all()
        assert np.isfinite(P).all()


def test_kernels_and_numpy_measure_a_context_alike():
    """To the last bit, so that nobody accepts what another refuses."""
    rng = np.random.default_rng(9)
    for d in (1, 2, 3, 5, 17, 64):
        problem = Problem(dim=d)
        X = rng.standard_normal((500, d))
        X *= np.sqrt(problem.limit) / np.linalg.norm(X, axis=1, keepdims=True)
        X *= 1.0 + EPS * rng.integers(-4, 5, size=(500, 1))
        good = np.array([measure(x, 0, x)[1] <= problem.limit for x in X])
        assert 0 < good.sum() < 500 or d == 1
        assert [problem.first_bad(x[None]) == -1 for x in X] == good.tolist()
