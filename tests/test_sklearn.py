"""scikit-learn: its own checks of our estimator, and fitted transformers as columns of a loop."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from driftbandit import DOMD, Category, Features, Loop, Reward
from driftbandit.sklearn import DriftClassifier, FittedTransform

pd = pytest.importorskip("pandas")
SEEN = pd.DataFrame(
    {"age": [20.0, 30.0, 60.0], "city": ["Rome", "Oslo", "Rome"], "spent": [0.0, 5.0, 9.0]}
)
PARTS = [("numbers", StandardScaler(), ["age", "spent"]), ("city", OneHotEncoder(), ["city"])]
ROW = {"age": 25.0, "city": "Oslo", "spent": 3.0, "other": "unused"}


def fitted(rows=SEEN):
    return ColumnTransformer(PARTS).fit(rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts_it():
    found = check_estimator(DriftClassifier(half_life=1000), on_skip=None)
    assert [each["check_name"] for each in found if each["status"] == "failed"] == []


def test_it_follows_a_change_that_a_learner_without_memory_loss_does_not():
    """Labels are noisy, and turn round 60 rows before the end."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1200, 2))
    right = (X[:, 0] > 0) ^ (np.arange(1200) >= 940)
    seen = np.where(right ^ (rng.random(1200) < 0.15), "yes", "no")
    scores = {}
    for half_life in (20, 1e6, None):
        made = DriftClassifier(half_life=half_life)
        made.partial_fit(X[:1000], seen[:1000], classes=["no", "yes"])
        scores[half_life] = made.score(X[1000:], np.where(right, "yes", "no")[1000:])
    assert scores[1e6] < 0.3 < 0.8 < min(scores[20], scores[None])


def test_rows_one_by_one_are_the_rows_together():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    whole = DriftClassifier().fit(X, y)
    parts = DriftClassifier()
    for k in range(60):
        parts.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1, 2])
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    with pytest.raises(ValueError, match="needs classes"):
        DriftClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="none of the classes"):
        parts.partial_fit(X[:1], [7])


def test_a_fitted_transformer_is_a_column_and_the_log_has_its_vectors():
    profile = FittedTransform("profile", fitted())
    value = profile(ROW)[profile.name]
    expected = fitted().transform(pd.DataFrame([ROW]))[0]
    np.testing.assert_array_equal(value, expected)
    features = Features(context=profile.declared(ROW), arm={"name": Category(["a", "b"])})
    arms = {"a": {"name": "a"}, "b": {"name": "b"}}
    declared = {"features": features, "reward": Reward(0, 1), "policy": DOMD, "arms": arms}
    with Loop(":memory:", **declared, training="inline") as loop:
        made = loop.decide(profile(ROW))
        loop.reward(made.id, 1)
        assert loop.audit(made.id).agrees
        assert profile.name in loop.log()["context"][0]
        other = FittedTransform("profile", fitted(SEEN.assign(age=[1.0, 2.0, 3.0])))
        with pytest.raises(ValueError, match=other.name):
            loop.decide(other(ROW))


def test_the_hash_is_that_of_the_content_in_every_process():
    own = FittedTransform("x", fitted()).hash
    assert own == FittedTransform("y", fitted()).hash
    assert own != FittedTransform("x", fitted(SEEN.iloc[:2])).hash
    program = "import sys; sys.path.insert(0, sys.argv[1]); import test_sklearn as t; "
    program += (
        "from driftbandit.sklearn import FittedTransform as F; print(F('x', t.fitted()).hash)"
    )
    folder = __file__.rsplit("/", 1)[0]
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True)
    assert done.stdout.strip() == own, done.stderr


def test_what_is_no_fitted_transformer_is_said():
    with pytest.raises(ValueError, match="has transform"):
        FittedTransform("x", object())
    with pytest.raises(ValueError, match="not fitted"):
        FittedTransform("x", ColumnTransformer(PARTS))
    with pytest.raises(ValueError, match=r"pass columns=\[...\]"):
        FittedTransform("x", StandardScaler().fit([[1.0], [2.0]]))
    with pytest.raises(ValueError, match="no 'city'"):
        FittedTransform("x", fitted())({"age": 1.0, "spent": 2.0})
    sparse = FittedTransform("x", OneHotEncoder().fit([["a"], ["b"]]), columns=["kind"])
    assert sparse({"kind": "b"})[sparse.name] == [0.0, 1.0]


def test_without_scikit_learn_it_names_the_remedy():
    program = "import sys; sys.modules['sklearn'] = None; import driftbandit.sklearn"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'driftbandit[sklearn]'" in done.stderr
