"""The best arms against a plain scan: bounds may save work and never change an answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandit import DOMD, ArmSet, Bandit, LinUCB, Problem, Uniform
from driftbandit.core.domd import rank
from driftbandit.core.linalg import factor, inverse_norm

SHAPES = [(1, 1), (3, 2), (3, 33), (5, 30), (5, 1500), (31, 33), (40, 5), (40, 1200)]


def made(d, n, seed, *, lam=0.5, rounds=60, width=0.7, spread=1.0):
    """A recipe, a row as after some rounds, and arms of all lengths, some of them equal."""
    rng = np.random.default_rng(seed)
    played = rng.standard_normal((rounds, d)) * spread ** np.arange(d)
    H = lam * np.eye(d)
    for x in played / np.linalg.norm(played, axis=1, keepdims=True):
        H += 0.2 * np.outer(x, x)
    policy = DOMD(
        problem=Problem(dim=d, context_norm=99.0), regularization=lam / 99**2, bonus=width
    )
    memory = policy.init(1)
    memory.H[0], memory.theta[0] = H, rng.standard_normal(d) / np.sqrt(d)
    X = rng.standard_normal((n, d)) * spread ** np.arange(d)
    X[rng.integers(n, size=n // 3)] = X[rng.integers(n, size=n // 3)]
    return policy.recipe, memory, X


def flag(d):
    return None if d < 32 else 1


def values(memory, X, width):
    """Every arm valued, nothing bounded."""
    d = X.shape[1]
    F, y = np.zeros((d, d)), np.empty(d)
    factor(memory.H[0], F, flag(d))
    means = [sum((x * t for x, t in zip(row, memory.theta[0])), 0.0) for row in X]
    return [m + width * inverse_norm(F, x, y, flag(d)) for m, x in zip(means, X)]


def best(q, memory, X, k=1):
    out = np.empty(k, dtype=np.int64)
    assert ranked(q, memory, X, out) == out[0]
    return out


def ranked(q, memory, X, out):
    return rank(q, memory.rows[0], X, np.empty(0), out, flag(X.shape[1]))


@pytest.mark.kernel
@pytest.mark.parametrize("d", [1, 3, 31, 32, 40])
def test_value_is_the_definition(d):
    _, memory, X = made(d, 9, d)
    H, theta = memory.H[0], memory.theta[0]
    norms = np.sqrt(np.einsum("ad,da->a", X, np.linalg.solve(H, X.T)))
    np.testing.assert_allclose(values(memory, X, 0.7), X @ theta + 0.7 * norms, rtol=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("width", [0.0, 0.7, 5.0])
@pytest.mark.parametrize("lam", [0.01, 50.0])
@pytest.mark.parametrize("spread", [1.0, 0.8])
@pytest.mark.parametrize(("d", "n"), SHAPES)
def test_the_best_are_the_plain_scans(d, n, spread, lam, width):
    """Bounds may save work and never change an answer."""
    q, memory, X = made(d, n, 11, lam=lam, spread=spread, width=width)
    expected = np.argsort(-np.array(values(memory, X, width)), kind="stable")
    for k in {1, min(2, n), min(10, n), n}:
        np.testing.assert_array_equal(best(q, memory, X, k), expected[:k])


@given(seed=st.integers(0, 10**6), lam=st.floats(1e-3, 1e3), width=st.floats(0, 10))
@settings(derandomize=True, deadline=None, max_examples=60)
def test_the_best_of_any_memory(seed, lam, width):
    q, memory, X = made(4, 1100, seed, lam=lam, width=width, rounds=seed % 500 + 1)
    X[seed % 1100 :] = X[: 1100 - seed % 1100]  # ties in bulk
    expected = np.argsort(-np.array(values(memory, X, width)), kind="stable")
    np.testing.assert_array_equal(best(q, memory, X, 7), expected[:7])


@pytest.mark.kernel
@pytest.mark.parametrize("d", [2, 40])
def test_ties_go_downwards_and_long_rows_are_refused(d):
    q, memory, _ = made(d, 6, 0)
    X, out = np.zeros((6, d)), np.empty(1, dtype=np.int64)
    X[:, :2] = 1.0
    assert best(q, memory, X)[0] == 0
    for odd in (99.0, np.nan, np.inf):
        X[4, 1] = odd
        assert ranked(q, memory, X, out) == -1


@pytest.mark.parametrize("dim", [3, 40])
def test_the_floor_is_below_every_eigenvalue(dim):
    """What bounds rest on, through forgetting, ageing and rewards."""
    policy, rng = DOMD(problem=Problem(dim=dim), half_life=30), np.random.default_rng(2)
    bandit = Bandit(policy)
    for t in range(400):
        x = rng.standard_normal(dim)
        bandit.update(x / np.linalg.norm(x), t % 2)
        if t % 90 == 89:
            bandit.forget(20)
        least = np.linalg.eigvalsh(bandit.curvature)[0]
        assert policy.regularization * (1 - 1e-12) <= bandit.memory.floor[0] <= least * (1 + 1e-9)
    assert dim > 3 or bandit.memory.floor[0] > 1.05 * policy.regularization


def trained(policy, rounds=200):
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
    bandit, X = trained(DOMD(problem=Problem(dim=d))), catalogue(n, d)
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
    one, many, whole = (trained(policy, 20) for _ in range(3))
    slate = many.choose(X, k=5)
    assert slate[0] == one.choose(X)
    assert len(set(slate.tolist())) == 5
    assert sorted(whole.choose(ArmSet(X), k=12).tolist()) == list(range(12))


def test_slates_of_an_index_are_sorted_by_its_scores():
    bandit, X = trained(RIVALS[0], 20), catalogue(12, 4)
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
    for array in (arms.array, arms[1], np.asarray(arms)):
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
