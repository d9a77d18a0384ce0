"""Readings of what the papers leave open: each is an argument, and says exactly one thing."""

import math

import numpy as np
import pytest

from driftbandit import (
    BVDGLMUCB,
    DGLUCB,
    GLMUCB,
    MASTER,
    SCDGLUCB,
    SWGLUCB,
    Bandit,
    GLBWeightUCB,
    Problem,
    RestartGLB,
    SCBPWWeightUCB,
    SCBWeightUCB,
)
from driftbandit.recipe import Recipe
from driftbandit.theory import rivals

KNOWN = Problem(dim=3, radius=1.0, horizon=400, path_length=2.0, context_norm=1.5)
DISCOUNTED = [BVDGLMUCB, DGLUCB, SCDGLUCB, GLBWeightUCB, SCBWeightUCB, SCBPWWeightUCB]
NOISY = {
    GLMUCB: {},
    RestartGLB: {"period": 9},
    DGLUCB: {"discount": 0.8},
    SWGLUCB: {"window": 6},
    BVDGLMUCB: {"discount": 0.8},
    GLBWeightUCB: {"discount": 0.8},
}


def trained(policy, n=12):
    """The memory after n rounds, and the contexts of these rounds."""
    rng, memory = np.random.default_rng(5), policy.init(1)
    X, r = rng.uniform(-0.5, 0.5, (n, 3)), (rng.random(n) < 0.6).astype(float)
    for x, reward in zip(X, r):
        memory = policy.update(memory, x[None], np.array([reward]))
    return memory, X


@pytest.mark.parametrize("refill", [True, False])
@pytest.mark.parametrize("kind", DISCOUNTED, ids=lambda k: k.__name__)
def test_without_a_refill_the_design_forgets_its_multiple_of_the_identity(kind, refill):
    gamma, n = 0.8, 12
    policy = kind(problem=KNOWN, regularization=2.0, discount=gamma, refill=refill)
    memory, X = trained(policy, n)
    reg = policy.reg * KNOWN.context_norm**2
    for name, q in (("V", gamma), ("Vt", gamma**2)):
        data = sum(q ** (n - 1 - s) * np.outer(x, x) for s, x in enumerate(X))
        expected = data + reg * (1.0 if refill else q**n) * np.eye(3)
        np.testing.assert_allclose(getattr(memory, name)[0], expected, atol=3e-9 * reg)


def test_a_design_without_a_refill_stays_invertible_on_one_arm_forever():
    policy = SCBWeightUCB(problem=KNOWN, regularization=2.0, discount=0.5, refill=False)
    bandit = Bandit(policy)
    for _ in range(200):
        bandit.update([0.5, 0.0, 0.0], 1.0)
    assert np.isfinite(bandit.scores(np.eye(3)).upper).all()
    assert np.linalg.eigvalsh(bandit.curvature)[0] < 1e-6 * policy.reg


@pytest.mark.parametrize("kind", NOISY, ids=lambda k: k.__name__)
def test_sigma_is_half_the_range_unless_given(kind):
    numbers = {"problem": KNOWN, "regularization": 2.0, "delta": 0.05} | NOISY[kind]
    plain = kind(**numbers)
    half, one, two = (kind(**numbers, sub_gaussian=s).coefficient(7.0) for s in (0.5, 1.0, 2.0))
    assert plain.coefficient(7.0) == half
    assert two - one == pytest.approx(2.0 * (one - half))  # linear in sigma
    assert one > half
    with pytest.raises(ValueError, match="sub_gaussian must be"):
        kind(**numbers, sub_gaussian=0.0)


def test_sigma_enters_the_set_in_which_bvd_estimates_too():
    numbers = {"lam": 2.0, "gamma": 0.8, "delta": 0.05}
    noise = 2.0 * math.log(1 / 0.05) + 3 * math.log1p(rivals.geometric(0.64, 7.0) / 6.0)
    bias = math.sqrt(2.0) * KNOWN.c_mu * KNOWN.S
    found = rivals.bvd_beta(KNOWN, 7.0, **numbers, sigma=1.5)
    assert found == pytest.approx(bias + 1.5 * math.sqrt(noise))
    tight = Problem(dim=3, radius=0.2, horizon=400)
    estimates = [
        trained(BVDGLMUCB(problem=tight, regularization=0.1, discount=0.8, sub_gaussian=sigma))[0]
        for sigma in (1e-3, 1.0)
    ]
    assert np.abs(estimates[0].theta - estimates[1].theta).max() > 1e-3


def test_masters_base_has_no_sigma():
    with pytest.raises(ValueError, match="no sigma"):
        GLMUCB(problem=KNOWN, regularization=1.0, reading="master", sub_gaussian=1.0)


def test_restart_periods_have_names():
    S3 = Problem(dim=5, radius=3.0, horizon=5000, path_length=6.0 * math.pi)
    assert RestartGLB.from_theory(S3).period == rivals.restart_period(S3) == 120
    assert RestartGLB.from_theory(S3, period="original").period == 120
    assert RestartGLB.from_theory(S3, period="corrected").period == 23
    assert RestartGLB.from_theory(S3, period=77).period == 77
    with pytest.raises(ValueError, match=r"period must be .*'corrected'.*'correct'"):
        RestartGLB.from_theory(S3, period="correct")


@pytest.mark.parametrize("kind", [GLMUCB, RestartGLB])
def test_recipes_of_older_files_say_rule(kind):
    """Files and ledgers keep recipes by the names of their fields."""
    policy = kind.from_theory(KNOWN, reading="master")
    old = policy.to_dict()
    assert "rule" not in old
    old["rule"] = old.pop("reading")
    del old["sub_gaussian"]
    assert Recipe.from_dict(old) == policy
    base = MASTER.from_theory(KNOWN)
    nested = base.to_dict()
    nested["base"]["rule"] = nested["base"].pop("reading")
    assert Recipe.from_dict(nested) == base
