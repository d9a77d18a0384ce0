"""Prices: what budgets make of a request. Each arm gets its expected cost, and the price that the
log has come to; both are logged with the decision, so the same probabilities follow again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit.loop.config import Budget, Settings
from driftbandit.loop.deciding.types import Request
from driftbandit.loop.exploration import BudgetTerms
from driftbandit.loop.state.accounts import RULE, Account, Accounts
from driftbandit.loop.storage.events import Spend
from driftbandit.validate import LARGEST, show

OPTIMISM = 0.75  # part of the exploration bonus that counts: a dear arm is tried at a price
RESERVE = 0.01  # of a total: what its rest counts for at least when the bound is worked out
NEW = Account()
SPENT_ROLE = "spent"


def priced(request: Request, settings: Settings, accounts: Accounts, at: float) -> Request:
    """Return a request with the terms of all budgets at this moment."""
    if request.k is not None:
        raise ValueError("a loop with a budget chooses one arm at a time: leave k out")
    with accounts.lock:
        return with_spend(request, spends(request, settings, accounts, at), accounts.seq)


def spends(request: Request, settings: Settings, accounts: Accounts, at: float) -> dict[str, Spend]:
    """Return what each budget has to do with a request at this moment."""
    return {
        name: _spend(request, budget, accounts.by_name.get(name, NEW), at)
        for name, budget in settings.budget.items()
    }


def with_spend(request: Request, spend: Mapping[str, Spend], seq: int) -> Request:
    """Return a request with the terms that were logged."""
    return request._replace(spend=spend, priced=seq, terms=terms([*spend.values()]))


def _spend(request: Request, budget: Budget, account: Account, at: float) -> Spend:
    names, name = request.names, budget.metric
    stated = [_stated(arm, columns, name) for arm, columns in zip(names, request.arms)]
    costs = stated
    if account.bills:
        costs = [min(cost * account.ratio(arm), LARGEST) for arm, cost in zip(names, stated)]
    bound, left = _bound(budget, account, at)
    price = account.price
    if price is None:  # at first the dearest arm costs the whole range of the reward
        price = bound / max(bound / 2.0, *costs)
    if left is None:
        return Spend(price, bound, costs, rule=RULE)
    rest = left if budget.on_empty == "default" else None
    return Spend(price, bound, costs, rest, budget.per, at, RULE)


def _stated(arm: Any, columns: Mapping[str, Any], name: str) -> float:
    known = type(columns) is dict or isinstance(columns, Mapping)
    cost = columns.get(name) if known else None
    if type(cost) is float and 0.0 <= cost < math.inf:
        return cost
    if not isinstance(cost, (int, float)) or isinstance(cost, bool) or not 0.0 <= cost < math.inf:
        raise ValueError(
            f"arm {show(arm)} states no {name!r}, which the budget needs: pass a number from 0 on, "
            f"such as {{{name!r}: 0.002}}, got {show(cost)}"
        )
    return float(cost)


def _bound(budget: Budget, account: Account, at: float) -> tuple[float, float | None]:
    """Return the bound on the mean cost, and what is left of a total. A total is spread over the
    decisions that are to come in its period at the present pace."""
    if budget.mean is not None:
        return budget.mean, None
    assert budget.total is not None
    period = math.floor(at / budget.per)
    spent = account.spent_in_period if account.period == period else 0.0
    ends = (period + 1) * budget.per
    gap = account.gap or budget.per / 1000.0
    to_come = max(1.0, (ends - at) / gap)
    left = budget.total - spent
    return max(left, RESERVE * budget.total) / to_come, left


def terms(budgets: Sequence[Spend]) -> BudgetTerms:
    """Return what budgets ask of a decision together."""
    penalty: Any = 0.0
    for one in budgets:
        costs = np.array(one.costs)
        penalty = penalty + (one.price / one.bound) * costs
        if one.left is not None:
            penalty[costs > one.left] = math.inf
    return BudgetTerms(penalty, budgets, OPTIMISM if budgets[0].rule > 1 else 1.0)


def is_empty(request: Request) -> bool:
    """Return whether no arm can be paid."""
    if request.terms is None or all(each.left is None for each in request.terms.budgets):
        return False
    return bool(np.isinf(request.terms.penalty).all())
