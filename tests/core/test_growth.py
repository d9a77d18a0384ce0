"""Features that grow, and learners that grow with them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Category,
    Features,
    Flag,
    Gaussian,
    Number,
    Problem,
    Recipe,
    Uniform,
    Vector,
)
from driftbandit.policies.growth import grown_policy, grown_rows
from naive_auto import grid_of

SMALL = Features(
    context={"age": Number(18, 90), "hour": Number(0, 24, cyclic=True)},
    arm={"price": Number(0, 100, required=True)},
)
LARGE = SMALL.grow(context={"vip": Flag()}, arm={"kind": Category(["a", "b"])})


def raw(rng):
    """A context and arms, with all columns of LARGE."""
    context = {"age": rng.uniform(18, 90), "hour": rng.uniform(0, 24), "vip": bool(rng.integers(2))}
    arms = [
        {"price": rng.uniform(0, 100), "kind": str(rng.choice(["a", "b", "c"]))} for _ in range(3)
    ]
    return context, arms


def old(context, arms):
    """The same as SMALL takes it."""
    return {k: context[k] for k in SMALL.context}, [{"price": arm["price"]} for arm in arms]


def test_old_coordinates_keep_place_and_scale():
    context, arms = raw(np.random.default_rng(0))
    X, Y = SMALL.encode(*old(context, arms)), LARGE.encode(context, arms)
    assert LARGE.terms[: SMALL.size] == SMALL.terms
    assert np.array_equal(Y[:, : SMALL.size], X)
    padded = LARGE.pad(X)
    assert padded.shape == Y.shape
    assert np.array_equal(padded[:, : SMALL.size], X)
    assert not padded[:, SMALL.size :].any()
    assert np.array_equal(LARGE.pad(X[0]), padded[0])


def test_the_bound_grows_and_holds():
    rng = np.random.default_rng(1)
    grown, context, arms = LARGE, {"vip": True}, [{"kind": "a", "price": 0}]
    for k in range(5):
        context |= {f"c{k}": True}
        arms = [{**arms[0], f"a{k}": True}]
        grown = grown.grow(context={f"c{k}": Flag()}, arm={f"a{k}": Flag()})
    assert np.linalg.norm(grown.encode(context, arms)) == pytest.approx(grown.norm, rel=1e-12)
    assert grown.problem().context_norm == grown.norm > LARGE.norm > SMALL.norm == 1.0
    for _ in range(50):
        LARGE.problem().check_contexts(LARGE.encode(*raw(rng)))


def test_growing_twice_comes_back_from_json():
    grown = LARGE.grow(context={"a": Flag()}).grow(arm={"z": Vector(2)})
    again = Recipe.from_dict(json.loads(json.dumps(grown.to_dict())))
    assert again == grown
    assert again.version == grown.version
    assert again.terms == grown.terms
    at_once = Features(context=grown.context, arm=grown.arm, dim="exact")
    assert set(at_once.terms) == set(grown.terms)
    assert at_once.terms != grown.terms
    assert at_once.version != grown.version
    for features in (SMALL, LARGE):
        assert grown.pad(np.ones(features.size)).sum() == features.size


def test_a_group_that_was_empty_gets_a_part_like_the_others():
    grown = Features(arm={"a": Flag(required=True)}).grow(context={"c": Flag(required=True)})
    x = grown.encode({"c": True}, [{"a": True}])[0]
    assert grown.terms == ("1", "a", "c", "c*a")
    assert np.allclose(x, np.sqrt(0.5))
    assert grown.norm == pytest.approx(np.sqrt(2.0))


def test_listed_interactions_grow_by_a_list():
    features = replace(SMALL, interactions=[("age", "price")])
    alone = features.grow(context={"vip": Flag()})
    both = features.grow(context={"vip": Flag()}, interactions=[("vip", "price")])
    assert alone.terms[-2:] == ("vip", "vip missing")
    assert both.terms[-8] == "vip*price"
    assert both.terms[-1] == "vip missing*price bend 3"
    with pytest.raises(ValueError, match="multiplied already"):
        SMALL.grow(context={"vip": Flag()}, interactions=[("vip", "price")])


def test_growth_beyond_the_limit_stays_exact():
    grown = SMALL.grow(context={"v": Vector(40)})
    assert grown.size == SMALL.size + 41 * 5
    assert grown.dim == "exact"
    assert LARGE.dim == 128


def test_terms_of_the_context_alone_stay_out_when_features_grow():
    tight = Features(context={"v": Vector(9)}, arm={"id": Category(["a", "b"])}, dim=40)
    assert "v[0]" not in tight.terms
    grown = tight.grow(context={"vip": Flag()})
    assert grown.terms[: tight.size] == tight.terms
    assert "vip" not in grown.terms


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Features(arm={"v": Vector(199)}).grow(arm={"x": Flag()}), "folded.*cannot grow"),
        (lambda: SMALL.grow(), "nothing to grow by"),
        (lambda: SMALL.grow(context={"age": Flag()}), "'age' is declared already"),
        (lambda: SMALL.grow(context={"price": Flag()}), "'price' is declared already"),
        (lambda: SMALL.grow(context={"x": 3}), "'x' must be a Number"),
        (lambda: LARGE.pad(np.ones(5)), "one of the lengths"),
        (lambda: LARGE.pad(3.0), "one of the lengths"),
        (lambda: grown_policy(DOMD(problem=LARGE.problem()), SMALL.problem()), "only grow"),
        (lambda: grown_policy(DOMD(problem=SMALL.problem()), SMALL.problem()), "only grow"),
        (
            lambda: grown_policy(DOMD(problem=SMALL.problem()), LARGE.problem(Gaussian())),
            "rewards stay",
        ),
        (
            lambda: grown_policy(Uniform(problem=Problem(dim=2)), LARGE.problem()),
            "cannot grow: use DOMD",
        ),
        (
            lambda: grown_rows(
                DOMD(problem=SMALL.problem()), DOMD(problem=LARGE.problem()), np.ones((1, 3))
            ),
            "rows of DOMD-GLB have",
        ),
    ],
)
def test_what_cannot_grow_says_so(make, words):
    with pytest.raises(ValueError, match=words):
        make()


POLICIES = {
    "domd": lambda problem: DOMD(problem=problem, half_life=40),
    "never forgets": lambda problem: DOMD(problem=problem, discount=1.0),
    "in a ball": lambda problem: DOMD(problem=replace(problem, radius=0.5), half_life=20),
    "theory": lambda problem: DOMD.from_theory(
        replace(problem, radius=1.0, horizon=500, path_length=3.0)
    ),
    "auto": lambda problem: AutoDOMD(problem=problem, renewal=1e6),
    "auto, leader": lambda problem: AutoDOMD(problem=problem, renewal=1e6, pool="leader"),
}


@pytest.mark.parametrize("rounds", [0, 7, 300])
@pytest.mark.parametrize("name", POLICIES)
def test_a_grown_learner_is_one_whose_new_columns_had_always_been_0(name, rounds):
    policy = POLICIES[name](SMALL.problem())
    larger = grown_policy(policy, LARGE.problem())
    small, always = policy.init(1), larger.init(1)
    rng = np.random.default_rng(rounds)
    for _ in range(rounds):
        x, r = SMALL.encode(*old(*raw(rng)))[:1], rng.integers(2, size=1).astype(float)
        small, always = policy.update(small, x, r), larger.update(always, LARGE.pad(x), r)
    rows = grown_rows(policy, larger, policy.rows(small))
    grown = larger.view(rows)
    assert larger.sane(grown)
    same(grown, always)
    for _ in range(60):  # and so they stay, also once the new columns speak
        X, r = LARGE.encode(*raw(rng)), rng.integers(2, size=1).astype(float)
        assert larger.choose(grown, X[None]) == larger.choose(always, X[None])
        grown, always = larger.update(grown, X[:1], r), larger.update(always, X[:1], r)
    same(grown, always)


def same(grown, always):
    for field, a, b in zip(grown._fields, grown, always):
        scale = max(1.0, float(np.abs(b).max()))
        assert np.allclose(a, b, rtol=1e-8, atol=1e-9 * scale), field


def test_after_renewals_only_the_floor_of_new_columns_differs():
    """A leader with more lambda than those who go on from its state, which a row does not tell."""
    policy = AutoDOMD(problem=SMALL.problem(), discounts=[0.9, 1.0], regularizations=[0.01, 2.0])
    larger = grown_policy(policy, LARGE.problem())
    small, always, rng = policy.init(1), larger.init(1), np.random.default_rng(0)
    for t in range(100):
        if t == 99:
            for memory in (small, always):
                memory.weights[0] = 1e-12
                memory.weights[0, 0, 2] = 1.0
        x = SMALL.encode(*old(*raw(rng)))[:1]
        r = np.array([float(t // 25 % 2)])
        small, always = policy.update(small, x, r), larger.update(always, LARGE.pad(x), r)
    grown, d = larger.view(grown_rows(policy, larger, policy.rows(small))), SMALL.size
    assert larger.sane(grown)
    assert not np.allclose(grown.Hs, always.Hs)
    assert np.allclose(grown.theta, always.theta, atol=1e-9)
    assert np.allclose(grown.Hs[..., :d, :d], always.Hs[..., :d, :d])
    assert np.allclose(grown.H[:, :d, :d], always.H[:, :d, :d])
    fresh = larger.init(1)
    assert np.array_equal(grown.Hs[..., d:, d:], fresh.Hs[..., d:, d:])


def test_what_a_learner_knows_is_kept():
    """Predictions, intervals and the grid, through a growth in the life of a bandit."""
    policy = AutoDOMD(problem=SMALL.problem())
    bandit, rng = Bandit(policy), np.random.default_rng(3)
    for _ in range(100):
        X = SMALL.encode(*old(*raw(rng)))
        bandit.update(X[bandit.choose(X)], int(rng.integers(2)))
    larger = grown_policy(policy, LARGE.problem())
    grown = larger.view(grown_rows(policy, larger, policy.rows(bandit.memory)))
    assert larger.discounts == policy.discounts
    assert np.allclose(grid_of(larger)[:2], grid_of(policy)[:2], rtol=1e-12)
    before = policy.scores(bandit.memory, X[None])
    after = larger.scores(grown, LARGE.pad(X)[None])
    for a, b in zip(before, after):
        assert np.allclose(a, b, atol=1e-9)
