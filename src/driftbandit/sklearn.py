"""scikit-learn: fitted transformers as columns of a loop, and a learner that is an estimator.

Needs the extra `sklearn`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.families import Bernoulli
from driftbandit.features.declarations import Vector
from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.base import Floats
from driftbandit.policies.domd import DOMD
from driftbandit.problem import Problem

try:
    import joblib
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError(
        "driftbandit.sklearn needs scikit-learn 1.6 or newer: pip install 'driftbandit[sklearn]'"
    ) from None

DIGITS = 12  # of a transformer's hash, in the name of its column


class FittedTransform:
    """A fitted transformer as one column of features: what it makes of a row is a `Vector`.

    The column's name ends with a hash of the transformer's content. So a loop that was declared
    with one transformer refuses the rows of another, and the log says which one made its vectors.
    The log has the vectors themselves: replays and audits need neither scikit-learn nor the file.

    `columns` are the names of raw values, in the order in which the transformer was fitted on them.
    """

    def __init__(self, name: str, transformer: Any, columns: Any = None) -> None:
        validate.text("name", name)
        if not hasattr(transformer, "transform"):
            raise ValueError(f"a transformer has transform(), got {validate.show(transformer)}")
        check_is_fitted(transformer)
        named = getattr(transformer, "feature_names_in_", None)
        if columns is None and named is None:
            raise ValueError("the transformer was fitted without names: pass columns=[...]")
        self.transformer = transformer
        names: Any = named if columns is None else columns
        self.columns = [str(each) for each in names]
        self._named = named is not None
        self.hash = joblib.hash(transformer)[:DIGITS]
        self.name = f"{name}@{self.hash}"

    def declared(self, example: Mapping[str, Any]) -> dict[str, Vector]:
        """Return the column to declare; `example` is a row of raw values."""
        return {self.name: Vector(len(self(example)[self.name]))}

    def __call__(self, row: Mapping[str, Any]) -> dict[str, list[float]]:
        """Return the column's value for a row of raw values."""
        if lost := [name for name in self.columns if name not in row]:
            raise ValueError(f"the row has no {lost[0]!r}, which the transformer was fitted on")
        raw: Any = [[row[name] for name in self.columns]]
        if self._named:
            import pandas as pd

            raw = pd.DataFrame(raw, columns=self.columns)
        made = self.transformer.transform(raw)
        dense = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
        return {self.name: dense.astype(np.float64)[0].tolist()}


class DriftClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is trained row by row and forgets what no longer holds.

    Every class has a learner that estimates how likely it is; a row is scaled to length 1 together
    with an intercept, so scale features before (`StandardScaler`). `half_life` is the number of
    rows after which a row counts half (DOMD). With None, each learner works out how much history to
    use (AutoDOMD).

    >>> import numpy as np
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 20)
    >>> DriftClassifier(half_life=1000).fit(X, X[:, 0] > 0).predict([[-1.5], [1.5]])
    array([False,  True])
    """

    def __init__(self, half_life: float | None = None) -> None:
        self.half_life = half_life

    def fit(self, X: Any, y: Any) -> DriftClassifier:
        """Train anew on all rows, in their order."""
        for name in ("classes_", "_memory", "_policy"):
            self.__dict__.pop(name, None)
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        return self._begin(np.unique(y))._train(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> DriftClassifier:
        """Train on more rows, in their order; the first call needs all `classes`."""
        first = not hasattr(self, "classes_")
        X, y = validate_data(self, X, y, reset=first)
        if first:
            check_classification_targets(y)
            if classes is None:
                raise ValueError("the first call of partial_fit needs classes, all that there are")
            self._begin(np.unique(classes))
        if unknown := sorted({*np.unique(y).tolist()} - {*self.classes_.tolist()}):
            raise ValueError(f"y has {unknown[0]!r}, which is none of the classes")
        return self._train(X, y)

    def _begin(self, classes: Any) -> DriftClassifier:
        self.classes_ = classes
        problem = Problem(dim=self.n_features_in_ + 1, family=Bernoulli())
        if self.half_life is None:
            self._policy: Any = AutoDOMD(problem=problem)
        else:
            self._policy = DOMD(problem=problem, half_life=self.half_life)
        self._memory = self._policy.init(len(classes))
        return self

    def _train(self, X: Any, y: Any) -> DriftClassifier:
        hits = (np.asarray(y)[:, None] == self.classes_[None, :]).astype(np.float64)
        for row, hit in zip(_unit(X), hits):
            rows = np.tile(row, (len(self.classes_), 1))
            self._memory = self._policy.update(self._memory, rows, hit)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return how likely each class is, (n, classes)."""
        check_is_fitted(self, "classes_")
        rows = _unit(validate_data(self, X, reset=False))
        k = len(self.classes_)
        each = [
            self._policy.scores(self._memory, np.tile(row, (k, 1, 1))).mean[:, 0] for row in rows
        ]
        means = np.clip(np.array(each).reshape(len(rows), k), 1e-12, None)
        return means / means.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the most likely class of every row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]


def _unit(X: Any) -> Floats:
    """Return rows with an intercept, of length 1."""
    wide = np.column_stack([np.ones(len(X)), np.asarray(X, dtype=np.float64)])
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)
