"""Priors: what is believed before the first reward, worth a few rewards.

A prior is a table of columns and expected rewards. Before its first example a learner is trained on
each row of the table as often as the table is worth, with the row's expected reward. So a prior
enters the estimate, `why` shows it, and it fades as rewards come, like any old reward. It is part
of the declaration, so replays and audits have it, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

import numpy as np

from driftbandit import validate
from driftbandit.bandit import Bandit
from driftbandit.features import Category, Features
from driftbandit.policies.base import Floats
from driftbandit.policies.rows import RowPolicy
from driftbandit.recipe import Recipe
from driftbandit.reward import Reward

MOST = 5000  # rewards that a prior is worth in all: they are trained when a loop is opened


@dataclass(frozen=True)
class Prior(Recipe):
    """Expected rewards of arms by name, or a list of pairs of columns and an expected reward. Each
    is worth `weight` rewards.

    An arm's name means its columns in the loop's catalogue (`arms=`), or the value of the category
    that lists it. Columns may be of the context, too; what a row leaves out has no part in it.

    >>> Prior({"large": 0.9, "small": 0.8}, weight=30)
    Prior({'large': 0.9, 'small': 0.8}, weight=30)
    >>> Prior([({"model": "large", "language": "de"}, 0.7)], weight=10).rows
    (({'model': 'large', 'language': 'de'}, 0.7),)
    """

    expected: Any
    _: KW_ONLY
    weight: int = 30

    def __post_init__(self) -> None:
        weight = validate.count("weight", self.weight, "rewards that each row is worth")
        pairs = self.expected
        if isinstance(pairs, Mapping):
            pairs = tuple((name, value) for name, value in pairs.items())
        if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not pairs:
            _refuse(self.expected)
        clean = tuple(_pair(each, self.expected) for each in pairs)
        if weight * len(clean) > MOST:
            raise ValueError(
                f"a prior is worth at most {MOST} rewards in all, got {len(clean)} rows of "
                f"{weight}: lower the weight"
            )
        self._set(expected=clean, weight=weight)

    @property
    def rows(self) -> tuple[tuple[Any, float], ...]:
        """Names or columns, and expected rewards."""
        return self.expected

    def resolved(self, features: Features, reward: Reward, arms: Mapping[str, Any]) -> Prior:
        """Return the prior with columns for names; raise if it cannot be read."""
        rows = tuple((_columns(what, features, arms), value) for what, value in self.rows)
        for columns, value in rows:
            features.encode_known(columns)
            if not reward.low <= value <= reward.high:
                raise ValueError(
                    f"a prior expects rewards from {reward.low:g} to {reward.high:g}, got {value:g}"
                )
        return Prior(rows, weight=self.weight)

    def row(self, policy: RowPolicy, features: Features, reward: Reward) -> Floats:
        """Return the row of a learner that has learnt the prior alone; nothing of it, if these
        features do not have its columns."""
        row = policy.fresh.copy()
        try:
            X = np.array([features.encode_known(columns) for columns, _ in self.rows])
        except ValueError:
            return row
        bandit = Bandit.from_row(policy, row)
        rewards = [reward.inside(value)[0] for _, value in self.rows]
        for _ in range(self.weight):
            for x, each in zip(X, rewards):
                bandit.update(x, round(each) if reward.counts else each)
        return row

    def __repr__(self) -> str:
        named = all(isinstance(what, str) for what, _ in self.rows)
        return f"Prior({dict(self.rows) if named else list(self.rows)}, weight={self.weight})"


def _pair(given: Any, whole: Any) -> tuple[Any, float]:
    if not isinstance(given, (list, tuple)) or len(given) != 2:
        _refuse(whole)
    what, value = given
    if not isinstance(what, (str, Mapping)):
        _refuse(whole)
    clean = validate.number("an expected reward", value, "in the reward's unit")
    return (what if isinstance(what, str) else dict(what)), clean


def _refuse(given: Any) -> NoReturn:
    raise ValueError(
        "a prior is a mapping from arms to expected rewards, such as {'large': 0.9}, or a list of "
        f"pairs of columns and a reward, such as [({{'model': 'large'}}, 0.9)], got "
        f"{validate.show(given)}"
    )


def _columns(what: Any, features: Features, arms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a name stands for."""
    if not isinstance(what, str):
        return dict(what)
    if what in arms:
        return dict(arms[what])
    lists = [
        name
        for name, feature in features.arm.items()
        if isinstance(feature, Category) and what in map(str, feature.values or ())
    ]
    if len(lists) != 1:
        raise ValueError(
            f"the prior names {what!r}, which is no arm of the catalogue and no value of one "
            "category alone: pass columns, such as [({'model': 'large'}, 0.9)]"
        )
    values = getattr(features.arm[lists[0]], "values", ())
    return {lists[0]: next(value for value in values if str(value) == what)}
