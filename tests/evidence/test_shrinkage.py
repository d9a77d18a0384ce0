"""Doubly robust values with smaller weights: against a slow reference, and what SLOPE makes of
them where the truth is known."""

import math

import numpy as np
import pytest

from driftbandit.estimators import ope, shrinkage
from driftbandit.estimators.increments import LoggedArms
from driftbandit.estimators.overlap import overlap

K = 4


def log(seed, n=400, rare=0.02, model=0.0):
    """A log whose candidate plays an arm that is hardly ever logged in one row of ten; the model is
    right but for `model`, in rows that are hardly ever logged."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.1
    h = np.where(hard[:, None], [rare, 1.0 - 3.0 * rare, rare, rare], 1.0 / K)
    truth = np.where(hard[:, None], [0.6, 0.2, 0.2, 0.2], [0.5, 0.3, 0.3, 0.3])
    A = (rng.random((n, 1)) > np.cumsum(h, axis=1)).sum(axis=1).clip(0, K - 1)
    R = (rng.random(n) < truth[np.arange(n), A]).astype(float)
    q = np.clip(truth + model * hard[:, None] + rng.normal(0.0, 0.02, (n, K)), 0.01, 0.99)
    pi = np.eye(K)[np.zeros(n, dtype=np.int64)]
    start = np.arange(0, n * K, K)
    return LoggedArms(start, start + A, h.ravel()), pi.ravel(), q.ravel(), R, 0.9 * 0.5 + 0.1 * 0.6


def estimated(arms, pi, q, R):
    seen = overlap(arms, pi, q, R, 20.0)
    found = ope.estimates(ope.sums(arms, pi, q, R, 20.0).sum(axis=0), seen, 0.95, 20.0)
    total = shrinkage.sums(arms, pi, q, R).sum(axis=0)
    return found | shrinkage.estimates(total, seen, found["dr"], found["dm"].value)


@pytest.mark.parametrize("seed", range(3))
def test_every_strength_equals_a_slow_reference(seed):
    arms, pi, q, R, _ = log(seed, n=60)
    total = shrinkage.sums(arms, pi, q, R).sum(axis=0)
    for name, path in shrinkage.paths(total, 60.0):
        for s, (value, variance) in zip(shrinkage.STRENGTHS, path):
            rows = []
            for t in range(60):
                a, h, p, m = (
                    arms.chosen[t] - K * t,
                    *(x[K * t : K * t + K] for x in (arms.h, pi, q)),
                )
                w = p[a] / h[a]
                if name == "dr switch":
                    w = w if w <= s else 0.0
                elif s == 0.0:
                    w = 0.0
                elif math.isfinite(s):
                    w = s * s * w / (w * w + s * s)
                rows.append(sum(x * y for x, y in zip(p, m)) + w * (R[t] - m[a]))
            assert value == pytest.approx(np.mean(rows), rel=1e-12)
            assert variance == pytest.approx(np.var(rows, ddof=1) / 60, rel=1e-9)


def test_the_ends_of_both_families_are_dr_and_dm():
    arms, pi, q, R, _ = log(1)
    found = estimated(arms, pi, q, R)
    for _, path in shrinkage.paths(shrinkage.sums(arms, pi, q, R).sum(axis=0), float(len(R))):
        assert path[0][0] == pytest.approx(found["dr"].value, rel=1e-12)
        assert path[-1][0] == pytest.approx(found["dm"].value, rel=1e-12)


def test_slope_goes_on_while_all_intervals_meet():
    assert shrinkage.slope([(0.5, 0.2), (0.4, 0.1), (0.3, 0.05)]) == 0.3
    assert shrinkage.slope([(0.5, 0.05), (0.45, 0.04), (0.1, 0.01)]) == 0.45  # the last is biased
    assert shrinkage.slope([(0.5, 0.05), (0.8, 0.01), (0.5, 0.001)]) == 0.5  # never past a break
    assert shrinkage.slope([(0.5, 0.1), (0.212, 0.1)]) == 0.212
    assert shrinkage.slope([(0.5, 0.1), (0.20, 0.1)]) == 0.5  # 2 (sqrt(6) - 1) deviations


def test_the_value_stays_inside_the_interval_of_dr():
    for seed in range(20):
        found = estimated(*log(seed, n=80, model=0.4)[:-1])
        for name in shrinkage.FAMILIES:
            assert found["dr"].low <= found[name].value <= found["dr"].high
            assert found[name][1:] == found["dr"][1:]


def rmse(name, model, logs=60, **options):
    errors = []
    for seed in range(logs):
        *given, truth = log(seed, model=model, **options)
        errors.append(estimated(*given)[name].value - truth)
    return math.sqrt(np.mean(np.square(errors)))


@pytest.mark.parametrize("name", shrinkage.FAMILIES)
def test_errors_are_smaller_where_the_model_is_right_and_not_much_larger_where_it_is_wrong(name):
    assert rmse(name, 0.0) < 0.2 * rmse("dr", 0.0)
    wrong = {"model": 0.4, "logs": 20, "n": 20_000, "rare": 0.05}
    dr = rmse("dr", **wrong)
    assert rmse("dm", **wrong) > 3.0 * dr
    assert rmse(name, **wrong) < 2.5 * dr
