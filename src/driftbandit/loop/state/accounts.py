"""Accounts: what a loop with budgets has spent, and the price of spending more. Both follow from
the log alone.

A decision logs what each arm was expected to cost, and the price lambda at which it was made: arms
are ranked by (upper bound of the reward) - lambda cost/B, with B the bound on the mean. From there
the price goes on with every decision, by what its arm is expected to cost, and with every bill, by
what that differs:

    log lambda += kappa (cost - B) / U
    log lambda += kappa (bill - cost) / U,    U = B^(3/4) dearest^(1/4)

So what was overspent from one moment to another is the change of log lambda between them, times
U / kappa: it cannot grow while the price stays within bounds. A smaller unit U follows changes
sooner, and a larger one lets the price shake less when a dear arm is played; B itself loses
quality where few decisions can be dear, and sqrt(B dearest) overspends after changes where the
budget is tight (`benchmarks/budget.py`). Debt beyond the largest price is remembered, up to about
`DEBT` decisions' worth, and paid back before the price falls again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from driftbandit.loop.storage.events import SPENT, Bill, Event, Spend

KAPPA = 0.12  # change of log lambda by a cost of one unit above the bound
LEAST, MOST = math.log(1e-5), math.log(2.0)  # of log lambda as decisions see it
DEBT = 1000  # decisions without a cost that it takes at most to pay back what lambda cannot show
BILLS = 0.98  # discount of an arm's bills, each time that one comes
ARMS = 1000  # whose bills are remembered; the one that has had none for longest goes first
RECENT = 1000  # latest decisions whose bills need no look into the ledger
PACE = 200.0  # decisions over which means are taken


class Charge(NamedTuple):
    """What a decision counts for in one budget: its arm, the cost that the caller stated, what was
    counted so far, and whether that is a bill."""

    arm: str | int
    stated: float
    counted: float
    billed: bool = False


class Account(Struct):
    """One budget: the price, and what was spent. Means are over the latest decisions."""

    log_price: float | None = None
    unit: float = 1.0  # U at the latest decision
    decisions: int = 0
    spent: float = 0.0
    mean: float = 0.0  # of costs
    bound: float = 0.0  # of the latest decision
    cheapest: float = 0.0  # mean cost of the cheapest arm
    gap: float = 0.0  # mean seconds from one decision to the next
    last: float | None = None  # when the latest decision was
    period: int | None = None  # of a total: its number since the epoch
    spent_in_period: float = 0.0
    bills: dict[str, tuple[float, float]] = {}  # by arm: weight, and sum of bill/stated

    @property
    def price(self) -> float | None:
        """Lambda as decisions see it; None before the first."""
        return None if self.log_price is None else math.exp(min(MOST, self.log_price))

    def ratio(self, arm: str | int) -> float:
        """Return what an arm costs for each unit of what callers state: 1 until bills say more."""
        weight, total = self.bills.get(str(arm), (0.0, 0.0))
        return (1.0 + total) / (1.0 + weight)

    def decide(self, at: float, spend: Spend, cost: float) -> None:
        """Count what a decision is expected to cost."""
        n = min(PACE, self.decisions + 1.0)
        self.decisions += 1
        if self.log_price is None:
            self.log_price = math.log(spend.price)
        self.bound = spend.bound
        self.unit = spend.bound**0.75 * max(spend.bound, *spend.costs) ** 0.25
        self.mean += (cost - self.mean) / n
        self.cheapest += (min(spend.costs) - self.cheapest) / n
        if self.last is not None:
            self.gap += (max(0.0, at - self.last) - self.gap) / min(PACE, self.decisions - 1.0)
        self.last = at if self.last is None else max(at, self.last)
        if spend.per is not None and self.period != (now := math.floor(at / spend.per)):
            self.period, self.spent_in_period = now, 0.0
        self._count(cost, cost - spend.bound)

    def bill(self, arm: str | int, stated: float, counted: float, value: float) -> None:
        """Count what a bill differs from what was counted before, and learn what the arm costs."""
        if stated > 0.0:
            weight, total = self.bills.pop(str(arm), (0.0, 0.0))
            self.bills[str(arm)] = BILLS * weight + 1.0, BILLS * total + value / stated
            if len(self.bills) > ARMS:
                del self.bills[next(iter(self.bills))]
        self.give_back(counted - value)

    def give_back(self, amount: float) -> None:
        """Count less than before."""
        self.mean -= amount / PACE
        self._count(-amount, -amount)

    def _count(self, cost: float, excess: float) -> None:
        self.spent += cost
        self.spent_in_period += cost
        if self.log_price is not None:
            moved = self.log_price + KAPPA * excess / self.unit
            self.log_price = min(MOST + KAPPA * DEBT, max(LEAST, moved))


class Priced(Struct):
    """What the log has of a decision's costs."""

    spend: dict[str, Spend]
    names: list[str | int]
    arms: list[dict[str, Any]]
    choices: list[int | None]

    def charges(self) -> dict[str, Charge]:
        """Return what the chosen arm counts for, by budget."""
        choice = self.choices[0]
        if choice is None:
            return {}
        arm, columns = self.names[choice], self.arms[choice]
        return {
            name: Charge(arm, float(columns[name]), each.costs[choice])
            for name, each in self.spend.items()
        }


_priced = msgspec.json.Decoder(Priced)


def priced(data: str) -> Priced | None:
    """Return what a decision's payload says of its costs; None if it was made without a budget."""
    return _priced.decode(data) if data.startswith(SPENT) else None


class Accounts:
    """All budgets of a loop after all events so far. The writer thread applies events; others hold
    `lock` while they read. `seq` is that of the event that moved it last."""

    def __init__(self) -> None:
        self.lock, self.seq = threading.Lock(), 0
        self.by_name: dict[str, Account] = {}  # by metric
        self.recent: dict[int, dict[str, Charge]] = {}  # by the seq of a decision

    def decide(self, event: Event) -> None:
        """Count a decision that was made with a budget."""
        said = priced(event.data)
        charges = said.charges() if said else {}
        if said is None or not charges:
            return
        with self.lock:
            for name, charge in charges.items():
                account = self.by_name.setdefault(name, Account(bills={}))
                account.decide(event.at, said.spend[name], charge.counted)
            self.seq, self.recent[event.seq] = event.seq, charges
            if len(self.recent) > RECENT:
                del self.recent[next(iter(self.recent))]

    def bill(self, seq: int, of: int | None, name: str, bill: Bill, value: float) -> None:
        """Count a bill for the decision `of`, which the event `seq` brought."""
        with self.lock:
            account = self.by_name.setdefault(name, Account(bills={}))
            account.bill(bill.arm, bill.stated, bill.counted, value)
            self.seq = seq
            if of in self.recent:
                charge = Charge(bill.arm, bill.stated, value, True)
                self.recent[of] = {**self.recent[of], name: charge}

    def cancel(self, seq: int, of: int | None, unspent: dict[str, float]) -> None:
        """Give back what a decision that was never shown was expected to cost."""
        with self.lock:
            for name, amount in unspent.items():
                if name in self.by_name:
                    self.by_name[name].give_back(amount)
            self.seq = seq
            self.recent.pop(of or 0, None)

    def charges(self, seq: int, read: Callable[[int], str]) -> dict[str, Charge]:
        """Return what a decision counts for; `read` gives its payload if it is older."""
        if not self.by_name:
            return {}
        if seq in self.recent:
            return self.recent[seq]
        said = priced(read(seq))
        return said.charges() if said else {}

    def state(self) -> dict[str, Any] | None:
        """Return all of it as JSON knows it; None if there is no budget."""
        if not self.by_name:
            return None
        recent = [[seq, charges] for seq, charges in self.recent.items()]
        found = {"seq": self.seq, "by_name": self.by_name, "recent": recent}
        made: dict[str, Any] = msgspec.to_builtins(found)
        return made

    def load(self, state: dict[str, Any] | None) -> None:
        """Go on from a checkpoint."""
        data = state or {"seq": 0, "by_name": {}, "recent": []}
        with self.lock:
            self.seq = data["seq"]
            self.by_name = msgspec.convert(data["by_name"], dict[str, Account])
            self.recent = {
                seq: {name: Charge(*each) for name, each in charges.items()}
                for seq, charges in data["recent"]
            }
