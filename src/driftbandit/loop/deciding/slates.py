"""Positions of a slate. Where a column named "position" is declared, of contexts or of arms, a
slate's rows say in it which position they are for, from 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit.features import Features
from driftbandit.features.columns import Mappings
from driftbandit.loop.deciding.types import Request
from driftbandit.policies.base import Floats

POSITION = "position"

Columns = Mapping[str, Any]


def placed(
    features: Features, context: Columns, arms: Sequence[Columns], position: int | None
) -> tuple[Columns, Sequence[Columns]]:
    """Context and arms as they are at a position; None for a decision that is no slate."""
    if position is not None and POSITION in features.context:
        return {**context, POSITION: position}, arms
    if position is not None and POSITION in features.arm:
        return context, [{**arm, POSITION: position} for arm in arms]
    return context, arms


def own(
    features: Features, context: Columns, arms: Sequence[Columns]
) -> tuple[Columns, list[Columns]]:
    """What these features read: other columns may be there for others."""
    left, right = features.context, features.arm
    return (
        {name: value for name, value in context.items() if name in left},
        [{name: value for name, value in arm.items() if name in right} for arm in arms],
    )


def read_by(features: Features, request: Request) -> Request:
    """A request as these features read it."""
    context, arms = own(features, request.context, request.arms)
    return request._replace(context=context, arms=arms)


def check(everybody: Sequence[Features], request: Request) -> None:
    """Refuse columns that nobody has declared."""
    sides = ("context", [request.context]), ("arm", request.arms)
    for side, given in sides:
        known = frozenset(name for each in everybody for name in getattr(each, side))
        Mappings(f"{'the' if side == 'context' else 'an'} {side}", given, known)


def rows(features: Features, request: Request) -> Floats:
    """Rows of all arms at every position, (k, K, size); k = 1 for a decision that is no slate."""
    if not request.names:
        return np.empty((1, 0, features.size))
    if request.k is not None and POSITION in features.columns:
        each = (placed(features, request.context, request.arms, j) for j in range(request.k))
        return np.stack([features.encode(*both) for both in each])
    X = features.encode(request.context, request.arms)
    return X[None] if request.k is None else np.broadcast_to(X, (request.k, *X.shape))
