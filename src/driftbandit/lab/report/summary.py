"""Numbers of a stored study: final regret with paired differences, and curves over the rounds.

Everything is read lazily and aggregated as it streams past, so that ten million rows need little
memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from driftbandit.lab.report.statistics import half_width, holm, leaders, paired_difference
from driftbandit.lab.run.cells import Cell
from driftbandit.lab.run.store import RunStore
from driftbandit.lab.study.study_file import Study, outline

REFERENCE = "DOMD-GLB"  # differences are to this policy where a study has it
PAIR = ["environment", "policy"]
YARDSTICKS = ("Oracle", "Uniform")  # never the best: one knows the truth, the other does not learn
FACTS = ("horizon", "early_us", "late_us", "bytes", "error", "coverage", "ratio", "code")
SMOOTHING = 25  # recorded rounds whose median cost is shown: single ones are noisy


def finals(
    store: RunStore, reference: str | None = None, policies: Sequence[str] = ()
) -> pl.DataFrame:
    """One row per environment and policy: regret at the end, difference to the reference, cost.

    mean and deviation are over seeds (NaN for one seed). difference is the mean of this policy's
    regret minus the reference's on the `common` seeds, within [low, high] with 95 % confidence
    (Student's t), and p is the p-value of that paired test after Holm's correction within the
    environment. best: one of the environment's `leaders`.
    early_us and late_us are medians over the second and the last tenth of the rounds; coverage is
    the share of recorded rounds with ratio <= 1; code is the version of the code that played it.
    """
    return summarised(final_regrets(store), facts(store), reference, policies)


def summarised(
    regrets: pl.DataFrame,
    facts: pl.DataFrame,
    reference: str | None = None,
    policies: Sequence[str] = (),
) -> pl.DataFrame:
    """Return what `finals` does, from the regret of every seed and from what is known besides.

    Both frames have environments and policies as Enums, whose order is that of the rows.
    """
    reference = _reference(regrets, reference)
    shown = named(policies, regrets["policy"].unique().sort().to_list())
    return (
        regrets.group_by(PAIR)
        .agg(
            seeds=pl.len().cast(pl.Int64),
            deviation=pl.col("regret").std().fill_null(float("nan")),
            mean=pl.col("regret").mean(),
        )
        .join(_comparisons(regrets, reference, shown), on=PAIR)
        .join(facts, on=PAIR, how="left")
        .with_columns(reference=pl.lit(reference))
        .select(
            *PAIR,
            *("seeds", "horizon", "mean", "deviation", "best"),
            *("reference", "difference", "low", "high", "p", "common"),
            *FACTS[1:],
        )
        .sort(PAIR)
    )


def facts(store: RunStore) -> pl.DataFrame:
    """What is known of each environment and policy besides its regrets, a row for each."""
    data = rows(store)
    timed = data.join(_horizons(data).lazy(), on="environment")
    last = _last(timed).group_by(PAIR)
    ends = last.agg(
        horizon=pl.col("round").max(),
        error=pl.col("error").fill_nan(None).mean(),
        bytes=pl.col("bytes").max(),
    )
    passes = (each.collect(engine="streaming") for each in (ends, _pace(timed), _confidence(data)))
    found, pace, sets = passes
    codes = {(c.environment_label, c.policy_label): c.code for c in store.current()}
    lines = [codes[pair] for pair in found.select(PAIR).iter_rows()]
    found = found.with_columns(code=pl.Series(lines, dtype=pl.String))
    return (
        found.join(pace, on=PAIR, how="left").join(sets, on=PAIR, how="left").select(*PAIR, *FACTS)
    )


def final_regrets(store: RunStore, policies: Sequence[str] = ()) -> pl.DataFrame:
    """One row per environment, policy and seed: regret at the horizon."""
    data = rows(store)
    last = _last(data.join(_horizons(data).lazy(), on="environment")).collect(engine="streaming")
    shown = named(policies, last["policy"].unique().sort().to_list())
    kept = last.filter(pl.col("policy").cast(pl.String).is_in(shown))
    return kept.select(*PAIR, "seed", "regret").sort(*PAIR, "seed")


def curves(store: RunStore, points: int = 300, policies: Sequence[str] = ()) -> pl.DataFrame:
    """Means over seeds at no more than `points` recorded rounds of each environment and policy.

    half is half the 95 % interval of the mean regret; cost_us is a median over seeds and
    neighbouring rounds.
    """
    data = rows(store)
    kept = _thinned(_rounds(data), points)
    found = (
        data.join(kept.lazy(), on=["environment", "round"], how="semi")
        .group_by(*PAIR, "round")
        .agg(
            seeds=pl.len().cast(pl.Int64),
            deviation=pl.col("regret").std(),
            regret=pl.col("regret").mean(),
            # The very first round also loads compiled code.
            cost_us=_cost().filter(pl.col("round") > 1).median(),
            error=pl.col("error").fill_nan(None).mean(),
            bytes=pl.col("bytes").mean(),
            coverage=_inside().mean(),
        )
        .collect(engine="streaming")
        .sort(*PAIR, "round")
    )
    shown = named(policies, found["policy"].unique().sort().to_list())
    half = half_width(found["deviation"].to_numpy(), found["seeds"].to_numpy())
    smooth = pl.col("cost_us").rolling_median(SMOOTHING, min_samples=1, center=True).over(PAIR)
    return found.with_columns(smooth, half=pl.Series(half).fill_nan(None)).filter(
        pl.col("policy").cast(pl.String).is_in(shown)
    )


def chosen(store: RunStore) -> dict[tuple[str, str], str]:
    """Options that tuning chose, by environment and policy, where it had a choice."""
    offered: dict[tuple[str, str], list[dict[str, object]]] = {}
    for cell in RunStore(store.folder / "tuning").current():
        labels = cell.environment_label, cell.policy_label
        offered.setdefault(labels, []).append(json.loads(cell.swept))
    found = {}
    for cell in store.current():
        labels = cell.environment_label, cell.policy_label
        several = offered.get(labels, [])
        free = {k for o in several for k in o if any(other.get(k) != o[k] for other in several)}
        played = {k: v for k, v in json.loads(cell.swept).items() if k in free}
        if played:
            texts = (f"{key.partition('.')[2]} {value}" for key, value in played.items())
            found[labels] = ", ".join(texts)
    return found


def named(names: Sequence[str], known: list[str]) -> list[str]:
    """The policies asked for, or all; a name that nothing was stored under is an error."""
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"no policy {missing[0]!r} in the results: they hold {', '.join(known)}")
    return list(names) or known


def stored_policies(store: RunStore) -> list[str]:
    """Labels of the policies, in the order of the study."""
    return list(rows(store).collect_schema()["policy"].categories)  # type: ignore[attr-defined]


def rows(store: RunStore) -> pl.LazyFrame:
    """The results of the study's cells; environments and policies are Enums in its order."""
    data, cells = store.scan(), store.current()
    _check_labels(cells)
    worlds, policies = order_of(cells)
    return data.with_columns(
        pl.col("environment").cast(pl.String).cast(pl.Enum(worlds)),
        pl.col("policy").cast(pl.String).cast(pl.Enum(policies)),
    )


def stored_study(store: RunStore) -> Study | None:
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


def order_of(cells: Iterable[Cell]) -> tuple[list[str], list[str]]:
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


def _horizons(data: pl.LazyFrame) -> pl.DataFrame:
    return _rounds(data).group_by("environment").agg(horizon=pl.col("round").max())


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
    """Return how the truth sits in the confidence set over all recorded rounds, per pair."""
    return data.group_by(PAIR).agg(
        coverage=_inside().mean(), ratio=pl.col("ratio").fill_nan(None).mean()
    )


def _reference(last: pl.DataFrame, name: str | None) -> str:
    known = last["policy"].unique().sort().to_list()
    if name is not None:
        return named([name], known)[0]
    return REFERENCE if REFERENCE in known else known[0]


def _comparisons(last: pl.DataFrame, reference: str, shown: list[str]) -> pl.DataFrame:
    """Every shown policy against the reference, and whether it may be called best."""
    parts = last.sort(PAIR).partition_by("environment", maintain_order=True)
    return pl.concat([_compared(part, reference, shown) for part in parts])


def _compared(part: pl.DataFrame, reference: str, shown: list[str]) -> pl.DataFrame:
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
