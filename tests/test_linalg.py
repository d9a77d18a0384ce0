"""Kernels of linear algebra against NumPy and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from driftbandit.linalg import (
    add_outer,
    factor,
    inverse_norm,
    project_ball,
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


@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0.05, 5), st.floats(1.0001, 50))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_projection_meets_its_optimality_conditions(d, seed, S, stretch):
    """v is optimal iff A (zeta - v) = nu v with nu >= 0 and ||v|| = S."""
    A, zeta = spd(d, seed), np.random.default_rng(seed + 1).standard_normal(d)
    zeta *= stretch * S / np.linalg.norm(zeta)
    v = project_ball(A, zeta, S)
    assert np.linalg.norm(v) <= S
    assert np.linalg.norm(v) == pytest.approx(S, rel=1e-12)
    pull = A @ (zeta - v)
    nu = pull @ v / S**2
    assert nu >= 0
    np.testing.assert_allclose(pull, nu * v, atol=1e-9 * np.linalg.norm(A) * np.linalg.norm(zeta))


def test_projection_agrees_with_scipy_and_differs_from_rescaling():
    A = np.diag([1.0, 25.0, 4.0]) + 0.5
    zeta, S = np.array([2.0, 1.0, -1.5]), 1.0
    v = project_ball(A, zeta, S)
    best = minimize(
        lambda w: (w - zeta) @ A @ (w - zeta),
        S * zeta / np.linalg.norm(zeta),
        jac=lambda w: 2 * A @ (w - zeta),
        constraints={"type": "ineq", "fun": lambda w: S**2 - w @ w, "jac": lambda w: -2 * w},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    np.testing.assert_allclose(v, best.x, atol=1e-6)
    assert np.linalg.norm(v - S * zeta / np.linalg.norm(zeta)) > 0.05


def test_projection_leaves_the_ball_alone_and_is_idempotent():
    A, inside = spd(4, 5), np.full(4, 0.1)
    np.testing.assert_array_equal(project_ball(A, inside, 1.0), inside)
    v = project_ball(A, 40 * inside, 1.0)
    np.testing.assert_allclose(project_ball(A, v, 1.0), v, rtol=0, atol=1e-15)
