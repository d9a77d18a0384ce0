"""The C yardstick plays exactly what the library plays."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from driftbandit import DOMD, Bandit, Problem

ROOT = Path(__file__).parents[2]


@pytest.fixture
def yardstick(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module("benchmarks.yardstick")
    if module.compiler() is None:
        pytest.skip("no C compiler")
    return module


@pytest.mark.parametrize("radius", [0.4, 1.0, 3.0])  # 0.4: most steps end outside the ball
@pytest.mark.parametrize("dim", [1, 5, 11])  # lengths differ: rounding decides ties
def test_one_learner(yardstick, radius, dim):
    rng = np.random.default_rng(dim)
    policy = DOMD(problem=Problem(dim=dim, radius=radius))
    ours, theirs = Bandit(policy), yardstick.Yardstick(policy)
    theta = rng.standard_normal(dim)
    for _ in range(2000):
        arms = rng.standard_normal((7, dim))
        arms *= rng.random((7, 1)) / np.linalg.norm(arms, axis=1, keepdims=True)
        arm = ours.choose(arms)
        assert theirs.choose(arms) == arm
        r = float(rng.random() < 1 / (1 + np.exp(-5 * arms[arm] @ theta)))
        ours.update(arms[arm], r)
        theirs.update(arms[arm], r)
    np.testing.assert_allclose(theirs.theta, ours.theta, rtol=0, atol=1e-10)
    np.testing.assert_allclose(theirs.H, ours.curvature, rtol=1e-10)


def test_many_learners(yardstick):
    rng, rows = np.random.default_rng(0), np.arange(50)
    policy = DOMD(problem=Problem(dim=3))
    fleet, memory = yardstick.YardstickFleet(policy, 50), policy.init(50)
    for _ in range(100):
        arms = rng.uniform(-0.5, 0.5, (50, 13, 3))
        choice = fleet.choose(arms)
        np.testing.assert_array_equal(choice, policy.choose(memory, arms))
        x, r = arms[rows, choice], rng.integers(0, 2, 50).astype(float)
        fleet.update(x, r)
        memory = policy.update(memory, x, r)
    np.testing.assert_allclose(fleet.theta, memory.theta, rtol=0, atol=1e-10)
