"""The policies of one environment against a reference and against each other, seed by seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from driftbandit.lab.report.statistics import holm, leaders, paired_difference

YARDSTICKS = ("Oracle", "Uniform")  # never the best: one knows the truth, the other does not learn


def compared(part: pl.DataFrame, reference: str, shown: list[str]) -> pl.DataFrame:
    """One environment: seeds that a policy was not played on are NaN."""
    wide = part.with_columns(pl.col("policy").cast(pl.String)).pivot(
        "policy", index="seed", values="regret"
    )
    regrets = {
        name: wide[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in wide.columns[1:]
    }
    base = regrets.get(reference, np.full(wide.height, np.nan))
    regrets = {name: values for name, values in regrets.items() if name in shown}
    found = {k: paired_difference(v, base) for k, v in regrets.items() if k != reference}
    p = dict(zip(found, holm([test.p for test in found.values()])))
    contest = {name: values for name, values in regrets.items() if name not in YARDSTICKS}
    best = dict(zip(contest, leaders([*contest.values()]) if contest else ()))
    lines = [
        {
            "policy": name,
            "best": bool(best.get(name, False)),
            "difference": found[name].mean if name in found else None,
            "low": found[name].low if name in found else None,
            "high": found[name].high if name in found else None,
            "p": p.get(name),
            "common": found[name].n if name in found else None,
        }
        for name in regrets
    ]
    return _typed(lines, part)


def _typed(lines: list[dict[str, object]], part: pl.DataFrame) -> pl.DataFrame:
    floats = dict.fromkeys(("difference", "low", "high", "p"), pl.Float64)
    schema: dict[str, Any] = {
        "policy": part.schema["policy"],
        "best": pl.Boolean,
        **floats,
        "common": pl.Int64,
    }
    frame = pl.DataFrame(lines, schema=schema).with_columns(pl.col(*floats).fill_nan(None))
    return frame.with_columns(
        environment=pl.lit(part["environment"][0], part.schema["environment"])
    )
