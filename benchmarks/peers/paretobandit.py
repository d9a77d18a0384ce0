"""ParetoBandit as a peer of budgets. It runs in an environment of its own, so this file needs
nothing of driftbandit: `python paretobandit.py JOBS.json CHOICES.npz` routes the prompts of a
stream for each job, and stores which model each prompt went to.

The router gets what our loop gets: the same 25 numbers of a prompt and a 1, list prices, announced
price changes, a newcomer when it arrives, the real cost and the quality of what it chose.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pareto_bandit import BanditRouter
from pareto_bandit.budget_pacer import BudgetPacer, PacingMode
from pareto_bandit.feature_service import FeatureService

PRICES = [(0.1, 0.1), (0.5, 1.5), (1.25, 10.0)]  # dollars for a million tokens in and out


def priced(k: int, part: float = 1.0) -> dict[str, float]:
    """Return the list price of a model, or a part of it."""
    return {
        "input_cost_per_m": part * PRICES[k][0],
        "output_cost_per_m": part * PRICES[k][1],
    }


def router(offered: Any, ceiling: float, seed: int, settings: dict[str, Any]) -> BanditRouter:
    """Return a router without priors, whose pacer keeps the ceiling."""
    pacer = BudgetPacer(ceiling, PacingMode(settings["mode"]), lr=settings["lr"])
    return BanditRouter.create(
        model_registry={str(k): priced(k) for k in np.flatnonzero(offered)},
        priors="none",
        feature_service=FeatureService.for_precomputed(26),
        alpha=settings["alpha"],
        forgetting_factor=settings["forgetting_factor"],
        cost_penalty=settings["cost_penalty"],
        bandit_seed=seed,
        budget_pacer=pacer,
    )


def route(stream: Any, ceiling: float, seed: int, settings: dict[str, Any]) -> Any:
    """Return the model that each prompt of a stream went to."""
    prompt, quality, cost = stream["prompt"], stream["quality"], stream["cost"]
    stated, offered = stream["stated"], stream["offered"]
    found, chosen = router(offered[0], ceiling, seed, settings), np.empty(len(prompt), dtype=int)
    rows = np.hstack([prompt, np.ones((len(prompt), 1))])
    for t, row in enumerate(rows):
        for k in np.flatnonzero(offered[t] & ~offered[max(t - 1, 0)]):
            found.register_model(str(k), **priced(k))
        for k in np.flatnonzero(stated[t] != stated[max(t - 1, 0)]):
            found.update_model_pricing(str(k), **priced(k, stated[t, k] / stated[0, k]))
        model, log = found.route(row)
        k = chosen[t] = int(model)
        log.cost_usd = float(cost[t, k])  # what the pacer observes
        found.process_feedback(log.request_id, float(quality[t, k]))
    return chosen


def main() -> None:
    logging.disable(logging.CRITICAL)
    jobs, target = sys.argv[1:]
    found = {}
    for name, (stream, ceiling, seed, settings) in json.loads(Path(jobs).read_text()).items():
        with np.load(stream) as file:
            arrays = {each: file[each] for each in file.files}
        found[name] = route(arrays, ceiling, seed, settings)
    np.savez(target, **found)


if __name__ == "__main__":
    main()
