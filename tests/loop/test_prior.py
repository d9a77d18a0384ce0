"""Priors: expected rewards that count like a few of one's own, in the log and fading."""

import numpy as np
import pytest

from driftbandit import DOMD, Category, Features, Flag, Loop, Number, Prior, Recipe, Reward

pytestmark = pytest.mark.usefixtures("no_wait_for_the_disk")

FEATURES = Features(
    context={"length": Number(0, 100, required=True)},
    arm={"model": Category(["small", "large"], required=True)},
)
ARMS = {name: {"model": name} for name in ("small", "large")}
BELIEF = {"small": 0.2, "large": 0.9}


def opened(path, **options):
    new = {"features": FEATURES, "reward": Reward(0, 1), "training": "inline", "seed": 0}
    return Loop(path, **(new | options))


def expected(loop, arm):
    made = loop.runtime.learner.bandit.predict(FEATURES.encode({"length": 50}, [ARMS[arm]]))
    return float(made.mean[0])


def test_a_prior_decides_the_first_decision_and_why_shows_it(tmp_path):
    with opened(tmp_path / "a.db", prior=BELIEF) as loop:
        made = loop.decide({"length": 50}, ARMS)
        assert made.arm == "large"
        assert max(made.why.terms, key=made.why.terms.get) == "model"
        assert expected(loop, "large") == pytest.approx(0.9, abs=0.05)
        assert expected(loop, "small") == pytest.approx(0.2, abs=0.05)


def test_a_prior_is_worth_its_weight_and_fades(tmp_path):
    """After 30 rewards that say otherwise the estimate is between, after 300 more it is there; a
    policy that notices changes need not wait so long."""
    never = DOMD(problem=FEATURES.problem(Reward(0, 1)), discount=1.0)
    with opened(tmp_path / "a.db", prior=Prior(BELIEF, weight=30), policy=never) as loop:
        for n, (low, high) in {30: (0.15, 0.6), 300: (0.0, 0.1)}.items():
            for k in range(n):
                made = loop.decide({"length": 50}, {"large": ARMS["large"]}, id=f"{n} {k}")
                loop.reward(made.id, 0.0)
            assert low < expected(loop, "large") < high


def test_replay_audit_and_restart_have_the_prior(tmp_path):
    rng = np.random.default_rng(0)
    with opened(tmp_path / "a.db", prior=BELIEF, exploration=0.2) as loop:
        for k in range(40):
            made = loop.decide({"length": float(rng.uniform(0, 100))}, ARMS, id=str(k))
            loop.reward(made.id, float(rng.random() < 0.5))
        loop.shadow("other", policy=DOMD)
        digest = loop.digest
        assert all(audit.agrees for audit in loop.audits())
    with Loop(tmp_path / "a.db", training="inline") as loop:
        assert loop.digest == digest
        assert loop.declaration.prior.rows[1] == ({"model": "large"}, 0.9)
        assert Recipe.from_dict(loop.declaration.to_dict()) == loop.declaration
    with opened(tmp_path / "a.db", prior=BELIEF) as loop:  # the same program again
        assert loop.digest == digest
    with pytest.raises(ValueError, match="another prior"):
        opened(tmp_path / "a.db", prior={"small": 0.3})


def test_a_prior_may_be_of_columns_or_of_the_catalogue(tmp_path):
    features = Features(
        context={"german": Flag()}, arm={"model": Category(["s", "l"]), "price": Number(0, 1)}
    )
    table = Prior([({"model": "l", "german": True}, 0.8), ({"german": False}, 0.1)], weight=5)
    with opened(tmp_path / "a.db", features=features, prior=table) as loop:
        assert loop.runtime.learner.bandit.rounds == 10
    arms = {"cheap": {"model": "s", "price": 0.1}, "dear": {"model": "l", "price": 0.9}}
    named = {"cheap": 0.4, "dear": 0.7}
    with opened(tmp_path / "b.db", features=features, arms=arms, prior=named) as loop:
        assert loop.declaration.prior.rows[0] == (arms["cheap"], 0.4)
        assert loop.decide({"german": True}).arm == "dear"


def test_known_columns_alone_are_in_the_row():
    x = FEATURES.encode_known({"model": "large"})
    whole = FEATURES.encode({"length": 70}, [ARMS["large"]])[0]
    assert [FEATURES.terms[k] for k in x.nonzero()[0]] == ["1", "model=large"]
    assert np.array_equal(x[x != 0], whole[x != 0])
    assert np.array_equal(FEATURES.encode_known({"model": "large", "length": 70}), whole)


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ({"huge": 0.5}, "names 'huge'.*pass columns"),
        ({"large": 1.5}, "rewards from 0 to 1, got 1.5"),
        ({"large": "good"}, "an expected reward must be"),
        ({}, "a prior is a mapping"),
        (3, "a prior is a mapping"),
        ([("large",)], "a prior is a mapping"),
        ([({"modell": "large"}, 0.5)], "did you mean 'model'"),
        ([({"model": "huge"}, 0.5)], "one of the declared values"),
    ],
)
def test_what_cannot_be_a_prior_says_so(tmp_path, prior, words):
    with pytest.raises(ValueError, match=words):
        opened(tmp_path / "a.db", prior=prior)


def test_a_prior_has_a_limit():
    with pytest.raises(ValueError, match="lower the weight"):
        Prior({"a": 0.5}, weight=10**6)
    with pytest.raises(ValueError, match="weight must be"):
        Prior({"a": 0.5}, weight=0)
