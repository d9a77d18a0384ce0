"""Accounts: what a loop with budgets has spent, and the price of spending more. Both follow from
the log alone.

A decision logs what each arm was expected to cost, and the price lambda at which it was made: arms
are ranked by (upper bound of the reward) - lambda cost/B, with B the bound on the mean. From there
the price goes on with every decision, by what its arm is expected to cost, and with every bill, by
what that differs. D, what is owed, is the sum of all these differences from the bound:

    D += cost - B,      log lambda += kappa (cost - B + D/H) / U
    D += bill - cost,   log lambda += kappa (bill - cost) / U,      U = B^(3/4) dearest^(1/4)

The first part alone keeps the mean where nothing changes, because what was overspent between two
moments is the change of log lambda between them times U/kappa. So if the price has to rise, that
much stays overspent. The second part pays it back over about H decisions: it acts as a bound of
B - D/H. D is what was overspent so far, to the cent, but for savings of more than `SAVED` of the
dearest calls, which are forgotten: a quiet month must not pay for a wild week.

A smaller unit U follows changes sooner, and a larger one lets the price shake less when a dear arm
is played; B itself loses quality where few decisions can be dear, and sqrt(B dearest) overspends
after changes where the budget is tight (`benchmarks/budget.py`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from driftbandit.loop.storage.events import SPENT, Bill, Event, Spend

MOST = math.log(2.0)  # of log lambda as decisions see it
PAYBACK = 300.0  # H, decisions over which what is owed is paid back
SAVED = 2.0  # dearest calls by which less than the bound may be owed
RULE = 2  # by which decisions are made now


class PriceRule(NamedTuple):
    """How a price moves: `kappa` is the change of log lambda by a cost of one unit above the bound,
    `top` the largest log lambda that is remembered, `pays` whether debts are paid back, and `least`
    what the dearest arm is to lose at least, as a part of the reward's range: a price that falls
    further in times of plenty would only take longer to rise again."""

    kappa: float
    top: float
    pays: bool
    least: float


# The first one had no payback. It remembered debts of 1,000 units beyond the largest price.
RULES = {1: PriceRule(0.12, MOST + 0.12 * 1000, False, 0.0)}
RULES[RULE] = PriceRule(0.07, MOST, True, 0.003)
LOW = math.log(0.003)  # no arm is dearer than the dearest, or the bound
BILLS = 0.98  # discount of an arm's bills, each time that one comes
ARMS = 1000  # whose bills are remembered; the one that has had none for longest goes first
RECENT = 1000  # latest decisions, at least, whose bills need no look into the ledger
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
    dearest: float = 0.0  # cost of an arm at the latest decision
    owed: float = 0.0  # D
    rule: int = 1  # of the latest decision
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
        known = self.bills.get(str(arm))
        return 1.0 if known is None else max(0.0, 1.0 + known[1]) / (1.0 + known[0])

    def decide(self, at: float, spend: Spend, cost: float) -> None:
        """Count what a decision is expected to cost."""
        before, bound, costs = self.decisions, spend.bound, spend.costs
        n = before + 1.0 if before < PACE else PACE
        self.decisions = before + 1
        if self.log_price is None:
            self.log_price = math.log(spend.price)
        dearest = max(costs)
        self.bound, self.rule = bound, spend.rule
        self.dearest = dearest = dearest if dearest > bound else bound
        self.unit = bound**0.75 * dearest**0.25
        self.mean += (cost - self.mean) / n
        self.cheapest += (min(costs) - self.cheapest) / n
        if self.last is None or at > self.last:
            if self.last is not None:
                self.gap += (at - self.last - self.gap) / (before if before < PACE else PACE)
            self.last = at
        else:
            self.gap -= self.gap / (before if before < PACE else PACE)
        if spend.per is None:
            self._count(cost, cost - bound, self.owed / PAYBACK)
            return
        if self.period != (now := math.floor(at / spend.per)):
            self.period, self.spent_in_period = now, 0.0
        self._count(cost, cost - bound)  # the bound of a total follows from its rest already

    def bill(self, bill: Bill, value: float) -> None:
        """Count what a bill differs from what was counted before, and learn what the arm costs."""
        arm, stated = str(bill.arm), bill.stated
        if stated > 0.0:
            weight, total = self.bills.pop(arm, (0.0, 0.0))
            if bill.billed:  # the sum had the earlier one
                self.bills[arm] = weight, total + (value - bill.counted) / stated
            else:
                self.bills[arm] = BILLS * weight + 1.0, BILLS * total + value / stated
            if len(self.bills) > ARMS:
                del self.bills[next(iter(self.bills))]
        self.give_back(bill.counted - value)

    def give_back(self, amount: float) -> None:
        """Count less than before."""
        self.mean -= amount / PACE
        self._count(-amount, -amount)

    def _count(self, cost: float, excess: float, paid: float = 0.0) -> None:
        self.spent += cost
        self.spent_in_period += cost
        if self.log_price is not None:
            rule = RULES[self.rule]
            if rule.pays:
                self.owed = max(-SAVED * self.dearest, self.owed + excess)
            moved = self.log_price + rule.kappa * (excess + paid) / self.unit
            if moved < LOW:  # which the least price is below, too
                least = max(1e-5, rule.least * self.bound / (self.dearest or 1.0))
                moved = max(math.log(least), moved)
            self.log_price = min(rule.top, moved)


class PricedDecision(Struct):
    """What the log has of a decision's costs."""

    spend: Mapping[str, Spend]
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


_priced = msgspec.json.Decoder(PricedDecision)


def priced(data: str) -> PricedDecision | None:
    """Return what a decision's payload says of its costs; None if it was made without a budget."""
    return _priced.decode(data) if data.startswith(SPENT) else None


class Accounts:
    """All budgets of a loop after all events so far. The thread that writes applies events; others
    hold `lock` while they read. `seq` is that of the event that moved it last."""

    def __init__(self) -> None:
        self.lock, self.seq = threading.Lock(), 0
        self.by_name: dict[str, Account] = {}  # by metric
        self.recent: dict[int, dict[str, Charge]] = {}  # by the seq of a decision

    def decide(self, event: Event, said: PricedDecision | None = None) -> None:
        """Count a decision that was made with a budget; what it `said` is read if not given."""
        said = said or priced(event.data)
        charges = said.charges() if said else {}
        if said is None or not charges:
            return
        with self.lock:
            for name, charge in charges.items():
                self._account(name).decide(event.at, said.spend[name], charge.counted)
            self.seq, self.recent[event.seq] = event.seq, charges
            if len(self.recent) > 2 * RECENT:
                self.recent = dict(list(self.recent.items())[RECENT:])

    def _account(self, name: str) -> Account:
        account = self.by_name.get(name)
        if account is None:
            account = self.by_name[name] = Account(bills={})
        return account

    def bill(self, seq: int, of: int | None, name: str, bill: Bill, value: float) -> None:
        """Count a bill for the decision `of`, which the event `seq` brought."""
        with self.lock:
            self._account(name).bill(bill, value)
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
