"""The recipe of DOMD, GLB-OMD and Greedy: defaults, what excludes what, and which memories and
numbers are refused, at the very edge."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from driftbandit import (
    DOMD,
    GLBOMD,
    Bernoulli,
    Binomial,
    Bounded,
    Gaussian,
    Greedy,
    Poisson,
    Problem,
    theory,
)

PLAIN = Problem(dim=2)
BALL = Problem(dim=2, radius=0.8, context_norm=1.5, horizon=300, path_length=1.0)
WIDE = Problem(dim=4, family=Gaussian(0.5, 2.0), radius=0.8, context_norm=1.5)


def test_defaults():
    policy = DOMD(problem=PLAIN)
    assert (policy.discount, policy.regularization, policy.step) == (2 ** (-1 / 200), 1.0, 2.0)
    assert (policy.bonus, policy.delta, policy.scale, policy.exploration) == (
        1.0,
        None,
        None,
        "ucb",
    )
    assert GLBOMD(problem=PLAIN).discount == 1.0
    assert Greedy(problem=PLAIN).bonus == 0.0
    radius = DOMD(problem=BALL, delta=0.3)
    assert (radius.bonus, radius.delta, radius.scale) == (None, 0.3, 1.0)
    scaled = DOMD(problem=BALL, scale=0.4)
    assert (scaled.delta, scaled.scale) == (0.01, 0.4)


@pytest.mark.parametrize(
    ("options", "discount"),
    [
        ({"half_life": 50}, 2 ** (-1 / 50)),
        ({"half_life": math.inf}, 1.0),
        ({"half_life": 0.01}, 2.0**-100),
        ({"discount": 1.0}, 1.0),
        ({"discount": 0.3}, 0.3),
    ],
)
def test_a_discount_may_be_a_half_life(options, discount):
    assert DOMD(problem=PLAIN, **options).discount == discount
    assert DOMD.from_theory(BALL, **options).discount == discount


@pytest.mark.parametrize(
    ("problem", "options", "words"),
    [
        (PLAIN, {"discount": 0.9, "half_life": 5}, "say the same thing twice"),
        (PLAIN, {"discount": 0.0}, "discount must lie"),
        (PLAIN, {"discount": 1.01}, "discount must lie"),
        (PLAIN, {"half_life": 0.009}, r"half_life must be 0\.01 or more"),
        (PLAIN, {"half_life": "long"}, "half_life"),
        (PLAIN, {"bonus": 1.0, "delta": 0.1}, "bonus replaces"),
        (PLAIN, {"bonus": 1.0, "scale": 0.1}, "bonus replaces"),
        (PLAIN, {"bonus": -1.0}, "bonus must be"),
        (PLAIN, {"delta": 0.1}, "radius"),
        (BALL, {"delta": 0.0}, "delta must lie"),
        (BALL, {"delta": 1.5}, "delta must lie"),
        (BALL, {"scale": -1.0}, "scale must be"),
        (PLAIN, {"step": 0.0}, "step must be"),
        (PLAIN, {"regularization": -1.0}, "regularization must be"),
        (PLAIN, {"exploration": "luck"}, "exploration must be"),
        ("a problem", {}, "problem must be"),
    ],
)
def test_what_is_refused(problem, options, words):
    with pytest.raises(ValueError, match=words):
        DOMD(problem=problem, **options)


@pytest.mark.parametrize("kind", [DOMD, GLBOMD, Greedy])
def test_theory_wants_a_problem(kind):
    with pytest.raises(ValueError, match="problem must be a Problem"):
        kind.from_theory("a problem")


def test_siblings_refuse_what_makes_them_another_policy():
    with pytest.raises(ValueError, match="never forgets"):
        GLBOMD(problem=PLAIN, discount=0.9)
    with pytest.raises(ValueError, match="adds no bonus"):
        Greedy(problem=PLAIN, bonus=1.0)
    with pytest.raises(ValueError, match="problem must be"):
        GLBOMD(problem=3)
    with pytest.raises(ValueError, match="problem must be"):
        Greedy(problem=3)


def test_theory_sets_what_is_not_given():
    policy = DOMD.from_theory(BALL)
    assert (policy.delta, policy.scale, policy.bonus) == (0.01, 1.0, None)
    assert policy.discount == theory.discount(BALL)
    assert (policy.step, policy.regularization) == (theory.eta(BALL), theory.lam(BALL))
    many = replace(BALL, family=Binomial(4))  # the paper's R is 4, the family's own M is 1
    assert DOMD.from_theory(many).regularization == theory.lam(many)
    assert DOMD.from_theory(many).step == theory.eta(many)
    assert GLBOMD.from_theory(many).regularization == theory.glb_omd_lam(many)
    bold = DOMD.from_theory(BALL, bonus=2.5, regularization=3.0)
    assert (bold.delta, bold.scale, bold.bonus, bold.regularization) == (None, None, 2.5, 3.0)
    still = GLBOMD.from_theory(BALL)
    assert (still.discount, still.regularization) == (1.0, theory.glb_omd_lam(BALL))
    lazy = Greedy.from_theory(BALL)
    assert (lazy.bonus, lazy.discount) == (0.0, theory.discount(BALL))


@pytest.mark.parametrize("kind", [DOMD, GLBOMD])
def test_a_bonus_is_the_width_in_every_round(kind):
    policy = kind(problem=PLAIN, bonus=3.0)
    memory = policy.init(2)
    for _ in range(4):
        np.testing.assert_allclose(policy.width(memory), 3.0)
        memory = policy.update(memory, np.full((2, 2), 0.3), np.ones(2))


def test_a_radius_is_scaled_and_grows_with_the_round():
    policy = DOMD(problem=BALL, delta=0.2, scale=0.3, discount=0.9, regularization=2.0, step=1.5)
    radius = theory.domd_radius(BALL, gamma=0.9, lam=2.0, eta=1.5, delta=0.2)
    memory = policy.init(1)
    for t in range(1, 4):
        assert policy.width(memory)[0] == pytest.approx(0.3 * theory.beta(radius, t), rel=1e-12)
        memory = policy.update(memory, np.full((1, 2), 0.3), np.ones(1))


def test_learners_choose_what_their_scores_say():
    """The compiled rule has the same scale and radius as the scores."""
    rng = np.random.default_rng(2)
    for options in ({"bonus": 2.0}, {"delta": 0.2, "scale": 0.3}, {"bonus": 0.0}):
        policy = DOMD(problem=BALL, discount=0.9, **options)
        memory = policy.init(3)
        for _ in range(12):
            arms = rng.uniform(-1, 1, (3, 6, 2))
            best = policy.choose(memory, arms)
            np.testing.assert_array_equal(best, policy.scores(memory, arms).upper.argmax(axis=1))
            memory = policy.update(memory, arms[np.arange(3), best], rng.integers(0, 2, 3) * 1.0)


def test_deviations_are_widened_for_steps_above_two():
    memory = DOMD(problem=PLAIN).init(1)
    arms = np.array([[[0.6, 0.8], [0.3, 0.0]]])
    for step, widened in ((0.5, 1.0), (2.0, 1.0), (4.0, math.sqrt(2.0)), (18.0, 3.0)):
        found = DOMD(problem=PLAIN, step=step).deviation(memory, arms)
        np.testing.assert_allclose(found, [[widened, 0.3 * widened]])


def test_only_thompson_sampling_takes_noise():
    assert DOMD(problem=PLAIN).noise_size == 0
    assert DOMD(problem=PLAIN, exploration="thompson").noise_size == 2


# What one reward can add to the curvature, k_mu L^2 / g, and a lambda that rounding would swallow

FAINT = {
    "gaussian": (WIDE, 1e-9 * 1.0 / 0.5),
    "bounded": (Problem(dim=2, family=Bounded(), radius=0.8, context_norm=1.5), 1e-9 * 0.25 / 1e-3),
    "poisson": (
        Problem(dim=2, family=Poisson(99), radius=2.0, context_norm=1.5),
        1e-9 * math.exp(3.0),
    ),
    "no radius": (Problem(dim=2, family=Bernoulli(), context_norm=1.5), 1e-9 * 0.25),
}


@pytest.mark.parametrize("name", FAINT)
def test_a_lambda_below_a_billionth_of_a_reward_is_refused(name):
    problem, least = FAINT[name]
    DOMD(problem=problem, regularization=1.01 * least)
    with pytest.raises(ValueError, match=f"drowns in rounding.*use {least:.2g} or more"):
        DOMD(problem=problem, regularization=0.99 * least)


def narrowing(share):
    """A policy whose float32 rounding adds about `share` of what is allowed, 0.1 lambda."""
    gamma, most = 1 - 1 / 64, 1.0 / 0.5 * 1.5**2
    rate = 2.0**-24 * (math.sqrt(4) + 2) * 64
    lam = rate * most * 64 / (0.1 * share - rate)  # rate (lam + 64 most) = 0.1 share lam
    return DOMD(problem=WIDE, discount=gamma, regularization=lam / 1.5**2)


def test_single_precision_is_safe_up_to_a_tenth_of_lambda():
    assert narrowing(1 - 1e-5).narrow(np.zeros((1, 3))).dtype == np.float32
    with pytest.raises(ValueError, match="more than a tenth"):
        narrowing(1 + 1e-5).narrow(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="float32"):
        DOMD(problem=PLAIN, discount=1.0).narrow(np.zeros((1, 3)))


def test_single_precision_never_rounds_down():
    rows = np.array([[1 / 3, 0.1, 2.0, -0.7, 0.0]])
    small = DOMD(problem=PLAIN, discount=0.9).narrow(rows)
    assert (small >= rows).all()
    np.testing.assert_allclose(small, rows, rtol=2.0**-23)
    assert small[0, 2] == 2.0
    assert small[0, 4] == 0.0


# Memories that could have come from the policy

NEAR, FAR = 0.5e-6, 1.5e-6


def sane(change, problem=BALL, **options):
    policy = DOMD(problem=problem, regularization=2.0, **options)
    memory = policy.init(2)
    change(memory)
    return policy.sane(memory)


def put(name, value):
    def change(memory):
        getattr(memory, name)[1] = value

    return change


def test_a_fresh_memory_is_sane():
    assert sane(lambda memory: None)
    assert not sane(put("t", -1.0))
    assert not sane(put("theta", np.nan))


LAM = 2.0 * 1.5**2


def scaled_floor(share):
    def change(memory):
        memory.floor[1] = share * LAM
        memory.H[1] = share * LAM * np.eye(2)

    return change


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (put("theta", [0.8 * (1 + NEAR), 0.0]), put("theta", [0.8 * (1 + FAR), 0.0])),
        (put("H", LAM * (1 - NEAR) * np.eye(2)), put("H", LAM * (1 - FAR) * np.eye(2))),
        (put("floor", LAM), put("floor", LAM * (1 + 2 * FAR))),
        (scaled_floor(1 - NEAR), scaled_floor(1 - FAR)),
        (put("g", 1 + NEAR), put("g", 1 + FAR)),
        (put("g", 1 - NEAR), put("g", 1 - FAR)),
        (put("basis", 0.5), put("basis", 0.0)),
        (put("H", [[9.0, 1.0], [1.0, 9.0]]), put("H", [[9.0, 1.0], [1.0 + 1e-9, 9.0]])),
        (put("H", np.diag([LAM - 0.015, 1e12])), put("H", np.diag([LAM - 0.03, 1e12]))),
    ],
    ids=["theta", "H", "floor over H", "floor", "g above", "g below", "basis", "H'", "rounding"],
)
def test_sanity_at_its_edges(good, bad):
    assert sane(good)
    assert not sane(bad)


def test_a_dispersion_that_is_learnt_lies_between_its_ends():
    problem = Problem(dim=2, family=Bounded(), radius=0.8, context_norm=1.5)
    for g, fine in ((0.5, True), (1e-3 * (1 - NEAR), True), (1e-3 * (1 - FAR), False)):
        assert sane(put("g", g), problem) == fine
    assert not sane(put("g", 1 + FAR), problem)
    policy = DOMD(problem=problem)
    memory = policy.update(policy.init(1), np.full((1, 2), 0.3), np.array([0.5]))
    assert memory.g[0] < 1.0
    fixed = DOMD(problem=BALL)
    assert fixed.update(fixed.init(1), np.full((1, 2), 0.3), np.ones(1)).g[0] == 1.0


def test_a_fresh_row_has_lambda_in_the_units_of_contexts():
    memory = DOMD(problem=BALL, regularization=2.0).init(1)
    np.testing.assert_allclose(memory.H[0], LAM * np.eye(2))
    np.testing.assert_array_equal(memory.theta[0], [0.0, 0.0])
    assert (memory.t[0], memory.g[0], memory.basis[0], memory.floor[0]) == (0.0, 1.0, 1.0, LAM)


@dataclass(frozen=True)
class HalfDispersed(Bounded):
    """Rewards in [0, 1] that are known to have no g above a half."""

    @property
    def g(self):
        return 0.5


def test_a_dispersion_is_learnt_from_the_most_it_can_be():
    problem = Problem(dim=2, family=HalfDispersed(), radius=0.8)
    policy = DOMD(problem=problem)
    assert policy.init(1).g[0] == 0.5
    same = DOMD(problem=replace(problem, family=Bounded()))
    (place,) = np.flatnonzero(policy.recipe != same.recipe)
    assert (policy.recipe[place], same.recipe[place]) == (0.5, 1.0)
