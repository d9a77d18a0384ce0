"""A fixed catalogue of arms, checked once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from driftbandit.core.layout import Floats
from driftbandit.validate import show


class ArmSet:
    """Arms (n_arms, dim) that many decisions share; `Bandit.choose` takes it for an array.

    It is a read-only copy in the form that kernels take, so lists and arrays of other types are
    converted once instead of in every call.

    >>> catalogue = ArmSet([[0.6, 0.8], [1.0, 0.0]])
    >>> len(catalogue)
    2
    >>> catalogue[1]
    array([1., 0.])
    """

    def __init__(self, arms: ArrayLike) -> None:
        try:
            given = np.asarray(arms)
            real = given.dtype.kind in "biuf" and given.ndim == 2 and given.size > 0
            X = np.array(given, dtype=np.float64, order="C") if real else np.empty(0)
        except (TypeError, ValueError, OverflowError):
            X = np.empty(0)
        if not X.size:
            raise ValueError(
                f"arms must be real numbers of shape (n_arms >= 1, dim >= 1), got {show(arms)}"
            )
        if not np.isfinite(X).all():
            row = int(np.argmin(np.isfinite(X).all(axis=1)))
            raise ValueError(f"arm {row} holds NaN or infinity: {X[row]}; clean the features")
        self._shown, self._kept = X.view(), X
        self._shown.flags.writeable = False

    @property
    def array(self) -> Floats:
        """The arms, (n_arms, dim); read-only."""
        return self._shown

    def __len__(self) -> int:
        return len(self._shown)

    def __getitem__(self, which: Any) -> Any:
        return self._shown[which]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._shown, dtype=dtype) if copy else np.asarray(self._shown, dtype=dtype)

    def __repr__(self) -> str:
        return "ArmSet({} arms of dim {})".format(*self._shown.shape)
