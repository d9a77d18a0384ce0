"""Projections on the ball: optimality conditions, SciPy, and the two ways to get there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from driftbandit.core.linalg import factor, solve
from driftbandit.core.projection import project, project_by_solves

pytestmark = pytest.mark.kernel


def spd(d, seed, floor=0.1):
    X = np.random.default_rng(seed).standard_normal((d + 2, d))
    return floor * np.eye(d) + X.T @ X


def projected(A, zeta, S, w=0.0, x=None, c=1.0):
    """argmin (v - zeta)' (c A + w x x') (v - zeta) over ||v|| <= S, by factorisations."""
    v, x = np.array(zeta), np.zeros(len(zeta)) if x is None else x
    if v @ v > S * S:
        project(c, A, w, x, v, S, None if len(v) < 32 else 1)
    return v


@given(st.integers(1, 6), st.integers(0, 10**6), st.floats(0.05, 5), st.floats(1.0001, 50))
@settings(derandomize=True, deadline=None, max_examples=150)
def test_projection_meets_its_optimality_conditions(d, seed, S, stretch):
    """v is optimal iff A (zeta - v) = nu v with nu >= 0 and ||v|| = S."""
    A, zeta = spd(d, seed), np.random.default_rng(seed + 1).standard_normal(d)
    zeta *= stretch * S / np.linalg.norm(zeta)
    v = projected(A, zeta, S)
    assert np.linalg.norm(v) <= S
    assert np.linalg.norm(v) == pytest.approx(S, rel=1e-12)
    pull = A @ (zeta - v)
    nu = pull @ v / S**2
    assert nu >= 0
    np.testing.assert_allclose(pull, nu * v, atol=1e-9 * np.linalg.norm(A) * np.linalg.norm(zeta))


def test_projection_agrees_with_scipy_and_differs_from_rescaling():
    A = np.diag([1.0, 25.0, 4.0]) + 0.5
    zeta, S = np.array([2.0, 1.0, -1.5]), 1.0
    v = projected(A, zeta, S)
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
    np.testing.assert_array_equal(projected(A, inside, 1.0), inside)
    v = projected(A, 40 * inside, 1.0)
    np.testing.assert_allclose(projected(A, v, 1.0), v, rtol=0, atol=1e-15)


def step_outside(d, seed, rounds, stretch, w=0.5):
    """A as after some rounds, its factor, the last context, A^-1 of it, and a point outside."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rounds, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    A, F, u = np.eye(d) + 0.25 * X.T @ X, np.zeros((d, d)), np.empty(d)
    A = (A + A.T) / 2
    flag = None if d < 32 else 1
    factor(A, F, flag)
    solve(F, X[-1], u, flag)
    zeta = rng.standard_normal(d)
    return A, F, w, X[-1], u, zeta * stretch / np.linalg.norm(zeta)


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("stretch", [1.0 + 1e-9, 1.2, 3.0, 100.0])
@pytest.mark.parametrize("rounds", [1, 300])
@pytest.mark.parametrize("d", [32, 37, 64])
def test_solves_find_the_same_point_as_factorisations(d, rounds, stretch, inverted):
    """By the factor of A, or by its inverse in the scale c."""
    A, F, w, x, u, v = step_outside(d, 1, rounds, stretch)
    expected, c = projected(A, v, 1.0, w, x), 0.8 if inverted else 1.0
    B = c * np.linalg.inv(A) if inverted else F
    before = B.copy()
    assert project_by_solves(B, c, inverted, w, x, u, v, 1.0)
    np.testing.assert_allclose(v, expected, rtol=0, atol=1e-12)
    assert np.linalg.norm(v) <= 1.0
    np.testing.assert_array_equal(B, before)


def test_the_scale_is_part_of_the_norm():
    A, _, w, x, _, v = step_outside(5, 2, 40, 1.5)
    expected = projected(0.7 * A + w * np.outer(x, x), v, 1.0)
    np.testing.assert_allclose(projected(A, v, 1.0, w, x, c=0.7), expected, atol=1e-13)


def test_where_solves_do_not_get_there_factorisations_do():
    """Eigenvalues over ten decades, and a point that has a share of all of them."""
    d, rng = 200, np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = (Q * np.logspace(-5, 5, d)) @ Q.T
    A, F, x, u = (A + A.T) / 2, np.zeros((d, d)), Q[:, 0].copy(), np.empty(d)
    factor(A, F, 1)
    solve(F, x, u, 1)
    zeta = 30.0 * Q @ np.ones(d) / np.sqrt(d)
    assert not project_by_solves(F, 1.0, False, 0.5, x, u, zeta.copy(), 1.0)
    v = projected(A, zeta, 1.0, 0.5, x)
    pull = (A + 0.5 * np.outer(x, x)) @ (zeta - v)
    np.testing.assert_allclose(pull, (pull @ v) * v, atol=1e-9 * np.abs(pull).max())
