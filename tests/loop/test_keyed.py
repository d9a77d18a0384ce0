"""A learner for each key: the population's knowledge and its own, a function of the log."""

import numpy as np
import pytest

from driftbandit import DOMD, AutoDOMD, Bandit, Category, Features, Flag, Loop, Number, Reward
from driftbandit.loop.config import Declaration
from driftbandit.loop.errors import LedgerError
from driftbandit.loop.learning.key_rules import Pooled, Population
from driftbandit.loop.learning.key_spread import KeySpread
from driftbandit.loop.learning.keyed import learner_for
from driftbandit.loop.reporting.verification import verify
from driftbandit.loop.state.definition import Version
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


def pooled(H, b, population, variance):
    """Theta and H that decide for a key with this evidence, by the formulas of `Pooled`."""
    eye = np.eye(len(b))
    Q = np.linalg.inv(np.linalg.inv(population.curvature) + variance * eye)
    return np.linalg.solve(Q + H - eye, Q @ population.theta + b), Q + H - eye


def started(policy):
    """A bandit that has seen nothing, and its memory."""
    row = policy.fresh.copy()
    return Bandit.from_row(policy, row), policy.view(row[None])


def newborn(policy, everybody, theirs):
    """A key without rewards, which has the population's dispersion, and its memory."""
    bandit, mine = started(policy)
    mine.g[:] = theirs.g
    share = min(1.0, 30.0 / max(1.0, everybody.explain().memory))
    mine.basis[:] = max(float(mine.basis[0]), share * float(theirs.basis[0]))
    return bandit, mine


def step(bandit, memory, x, r, gamma):
    """A reward more; H = I + Lambda and H theta forget, and the prior stays at 0."""
    eye = np.eye(len(x))
    says = gamma * memory.H[0] @ memory.theta[0]
    memory.H[0] = gamma * memory.H[0] + (1.0 - gamma) * eye
    memory.theta[0] = np.linalg.solve(memory.H[0], says)
    bandit.update(x, r, steps=0.0)


def trained(population, n=120, seed=3, keys=5, half_life=20):
    """A keyed learner without a loop, and the examples that it was trained."""
    reward = Reward(0, 1)
    policy = DOMD(problem=FEATURES.problem(reward), half_life=half_life)
    told = Declaration(
        features=FEATURES, reward=reward, key="user_id", policy=policy, population=population
    )
    learner = learner_for(told, Version(FEATURES, policy, None))
    rng, seen = np.random.default_rng(seed), []
    for k in range(n):
        x = FEATURES.encode({"age": float(rng.uniform(0, 100))}, ARMS)[rng.integers(2)]
        seen.append((f"u{rng.integers(keys)}", x, float(rng.random() < 0.3)))
        key, _, r = seen[-1]
        learner.learn(Example(k + 1, k + 1, 0.0, r, key=key), x)
    return learner, policy, seen


def check(loop):
    again = replay.replay(loop.ledger, loop.runtime.reread(), replay.origin(loop.ledger))
    assert again.learner.digest == loop.digest
    assert all(audit.logged == audit.computed for audit in loop.audits())


@pytest.mark.parametrize("population", ["auto", 30])
def test_a_decision_knows_the_population_of_now_and_the_own_rewards(population):
    learner, policy, seen = trained(population)
    (everybody, theirs), own = started(AutoDOMD(problem=policy.problem)), {}
    for key, x, r in seen:
        if key not in own:
            own[key] = newborn(policy, everybody, theirs)
        step(*own[key], x, r, policy.discount)
        everybody.update(x, r)
    assert np.array_equal(everybody.theta, learner.bandit.theta)
    assert set(learner.bandits) == set(own)
    for key, (mine, _) in own.items():
        H, b = mine.curvature, mine.curvature @ mine.theta
        found = learner.view(0.0, key).bandit
        if population == "auto":
            theta, curvature = pooled(H, b, everybody, learner.spread.variance)
        else:
            s, eye = min(1.0, 30.0 / everybody.explain().memory), np.eye(len(b))
            Q = s * everybody.curvature + (1.0 - s) * eye
            curvature = Q + H - eye
            theta = np.linalg.solve(curvature, Q @ everybody.theta + b)
        assert np.allclose(found.theta, theta, atol=1e-6)
        assert np.allclose(found.curvature, curvature, atol=1e-6)
        assert np.array_equal(learner.bandits[key].theta, found.theta)


def test_what_the_population_learns_reaches_a_key_that_is_known_already():
    learner, _, seen = trained("auto", n=1, keys=1)
    before = learner.view(0.0, "u0").bandit.theta.copy()
    known = np.frombuffer(learner.spread.to_bytes()).copy()
    known[:2] = 0.01, 10.0  # keys are alike
    learner.spread = KeySpread.from_bytes(known.tobytes())
    for k in range(300):
        _, x, _ = seen[0]
        r = float(k % 5 > 0)
        learner.learn(Example(k + 2, k + 2, 0.0, r, key=f"other {k}"), x)
    after, new = (learner.view(0.0, key).bandit.theta for key in ("u0", "new"))
    assert x @ after > 0.8 > 0.0 > x @ before
    assert x @ after == pytest.approx(x @ new, abs=0.5)


def test_the_limits_of_how_much_keys_differ():
    learner, policy, _ = trained("auto")
    rule, row = Pooled("auto"), learner.newborn()
    own = Bandit.from_row(policy, row)
    for _ in range(20):
        own.update(FEATURES.encode({"age": 5.0}, ARMS)[0], 1.0)

    def decider(row, variance, steps=0.0):
        everybody = Population(learner.policy, learner.row, variance)
        return Bandit.from_row(policy, rule.decider(policy, row, steps, everybody))

    alike, apart = decider(None, 0.0), decider(row, 1e12)
    assert np.array_equal(alike.theta, learner.bandit.theta)
    assert np.allclose(alike.curvature, learner.bandit.curvature)
    evidence = own.curvature - np.eye(len(own.theta))
    assert np.allclose(apart.curvature, evidence, atol=1e-6)
    assert np.allclose(apart.curvature @ apart.theta, own.curvature @ own.theta, atol=1e-6)
    old, new = decider(row, 0.5, steps=2000.0), decider(None, 0.5)  # all is forgotten
    assert np.allclose(old.theta, new.theta, atol=1e-6)
    assert np.allclose(old.curvature, new.curvature, atol=1e-6)


def test_a_ledger_of_version_0_2_keeps_its_rule():
    """A key begins with the population of its first reward, worth 30 rewards, and goes its way."""
    learner, policy, seen = trained(None)
    (everybody, theirs), own, lam = started(policy), {}, np.eye(policy.problem.dim)
    for key, x, r in seen:
        if key not in own:
            n = max(1.0, sum(policy.discount**k for k in range(everybody.rounds)))
            own[key], memory = started(policy)
            memory.theta[0], memory.g[:] = everybody.theta, theirs.g
            memory.basis[:] = np.maximum(1.0, min(1.0, 30.0 / n) * theirs.basis)
            memory.H[0] = lam + min(1.0, 30.0 / n) * (everybody.curvature - lam)
        own[key].update(x, r)
        everybody.update(x, r)
    assert np.array_equal(everybody.theta, learner.bandit.theta)
    for key, bandit in own.items():
        assert np.allclose(learner.view(0.0, key).bandit.theta, bandit.theta, rtol=1e-9)
        assert np.allclose(learner.view(0.0, key).bandit.curvature, bandit.curvature, rtol=1e-9)


def test_each_key_has_its_learner(tmp_path):
    with opened(tmp_path, population=30, policy=DOMD) as loop:
        assert isinstance(loop.declaration.policy, DOMD)
        play(loop)
        learner = loop.runtime.learner
        assert set(learner.bandits) == {f"u{k}" for k in range(5)}
        assert all(each.rounds < learner.bandit.rounds for each in learner.bandits.values())
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


def test_what_the_loop_has_learnt_of_differences_is_in_checkpoints_and_replays(tmp_path):
    with opened(tmp_path) as loop:
        assert loop.declaration.population == "auto"
        play(loop, 200, users=6)
        learnt = loop.runtime.learner.spread.variance
        assert learnt != 1.0
        learner = loop.runtime.learner
        H = learner.bandit.curvature
        Q = np.linalg.inv(np.linalg.inv(H) + learnt * np.eye(len(H)))
        assert np.allclose(learner.view(1e5, "nobody").bandit.curvature, Q)
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
