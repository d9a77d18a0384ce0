"""How the budgets of a loop stand: price, what was spent, and whether the bound can be kept."""

from __future__ import annotations

import math
from typing import NamedTuple

from driftbandit.loop.config import Budget
from driftbandit.loop.runtime import Runtime
from driftbandit.loop.state.accounts import Account

ENOUGH = 20  # decisions before a concern is told


class BudgetStatus(NamedTuple):
    """A budget. `price` is the part of the reward's range that a cost of the `bound` takes from an
    arm; None before the first decision. `mean` and `cheapest` (arm) are over the latest decisions;
    `owed` is what was spent above the bound and is being paid back, negative if less was spent;
    `left` is what is left of a total in this period. Costs count as expected until their bill."""

    price: float | None
    spent: float
    mean: float
    bound: float
    cheapest: float
    decisions: int
    owed: float = 0.0
    left: float | None = None

    def concern(self, name: str) -> str:
        """Return why the budget cannot be kept; "" if it can."""
        if self.left is not None and self.left < self.cheapest:
            more = f", and {-self.left:.3g} more is spent" if self.left < 0.0 else ""
            return f"budget {name!r} is used up until its next period{more}"
        if self.decisions >= ENOUGH and self.cheapest > self.bound:
            return (
                f"budget {name!r} cannot be kept: even the cheapest arm costs {self.cheapest:.3g}, "
                f"more than {self.bound:.3g}: raise the budget, or offer a cheaper arm"
            )
        return ""

    def words(self) -> str:
        """Return it as a line of text."""
        price = "unknown" if self.price is None else f"{self.price:.3g}"
        rest = f", {self.owed:.3g} owed" if self.left is None else f", {self.left:.3g} left"
        return (
            f"{self.mean:.3g} of {self.bound:.3g} for a decision, price {price}, "
            f"{self.spent:.3g} spent{rest}"
        )


def budgets(runtime: Runtime) -> dict[str, BudgetStatus]:
    """Return all budgets of a loop by name, as they stand now."""
    accounts = runtime.windows.accounts
    with runtime.writer.midst, accounts.lock:
        return {
            name: _status(budget, accounts.by_name.get(name, Account()), runtime.writer.clock)
            for name, budget in runtime.settings.budget.items()
        }


def _status(budget: Budget, account: Account, now: float) -> BudgetStatus:
    bound = budget.mean if budget.mean is not None else account.bound
    left = None
    if budget.total is not None:
        same = account.last is not None and math.floor(max(now, 0.0) / budget.per) == account.period
        left = budget.total - (account.spent_in_period if same else 0.0)
    spent = account.spent, account.mean, bound, account.cheapest, account.decisions, account.owed
    return BudgetStatus(account.price, *spent, left)
