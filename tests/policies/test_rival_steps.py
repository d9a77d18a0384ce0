"""Single steps of the rivals, each written out: where their branches part, and in which units."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from driftbandit import (
    BVDGLMUCB,
    DOMD,
    GLBOMD,
    MASTER,
    Bandit,
    Binomial,
    Circle,
    Gaussian,
    Jumps,
    Poisson,
    Problem,
    RandomWalk,
    SignFlip,
    theory,
)
from driftbandit.policies.catalogue import CATALOGUE
from driftbandit.theory import rivals

PROBLEM = Problem(dim=1, radius=1.0, horizon=64)


# BVD-GLM-UCB keeps the Filippi point exactly while it explains the data within beta


def separable(rounds=24):
    rng = np.random.default_rng(24)
    X = rng.uniform(-0.7, 0.7, (rounds, 2))
    return X, (X @ [1.0, 0.3] > 0).astype(float)


def filippi(policy, X, r):
    """argmin ||g(v) - b||_{Vt^-1} on the circle of radius S by brute force, and its square."""
    family, S = policy.problem.family, policy.problem.radius
    Vt = policy.reg * np.eye(2) + X.T @ X

    def gap(angle):
        v = S * np.array([math.cos(angle), math.sin(angle)])
        u = X.T @ family.mu(X @ v) + policy.ridge * v - X.T @ r
        return float(u @ np.linalg.solve(Vt, u))

    grid = np.linspace(0.0, 2.0 * math.pi, 721)
    near = grid[np.argmin([gap(angle) for angle in grid])]
    span, exact = (near - 0.01, near + 0.01), {"xatol": 1e-10}
    found = optimize.minimize_scalar(gap, bounds=span, method="bounded", options=exact)
    return S * np.array([math.cos(found.x), math.sin(found.x)]), found.fun


@pytest.mark.parametrize(("rounds", "share"), [(24, 0.9), (24, 1.1), (5, 0.8), (5, 1.2)])
def test_bvd_leaves_the_filippi_point_once_its_gap_exceeds_beta_squared(rounds, share):
    """sigma is set so that beta^2 is a `share` of the gap. beta itself is on the other side of the
    gap after 5 rounds, and above 1 it does not matter: what beta explains has no better point."""
    problem, (X, r) = Problem(dim=2, radius=0.3, horizon=500), separable(rounds)
    numbers = {"lam": 0.3, "gamma": 1.0, "delta": 0.9}
    recipe = {"problem": problem, "regularization": 0.3, "discount": 1.0, "delta": 0.9}
    point, gap = filippi(BVDGLMUCB(**recipe), X, r)
    base, unit = (rivals.bvd_beta(problem, rounds + 1.0, sigma=s, **numbers) for s in (1e-9, 1.0))
    beta = math.sqrt(share * gap)
    assert (beta > gap) == (rounds == 5)
    memory = (policy := BVDGLMUCB(**recipe, sub_gaussian=(beta - base) / (unit - base))).init(1)
    for x, reward in zip(X, r):
        memory = policy.update(memory, x[None], np.array([reward]))
    stays = np.abs(memory.theta[0] - point).max() < 1e-5
    assert stays == (share > 1.0)
    assert np.linalg.norm(memory.theta[0]) == pytest.approx(0.3)


# What MASTER takes, and what it may hold


def test_masters_defaults_and_limits():
    base = GLBOMD(problem=PROBLEM)
    plain = MASTER(problem=PROBLEM, base=base)
    assert (plain.delta, plain.first_order, plain.threshold) == (0.01, 12, 1.0)
    for allowed in ({"delta": 1.0}, {"first_order": 0}, {"first_order": 39}):
        MASTER(problem=PROBLEM, base=base, **allowed)
    for wrong, said in (
        ({"delta": 1.5}, "delta must lie in"),
        ({"first_order": -1}, "first_order must be a whole number from 0"),
        ({"first_order": 40}, "first_order must be below 40, got 40"),
        ({"threshold": 0.0}, "threshold must be above"),
        ({"base": "GLBOMD"}, "base must be a policy for the same problem"),
        ({"base": GLBOMD(problem=replace(PROBLEM, radius=2.0))}, "for the same problem"),
        ({"problem": replace(PROBLEM, horizon=None)}, "base must be a policy for the same problem"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            MASTER(**{"problem": PROBLEM, "base": base} | wrong)
    endless = replace(PROBLEM, horizon=None)
    with pytest.raises(ValueError, match="horizon"):
        MASTER(problem=endless, base=GLBOMD(problem=endless))


def test_master_tosses_forty_coins_and_its_base_has_noise_of_its_own():
    assert MASTER.from_theory(PROBLEM).noise_size == 40
    sampler = GLBOMD(problem=PROBLEM, exploration="thompson")
    assert sampler.noise_size > 0
    assert MASTER(problem=PROBLEM, base=sampler).noise_size == 40 + sampler.noise_size


def test_masters_memory_grows_by_learners_and_as_its_base_grows():
    """Axis 1 counts the orders, so every axis of the base is one further on."""
    policy = MASTER.from_theory(PROBLEM)
    grows = policy.growing
    assert policy.base.growing == {"X": (1,), "r": (1,)}
    assert (grows.pop("base_X"), grows.pop("base_r")) == ((1, 2), (1, 2))
    assert grows.keys() >= {"start", "gain", "base_t", "base_theta"}
    assert set(grows.values()) == {(1,)}


@pytest.mark.parametrize("exploration", ["ucb", "thompson"])
def test_masters_learners_play_and_value_arms_alone_as_in_company(exploration):
    problem = replace(PROBLEM, dim=2)
    base = GLBOMD(problem=problem, exploration=exploration)
    policy = MASTER(problem=problem, base=base, first_order=1)
    rng = np.random.default_rng(5)
    memory, alone = policy.init(3), [policy.init(1) for _ in range(3)]
    for _ in range(12):
        arms, noise = rng.uniform(-0.7, 0.7, (3, 4, 2)), rng.standard_normal((3, policy.noise_size))
        choice, scores = policy.choose(memory, arms, noise), policy.scores(memory, arms)
        x, rewards = arms[np.arange(3), choice], (rng.random(3) < 0.5).astype(float)
        for i, one in enumerate(alone):
            row = slice(i, i + 1)
            assert policy.choose(one, arms[row], noise[row]) == choice[row]
            np.testing.assert_array_equal(policy.scores(one, arms[row]).upper, scores.upper[row])
            alone[i] = policy.update(one, x[row], rewards[row], noise[row])
        memory = policy.update(memory, x, rewards, noise)
    assert memory.t.tolist() == [12, 12, 12]
    for call in (lambda: policy.choose(memory, arms), lambda: policy.update(memory, x, rewards)):
        with pytest.raises(ValueError, match="MASTER"):
            call()


# MASTER's tests fire at 9 rhohat and 3 rhohat, exactly


def master(rhohat, **numbers):
    """MASTER over a base without a bonus, with a rhohat(1) of one's choice."""
    plain = MASTER.from_theory(PROBLEM, first_order=4, scale=0.0, **numbers)
    T, lam = PROBLEM.horizon, plain.base.regularization
    unit = rivals.master_threshold(PROBLEM, lam=lam, delta=plain.delta, horizon=T)
    return replace(plain, threshold=rhohat / unit)


def restarts(policy, reward, rounds=16):
    """After how many rounds of a context that says nothing MASTER first restarts, 0 for never.

    Coins show tails, so only the instance of order 4 lives; its optimistic value is mu(0) = 1/2.
    """
    memory, tails = policy.init(1), np.full((1, policy.noise_size), 9.0)
    for t in range(1, rounds + 1):
        memory = policy.update(memory, np.zeros((1, 1)), np.array([reward]), tails)
        if memory.restarts[0]:
            return t
    return 0


def test_masters_first_test_fires_at_nine_rhohat():
    """16 rewards of 1: their mean exceeds the smallest optimistic value by 1/2, against 9 rhohat(1)
    / sqrt(16)."""
    edge = 0.5 * 4.0 / 9.0
    assert restarts(master(0.999 * edge), 1.0) == 16
    assert restarts(master(1.001 * edge), 1.0) == 0


@pytest.mark.parametrize("rounds", [4, 9])
def test_masters_second_test_fires_at_three_rhohat(rounds):
    """Rewards of 0: values exceed them by 1/2 on average, against 3 rhohat(1) / sqrt(t)."""
    edge = 0.5 * math.sqrt(rounds) / 3.0
    assert restarts(master(0.999 * edge), 0.0) == rounds
    assert restarts(master(1.001 * edge), 0.0) == rounds + 1


def test_masters_optimistic_values_are_clipped_to_the_range():
    """Its assumption: they lie in [0, 1], whatever bonus or estimate the base has."""
    problem = Problem(dim=1, family=Gaussian(0.5, 1.0), radius=3.0, horizon=64)
    x, noise = np.array([[1.0]]), np.zeros((1, 60))
    bold = MASTER.from_theory(problem, first_order=4, scale=1.0)
    memory = bold.update(bold.init(1), x, np.array([-1.0]), noise[:, : bold.noise_size])
    assert (memory.gap[0], memory.low[0]) == (1.0, 1.0)
    shy = MASTER.from_theory(problem, first_order=4, scale=0.0, regularization=1e-3)
    memory = shy.init(1)
    for _ in range(3):
        memory = shy.update(memory, 0.1 * x, np.array([-1.0]), noise[:, : shy.noise_size])
    before = memory.gap[0]
    assert memory.base_theta[0, :, 0].min() < -1.5  # so that mu is below the smallest reward
    memory = shy.update(memory, x, np.array([-1.0]), noise[:, : shy.noise_size])
    assert memory.gap[0] == before
    assert memory.low[0] == 0.0


# Contexts of norm L are the paper's contexts x/L with the parameter theta L

KNOWN = {"horizon": 300, "change_points": 2}


def in_two_units(kind, L=2.5):
    """The same policy for contexts of norm L, and for norm 1 with a ball that is larger by L."""
    long = Problem(dim=3, radius=0.8, context_norm=L, path_length=1.5, **KNOWN)
    unit = Problem(dim=3, radius=0.8 * L, path_length=1.5 * L, **KNOWN)
    return [kind.from_theory(problem) for problem in (long, unit)]


LENGTHS = [e.policy for e in CATALOGUE if e.policy.__name__ not in ("Uniform", "Oracle", "LinUCB")]
LENGTHS = [k for k in LENGTHS if not k.__name__.endswith(("LinUCB", "LBWeightUCB"))]


@pytest.mark.parametrize("kind", LENGTHS, ids=lambda k: k.__name__)
def test_scores_do_not_depend_on_the_unit_of_contexts(kind):
    L, rng = 2.5, np.random.default_rng(6)
    long, unit = (Bandit(policy, seed=1) for policy in in_two_units(kind, L))
    for _ in range(9):
        X, r = rng.uniform(-0.5, 0.5, (4, 3)), float(rng.random() < 0.4)
        for one, other in zip(long.scores(L * X), unit.scores(X)):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
        long.update(L * X[0], r)
        unit.update(X[0], r)


@pytest.mark.parametrize("kind", [DOMD, GLBOMD])
def test_the_width_of_a_theorem_has_lambda_in_the_papers_units(kind):
    """lambda L^2 serves contexts of norm L; the radius has lambda itself."""
    policy = kind.from_theory(in_two_units(kind)[0].problem)
    numbers = {"lam": policy.regularization, "eta": policy.step, "delta": 0.01}
    if kind is DOMD:
        radius = theory.domd_radius(policy.problem, gamma=policy.discount, **numbers)
    else:
        radius = theory.glb_omd_radius(policy.problem, **numbers)
    assert policy.width(policy.init(2)) == pytest.approx([theory.beta(radius, 1.0)] * 2)


# sharp, and what environments say of themselves


@pytest.mark.parametrize("family", [Binomial(4), Poisson(6)])
def test_sharp_constants_reach_glb_omd(family):
    problem = Problem(dim=3, family=family, radius=0.8, horizon=300)
    paper, sharp = (GLBOMD.from_theory(problem, sharp=s) for s in (False, True))
    for policy, M in ((paper, family.R), (sharp, 1.0)):
        eta = 1.0 + M * 0.8
        lam = max(14 * 3 * eta * M**2, 6 * eta * M * 0.8 * problem.k_mu)
        assert policy.step == pytest.approx(eta)
        assert policy.regularization == pytest.approx(lam)
    assert sharp.regularization < paper.regularization / 10


@pytest.mark.parametrize(
    "world",
    [
        Circle(horizon=37, dim=3, radius=1.7, turns=2.3),
        Circle(horizon=2, dim=2, radius=0.4),
        SignFlip(horizon=9, dim=3, radius=1.7),
    ],
    ids=["circle", "two rounds", "flip"],
)
def test_path_length_is_the_sum_of_the_moves(world):
    moves = np.linalg.norm(np.diff(world.path(3), axis=0), axis=1)
    assert world.path_length == pytest.approx(moves.sum())


@pytest.mark.parametrize("world", [RandomWalk(horizon=30, dim=2), Jumps(horizon=30, dim=2)])
def test_path_length_of_a_random_path_is_a_bound(world):
    moves = np.linalg.norm(np.diff(world.path(3), axis=0), axis=1)
    assert 0.0 < moves.sum() <= world.path_length * (1 + 1e-12)
