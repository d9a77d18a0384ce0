"""Rules of the loop: probabilities are what is drawn, exactly, and a retry draws the same."""

import math
import os
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from driftbandit import (
    DOMD,
    GLMUCB,
    AutoDOMD,
    Bandit,
    Features,
    Gaussian,
    Greedy,
    Loop,
    Number,
    Problem,
    Recipe,
    Reward,
    Uniform,
)
from driftbandit.loop.config import Declaration, Settings
from driftbandit.loop.deciding.choose import decided
from driftbandit.loop.deciding.request import request
from driftbandit.loop.deciding.types import Request, View
from driftbandit.loop.exploration import (
    Floor,
    InverseGap,
    Rule,
    Thompson,
    draw,
    means,
    pick,
)

RULES = [Floor(0.1), Thompson(0.1, draws=4), InverseGap(0.1, strength=3.0)]
DECISIONS = 100_000 if "TORTURE" in os.environ else 15_000
ARMS = np.array([[0.9, 0.1], [0.8, -0.2], [0.5, 0.6]])
WORDS = (7, "decision 1", "AutoDOMD")
quick = settings(max_examples=30, deadline=None, derandomize=True)


def trained(policy=DOMD, rounds=12, dim=2, seed=0, **options):
    bandit, rng = Bandit(policy(problem=Problem(dim=dim), **options)), np.random.default_rng(seed)
    for _ in range(rounds):
        x = rng.normal(size=dim)
        bandit.update(x / np.linalg.norm(x), float(rng.random() < 0.5))
    return bandit


def unit_rows(rng, *shape):
    X = rng.normal(size=shape)
    return X / np.linalg.norm(X, axis=-1, keepdims=True)


# The hash


def test_uniforms_are_uniform_and_depend_on_every_word():
    u = np.array([draw(7, f"{k}", "pick") for k in range(20_000)])
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.03
    other = np.array([draw(7, f"{k}", "holdout") for k in range(20_000)])
    assert abs(np.corrcoef(u, other)[0, 1]) < 0.03


def test_words_are_kept_apart_and_never_change():
    words = [(1, "a", "b"), ("1", "a", "b"), (1, "ab"), (1, "a", "b", ""), (1, 'a", "b')]
    assert len({draw(*each) for each in words}) == len(words)
    assert draw(7, "decision 1", "pick") == 0.7007367609365138  # in every version


# Picking


@pytest.mark.parametrize("rule", RULES)
def test_arms_come_with_their_probabilities(rule):
    """A chi-square test; where p differs between decisions, within equal p."""
    bandit, found = trained(), defaultdict(Counter)
    for k in range(DECISIONS):
        words = (7, f"{k}", "DOMD")
        p = rule.probabilities(bandit, ARMS, words)
        found[tuple(p.tolist())][pick(p, words)] += 1
    often = {p: seen for p, seen in found.items() if seen.total() * min(p) >= 5.0}
    statistic = sum(
        (seen[arm] - q * seen.total()) ** 2 / (q * seen.total())
        for p, seen in often.items()
        for arm, q in enumerate(p)
    )
    assert sum(seen.total() for seen in often.values()) > 0.98 * DECISIONS
    assert (len(often) > 5) == isinstance(rule, Thompson)
    assert stats.chi2.sf(statistic, 2 * len(often)) > 1e-3


@quick
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8).filter(any), st.text())
def test_an_arm_of_probability_0_is_never_picked(parts, word):
    p = np.array(parts) / sum(parts)
    assert p[pick(p, (word,))] > 0.0


@pytest.mark.parametrize(("u", "arm"), [(0.0, 1), (0.25 - 2**-54, 1), (0.25, 3), (1.0 - 2**-53, 3)])
def test_picking_at_the_edges(monkeypatch, u, arm):
    monkeypatch.setattr("driftbandit.loop.exploration.draw", lambda *words: u)
    assert pick(np.array([0.0, 0.25, 0.0, 0.75, 0.0]), WORDS) == arm


# Probabilities


@pytest.mark.parametrize("rule", [*RULES, Floor(), Floor(1.0), Thompson(), InverseGap()])
def test_probabilities_sum_to_one_exactly_and_keep_the_floor(rule):
    rng = np.random.default_rng(1)
    for n_arms in [1, 2, 3, 7, 50, 333]:
        bandit, X = (
            trained(AutoDOMD, rounds=int(rng.integers(40)), dim=3),
            unit_rows(rng, n_arms, 3),
        )
        p = rule.probabilities(bandit, X, (1, f"{n_arms}", ""))
        assert math.fsum(p) == 1.0
        assert p.shape == (n_arms,)
        assert p.min() >= rule.uniform / n_arms * (1.0 - 1e-12)
        assert (p > 0.0).all() or rule.uniform == 0.0


@quick
@given(st.integers(1, 30), st.floats(0.0, 1.0), st.integers(0, 9))
def test_the_floor_is_its_formula(n_arms, share, seed):
    bandit, X = trained(seed=seed), unit_rows(np.random.default_rng(seed), n_arms, 2)
    best, exact = bandit.choose(X), Fraction(share)
    for arm, p in enumerate(Floor(share).probabilities(bandit, X, WORDS)):
        expected = (1 - exact) * (arm == best) + exact / n_arms
        assert p == pytest.approx(float(expected), rel=1e-14, abs=1e-16)


def test_thompson_draws_from_the_normal_distribution_of_the_estimate():
    """The histograms of many decisions against winners of plain draws from N(theta, width^2 V)."""
    bandit, rng, n = trained(AutoDOMD), np.random.default_rng(3), 400
    rule = Thompson(draws=50, width=1.5)
    p = np.mean([rule.probabilities(bandit, ARMS, (k,)) for k in range(n)], axis=0)
    V = 1.5**2 * np.linalg.inv(bandit.curvature)
    drawn = rng.multivariate_normal(bandit.theta, V, size=50 * n)
    q = np.bincount(np.argmax(drawn @ ARMS.T, axis=1), minlength=3) / (50 * n)
    assert np.abs(p - q).max() < 4.0 * math.sqrt(2 * 0.25 / (50 * n))


def test_thompson_without_width_plays_the_best_mean():
    bandit = trained()
    p = Thompson(width=0.0).probabilities(bandit, ARMS, WORDS)
    assert p[np.argmax(ARMS @ bandit.theta)] == 1.0


def test_inverse_gaps_are_the_formula_of_squarecb():
    bandit = trained(AutoDOMD, rounds=99)
    mean = bandit.predict(ARMS).mean
    expected = 1.0 / (3 + 2.0 * math.sqrt(100.0) * (mean.max() - mean))
    expected[np.argmax(mean)] += 1.0 - expected.sum()
    p = InverseGap(strength=2.0).probabilities(bandit, ARMS, WORDS)
    np.testing.assert_allclose(p, expected, rtol=1e-14)
    assert p.argmax() == mean.argmax()


def test_inverse_gaps_have_no_unit():
    """Rewards ten times as large, with their range: the same probabilities."""
    small, large = (
        Bandit(DOMD(problem=Problem(dim=2, family=family, radius=1e3), regularization=lam))
        for family, lam in ((Gaussian(1.0, 4.0), 1.0), (Gaussian(100.0, 40.0), 0.01))
    )
    for x, r in (([1.0, 0.0], 1.0), ([0.0, 1.0], -0.5), ([0.6, 0.8], 2.0)):
        small.update(x, r)
        large.update(x, 10.0 * r)
    p, q = (InverseGap().probabilities(b, ARMS, WORDS) for b in (small, large))
    np.testing.assert_allclose(p, q, rtol=1e-12)
    assert p.max() - p.min() > 0.1


def test_means_are_those_of_predict():
    bandit = trained(AutoDOMD)
    np.testing.assert_allclose(means(bandit, ARMS), bandit.predict(ARMS).mean, rtol=1e-14)


@pytest.mark.parametrize("rule", RULES)
def test_equal_arms_are_no_trouble(rule):
    """Ties go to the lowest index; with the floor the others still have their chance."""
    p = rule.probabilities(trained(), np.tile(ARMS[0], (4, 1)), WORDS)
    assert math.fsum(p) == 1.0
    assert p.argmax() == 0
    assert p.min() >= 0.1 / 4 * (1.0 - 1e-12)


# Retries


@pytest.mark.parametrize("rule", [*RULES, Thompson(0.3, draws=9)])
def test_a_retry_gives_the_same_answer_and_leaves_the_learner_alone(rule):
    bandit, twin = trained(AutoDOMD), trained(AutoDOMD)
    first = rule.probabilities(bandit, ARMS, WORDS)
    for _ in range(3):
        assert np.array_equal(rule.probabilities(bandit, ARMS, WORDS), first)
        assert pick(first, WORDS) == pick(first, WORDS)
    assert np.array_equal(rule.probabilities(twin, ARMS, WORDS), first)
    one, other = bandit.__getstate__(), twin.__getstate__()
    assert one["stream"] == other["stream"]
    assert all(map(np.array_equal, one["memory"], other["memory"]))


def test_decisions_with_other_words_are_other_draws():
    bandit, rule = trained(), Thompson(draws=4)
    found = {tuple(rule.probabilities(bandit, ARMS, (7, f"{k}", "DOMD"))) for k in range(200)}
    assert len(found) > 5


# Slates


def slate(rule, bandit, X, id):
    """k arms by a rule, from the rows X (k, K, dim) of every position, and their probabilities."""
    names = list(range(X.shape[1]))
    asked = Request({}, names, [{} for _ in names], None, len(X), id, None)
    view = View(bandit, "DOMD", 0, 0, 0.0)
    arms, p = decided(Settings(exploration=rule), asked, "active", (7,), X, view)
    return np.array(arms), p


@pytest.mark.parametrize("rule", RULES)
def test_a_slate_comes_with_its_probability(rule):
    """The chain rule: k arms in order as often as the product of conditional probabilities says."""
    rng, bandit = np.random.default_rng(2), trained()
    X, found, expected = unit_rows(rng, 2, 3, 2), Counter(), Counter()
    for k in range(2000):
        arms, p = slate(rule, bandit, X, f"{k}")
        found[tuple(arms.tolist())] += 1
        for a in range(3):
            for b in {0, 1, 2} - {a}:
                left = np.array([c for c in range(3) if c != a])
                if a != arms[0]:  # what the second position would have been
                    second = rule.probabilities(bandit, X[1, left], (7, f"{k}", "DOMD", 1))
                    expected[a, b] += p[0, a] * second[list(left).index(b)]
                else:
                    expected[a, b] += p[0, a] * p[1, b]
    for order, n in expected.items():
        assert abs(found[order] - n) < 4.0 * math.sqrt(n)
    assert sum(expected.values()) == pytest.approx(2000)


def test_a_slate_follows_the_floor_rule_among_arms_that_are_left():
    bandit, rng = trained(), np.random.default_rng(4)
    X = np.tile(unit_rows(rng, 6, 2), (4, 1, 1))
    for k in range(50):
        arms, p = slate(Floor(0.3), bandit, X, f"{k}")
        assert len(set(arms.tolist())) == 4
        for place in range(4):
            before, left = arms[:place], 6 - place
            assert math.fsum(p[place]) == 1.0
            assert (p[place, before] == 0.0).all()
            rest = np.delete(np.arange(6), before)
            best = rest[bandit.choose(X[place, rest])]
            assert p[place, best] == pytest.approx(0.7 + 0.3 / left)
            assert sorted(p[place])[place] == pytest.approx(0.3 / left)
    no_floor, _ = slate(Floor(), bandit, X, "one")
    assert np.array_equal(no_floor, bandit.choose(X[0], k=4))


@pytest.mark.parametrize("k", [0, 4])
def test_slates_of_impossible_size_are_refused(k):
    arms = {name: {} for name in "abc"}
    with pytest.raises(ValueError, match=r"k must be .*(arms, 3|from 1 to)"):
        request({}, arms, None, k)


# At the door


@pytest.mark.parametrize("rule", [*RULES, Thompson(0.2, draws=7, width=2.0)])
def test_rules_go_to_json_and_back(rule):
    assert Recipe.from_dict(rule.to_dict()) == rule


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Floor(-0.1), "uniform must be 0 or above"),
        (lambda: Floor(1.5), "uniform must be at most 1"),
        (lambda: Floor("0.1"), "uniform must be a number"),
        (lambda: Thompson(draws=0), "draws must be a whole number from 1"),
        (lambda: Thompson(width=math.nan), "width must be a number"),
        (lambda: InverseGap(strength=-1.0), "strength must be 0 or above"),
    ],
)
def test_options_that_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("rule", "policy", "message"),
    [
        (
            Floor(0.1),
            DOMD(problem=Problem(dim=2), exploration="thompson"),
            r"exploration=Thompson\(\)",
        ),
        (Floor(0.1), Uniform(problem=Problem(dim=2)), "probabilities are not known"),
        (Thompson(), GLMUCB.from_theory(Problem(dim=2, radius=1.0)), "use DOMD"),
        (InverseGap(), Uniform(problem=Problem(dim=2)), "use DOMD"),
    ],
)
def test_policies_that_do_not_fit_a_rule_are_refused(rule, policy, message):
    with pytest.raises(ValueError, match=message):
        rule.probabilities(Bandit(policy), ARMS, WORDS)


@pytest.mark.parametrize("rule", RULES)
def test_arms_that_are_no_contexts_are_refused(rule):
    for X in (np.array([[math.nan, 0.0]]), np.array([[3.0, 0.0]])):
        with pytest.raises(ValueError, match="context 0"):
            rule.probabilities(trained(), X, WORDS)


def test_a_rule_of_ones_own_gets_the_floor():
    class Last(Rule):
        def weights(self, bandit, X, words):
            return np.eye(len(X))[-1]

    p = Last(0.3).probabilities(trained(Greedy), ARMS, WORDS)
    np.testing.assert_allclose(p, [0.1, 0.1, 0.8], rtol=1e-15)


TWO_ARMS = {"a": {"price": 1.0}, "b": {"price": 0.0}}
DRAWN = {
    "features": Features(context={}, arm={"price": Number(0, 1)}),
    "reward": Reward(0, 1, wait="1h"),
    "policy": DOMD,
}


def test_two_loops_draw_on_their_own():
    """The same visits in two loops: holdouts and explorations of one say nothing of the other's."""
    visits, options = 1500, {"exploration": 0.6, "holdout": 0.2, **DRAWN}
    told = []
    for name in ("banner", "headline"):
        with Loop(":memory:", name=name, **options) as loop:
            told.append(np.array([visited(loop, str(k)) for k in range(visits)], dtype=float))
    for what in zip(told[0].T, told[1].T):  # the correlation was 1 when only the seed was hashed
        assert abs(np.corrcoef(*what)[0, 1]) < 4.0 / math.sqrt(visits)


def visited(loop, visit):
    """Whether a visit was in the holdout, and whether it got the other arm."""
    made = loop.decide({}, TWO_ARMS, id=visit, key=f"user {visit}", default="a")
    return made.role == "holdout", made.arm == "b"


def test_draws_depend_on_seed_name_and_id_alone(tmp_path):
    ids, told = [str(k) for k in range(200)], []
    for path, name in ((":memory:", "one"), (tmp_path / "a.db", "one"), (":memory:", "other")):
        with Loop(path, name=name, exploration=0.5, **DRAWN) as loop:
            told.append([loop.decide({}, TWO_ARMS, id=id).arm for id in ids])
    assert told[0] == told[1] != told[2]


def test_a_ledger_without_a_draw_version_draws_by_its_seed_alone():
    stored = Declaration(**DRAWN).to_dict()
    old = Recipe.from_dict({k: v for k, v in stored.items() if k not in ("name", "draws")})
    assert old.seed_words == (0,)
    assert Declaration(**DRAWN, name="shop", draws=2).seed_words == (0, "shop")
    with pytest.raises(ValueError, match="draws of version 3 are unknown: upgrade"):
        Declaration(**DRAWN, draws=3)
