"""Regret orders: log-log slopes of the final regret against what a study sweeps."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from driftbandit.lab.store import Store
from driftbandit.lab.summary import finals

# Exponents of DOMD-GLB's theorems, by environment and swept quantity.
THEOREMS = {
    ("Circle", "horizon"): 0.75,
    ("Circle", "turns"): 0.25,
    ("Circle", "dim"): 0.75,
    ("Jumps", "horizon"): 2.0 / 3.0,
    ("Jumps", "jumps"): 1.0 / 3.0,
    ("Jumps", "dim"): 2.0 / 3.0,
}


class Order(NamedTuple):
    """One fitted exponent."""

    policy: str
    environment: str
    quantity: str
    values: tuple[float, ...]
    regrets: tuple[float, ...]
    slope: float
    error: float  # standard error of the slope
    theorem: float | None


def fit_orders(store: Store) -> list[Order]:
    """A slope for every policy and every numeric quantity that takes three values or more."""
    lines = finals(store).to_dicts()
    means = {(str(row["environment"]), str(row["policy"])): row["mean"] for row in lines}
    groups: dict[tuple[str, str, str, str], dict[float, float]] = defaultdict(dict)
    for cell in {json.dumps(c, sort_keys=True): c for c in store.descriptions()}.values():
        world, swept = json.loads(cell["environment"]), json.loads(cell["swept"])
        regret = means.get((cell["environment_label"], cell["policy_label"]))
        numbers = {k[12:]: v for k, v in swept.items() if k.startswith("environment.")}
        for quantity, value in numbers.items():
            if regret is not None and isinstance(value, (int, float)) and value > 0:
                others = str(sorted((k, str(v)) for k, v in world.items() if k != quantity))
                groups[cell["policy_label"], world["type"], quantity, others][float(value)] = regret
    return [
        _fit(policy, kind, quantity, points)
        for (policy, kind, quantity, _), points in sorted(groups.items())
        if len(points) >= 3 and min(points.values()) > 0
    ]


def _fit(policy: str, kind: str, quantity: str, points: dict[float, float]) -> Order:
    values = tuple(sorted(points))
    x, y = np.log(values), np.log([points[v] for v in values])
    (slope, _), residual, *_ = np.linalg.lstsq(np.column_stack([x, np.ones_like(x)]), y, rcond=None)
    spread = float(residual[0]) if residual.size else 0.0
    error = math.sqrt(spread / (len(x) - 2) / float(((x - x.mean()) ** 2).sum()))
    theorem = THEOREMS.get((kind, quantity)) if policy.startswith("DOMD-GLB") else None
    regrets = tuple(float(points[v]) for v in values)
    return Order(policy, kind, quantity, values, regrets, float(slope), error, theorem)


def orders_table(orders: list[Order]) -> str:
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
