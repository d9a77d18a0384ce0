"""The best arms against a plain scan: bounds may save work and never change an answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit import DOMD, ArmSet, Bandit, LinUCB, Problem, Uniform
from driftbandit.linalg import LOOPS_BELOW, factor, whiten
from driftbandit.ranking import (
    BLOCK,
    FUSED,
    Index,
    best_row,
    best_rows,
    reach_of,
    row_norms,
    size_of_rows,
    value,
)

SHAPES = [(1, 1), (3, 2), (3, 33), (5, 30), (5, 1500), (40, 5), (40, 1200)]
FEW = [*SHAPES[:4], (5, 2 * BLOCK + 3), (FUSED - 1, 30), (FUSED, 30), (31, 33)]


def made(d, n, seed, *, lam=0.5, rounds=60, width=0.7, spread=1.0):
    """An index as after some rounds, its H, and arms of all lengths, some of them equal."""
    rng = np.random.default_rng(seed)
    played = rng.standard_normal((rounds, d)) * spread ** np.arange(d)
    H = lam * np.eye(d)
    for x in played / np.linalg.norm(played, axis=1, keepdims=True):
        H += 0.2 * np.outer(x, x)
    F, W, theta = np.zeros((d, d)), np.zeros((d, d)), rng.standard_normal(d) / np.sqrt(d)
    factor(H, F)
    if d < LOOPS_BELOW:
        whiten(F, W)
    X = rng.standard_normal((n, d)) * spread ** np.arange(d)
    X[rng.integers(n, size=n // 3)] = X[rng.integers(n, size=n // 3)]
    return Index(theta, F, W, width, reach_of(width, H, lam, rounds)), H, X


def plain(index, X):
    """Indices by value, best first, ties to the lowest: every arm valued, nothing bounded."""
    y = np.empty(X.shape[1])
    return np.argsort([-value(index, x, y) for x in X], kind="stable")


@pytest.mark.kernel
@pytest.mark.parametrize("d", [1, 3, 31, 32, 40])
def test_value_is_the_definition(d):
    index, H, X = made(d, 9, d)
    norms = np.sqrt(np.einsum("ad,da->a", X, np.linalg.solve(H, X.T)))
    found = [value(index, x, np.empty(d)) for x in X]
    np.testing.assert_allclose(found, X @ index.theta + 0.7 * norms, rtol=1e-12, atol=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("spread", [1.0, 0.8])
@pytest.mark.parametrize("d", [1, 5, 40])
def test_no_value_exceeds_its_bound(d, spread, lam):
    index, _, X = made(d, 50, 3, lam=lam, spread=spread)
    bounds = X @ index.theta + index.reach * np.linalg.norm(X, axis=1)
    assert all(value(index, x, np.empty(d)) <= b for x, b in zip(X, bounds * (1 + 1e-14) + 1e-300))


@pytest.mark.kernel
@pytest.mark.parametrize("width", [0.0, 0.7, 5.0])
@pytest.mark.parametrize(("d", "n"), FEW)
def test_best_row_is_the_plain_scans(d, n, width):
    for seed in range(10):
        index, _, X = made(d, n, seed, width=width)
        scratch = np.empty(d), np.full(BLOCK, np.nan)
        assert best_row(size_of_rows(d), index, X, np.inf, *scratch) == plain(index, X)[0]


@pytest.mark.kernel
@pytest.mark.parametrize("d", [2, FUSED])
def test_best_row_breaks_ties_downwards_and_refuses_long_rows(d):
    size, index, y, v = size_of_rows(d), made(d, 6, 0)[0], np.empty(d), np.empty(BLOCK)
    X = np.zeros((6, d))
    X[:, :2] = 1.0
    assert best_row(size, index, X, np.inf, y, v) == 0
    assert best_row(size, index, X, 1.4, y, v) == -1
    X[4, 1] = np.nan
    assert best_row(size, index, X, np.inf, y, v) == -1


@pytest.mark.parametrize("width", [0.0, 0.7, 5.0])
@pytest.mark.parametrize("lam", [0.01, 50.0])
@pytest.mark.parametrize("spread", [1.0, 0.8])
@pytest.mark.parametrize(("d", "n"), SHAPES)
def test_best_rows_are_the_plain_scans(d, n, spread, lam, width):
    """Also where the bound of lambda is useless and eigenvectors come in."""
    index, H, X = made(d, n, 11, lam=lam, spread=spread, width=width)
    expected, norm, y = plain(index, X), row_norms(X), np.empty(d)
    for k in {1, min(2, n), min(10, n), n}:
        np.testing.assert_array_equal(best_rows(index, H, X, norm, k, y), expected[:k])


@given(seed=st.integers(0, 10**6), lam=st.floats(1e-3, 1e3), width=st.floats(0, 10))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_best_rows_of_any_memory(seed, lam, width):
    index, H, X = made(4, 1100, seed, lam=lam, width=width, rounds=seed % 500 + 1)
    X[seed % 1100 :] = X[: 1100 - seed % 1100]  # ties in bulk
    found = best_rows(index, H, X, row_norms(X), 7, np.empty(4))
    np.testing.assert_array_equal(found, plain(index, X)[:7])


def taught(policy, rounds=200):
    bandit, rng = Bandit(policy, seed=4), np.random.default_rng(0)
    for _ in range(rounds):
        x = rng.standard_normal(policy.problem.dim)
        bandit.update(x / np.linalg.norm(x), int(rng.random() < 0.6))
    return bandit


def catalogue(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * rng.random((n, 1))


@pytest.mark.parametrize("n", [3, 999, 1000, 4000])
@pytest.mark.parametrize("d", [4, 40])
def test_arrays_and_armsets_of_any_size_agree_with_scores(d, n):
    bandit, X = taught(DOMD(problem=Problem(dim=d))), catalogue(n, d)
    order = np.argsort(-bandit.scores(X).upper, kind="stable")
    assert bandit.choose(X) == bandit.choose(ArmSet(X)) == order[0]
    np.testing.assert_array_equal(bandit.choose(X, k=3), order[:3])
    np.testing.assert_array_equal(bandit.choose(ArmSet(X), k=3), order[:3])
    np.testing.assert_array_equal(np.sort(bandit.choose(X, k=n)), np.arange(n))


RIVALS = [
    LinUCB.from_theory(Problem(dim=4, radius=1.0)),
    DOMD(problem=Problem(dim=4), exploration="thompson"),
    Uniform(problem=Problem(dim=4)),
]


@pytest.mark.parametrize("policy", RIVALS, ids=lambda p: repr(p)[:40])
def test_slates_of_every_policy_start_with_its_choice(policy):
    X = catalogue(12, 4)
    one, many, whole = (taught(policy, 20) for _ in range(3))
    slate = many.choose(X, k=5)
    assert slate[0] == one.choose(X)
    assert len(set(slate.tolist())) == 5
    assert sorted(whole.choose(ArmSet(X), k=12).tolist()) == list(range(12))


def test_slates_of_an_index_are_sorted_by_its_scores():
    bandit, X = taught(RIVALS[0], 20), catalogue(12, 4)
    order = np.argsort(-bandit.scores(X).upper, kind="stable")
    np.testing.assert_array_equal(bandit.choose(X, k=6), order[:6])


@pytest.mark.parametrize("k", [0, -1, 13, 1.5, "2", True, np.nan])
@pytest.mark.parametrize(
    "policy", [DOMD(problem=Problem(dim=4)), RIVALS[0]], ids=["DOMD", "LinUCB"]
)
def test_impossible_slates_are_refused(policy, k):
    with pytest.raises(ValueError, match="k must be"):
        Bandit(policy).choose(catalogue(12, 4), k=k)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([[0.1, np.nan]], "arm 0 holds NaN"),
        ([[0.1, 0.2], [np.inf, 0.0]], "arm 1 holds NaN"),
        ([], "shape"),
        ([[], []], "shape"),
        ([0.1, 0.2], "shape"),
        ([["a", "b"]], "real numbers"),
        ([[1j, 0]], "real numbers"),
        ([[0.1], [0.2, 0.3]], "real numbers"),
        (None, "real numbers"),
    ],
)
def test_armset_takes_only_arms(arms, message):
    with pytest.raises(ValueError, match=message):
        ArmSet(arms)


def test_armset_is_a_copy_that_nobody_can_change():
    X = catalogue(5, 3)
    arms = ArmSet(X)
    X[0] = 9.0
    assert arms[0].max() < 1.0
    np.testing.assert_allclose(arms.norms, np.linalg.norm(np.asarray(arms), axis=1))
    for array in (arms.array, arms.norms, arms[1], np.asarray(arms)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    with pytest.raises(AttributeError):
        arms.array = X


@pytest.mark.parametrize("policy", [DOMD(problem=Problem(dim=3)), Uniform(problem=Problem(dim=3))])
def test_armset_must_fit_the_problem(policy):
    with pytest.raises(ValueError, match="dim=3"):
        Bandit(policy).choose(ArmSet(catalogue(5, 4)))
    with pytest.raises(ValueError, match="context 0 has norm 5"):
        Bandit(policy).choose(ArmSet([[3.0, 4.0, 0.0]]))
