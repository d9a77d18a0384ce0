"""Totals of comparisons: running sums over rows, from which all bounds follow.

How rows are cut into groups changes nothing, to the last bit: sums go on row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from driftbandit.estimators.accumulators import Value
from driftbandit.estimators.increments import Floats, LoggedArms
from driftbandit.estimators.leads import Evidence, Pace, stakes
from driftbandit.estimators.spend import Spent, spent
from driftbandit.loop.candidates.lost_rewards import LostRewards

CLIP = 20.0  # of estimates that are not shown

Pair = tuple[str, str]
Both = tuple[Floats, Floats]  # probabilities of a pair, (K,) each
Key = tuple[str, str, str]  # who, over whom, and the metric ("" for the reward)


SPEND = 0.998  # discount of what policies would have spent, each row
NO_COSTS: Mapping[str, Floats] = {}


class TrialPlan(NamedTuple):
    """The rows that a candidate is judged by: each stretch begins anew. `effect` is the relative
    gain that was planned for, if any."""

    stretch: int = 0
    effect: float | None = None


class Outcome(NamedTuple):
    """A reward or metric from 0 to 1, 1 is best, and what was to be expected of each arm (K,)."""

    value: float
    expected: Floats


class Row(NamedTuple):
    """What each policy would have done in one decision, and what came of it."""

    h: Floats  # (K,) logged
    chosen: int
    outcomes: dict[str, Outcome]  # by metric; "" is the reward
    values: dict[str, Floats]  # (K,) by name
    pairs: dict[Pair, Both]  # both asked at the same moment
    paces: dict[Pair, float]  # how much the row tells of a pair
    costs: Mapping[str, Floats] = NO_COSTS  # by budget: what arms cost, as parts of its bound


class Totals:
    """Values by name, and evidence by key."""

    def __init__(self) -> None:
        self.values: dict[str, Floats] = {}
        self.evidence: dict[Key, Evidence] = {}
        self.plans: dict[str, TrialPlan] = {}  # of candidates
        self.most_arms = 1
        self.lost = LostRewards()
        self._paces: dict[Pair, Pace] = {}
        self._means: dict[str, tuple[float, float]] = {}  # of metrics: how many, and their sum
        # By budget and name: discounted rows, what was spent, and its squares.
        self._spent: dict[tuple[str, str], tuple[float, float, float]] = {}

    def expected(self, metric: str, value: float) -> float:
        """Return the mean of a metric before this value."""
        n, total = self._means.get(metric, (1.0, 0.5))
        self._means[metric] = n + 1.0, total + value
        return total / n

    def pace(self, pair: Pair, shares: tuple[float, float]) -> Pace:
        """Return how much rows tell of a pair; it begins anew when the shares change."""
        known = self._paces.get(pair)
        return known if known and known.shares == shares else Pace(shares)

    def paced(self, pair: Pair, shares: tuple[float, float], h: Floats, both: Both) -> float:
        """Return the pace of the next row of a pair, which is then known."""
        known = self.pace(pair, shares)
        self._paces[pair] = known.after(h, both)
        return known.weight

    def begin(self, name: str, plan: TrialPlan) -> None:
        """Let all comparisons of a candidate begin anew, with another plan."""
        self.evidence = {key: each for key, each in self.evidence.items() if key[0] != name}
        self.plans[name] = plan

    def _spend(self, row: Row) -> None:
        """Add what each policy would have spent in a row."""
        for budget, costs in row.costs.items():
            for name, p in row.values.items():
                own = float(p @ costs)
                before = self._spent.get((budget, name), (0.0, 0.0, 0.0))
                n, total, squares = (SPEND * each for each in before)
                self._spent[budget, name] = n + 1.0, total + own, squares + own * own

    def spend(self, level: float) -> dict[str, dict[str, Spent]]:
        """Return what each policy would spend, as a part of the bound, by budget and name."""
        found: dict[str, dict[str, Spent]] = {}
        for (budget, name), (n, total, squares) in sorted(self._spent.items()):
            oldest = 1.0 - (1.0 - SPEND) * n  # SPEND to the power of the number of rows
            rows = n * n * (1.0 - SPEND**2) / (1.0 - oldest**2)  # that the discounted ones tell
            found.setdefault(budget, {})[name] = spent(n, total, squares, 1.0, level, rows)
        return found

    def add(self, rows: list[Row]) -> None:
        """Add rows in order."""
        for row in rows:
            if row.costs:
                self._spend(row)
        for name in dict.fromkeys(name for row in rows for name in row.values):
            own = [row for row in rows if name in row.values]
            self._add_value(name, own, [row.values[name] for row in own])
        for pair in dict.fromkeys(pair for row in rows for pair in row.pairs):
            both = [row for row in rows if pair in row.pairs]
            for metric in dict.fromkeys(name for row in both for name in row.outcomes):
                self._add_pair(pair, metric, [row for row in both if metric in row.outcomes])

    def _add_value(self, name: str, rows: list[Row], pi: list[Floats]) -> None:
        before = self.values.get(name)
        found = Value(CLIP, before).columns(_arms(rows), _laid(pi), *_outcomes(rows, ""))
        start = np.zeros(found.shape[1]) if before is None else before
        self.values[name] = np.cumsum(np.vstack([start, found]), axis=0)[-1]

    def _add_pair(self, pair: Pair, metric: str, rows: list[Row]) -> None:
        key = *pair, metric
        if key not in self.evidence:
            self.evidence[key] = Evidence(stakes(self.plans.get(pair[0], TrialPlan()).effect))
        first, second = (_laid(row.pairs[pair][k] for row in rows) for k in (0, 1))
        paces = np.array([row.paces[pair] for row in rows])
        self.evidence[key].add(_arms(rows), (first, second), *_outcomes(rows, metric), paces)

    def forget(self, *names: str) -> None:
        """Let comparisons among these begin anew."""
        self.values = {name: sums for name, sums in self.values.items() if name not in names}
        known = self.evidence.items()
        self.evidence = {key: each for key, each in known if not {*key[:2]} <= {*names}}

    def drop(self, name: str) -> None:
        """Forget one that is gone."""
        self.values.pop(name, None)
        self.plans.pop(name, None)
        known = self.evidence.items()
        self.evidence = {key: each for key, each in known if name not in key[:2]}
        self._spent = {key: each for key, each in self._spent.items() if key[1] != name}

    def copy(self) -> Totals:
        """Return all as it is now: arrays are replaced, never changed."""
        other = Totals()
        other.values, other.plans = dict(self.values), dict(self.plans)
        other.evidence = {key: copy(each) for key, each in self.evidence.items()}
        other.lost = self.lost.copy()
        other._spent = dict(self._spent)
        return other

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON knows it."""
        return {
            "values": {name: total.tolist() for name, total in self.values.items()},
            "evidence": sorted([*key, each.state()] for key, each in self.evidence.items()),
            "plans": self.plans,
            "most_arms": self.most_arms,
            "lost": self.lost.state(),
            "paces": sorted([*pair, *pace] for pair, pace in self._paces.items()),
            "means": self._means,
            "spent": sorted([*key, *each] for key, each in self._spent.items()),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.values = {name: np.array(total) for name, total in state["values"].items()}
        self.evidence = {tuple(key): Evidence.loaded(own) for *key, own in state["evidence"]}
        self.plans = {name: TrialPlan(*plan) for name, plan in state["plans"].items()}
        self.most_arms = state["most_arms"]
        self.lost = LostRewards.loaded(state["lost"])
        self._paces = {
            (first, second): Pace(tuple(shares), *rest)
            for first, second, shares, *rest in state["paces"]
        }
        self._means = {name: tuple(mean) for name, mean in state["means"].items()}
        self._spent = {
            (budget, name): (n, total, *(squares or [total * total / n]))
            for budget, name, n, total, *squares in state["spent"]
        }


def _arms(rows: list[Row]) -> LoggedArms:
    sizes = np.array([len(row.h) for row in rows])
    start = np.cumsum(sizes) - sizes
    return LoggedArms(start, start + [row.chosen for row in rows], _laid(row.h for row in rows))


def _outcomes(rows: list[Row], metric: str) -> tuple[Floats, Floats]:
    """Return what was to be expected of all arms, and what came."""
    found = [row.outcomes[metric] for row in rows]
    return _laid(each.expected for each in found), np.array([each.value for each in found])


def _laid(parts: Iterable[Floats]) -> Floats:
    return np.concatenate(list(parts))
