"""A learner for each key: born from the population with limited trust, a function of the log."""

import json

import numpy as np
import pytest

from driftbandit import DOMD, AutoDOMD, Bandit, Category, Features, Flag, Loop, Number, Reward
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.learning.key_spread import KeySpread
from driftbandit.loop.learning.keyed import WIDE, born, born_near
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.state.reward_windows import Example
from driftbandit.loop.training import replay

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

CLICKS = Reward(0, 1, wait=100, missing=0)
FEATURES = Features(
    context={"age": Number(0, 100, required=True)},
    arm={"name": Category(["a", "b"], required=True)},
)
ARMS = {name: {"name": name} for name in "ab"}


def opened(folder, **options):
    new = {"features": FEATURES, "reward": CLICKS, "key": "user_id", "clock": "events"}
    return Loop(folder / "a.db", **(new | {"training": "inline", "exploration": 0.2} | options))


def play(loop, n=120, users=5, seed=0, start=0.0):
    """Users with an even number like a, the others b; returns what was earned."""
    rng, earned = np.random.default_rng(seed), []
    for t in start + 5.0 * np.arange(n):
        user = int(rng.integers(users))
        made = loop.decide(
            {"age": float(rng.uniform(0, 100))}, ARMS, id=f"{seed} {t}", key=f"u{user}", at=t
        )
        likes = made.arm == ("a" if user % 2 == 0 else "b")
        earned.append(likes)
        loop.reward(made.id, float(rng.random() < (0.9 if likes else 0.1)), at=t)
    loop.close_windows(start + 5.0 * n + 1000.0)
    return np.array(earned)


def begun(policy, population):
    """The row of a newcomer, by the formula."""
    d, old = policy.problem.dim, policy.view(population[None])
    t, gamma = old.t[0], policy.discount
    rounds = max(1.0, sum(gamma**k for k in range(int(t))))
    s, lam = min(1.0, 30.0 / rounds), policy.init(1).H[0, 0, 0]
    H = lam * np.eye(d) + s * (old.H[0] - lam * np.eye(d))
    return old.theta[0], H


def by_hand(loop):
    """Population and learners, trained example by example from the log."""
    policy = DOMD(problem=FEATURES.problem(CLICKS))
    population_row, own = policy.fresh.copy(), {}
    population = Bandit.from_row(policy, population_row)
    lines = {line["seq"]: line for line in loop.log().iter_rows(named=True)}
    for example in replay.unfold(loop.ledger, loop.runtime.reread(), None)[1]:
        assert isinstance(example, Example)
        line = lines[example.decision]
        if line["key"] not in own:
            row = population_row.copy()
            own[line["key"]] = Bandit.from_row(policy, born(policy, row, 30.0))
            theta, H = begun(policy, row)
            assert np.array_equal(own[line["key"]].theta, theta)
            assert np.allclose(own[line["key"]].curvature, H, rtol=1e-9)
        x = FEATURES.encode(json.loads(line["context"]), [ARMS[line["arm"]]])[0]
        for bandit in (own[line["key"]], population):
            bandit.update(x, CLICKS.inside(line["reward"])[0])
    return population, own


def check(loop):
    again = replay.replay(loop.ledger, loop.runtime.reread(), replay.origin(loop.ledger))
    assert again.learner.digest == loop.digest
    assert all(audit.logged == audit.computed for audit in loop.audits())


def test_each_key_has_its_learner(tmp_path):
    with opened(tmp_path, population=30, policy=DOMD) as loop:
        assert isinstance(loop.declaration.policy, DOMD)
        play(loop)
        population, own = by_hand(loop)
        learner = loop.runtime.learner
        assert np.array_equal(population.theta, learner.bandit.theta)
        found = learner.bandits
        assert set(own) == set(found) == {f"u{k}" for k in range(5)}
        for key, bandit in own.items():
            assert np.array_equal(bandit.theta, found[key].theta)
            assert np.array_equal(bandit.curvature, found[key].curvature)
            assert bandit.rounds < population.rounds
        check(loop)
        digest = loop.digest
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.digest == digest
        play(loop, 40, seed=1, start=5000.0)
        check(loop)


def test_who_is_new_decides_like_the_population(tmp_path):
    with opened(tmp_path, exploration=0.0) as loop:
        play(loop, users=2)
        learner = loop.runtime.learner
        known, new = (learner.view(1e4, key).bandit for key in ("u0", "nobody"))
        assert np.array_equal(new.theta, learner.bandit.theta)
        assert not np.array_equal(known.theta, new.theta)
        assert new.rounds == 0
        X = FEATURES.encode({"age": 50.0}, ARMS)
        widths = [np.ptp(b.predict(X, level=0.9)[1:], axis=0) for b in (learner.bandit, new)]
        assert (widths[1] > widths[0]).all()  # it trusts less
        made = loop.decide({"age": 5.0}, ARMS, key="nobody", at=1e4)
        assert made.arm == list(ARMS)[new.choose(FEATURES.encode({"age": 5.0}, ARMS))]


def test_it_pays_where_people_differ(tmp_path):
    shares = {}
    for key in ("user_id", None):
        folder = tmp_path / str(key)
        folder.mkdir()
        with opened(folder, key=key, policy=DOMD) as loop:
            shares[key] = play(loop, 300, users=4)[150:].mean()
    assert shares["user_id"] > 0.75 > shares[None] + 0.1


@pytest.mark.parametrize("half_life", ["20min", "1d"])
def test_in_time_and_while_growing(tmp_path, half_life):
    with opened(tmp_path, half_life=half_life) as loop:
        play(loop, 60)
        loop.add_features(context={"vip": Flag()})
        play(loop, 30, seed=1, start=2000.0)
        check(loop)
        digest = loop.digest
        learner = loop.runtime.learner
        assert {own.theta.size for own in learner.bandits.values()} == {loop.features.size}
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.digest == digest
        check(loop)


@pytest.mark.parametrize("relearn", [True, False])
def test_who_is_erased_has_no_learner(tmp_path, relearn):
    with opened(tmp_path) as loop:
        play(loop)
        loop.erase(key="u3", relearn=relearn)
        assert "u3" not in loop.runtime.learner.bandits
        play(loop, 30, seed=1, start=5000.0)
        check(loop)
        digest = loop.digest
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.digest == digest


def test_in_the_background_and_as_slates(tmp_path):
    with opened(tmp_path, training="background") as loop:
        play(loop, 60)
        slate = loop.decide({"age": 3.0}, ARMS, k=2, key="u1", at=3000.0)
        loop.reward(slate.id, 1, position=1)
        loop.close_windows(4000.0)
        assert loop.wait_until_trained(10.0)
        check(loop)
        assert loop.health().decisions == 61


def test_a_checkpoint_that_is_not_whole_is_left_out(tmp_path):
    with opened(tmp_path) as loop:
        play(loop, 40)
        about, state = loop.runtime.learner.state()
        version = loop.runtime.learner.version
        with pytest.raises(LedgerError, match="not whole"):
            loop.runtime.learner.load(about, state[:-8], version)


def test_what_is_wrong_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be DOMD"):
        opened(tmp_path, policy=AutoDOMD, name="x")
    for bad in ("", 3, "a\n"):
        with pytest.raises(ValueError, match="key must"):
            opened(tmp_path, key=bad, name="x")
    with opened(tmp_path) as loop, pytest.raises(ValueError, match=r"user_id.*pass key="):
        loop.decide({"age": 3.0}, ARMS, at=0.0)
    with pytest.raises(ValueError, match="another key"):
        Loop(tmp_path / "a.db", key="session")


# How much keys differ is learnt


def naive_variance(examples):
    """Moments over pairs of examples of one key that follow each other."""
    top, bottom, latest = 0.02, 0.02, {}
    for key, x, error, slope in examples:
        if key in latest:
            y, before, its = latest[key]
            top = top * (1 - 1e-4) + error * before * (x @ y)
            bottom = bottom * (1 - 1e-4) + slope * its * (x @ y) ** 2
        latest[key] = x, error, slope
    return max(top, 0.0) / bottom


@pytest.mark.parametrize("differ", [0.0, 0.5, 1.0])
def test_the_spread_is_that_of_the_moments_and_near_the_truth(differ):
    """Few keys, none of which share a place."""
    rng, spread, seen = np.random.default_rng(3), KeySpread(3), []
    keys = [f"u{k}" for k in (0, 1, 2, 3, 5, 6, 9, 10)]
    own = {key: rng.normal(0.0, differ, 3) for key in keys}
    for n in range(4000):
        key, x = keys[rng.integers(len(keys))], rng.normal(size=3) / 2
        p = 1 / (1 + np.exp(-x @ own[key]))
        seen.append((key, x, float(rng.random() < p) - 0.5, 0.25))
        spread.take(key, x, seen[-1][2], 0.25, n)
    assert spread.variance == pytest.approx(naive_variance(seen), rel=1e-9)
    truth = np.mean([own[key] ** 2 for key in keys])
    assert spread.variance == pytest.approx(truth, abs=0.1 + 0.35 * truth)
    again = KeySpread.from_text(spread.to_text())
    assert again.variance == spread.variance
    again.drop("u0")
    assert again.to_text() != spread.to_text()
    assert again.variance == spread.variance  # what it added stays


def test_a_newcomer_is_as_sure_as_keys_are_alike():
    rng = np.random.default_rng(4)
    policy = DOMD(problem=FEATURES.problem(CLICKS), discount=1.0)
    row = policy.fresh.copy()
    population = Bandit.from_row(policy, row)
    for _ in range(400):
        x = FEATURES.encode({"age": float(rng.uniform(0, 100))}, ARMS)[rng.integers(2)]
        population.update(x, float(rng.random() < 0.3))
    lam, d = policy.init(1).H[0, 0, 0], policy.problem.dim
    for variance in (0.0, 0.3, 100.0):
        made = Bandit.from_row(policy, born_near(policy, row, variance))
        P = population.curvature - lam * np.eye(d)
        values, vectors = np.linalg.eigh(P)
        expected = lam * np.eye(d) + (vectors * (values / (1 + variance * values))) @ vectors.T
        assert np.allclose(made.curvature, expected, atol=1e-8)
        assert np.array_equal(made.theta, population.theta)
        assert np.linalg.eigvalsh(made.curvature).min() >= lam


def test_what_the_loop_has_learnt_of_differences_is_in_checkpoints_and_replays(tmp_path):
    with opened(tmp_path) as loop:
        assert loop.declaration.population == "auto"
        play(loop, 200, users=6)
        learnt = loop.runtime.learner.spread.variance
        assert learnt != 1.0
        row = born_near(loop.policy, loop.runtime.learner.row, WIDE * learnt)
        new = loop.runtime.learner.view(1e5, "nobody").bandit
        assert np.array_equal(new.curvature, Bandit.from_row(loop.policy, row).curvature)
        check(loop)
        digest = loop.digest
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert (loop.digest, loop.runtime.learner.spread.variance) == (digest, learnt)


@pytest.mark.parametrize("population", [0, -1, "much", True])
def test_the_weight_of_the_population_is_a_number_of_rewards(tmp_path, population):
    with pytest.raises(ValueError, match="population must be"):
        opened(tmp_path, population=population)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_checkpoint_may_be_larger_than_a_value_of_the_database(
    store, tmp_path, request, monkeypatch
):
    """One value held all keys: beyond 10^9 bytes `close` failed."""
    monkeypatch.setattr("driftbandit.loop.storage.ledger.PIECE", 700)
    monkeypatch.setattr("driftbandit.loop.writing.writer.EVERY", 25)
    path = tmp_path / "a.db"
    if store == "postgres":
        path = request.getfixturevalue("postgres").url()
    new = {"features": FEATURES, "reward": CLICKS, "key": "user_id", "clock": "events"}
    with Loop(path, training="inline", **new) as loop:
        play(loop, users=20)
        digest = loop.digest
        assert len(loop.runtime.learner.state()[1]) > 5 * 700
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
        loop.erase(key="u3")
        digest = loop.digest
    (found,) = verify(path)
    assert found.holds, found
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest
