"""Rows of a batch that cannot be taken: which, whose they are, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit.core.layout import Floats, Ints
from driftbandit.problem import Problem
from driftbandit.validate import show

SHOWN = 5  # rows that are told one by one


class BadRowsError(ValueError):
    """Some rows of a batch are wrong, and none is taken; `rows` are the places of all of them."""

    def __init__(self, text: str, rows: list[int]) -> None:
        super().__init__(text)
        self.rows = rows

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.rows)


def wrong_arms(problem: Problem, X: Floats) -> Ints:
    """Places in X (B, N, d) where an arm is no context."""
    good = problem.fits(X.reshape(-1, X.shape[2])).reshape(X.shape[:2])
    return np.flatnonzero(~good.all(axis=1))


def wrong_rows(problem: Problem, X: Floats, r: Floats) -> Ints:
    """Places where a row of X (B, d) is no context, or a reward of r (B,) impossible."""
    return np.flatnonzero(~(problem.fits(X) & problem.family.contains(r)))


def blame(
    problem: Problem, keys: Any, X: Floats, bad: Ints, r: Floats | None = None
) -> BadRowsError:
    """An error that says of each of the first bad rows what is wrong, and names all of them."""
    told = [f"key {_show(keys[b])}: {_why(problem, X[b], r, b)}" for b in bad[:SHOWN].tolist()]
    more = [_show(keys[b]) for b in bad[SHOWN:].tolist()]
    if len(bad) > 1:
        told[0] = f"{len(bad)} rows are wrong. {told[0]}"
    if more:
        told.append(f"and those of keys {', '.join(more)}")
    return BadRowsError("; ".join(told), bad.tolist())


def _why(problem: Problem, x: Floats, r: Floats | None, b: int) -> str:
    try:
        problem.check_contexts(np.atleast_2d(x))
    except ValueError as error:
        return str(error)
    assert r is not None
    family = problem.family
    return (
        f"reward must be {family.support} for {family!r}, got {show(float(r[b]))}: rescale it or "
        "choose another family"
    )


def _show(key: Any) -> str:
    return show(key.item() if isinstance(key, np.integer) else key)
