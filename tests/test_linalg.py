"""Kernels of linear algebra against NumPy and SciPy."""

import numpy as np
import pytest

from driftbandit.linalg import (
    add_outer,
    factor,
    inverse_norm,
    solve,
    update_factor,
    whiten,
)

pytestmark = pytest.mark.kernel

DIMS = [1, 2, 5, 31, 32, 50]


def spd(d, seed, floor=0.1):
    X = np.random.default_rng(seed).standard_normal((d + 2, d))
    return floor * np.eye(d) + X.T @ X


def factored(A):
    F = np.full_like(A, np.nan)
    factor(A, F)
    return F


@pytest.mark.parametrize("d", DIMS)
def test_factor_is_L_D_L(d):
    A = spd(d, 0)
    F = factored(A)
    U, D = np.triu(F, 1) + np.eye(d), np.diag(1 / np.diag(F))
    np.testing.assert_allclose(U.T @ D @ U, A, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", DIMS)
def test_solve_and_norm_are_numpys(d):
    A, b = spd(d, 1), np.random.default_rng(2).standard_normal(d)
    u, y = np.empty(d), np.empty(d)
    solve(factored(A), b, u)
    np.testing.assert_allclose(u, np.linalg.solve(A, b), rtol=1e-8, atol=1e-12)
    assert inverse_norm(factored(A), b, y) == pytest.approx(np.sqrt(b @ np.linalg.solve(A, b)))


@pytest.mark.parametrize("d", DIMS)
def test_whitener_is_a_root_of_the_inverse(d):
    A, W = spd(d, 3), np.zeros((d, d))
    whiten(factored(A), W)
    np.testing.assert_allclose(W.T @ W, np.linalg.inv(A), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("w", [0.0, 1e-9, 0.3, 1e6])
@pytest.mark.parametrize("d", DIMS)
def test_updated_factor_is_the_factor_of_the_updated_matrix(d, w):
    A, x = spd(d, 4), np.random.default_rng(5).standard_normal(d)
    F, v = factored(A), np.empty(d)
    update_factor(F, w, x, v)
    fresh = factored(A + w * np.outer(x, x))
    np.testing.assert_allclose(np.triu(F), np.triu(fresh), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("d", DIMS)
def test_adding_an_outer_product_keeps_a_matrix_symmetric(d):
    A, x = spd(d, 6), np.random.default_rng(7).standard_normal(d)
    A = (A + A.T) / 2
    B = A.copy()
    add_outer(B, 0.7, x)
    np.testing.assert_array_equal(B, B.T)
    np.testing.assert_allclose(B, A + 0.7 * np.outer(x, x), rtol=1e-13, atol=1e-13)


def test_a_matrix_that_is_not_positive_definite_is_refused_by_lapack():
    with pytest.raises(np.linalg.LinAlgError):
        factored(-np.eye(40))
