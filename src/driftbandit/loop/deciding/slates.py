"""Positions of a slate. If a column named "position" is declared, of contexts or of arms, a slate's
rows say in it which position they are for, from 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from driftbandit.features import Features
from driftbandit.features.columns import Mappings
from driftbandit.loop.deciding.types import Request
from driftbandit.loop.state.catalogue import Catalogue
from driftbandit.policies.base import Floats

POSITION = "position"

Columns = Mapping[str, Any]


def at_position(
    features: Features, context: Columns, arms: Sequence[Columns], position: int | None
) -> tuple[Columns, Sequence[Columns]]:
    """Return context and arms as they are at a position; None for a decision that is no slate."""
    if position is not None and POSITION in features.context:
        return {**context, POSITION: position}, arms
    if position is not None and POSITION in features.arm:
        return context, [{**arm, POSITION: position} for arm in arms]
    return context, arms


def readable(
    features: Features, context: Columns, arms: Sequence[Columns]
) -> tuple[Columns, list[Columns]]:
    """Return the columns that these features read: others may be there for other policies."""
    left, right = features.context, features.arm
    return (
        {name: value for name, value in context.items() if name in left},
        [{name: value for name, value in arm.items() if name in right} for arm in arms],
    )


def read_by(features: Features, request: Request) -> Request:
    """Return a request as these features read it."""
    context, arms = readable(features, request.context, request.arms)
    return request._replace(context=context, arms=arms)


def without(request: Request, columns: Set[str], catalogue: Catalogue | None) -> Request:
    """Return a request whose arms lack some columns: those that are costs and no features."""
    if catalogue is not None and catalogue.offers(request.arms):
        return request._replace(arms=catalogue.without(columns))
    arms = [{k: v for k, v in arm.items() if k not in columns} for arm in request.arms]
    return request._replace(arms=arms)


def check_columns(declared: Iterable[Features], request: Request, costs: Set[str]) -> None:
    """Raise if a column is declared by none of these features, and is no cost of an arm."""
    known = list(declared)
    sides = ("context", [request.context]), ("arm", request.arms)
    for side, given in sides:
        names = frozenset(name for each in known for name in getattr(each, side))
        names = names | costs if side == "arm" else names
        Mappings(f"{'the' if side == 'context' else 'an'} {side}", given, names)


def rows(features: Features, request: Request) -> Floats:
    """Return rows of all arms at every position, (k, K, size); k = 1 if it is not a slate."""
    if not request.names:
        return np.empty((1, 0, features.size))
    if request.k is not None and POSITION in features.columns:
        positions = range(request.k)
        each = (at_position(features, request.context, request.arms, j) for j in positions)
        return np.stack([features.encode(*both) for both in each])
    X = features.encode(request.context, request.arms)
    return X[None] if request.k is None else np.broadcast_to(X, (request.k, *X.shape))
