"""Items: names with an effect of their own, in a fixed number of slots."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from driftbandit import (
    DOMD,
    AutoDOMD,
    Bandit,
    Category,
    Features,
    Fleet,
    Item,
    LinUCB,
    Log,
    Loop,
    Number,
    Recipe,
    Reward,
    Thompson,
    evaluate,
)

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(
    context={"likes": Category(["news", "sport"], required=True)},
    arm={"topic": Category(["news", "sport"], required=True), "article": Item(slots=3)},
)
PROBLEM = FEATURES.problem(Reward(0, 1))


def offered(t, n=3):
    """Articles of round t: a new one every ten rounds."""
    return {f"a{t // 10 + k}": {"topic": ["news", "sport"][k % 2], "article": f"a{t // 10 + k}"}
            for k in range(n)}  # fmt: skip


def stream(n, seed=0):
    """Contexts, rows of the arms and rewards of them."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        context = {"likes": ["news", "sport"][int(rng.integers(2))]}
        yield FEATURES.encode(context, offered(t)), (rng.random(3) < 0.3).astype(float)


def played(policy, n=60):
    bandit = Bandit(policy)
    for X, rewards in stream(n):
        k = bandit.choose(X)
        bandit.update(X[k], rewards[k])
    return bandit


@pytest.mark.parametrize("policy", [DOMD(problem=PROBLEM, discount=1.0), DOMD(problem=PROBLEM)])
def test_an_item_is_a_category_of_names_whose_oldest_is_forgotten(policy):
    """Against a learner with a coordinate for every name there ever is: its rows are the same, and
    a name that made way is taken out of its covariance."""
    at, slots = PROBLEM.items
    names = [f"a{k}" for k in range(20)]
    d = at + 1 + len(names)
    wide = DOMD(problem=type(PROBLEM)(dim=d, family=PROBLEM.family), discount=policy.discount)
    bandit, naive, held = Bandit(policy), Bandit(wide), {}
    for t, (X, rewards) in enumerate(stream(60)):
        rows = np.zeros((3, d))
        rows[:, :at] = X[:, :at]
        for k, name in enumerate(offered(t)):
            rows[k, at + 1 + names.index(name) if name in held else at] = X[k, at]
        k = naive.choose(rows)
        assert bandit.choose(X) == k
        np.testing.assert_allclose(bandit.predict(X).mean, naive.predict(rows).mean, atol=1e-9)
        name = list(offered(t))[k]
        if name not in held and len(held) == slots:
            forget(naive, at + 1 + names.index(min(held, key=held.get)))
            del held[min(held, key=held.get)]
        held[name] = t
        x = np.zeros(d)
        x[:at], x[at + 1 + names.index(name)] = X[k, :at], X[k, at]
        bandit.update(X[k], rewards[k])
        naive.update(x, rewards[k])
    assert len(held) == slots


def forget(bandit, c):
    """Take a coordinate out of the covariance, and put the prior there."""
    V, theta = np.linalg.inv(bandit.curvature), bandit.theta.copy()
    V[c, :] = V[:, c] = 0.0
    V[c, c] = 1.0 / bandit.policy.regularization
    theta[c] = 0.0
    H = np.linalg.inv(V)
    bandit.__setstate__(
        bandit.__getstate__()
        | {"memory": tuple(bandit.memory._replace(H=((H + H.T) / 2)[None], theta=theta[None]))}
    )


def test_a_new_name_has_the_shared_prediction_and_more_doubt():
    bandit = played(AutoDOMD(problem=PROBLEM))
    known, new, none = ({"topic": "news", "article": name} for name in ("a", "z", None))
    X = FEATURES.encode({"likes": "news"}, [known, new, none])
    for _ in range(3):
        bandit.update(X[0], 1)
    mean, bonus, _ = bandit.scores(X)
    assert mean[1] == mean[2] != mean[0]
    assert bonus[1] > bonus[0]
    assert bonus[1] > bonus[2]


def test_a_name_that_is_gone_is_forgotten_and_begins_anew():
    bandit = Bandit(AutoDOMD(problem=PROBLEM))
    arm = {"topic": "news"}
    rows = {n: FEATURES.encode({"likes": "news"}, [arm | {"article": n}])[0] for n in "abcdz"}
    for _ in range(20):
        bandit.update(rows["a"], 1.0)
        bandit.update(rows["b"], 0.0)
    mean = {n: float(bandit.predict(x[None]).mean[0]) for n, x in rows.items()}
    assert mean["a"] > mean["z"] > mean["b"]
    bandit.update(rows["c"], 0.0)
    bandit.update(rows["d"], 0.0)  # takes the slot of a
    X = np.array([rows["a"], rows["z"]])
    assert np.array_equal(bandit.placed(X)[0], bandit.placed(X)[1])
    assert bandit.policy.sane(bandit.memory)


@pytest.mark.parametrize("policy", [AutoDOMD(problem=PROBLEM), DOMD(problem=PROBLEM)])
def test_files_and_pickles_keep_the_names(policy, tmp_path):
    bandit = played(policy)
    bandit.save(tmp_path / "a.npz")
    copies = [Bandit.load(tmp_path / "a.npz"), pickle.loads(pickle.dumps(bandit))]
    for X, rewards in stream(20, seed=1):
        for one in copies:
            assert np.array_equal(one.placed(X), bandit.placed(X))
            one.update(X[0], rewards[0])
        bandit.update(X[0], rewards[0])
    assert all(np.array_equal(one.theta, bandit.theta) for one in copies)
    assert Recipe.from_dict(policy.to_dict()) == policy


def test_a_refused_reward_takes_no_slot():
    bandit = played(AutoDOMD(problem=PROBLEM))
    x = FEATURES.encode({"likes": "news"}, [{"topic": "news", "article": "z"}])[0]
    before = bandit.placed(x[None])
    for x_given, r in ((x, 2.0), (x, None), (2.0 * x, 1.0)):
        with pytest.raises(ValueError, match=r"reward|norm"):
            bandit.update(x_given, r)
    assert np.array_equal(bandit.placed(x[None]), before)


def looped(loop, n, first=0):
    """Rewards come seven decisions late, and some decisions are cancelled."""
    rng, made = np.random.default_rng(first), []
    for t in range(first, first + n):
        made.append(loop.decide({"likes": "news"}, offered(t), id=str(t), at=float(t)))
        if t >= 7 and t % 4:
            loop.reward(str(t - 7), float(rng.random() < 0.4))
        elif t >= 7:
            loop.cancel(str(t - 7))
    return made


def opened(path, **options):
    given = {"features": FEATURES, "reward": Reward(0, 1, wait=10), "clock": "events", "seed": 3}
    return Loop(path, training="inline", **(given | options))


@pytest.mark.parametrize("exploration", [0.1, Thompson(0.05, draws=8)])
def test_replay_audits_and_explanations_know_the_names(tmp_path, exploration):
    """Slots change between a decision and its example, and between a checkpoint and the end."""
    path = tmp_path / "a.db"
    with opened(path, exploration=exploration) as loop:
        looped(loop, 40)
        loop.shadow("plain", policy=DOMD)
    with Loop(path, training="inline") as loop:
        made = looped(loop, 40, first=40)
        digest, whys = loop.digest, [each.why for each in made]
        assert all(sum(why.terms.values()) == pytest.approx(why.lead) for why in whys)
        assert sum(why.terms["article"] != 0.0 for why in whys) > 5
        audits = list(loop.audits())
        assert len(audits) == 80
        assert all(each.agrees for each in audits)
        assert [each.why.terms for each in audits[40:]] == [why.terms for why in whys]
        assert all("slot" not in change.term for change in loop.health(since=30.0).changed)
    with Loop(path, training="inline") as loop:
        assert loop.digest == digest


def test_an_evaluation_trains_as_the_loop_did(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, exploration=0.2, reward=Reward(0, 1)) as loop:
        for t in range(60):
            made = loop.decide({"likes": "news"}, offered(t), id=str(t), at=float(t))
            loop.reward(made.id, float(t % 3 == 0))
        digest = loop.digest
    log = Log.read(path)
    assert log.replay().digest == digest
    assert log.replay(AutoDOMD).digest == digest  # from the rows of the log
    found = evaluate(log, {"same": AutoDOMD, "other": DOMD})
    assert set(found.values) == {"same", "other"}


def test_what_knows_no_items_says_so(tmp_path):
    with pytest.raises(ValueError, match="key="):
        Loop(tmp_path / "a.db", features=FEATURES, reward=Reward(0, 1), key="user")
    with pytest.raises(ValueError, match="knows no items"):
        LinUCB(problem=replace(PROBLEM, radius=1.0), regularization=1.0)
    with pytest.raises(ValueError, match="knows no items"):
        Fleet(DOMD(problem=PROBLEM)).choose(["a"], FEATURES.encode({"likes": "news"}, offered(0)))
    with pytest.raises(ValueError, match="cannot grow"):
        FEATURES.grow(context={"age": Number(0, 99)})
    with pytest.raises(ValueError, match="one column of the arm"):
        Features(context={"user": Item()}, arm={"topic": Category(["a"])})
    with pytest.raises(ValueError, match="no products"):
        Features(context={"age": Number(0, 99)}, arm={"a": Item()}, interactions=[("age", "a")])
    with pytest.raises(ValueError, match="slots"):
        Item(slots=0)


def test_folding_leaves_items_alone():
    wide = Features(
        context={f"c{k}": Category(list("abcdefgh")) for k in range(4)},
        arm={"topic": Category(list("abcdefgh")), "article": Item(slots=8)},
        dim=40,
    )
    assert wide.size == 40
    assert wide.problem().items == (31, 8)
    context = {f"c{k}": "a" for k in range(4)}
    X = wide.encode(context, [{"topic": "b", "article": "x"}, {"topic": "b", "article": "y"}])
    assert X[0, 32] != X[1, 32]
    assert np.array_equal(np.delete(X[0], 32), np.delete(X[1], 32))
    assert np.linalg.norm(np.delete(X[0], 32)) <= 1.0 + 1e-12
    bandit = Bandit(AutoDOMD(problem=wide.problem()))
    bandit.update(X[0], 1.0)
    why = wide.contributions(context, {"topic": "b", "article": "x"}, bandit.estimate.of(X[0]))
    assert sum(why.values()) == pytest.approx(float(bandit.placed(X)[0] @ bandit.theta))
