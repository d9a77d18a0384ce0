"""Numbers of a stored study: final regret with paired differences, and curves over the rounds.

Everything is read lazily and aggregated as it streams past, so that ten million rows need little
memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from scipy.special import stdtrit

from driftbandit.lab.cells import Cell
from driftbandit.lab.spec import Study, outline
from driftbandit.lab.store import Store

REFERENCE = "DOMD-GLB"  # differences are to this policy where a study has it
CONFIDENCE = 0.95
PAIR = ["environment", "policy"]


def finals(store: Store, reference: str | None = None) -> pl.DataFrame:
    """One row per environment and policy: regret at the end, difference to the reference, cost.

    mean and deviation are over seeds (NaN for one seed); difference is the mean of this policy's
    regret minus the reference's on common seeds, within [low, high] with 95 % confidence (Student's
    t); early_us and late_us are medians over the second and the last tenth of the rounds; coverage
    is the share of recorded rounds with ratio <= 1.
    """
    data = rows(store)
    ends = _rounds(data).group_by("environment").agg(horizon=pl.col("round").max())
    timed = data.join(ends.lazy(), on="environment")
    passes = (_last(timed), _pace(timed), _confidence(data))
    last, pace, sets = (each.collect(engine="streaming") for each in passes)
    reference = _reference(last, reference)
    return (
        last.group_by(PAIR)
        .agg(
            seeds=pl.len().cast(pl.Int64),
            horizon=pl.col("round").max(),
            deviation=pl.col("regret").std().fill_null(float("nan")),
            mean=pl.col("regret").mean(),
            error=pl.col("error").fill_nan(None).mean(),
            bytes=pl.col("bytes").max(),
        )
        .join(_differences(last, reference), on=PAIR, how="left")
        .join(pace, on=PAIR, how="left")
        .join(sets, on=PAIR, how="left")
        .with_columns(reference=pl.lit(reference))
        .select(
            *PAIR,
            *("seeds", "horizon", "mean", "deviation", "reference", "difference", "low", "high"),
            *("early_us", "late_us", "bytes", "error", "coverage", "ratio"),
        )
        .sort(PAIR)
    )


def curves(store: Store, points: int = 300) -> pl.DataFrame:
    """Means over seeds at no more than `points` recorded rounds of each environment and policy."""
    data = rows(store)
    kept = _thinned(_rounds(data), points)
    return (
        data.join(kept.lazy(), on=["environment", "round"], how="semi")
        .group_by(*PAIR, "round")
        .agg(
            seeds=pl.len().cast(pl.Int64),
            deviation=pl.col("regret").std(),
            regret=pl.col("regret").mean(),
            # The very first round also loads compiled code.
            cost_us=_cost().filter(pl.col("round") > 1).mean(),
            error=pl.col("error").fill_nan(None).mean(),
            bytes=pl.col("bytes").mean(),
            coverage=_inside().mean(),
        )
        .collect(engine="streaming")
        .sort(*PAIR, "round")
    )


def rows(store: Store) -> pl.LazyFrame:
    """The results of the study's cells; environments and policies are Enums in its order."""
    data, cells = store.scan(), list(store.current().values())
    _check_labels(cells)
    worlds, policies = _order(cells)
    return data.with_columns(
        pl.col("environment").cast(pl.String).cast(pl.Enum(worlds)),
        pl.col("policy").cast(pl.String).cast(pl.Enum(policies)),
    )


def stored_study(store: Store) -> Study | None:
    """The study as it was last run, unless its text is gone or no longer valid."""
    try:
        return outline((store.folder / "study.toml").read_text(encoding="utf-8"), "study.toml")
    except (OSError, ValueError):
        return None


def _check_labels(cells: list[Cell]) -> None:
    """A label that means two things would average them."""
    meaning: dict[tuple[str, ...], tuple[str, ...]] = {}
    for cell in cells:
        for label, meant in (
            ((cell.environment_label,), (cell.environment,)),
            ((cell.environment_label, cell.policy_label), (cell.policy, str(cell.points))),
        ):
            if meaning.setdefault(label, meant) != meant:
                raise ValueError(
                    f"{' / '.join(label)!r} names different cells: give variants labels of their "
                    "own in study.toml, or run the changed study into a new folder"
                )


def _order(cells: list[Cell]) -> tuple[list[str], list[str]]:
    """Labels of environments and policies as the study lists them."""
    per_world: dict[str, list[str]] = {}
    for cell in cells:
        labels = per_world.setdefault(cell.environment_label, [])
        if cell.policy_label not in labels:
            labels.append(cell.policy_label)
    return list(per_world), _merged(per_world.values())


def _merged(lists: Iterable[list[str]]) -> list[str]:
    """One order out of several: what is new comes before what it preceded."""
    order: list[str] = []
    for labels in lists:
        place = len(order)
        for label in reversed(labels):
            if label not in order:
                order.insert(place, label)
            place = order.index(label)
    return order


def _rounds(data: pl.LazyFrame) -> pl.DataFrame:
    return data.select("environment", "round").unique().collect(engine="streaming")


def _thinned(rounds: pl.DataFrame, points: int) -> pl.DataFrame:
    """Evenly spaced rounds of each environment, with the first and the last."""
    parts = []
    for part in rounds.sort("environment", "round").partition_by("environment"):
        places = np.linspace(0, part.height - 1, min(points, part.height)).round().astype(int)
        parts.append(part[np.unique(places)])
    return pl.concat(parts)


def _cost() -> pl.Expr:
    return pl.col("choose_us") + pl.col("update_us")


def _inside() -> pl.Expr:
    return pl.col("ratio").fill_nan(None) <= 1.0


def _last(timed: pl.LazyFrame) -> pl.LazyFrame:
    return timed.filter(pl.col("round") == pl.col("horizon")).select(
        *PAIR, "seed", "round", "regret", "error", "bytes"
    )


def _pace(timed: pl.LazyFrame) -> pl.LazyFrame:
    """Cost early and late per pair; other rounds are dropped first, for medians hold their rows."""
    share = pl.col("round") / pl.col("horizon")
    early, late = (share > 0.1) & (share <= 0.2), share > 0.9
    return (
        timed.filter(early | late)
        .select(*PAIR, cost=_cost(), late=late)
        .group_by(PAIR)
        .agg(
            early_us=pl.col("cost").filter(~pl.col("late")).median(),
            late_us=pl.col("cost").filter(pl.col("late")).median(),
        )
    )


def _confidence(data: pl.LazyFrame) -> pl.LazyFrame:
    """How the truth sits in the confidence set over all recorded rounds, per pair."""
    return data.group_by(PAIR).agg(
        coverage=_inside().mean(), ratio=pl.col("ratio").fill_nan(None).mean()
    )


def _reference(last: pl.DataFrame, name: str | None) -> str:
    known = last["policy"].unique().sort().to_list()
    if name is not None and name not in known:
        raise ValueError(f"no policy {name!r} in the results: they hold {', '.join(known)}")
    return name or (REFERENCE if REFERENCE in known else known[0])


def _differences(last: pl.DataFrame, reference: str) -> pl.DataFrame:
    """Regret minus the reference's, seed by seed: both met the same contexts and noise."""
    is_reference = pl.col("policy") == reference
    base = last.filter(is_reference).select("environment", "seed", base="regret")
    gaps = (
        last.filter(~is_reference)
        .join(base, on=["environment", "seed"])
        .with_columns(gap=pl.col("regret") - pl.col("base"))
        .group_by(PAIR)
        .agg(difference=pl.col("gap").mean(), spread=pl.col("gap").std(), n=pl.len())
    )
    n = gaps["n"].to_numpy().astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        quantile = stdtrit(n - 1, 0.5 + CONFIDENCE / 2) / np.sqrt(n)
    half = (pl.Series("half", quantile) * gaps["spread"]).fill_nan(None)
    return gaps.select(
        *PAIR,
        "difference",
        low=pl.col("difference") - half,
        high=pl.col("difference") + half,
    )
