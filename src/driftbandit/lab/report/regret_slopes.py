"""Regret orders: log-log slopes of the final regret against what a study sweeps."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.report.summary import finals
from driftbandit.lab.report.sweeps import Sweep, sweeps
from driftbandit.lab.run.store import RunStore

# Exponents of DOMD-GLB's theorems, by environment and swept quantity.
THEOREMS = {
    ("Circle", "horizon"): 0.75,
    ("Circle", "turns"): 0.25,
    ("Circle", "dim"): 0.75,
    ("Jumps", "horizon"): 2.0 / 3.0,
    ("Jumps", "jumps"): 1.0 / 3.0,
    ("Jumps", "dim"): 2.0 / 3.0,
}


class FittedOrder(NamedTuple):
    """One fitted exponent."""

    policy: str
    environment: str
    quantity: str
    values: tuple[float, ...]
    regrets: tuple[float, ...]
    slope: float
    error: float  # standard error of the slope
    theorem: float | None


def fit_orders(store: RunStore) -> list[FittedOrder]:
    """A slope for every policy and every number of the worlds that takes three values or more."""
    fitted = [
        _fit(sweep)
        for sweep in sweeps(store.current(), finals(store))
        if sweep.of_worlds and len(sweep.values) >= 3 and min(*sweep.values, *sweep.regrets) > 0
    ]
    return sorted(fitted, key=lambda order: order[:3])


def _fit(sweep: Sweep) -> FittedOrder:
    x, y = np.log(sweep.values), np.log(sweep.regrets)
    (slope, _), residual, *_ = np.linalg.lstsq(np.column_stack([x, np.ones_like(x)]), y, rcond=None)
    spread = float(residual[0]) if residual.size else 0.0
    error = math.sqrt(spread / (len(x) - 2) / float(((x - x.mean()) ** 2).sum()))
    theorem = THEOREMS.get((sweep.kind, sweep.quantity))
    ours = theorem if sweep.line.startswith("DOMD-GLB") else None
    what = sweep.line, sweep.kind, sweep.quantity
    return FittedOrder(*what, sweep.values, sweep.regrets, float(slope), error, ours)


def orders_table(orders: list[FittedOrder]) -> str:
    """The slopes in Markdown, next to the theorems' exponents."""
    rows = ["| policy | world | against | regret | slope | theorem |", "|---|---|---|---|---|---|"]
    for order in orders:
        path = ", ".join(f"{v:g}: {r:.0f}" for v, r in zip(order.values, order.regrets))
        theorem = "" if order.theorem is None else f"{order.theorem:.2f}"
        cells: tuple[Any, ...] = (order.policy, order.environment, order.quantity, path)
        rows.append(
            "| " + " | ".join(cells) + f" | {order.slope:.2f} ± {order.error:.2f} | {theorem} |"
        )
    return "\n".join(rows) + "\n"
