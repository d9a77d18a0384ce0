"""Rows of a log: what was offered, what was played with which probability, what it gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from driftbandit.estimators.increments import LoggedArms
from driftbandit.loop.storage.events import Spend

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Batch = dict[str, list[Any]]  # raw columns by our names, all of one length

# Columns of a log, by our names.
NAMES = (
    "context", "arms", "names", "action", "probability", "probabilities", "reward", "time", "key",
    "id", "default", "role", "spend",
)  # fmt: skip
SKIP, BAD = "skip", "bad"  # columns in which a reader says why it takes no row, or cannot

# Roles of decisions that no policy made: a share of keys gets the default, or a client played it
# alone. The probability of 1 in such a row is not one of the live policy.
ASIDE = ("holdout", "fallback")


class BudgetRow(Struct):
    """What a budget had to do with a row: the price of the decision, the bound on the mean, what
    every arm was expected to cost, what was `left` of a total, and the `bill`, if it came."""

    price: float
    bound: float
    costs: list[float]
    left: float | None = None
    rule: int = 1
    bill: float | None = None

    def logged(self) -> Spend:
        """Return it as the loop logs it."""
        return Spend(self.price, self.bound, self.costs, self.left, rule=self.rule)


Budgets = dict[str, BudgetRow]  # by name
ARM = "arm"  # the column that holds an arm's name, where arms have none of that name


class Menu:
    """LoggedArms that were offered together: names, and the columns of each. Rows may share it."""

    __slots__ = ("columns", "names", "places")

    def __init__(self, names: Sequence[str], columns: Sequence[Mapping[str, Any]]) -> None:
        self.names, self.columns = tuple(names), tuple(columns)
        self.places = {name: k for k, name in enumerate(self.names)}

    def described(self) -> list[Mapping[str, Any]]:
        """The columns of each arm, and its name in the column `ARM`; a number is no name."""
        numbered = all(name == str(k) for k, name in enumerate(self.names))
        named = zip(self.names, self.columns)
        return [dict(each) if numbered else {ARM: name} | dict(each) for name, each in named]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, eq=False)
class Chunk:
    """n clean rows, in order."""

    menus: list[Menu]
    context: list[Mapping[str, Any]]
    action: Ints  # (n,)   place of the played arm in its menu
    p: Floats  # (n,)      probability with which it was played
    h: Floats  # (m,)      probabilities of all arms, row after row; NaN where not known
    reward: Floats  # (n,) in the log's unit
    at: Floats  # (n,)     seconds since the epoch; NaN in a log without time
    key: list[str | None]
    id: list[str | None]
    default: list[str | None]  # what would be played without a policy
    role: list[str | None]  # of the decision in its loop; None elsewhere
    spend: list[Budgets]  # of the loop; empty elsewhere
    number: Ints  # (n,)   of the row in the log, from 1

    def __len__(self) -> int:
        return len(self.menus)

    @cached_property
    def sizes(self) -> Ints:
        """LoggedArms of each row."""
        return np.array([len(menu) for menu in self.menus], dtype=np.int64)

    @cached_property
    def start(self) -> Ints:
        """Where the arms of each row begin among all m."""
        return np.cumsum(self.sizes) - self.sizes

    def take(self, rows: Sequence[int]) -> Chunk:
        """Some of the rows."""
        h = np.split(self.h, self.start[1:])
        return Chunk(
            menus=[self.menus[k] for k in rows],
            context=[self.context[k] for k in rows],
            action=self.action[rows],
            p=self.p[rows],
            h=np.concatenate([h[k] for k in rows]) if rows else np.empty(0),
            reward=self.reward[rows],
            at=self.at[rows],
            key=[self.key[k] for k in rows],
            id=[self.id[k] for k in rows],
            default=[self.default[k] for k in rows],
            role=[self.role[k] for k in rows],
            spend=[self.spend[k] for k in rows],
            number=self.number[rows],
        )

    @cached_property
    def aside(self) -> NDArray[np.bool_]:
        """Rows (n,) that no policy decided: learners are trained on them, estimates leave them
        out."""
        return np.array([role in ASIDE for role in self.role], dtype=bool)

    @property
    def complete(self) -> bool:
        """Whether all arms' probabilities are known."""
        return not np.isnan(self.h).any()

    def arms(self, least: float = 0.0) -> LoggedArms:
        """As estimators take them."""
        chosen = self.start + self.action
        h = self.h.copy()
        h[chosen] = self.p
        return LoggedArms(self.start, chosen, h, least)
