"""BOB-DOMD: its naive twin, EXP3 and its bound, and the theorem by hand, by order and on runs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

import naive
from driftbandit import (
    BOBDOMD,
    DOMD,
    Bandit,
    Bernoulli,
    Circle,
    FixedArms,
    Gaussian,
    Poisson,
    Problem,
    SignFlip,
    Uniform,
    simulate,
    theory,
)
from driftbandit.policies.bob import chances

S1 = Problem(dim=5, radius=1.0, horizon=5000, path_length=2 * math.pi)
FAMILIES = [
    (Bernoulli(), naive.bernoulli(), 0.0),
    (Gaussian(0.5, 3.0), naive.gaussian(0.5, 3.0), -3.0),
    (Poisson(4), naive.poisson(4), 0.0),
]

# The policy


@pytest.mark.parametrize(("family", "link", "low"), FAMILIES, ids=lambda v: repr(v)[:12])
def test_it_is_its_naive_twin_through_seven_blocks(family, link, low):
    problem = Problem(dim=3, family=family, radius=0.7, horizon=60)
    policy = BOBDOMD(problem=problem, block=9, delta=0.05, scale=0.1)
    rng = np.random.default_rng(1)
    arms, luck = rng.uniform(-0.55, 0.55, (60, 6, 3)), rng.random(60)
    noise = rng.standard_normal((60, 1, 1))
    numbers = {"dim": 3, "S": 0.7, "delta": 0.05, "scale": 0.1, "block": 9, "horizon": 60}
    twin = naive.NaiveBOB(
        **numbers,
        link=link,
        low=low,
        lam=theory.lam(problem),
        eta=theory.eta(problem),
        luck=lambda i: ndtr(noise[9 * i, 0, 0]),
    )
    memory = policy.init(1)
    for t, (X, u) in enumerate(zip(arms, luck)):
        mean, bonus = twin.index(X)
        scores = policy.scores(memory, X[None])
        np.testing.assert_allclose(scores.mean[0], mean, atol=1e-9)
        np.testing.assert_allclose(scores.bonus[0], bonus, rtol=1e-9)
        arm = int(policy.choose(memory, X[None], noise[t])[0])
        assert arm == twin.choose(X)
        reward = float(family.draw(0.6 * X[arm, 0], u))
        memory = policy.update(memory, X[arm][None], np.array([reward]), noise[t])
        twin.update(X[arm], reward)
        blocks = (t + 1) // 9
        np.testing.assert_allclose(chances(memory.log_weights)[0], twin.chances(blocks), atol=1e-12)
    assert len({arm for arm, _ in twin.drawn}) > 1  # it did try several discounts


def test_within_a_block_it_is_domd_with_the_theorys_tuning():
    world = Circle(horizon=64, dim=2, radius=2.0)
    policy = BOBDOMD(problem=world.problem, block=64)
    drawn = []
    run = simulate(policy, world, range(6), watch=_keep(drawn))
    for seed, arm in enumerate(drawn[-1]):
        gamma = policy.discounts[arm]
        twin = DOMD.from_theory(world.problem, discount=gamma, delta=1 / 64)
        np.testing.assert_array_equal(simulate(twin, world, (seed,)).choices[0], run.choices[seed])
    assert len(set(drawn[-1])) > 2


def test_replicates_in_different_discounts_do_not_mix():
    """Seven learners side by side are the seven alone, block after block."""
    world = SignFlip(horizon=80, dim=3, radius=1.0, arms=FixedArms(5))
    policy = BOBDOMD(problem=world.problem, block=8, scale=0.2)
    drawn = []
    together = simulate(policy, world, range(7), watch=_keep(drawn))
    assert min(len(set(arms)) for arms in drawn[1:]) > 1  # the discounts in use do differ
    for seed in range(7):
        alone = simulate(policy, world, (seed,))
        np.testing.assert_array_equal(alone.choices[0], together.choices[seed])


def _keep(drawn):
    return lambda t, memory, theta: drawn.append(memory.arm.copy())


def test_in_a_block_the_discount_hardly_matters():
    """docs/bob.md says so: the theorem's lambda outweighs what 354 rounds add to it."""
    world = Circle(horizon=354, turns=354 / 5000, radius=1.0)
    problem = replace(world.problem, horizon=5000)
    policy = BOBDOMD(problem=problem, scale=0.2)
    totals = [simulate(learner, world, range(20)).total.mean() for learner in policy.learners]
    chance = simulate(Uniform(problem=problem), world, range(20)).total.mean()
    assert len(totals) == 8
    assert max(totals) < 1.4 * min(totals)
    assert max(totals) < 0.5 * chance


def test_a_block_ends_with_a_fresh_learner_and_a_example_for_exp3():
    policy = BOBDOMD(problem=Problem(dim=2, radius=1.0, horizon=100), block=4)
    memory, x, noise = policy.init(1), np.array([[0.6, 0.2]]), np.full((1, 1), 3.0)
    for r in (1.0, 0.0, 1.0, 1.0):
        assert (memory.log_weights == 0).all()
        memory = policy.update(memory, x, np.array([r]), noise)
    assert memory.arm[0] == 1  # a large normal draws the last of two discounts
    assert (memory.t[0], memory.gain[0]) == (4, 0.0)
    fresh = policy.init(1)
    for name in ("theta", "H", "floor"):
        np.testing.assert_array_equal(getattr(memory, name), getattr(fresh, name))
    # the loss 1/4, over its probability 1/2
    np.testing.assert_allclose(memory.log_weights, [[0.0, -policy.rate * 0.25 / 0.5]])


def in_a_round(policy, memory, t, normals):
    """The memory after round t without a reward; the first normal number of each row draws."""
    n = len(normals)
    noise = np.zeros((n, policy.noise_size))
    noise[:, 0], memory.t[:] = normals, t
    return policy.update(memory, np.zeros((n, policy.problem.dim)), np.zeros(n), noise)


def test_discounts_are_drawn_with_exp3s_probabilities():
    policy = BOBDOMD(problem=Problem(dim=2, radius=1.0, horizon=4000), block=20)
    log_weights = np.array([[0.0, -1.0, -0.3, -40.0]])

    def drawn(normals):
        memory = policy.init(len(normals))
        memory.log_weights[:] = log_weights
        return in_a_round(policy, memory, 0, normals).arm

    arms = drawn(np.random.default_rng(4).standard_normal(40_000))
    shares = np.bincount(arms, minlength=4) / len(arms)
    np.testing.assert_allclose(shares, chances(log_weights)[0], atol=0.01)
    assert drawn(np.array([-60.0, 60.0])).tolist() == [0, 3]


def test_exp3_is_within_its_bound_of_the_best_arm():
    """300 learners of 64 blocks, where the third of four discounts gives most."""
    policy = BOBDOMD(problem=Problem(dim=2, radius=1.0, horizon=64 * 20), block=20)
    means, n, rng = np.array([0.3, 0.4, 0.8, 0.5]), 300, np.random.default_rng(5)
    memory, gained, length = policy.init(n), np.zeros(n), policy.length
    for block in range(64):
        memory = in_a_round(policy, memory, block * length, rng.standard_normal(n))
        reward = (rng.random(n) < means[memory.arm]).astype(float)
        memory.gain[:], gained = length * reward, gained + means[memory.arm]
        memory = in_a_round(policy, memory, (block + 1) * length - 1, np.zeros(n))
    lost = 64 * 0.8 - gained.mean()
    uniform = 64 * (0.8 - means.mean())
    bound = theory.bob_selection(policy.problem, 20) / 20
    assert bound == pytest.approx(math.sqrt(2 * 64 * 4 * math.log(4)))
    assert lost < min(bound, 0.75 * uniform)  # the bound holds, and it does learn


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"block": 1}, "block must be a whole number from 2"),
        ({"block": 2.5}, "block must be a whole number"),
        ({"delta": 0.0}, "delta must lie in"),
        ({"scale": -1.0}, "scale must be 0 or above"),
    ],
)
def test_bad_numbers_are_named(numbers, words):
    with pytest.raises(ValueError, match=words):
        BOBDOMD(problem=S1, **numbers)


def test_what_it_must_know_is_named():
    for name in ("radius", "horizon"):
        with pytest.raises(ValueError, match=rf"BOBDOMD needs {name}: .*{name}=\.\.\."):
            BOBDOMD.from_theory(replace(S1, **{name: None}))
    with pytest.raises(ValueError, match="at least 2"):
        BOBDOMD(problem=replace(S1, horizon=1))
    BOBDOMD(problem=Problem(dim=5, radius=1.0, horizon=5000))  # neither P_T nor Gamma_T


def test_bad_rounds_change_nothing():
    policy = BOBDOMD(problem=replace(S1, dim=2), block=4)
    memory, x, noise = policy.init(2), np.full((2, 2), 0.3), np.zeros((2, 1))
    before = [array.copy() for array in memory]
    bad = np.array([[0.3, 0.3], [3.0, 0.0]])
    for args in (
        (x, np.ones(2)),
        (x, np.ones(2), np.zeros((2, 2))),
        (bad, np.ones(2), noise),
        (x, np.array([1.0, 0.5]), noise),
        (x, np.array([1.0, math.nan]), noise),
    ):
        with pytest.raises(ValueError, match=r"noise|norm|rewards"):
            policy.update(memory, *args)
    for array, old in zip(memory, before):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize(
    "change",
    [
        {"arm": np.array([9])},
        {"arm": np.array([-1])},
        {"gain": np.array([7.0])},
        {"gain": np.array([-1.0])},
        {"log_weights": np.full((1, 2), -1.0)},
        {"theta": np.full((1, 2), 5.0)},
        {"H": np.zeros((1, 2, 2))},
    ],
)
def test_an_insane_memory_is_seen(change):
    policy = BOBDOMD(problem=replace(S1, dim=2), block=4)
    memory = policy.update(policy.init(1), np.full((1, 2), 0.3), np.ones(1), np.zeros((1, 1)))
    assert policy.sane(memory)
    assert not policy.sane(memory._replace(**change))


def test_a_bandit_predicts_and_goes_on_past_the_horizon():
    bandit = Bandit(BOBDOMD(problem=Problem(dim=2, radius=1.0, horizon=12)), seed=2)
    X = np.array([[0.5, 0.1], [-0.2, 0.7], [0.0, -0.4]])
    for t in range(30):
        bandit.update(X[bandit.choose(X)], t % 2)
    found = bandit.predict(X, level=0.9)
    assert ((found.lower < found.mean) & (found.mean < found.upper)).all()
    assert bandit.rounds == 30
    assert sorted(bandit.choose(X, k=3)) == [0, 1, 2]


# The theorem


def test_blocks_and_discounts():
    assert theory.bob_block(S1) == math.ceil(5 * math.sqrt(5000))
    assert theory.bob_block(replace(S1, horizon=9)) == 9  # one block
    for horizon in (2, 3, 4):
        assert theory.bob_block(Problem(dim=1, radius=1.0, horizon=horizon)) == 2
    assert theory.bob_discounts(2) == (0.5,)
    assert theory.bob_discounts(31) == (0.5, 0.75, 0.875, 0.9375)
    assert theory.bob_discounts(32) == (0.5, 0.75, 0.875, 0.9375, 0.96875)
    assert theory.bob_rate(10, 1) == 0.0  # nothing to choose


@pytest.mark.parametrize("block", [2, 3, 31, 32, 354, 10**6])
def test_the_grid_has_every_tuning_within_a_factor_of_two(block):
    grid = 1.0 - np.array(theory.bob_discounts(block))
    for u in np.geomspace(1.0 / block, 0.5, 300):
        assert (grid[grid >= u * (1 - 1e-9)] / u).min() <= 2.0 + 1e-9


GENERIC = Problem(
    dim=3,
    family=Gaussian(0.4, 2.5),
    radius=0.8,
    context_norm=1.5,
    horizon=1000,
    path_length=4.0,
)


def by_hand(problem, moves, delta=None):
    """The bound of docs/bob.md, block by block, each with its share of the path."""
    family, d, T = problem.family, problem.dim, problem.horizon
    S, k, c, g = problem.S, problem.k_mu, problem.c_mu, family.g
    eta, lam = theory.eta(problem), theory.lam(problem)
    iota, D, delta = math.sqrt(2 * eta * k / g), math.ceil(d * math.sqrt(T)), delta or 1 / T
    K = max(j for j in range(1, 60) if 2**j <= D)
    totals = []
    for gamma in (1 - 2.0**-j for j in range(1, K + 1)):
        n = sum(gamma**s for s in range(D - 1))
        beta = math.sqrt(
            4 * lam * S**2
            + 2 * eta * (1 + family.R**2 / (g * k)) * math.log(math.pi**2 * D**2 / (3 * delta))
            + 2 * eta * (3 * eta + 0.5) * d * math.log(1 + k * n / (lam * d * g))
        )
        logs = d * math.log(1 + k / (lam * d * g * (1 - gamma))) + D * d * math.log(1 / gamma)
        explore = 2 * k * beta * math.sqrt(D * 2 * g / c * logs)
        drift = 4 * k * iota / math.sqrt(lam) / (1 - gamma) ** 1.5
        totals.append(sum(2 * k * S + explore + drift * move for move in moves))
    failing = delta * T * (family.mu(S) - family.mu(-S))
    range_ = family.link.high - family.link.low
    return min(totals) + failing + range_ * D * math.sqrt(2 * len(moves) * K * math.log(K))


@pytest.mark.parametrize("problem", [S1, GENERIC], ids=["S1", "generic"])
def test_bound_by_hand_however_the_path_is_split(problem):
    blocks = math.ceil(problem.horizon / theory.bob_block(problem))
    split = np.random.default_rng(6).dirichlet(np.ones(blocks))
    moves = split * problem.path_length * problem.context_norm
    for delta in (None, 0.02):
        found = theory.bob_regret_bound(problem, delta=delta)
        assert found == pytest.approx(by_hand(problem, moves, delta), rel=1e-9)


def test_bound_of_jumps_is_theorem_3_summed_over_blocks():
    problem = Problem(dim=2, radius=1.0, horizon=2000, change_points=6)
    D = theory.bob_block(problem)
    one = replace(problem, horizon=D)
    blocks, changes = math.ceil(2000 / D), [3, 2, 1]
    changes += [0] * (blocks - 3)
    sums = [
        sum(
            theory.regret_bound_piecewise(
                replace(one, change_points=n), gamma=gamma, delta=1 / 2000
            )
            for n in changes
        )
        for gamma in theory.bob_discounts(D)
    ]
    rest = theory.bob_selection(problem, D) + float(np.diff(Bernoulli().mu([-1.0, 1.0]))[0])
    assert theory.bob_regret_bound(problem) == pytest.approx(min(sums) + rest, rel=1e-9)
    both = replace(problem, path_length=1e6)  # the better of the two theorems
    assert theory.bob_regret_bound(both) == theory.bob_regret_bound(problem)


def test_bound_grows_with_everything_that_makes_it_harder():
    def increasing(values):
        return (np.diff([theory.bob_regret_bound(problem) for problem in values]) > 0).all()

    assert increasing(replace(S1, path_length=P) for P in (0.0, 1.0, 30.0, 1000.0, 1e5))
    assert increasing(replace(S1, horizon=T) for T in (10**3, 10**4, 10**5, 10**7))
    assert increasing(replace(S1, radius=S) for S in (0.3, 1.0, 3.0))
    assert increasing(replace(S1, dim=d) for d in (1, 2, 5, 20, 60))
    deltas = [theory.bob_regret_bound(S1, delta=d) for d in (1e-4, 1e-6, 1e-9)]
    assert deltas == sorted(deltas)


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def bound(T, P):
    return theory.bob_regret_bound(replace(S1, horizon=int(T), path_length=float(P)))


def test_order_in_the_horizon_and_in_the_path_length():
    """T^3/4 and P^1/4 T^3/4; what is left are the logarithms, so the slopes come from above."""
    T = np.geomspace(1e10, 1e15, 16)
    calm, busy = [bound(t, 0.0) for t in T], [bound(t, 1e4) for t in T]
    assert 0.75 < slope(T, calm) < 0.81
    assert 0.75 < slope(T, busy) < 0.80
    early = np.geomspace(1e4, 1e7, 16)
    assert slope(T, calm) < slope(early, [bound(t, 0.0) for t in early])
    P = np.geomspace(1e8, 1e13, 34)
    assert slope(P, [bound(1e15, p) for p in P]) == pytest.approx(0.25, abs=0.01)
    # the path as long as the rounds: P^1/4 T^3/4 = T
    assert slope(T, [bound(t, 1e-3 * t) for t in T]) == pytest.approx(1.0, abs=0.01)


def test_below_its_threshold_the_path_length_costs_less_than_not_knowing_it():
    """P_T <= 1/(d sqrt(k)): the bound is at most twice that of a world that stands still."""
    for T in (10**3, 10**6, 10**12):
        P = 1.0 / (S1.dim * math.sqrt(S1.k_mu))
        assert bound(T, 0.0) < bound(T, P) < 2 * bound(T, 0.0)


def test_knowing_the_path_length_is_better_by_a_bounded_factor():
    """Within logarithms of Theorem 2 where the path is long."""
    for T, P in ((10**8, 1e4), (10**10, 1e6), (10**12, 1e8)):
        problem = replace(S1, horizon=T, path_length=P)
        known = theory.regret_bound_drifting(problem, delta=0.01)
        assert theory.bob_regret_bound(problem) < 2.0 * known


@pytest.mark.parametrize(
    "world",
    [
        Circle(horizon=1500, dim=3, radius=1.0),
        SignFlip(horizon=1500, dim=3, radius=2.0, arms=FixedArms(6)),
        Circle(horizon=800, dim=2, radius=1.0, family=Gaussian(0.25, 3.0)),
    ],
    ids=lambda world: world.name,
)
def test_regret_is_below_the_bound(world):
    run = simulate(BOBDOMD.from_theory(world.problem), world, range(4))
    assert run.total.mean() < theory.bob_regret_bound(world.problem)


def test_the_bound_says_what_it_needs():
    with pytest.raises(ValueError, match="path_length or change_points"):
        theory.bob_regret_bound(Problem(dim=2, radius=1.0, horizon=100))
    with pytest.raises(ValueError, match="horizon"):
        theory.bob_regret_bound(Problem(dim=2, radius=1.0, path_length=1.0))


@pytest.mark.parametrize("d", [31, 33, 100])
def test_more_dimensions_than_the_root_of_the_horizon_make_one_block_and_a_trivial_bound(d):
    """T = 1024: from d = 32 on, D = T, and the first term of the order is above the range times T,
    which no regret exceeds. The explicit bound says nothing then either."""
    problem = replace(S1, dim=d, horizon=1024)
    block = theory.bob_block(problem)
    trivial = problem.family.range * 1024
    assert (block == 1024) == (d > 32)
    assert (theory.bob_blocks(problem, block) == 1) == (d > 32)
    assert (problem.family.range * math.sqrt(d) * 1024**0.75 > trivial) == (d > 32)
    if d > 32:
        assert theory.bob_selection(problem, block) > trivial
        assert theory.bob_regret_bound(problem) > trivial


def test_one_insane_learner_among_many_is_seen():
    policy = BOBDOMD(problem=replace(S1, horizon=60), block=9)
    memory = policy.init(3)
    assert len(policy.init().t) == 1
    assert policy.sane(memory._replace(t=memory.t + 4, gain=np.full(3, 4.0)))
    assert not policy.sane(memory._replace(t=memory.t + 4, gain=np.array([1.0, 4.1, 1.0])))
    arm = np.array([0, len(policy.discounts), 0])
    assert not policy.sane(memory._replace(arm=arm))
    assert policy.sane(memory._replace(arm=arm - 1 + (arm == 0)))


def test_chances_are_finite_for_weights_of_any_size():
    shares = np.array([[0.5, 0.3, 0.2]])
    for shift in (-2000.0, 0.0, 2000.0):
        np.testing.assert_allclose(chances(np.log(shares) + shift), shares, rtol=1e-9)
    np.testing.assert_allclose(chances(np.array([[0.0, -2000.0]])), [[1.0, 0.0]])


def test_what_it_needs_is_bounded():
    policy = BOBDOMD(problem=S1)
    assert policy.least_bytes == 8 * 25
    with pytest.raises(ValueError, match="delta"):
        BOBDOMD(problem=S1, delta=1.5)
