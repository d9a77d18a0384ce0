"""Studies in docs/results, row by row: which code played a row, and which rows are out of date.

`docs/results/STUDY.csv` has a row per environment and policy, with the version of the code that
played it; `STUDY-seeds.csv` has the final regret of every seed, so that every ratio and interval of
the pages can be computed again from these two files alone.

    python -m benchmarks.stored_studies                  which rows are out of date, and what to run
    python -m benchmarks.stored_studies confirm STUDY [POLICY ...]    replay two seeds of such rows

A row is refreshed by `driftbandit run STUDY --policies A,B` and `python -m benchmarks.readme
results`: rows that the folder does not hold stay as they are. Many edits change no number, so
`confirm` plays the first and the last seed of a row with today's code. Where both regrets are as
stored, the row gets today's version.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl

from benchmarks import tables
from driftbandit.lab import RunStore, final_regrets, read_study
from driftbandit.lab.report.summary import FACTS, PAIR, facts, order_of, summarised
from driftbandit.lab.run.cells import Cell, cells_of
from driftbandit.lab.run.execute import run_pinned
from driftbandit.lab.run.plugin_files import PluginFiles
from driftbandit.lab.run.suite import contenders, read_suite

CATALOGUE, SHARP, BUDGET = "whole-catalogue", "sharp-lambda", "same-tuning-budget"
STUDIES = (
    *("paper-figure", "regret-orders", "coverage", "sensitivity"),
    *("scaling-in-time", "unstated-choices", "many-worlds", "ablation"),
    *(BUDGET, "scaling-in-dimension", "late-rewards", "bob"),
    *(CATALOGUE, "sharp-dimension", SHARP, "unknown-drift"),
)
CARDS = ("suite-1", "suite-2", "suite-3")
REFERENCE = {SHARP: "DOMD-GLB, sharp"}  # differences are to it
# Files that are made of a study's.
MADE_OF = {
    "panels": CATALOGUE,
    "paper-quarters": "paper-figure",
    "budget-panels": BUDGET,
}
MADE_OF |= dict.fromkeys(("worlds", "auto", "together"), "many-worlds")
EVERY = "every policy"
ALL = 10**9  # seeds in a block: one cell for each environment and policy
Pair = tuple[str, str]  # labels of environment and policy
Runs = dict[str, dict[str, dict[int, float]]]  # final regret by environment, policy and seed


@cache
def cells(name: str) -> list[Cell]:
    """The cells of a study as it is today; one that is tuned has all its variants."""
    if name in CARDS:
        return cells_of(read_suite(name).study(*contenders(["all"]))[0], ALL)
    return cells_of(read_study(name)[0], ALL)


def versions(name: str) -> dict[Pair, str]:
    """The version of the code that played each stored row; "" if it was not stored."""
    ending = "json" if name in CARDS else "csv"
    if not (tables.RESULTS / f"{name}.{ending}").exists():
        return {}
    if name not in CARDS:
        return {(x["environment"], x["policy"]): x.get("code", "") for x in tables.stored(name)}
    card = json.loads((tables.RESULTS / f"{name}.json").read_text())
    return {
        (world, policy): played.get("code", "")
        for policy, worlds in card["policies"].items()
        for world, played in worlds.items()
    }


def pair(cell: Cell) -> Pair:
    return cell.environment_label, cell.policy_label


def regrets(name: str) -> pl.DataFrame:
    """The stored regret of every environment, policy and seed."""
    wide = pl.read_csv(tables.RESULTS / f"{name}-seeds.csv")
    return (
        wide.unpivot(index=PAIR, variable_name="seed", value_name="regret")
        .drop_nulls()
        .select(*PAIR, pl.col("seed").cast(pl.Int64), pl.col("regret").cast(pl.Float64))
    )


def runs(name: str) -> Runs:
    """The same, as dictionaries in the order of the study."""
    return by_seed(_ordered(name, regrets(name)))


def by_seed(frame: pl.DataFrame) -> Runs:
    """Regrets of environments, policies and seeds as dictionaries."""
    found: Runs = {}
    for world, policy, seed, regret in frame.iter_rows():
        found.setdefault(world, {}).setdefault(policy, {})[seed] = regret
    return found


def collect(name: str, results: Path) -> None:
    """Store what was played into results/NAME; other rows stay as they are stored."""
    store, known = RunStore(results / name), {pair(cell): cell for cell in cells(name)}
    recipes = {(cell.environment, cell.policy, cell.points) for cell in cells(name)}
    for cell in _joined(store.current()):
        whole = known.get(pair(cell))
        same = (cell.environment, cell.policy, cell.points) in recipes
        if whole is None or not same or not set(whole.seeds) <= set(cell.seeds):
            raise ValueError(
                f"{store.folder} was run with other options, rounds or seeds than {name} has"
            )
    merge(name, _plain(final_regrets(store)), _plain(facts(store)))


def merge(name: str, ends: pl.DataFrame, known: pl.DataFrame) -> None:
    """Store regrets of seeds and facts of rows; what is stored of other rows stays."""
    new, table = known.select(PAIR), tables.RESULTS / f"{name}.csv"
    if (tables.RESULTS / f"{name}-seeds.csv").exists():
        ends = pl.concat([ends, regrets(name).join(new, on=PAIR, how="anti")])
    rest = pl.read_csv(table, infer_schema_length=None) if table.exists() else None
    if rest is not None:
        rest = rest.join(new, on=PAIR, how="anti")
        seeded = rest.join(ends, on=PAIR, how="semi")
        if len(seeded):
            known = pl.concat([known, seeded.select(*PAIR, *FACTS).cast(dict(known.schema))])
        rest = rest.join(seeded, on=PAIR, how="anti")  # stored before seeds were: as they are
    write(name, ends, known, rest)


def write(name: str, ends: pl.DataFrame, known: pl.DataFrame, rest: pl.DataFrame | None) -> None:
    """Store both files of a study; `rest` are rows without seeds, which no test can compare."""
    ends, known = _ordered(name, ends), _ordered(name, known)
    found = summarised(ends, known, REFERENCE.get(name))
    if rest is not None and len(rest):
        rest = _ordered(name, rest.with_columns(best=pl.lit(None, pl.Boolean)))
        missing = [pl.lit(None).alias(c) for c in found.columns if c not in rest.columns]
        rest = rest.with_columns(*missing).select(found.columns).cast(dict(found.schema))
        open_worlds = found["environment"].is_in(rest["environment"].unique().to_list())
        unknown = pl.when(open_worlds).then(None).otherwise(pl.col("best"))
        found = pl.concat([found.with_columns(best=unknown), rest]).sort(PAIR)
    found.write_csv(tables.RESULTS / f"{name}.csv", float_precision=4)
    wide = ends.pivot("seed", index=PAIR, values="regret", sort_columns=True)
    wide.write_csv(tables.RESULTS / f"{name}-seeds.csv", float_precision=4)


def _joined(found: list[Cell]) -> list[Cell]:
    """Cells with all their seeds, whatever the blocks in which they were played."""
    whole: dict[tuple[Pair, str], Cell] = {}
    for cell in found:
        part = whole.get((pair(cell), cell.key), replace(cell, seeds=()))
        whole[pair(cell), cell.key] = replace(cell, seeds=(*part.seeds, *cell.seeds))
    return list(whole.values())


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(PAIR).cast(pl.String))


def _ordered(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Rows that the study has today, in its order."""
    worlds, policies = order_of(cells(name))
    known = pl.DataFrame(list({pair(cell) for cell in cells(name)}), schema=PAIR, orient="row")
    kinds = pl.col("environment").cast(pl.Enum(worlds)), pl.col("policy").cast(pl.Enum(policies))
    rest = [column for column in ("seed",) if column in frame.columns]
    return frame.join(known, on=PAIR, how="semi").with_columns(*kinds).sort(*PAIR, *rest)


@cache
def out_of_date(name: str) -> dict[str, list[Pair]]:
    """Rows of a study that today's code did not play, and rows that were never played, by what is
    the matter with them."""
    today: dict[Pair, set[str]] = {}
    for cell in cells(name):
        today.setdefault(pair(cell), set()).add(cell.code)
    rows = versions(name)
    found: dict[str, list[Pair]] = {"unknown": [], "earlier": [], "missing": []}
    for each, codes in today.items():
        if rows.get(each, "") not in codes:
            kind = "missing" if each not in rows else "earlier" if rows[each] else "unknown"
            found[kind].append(each)
    return {kind: some for kind, some in found.items() if some}


WORDS = {
    "earlier": "made by earlier code",
    "unknown": "stored before results named their code",
    "missing": "not played yet",
}
NAMED = 6  # policies of a study that a page names; more are counted


def studies_in(files: set[str]) -> list[str]:
    """The studies of which these files of docs/results are made."""
    return sorted({MADE_OF.get(name, name) for name in files} & {*STUDIES, *CARDS})


def said(studies: list[str]) -> str:
    """What a page says of the age of the studies that it quotes."""
    parts, older = [], False
    for kind, words in WORDS.items():
        found = {name: out_of_date(name).get(kind) for name in studies}
        told = [f"`{name}`{_part(some, name)}" for name, some in found.items() if some]
        parts += [f" {words.capitalize()}: {', '.join(told)}."] if told else []
        older |= bool(told) and kind != "missing"
    which = "Not all" if older else "All"
    return f"{which} results quoted here were made by this version's code." + "".join(parts)


def _part(pairs: list[Pair], name: str) -> str:
    policies = _whose(pairs, name)
    count = len({policy for _, policy in pairs})
    shown = f"{count} policies" if count > NAMED else policies
    return "" if policies == EVERY else f" ({shown})"


def _whose(pairs: list[Pair], name: str) -> str:
    policies = dict.fromkeys(policy for _, policy in pairs)
    everybody = {cell.policy_label for cell in cells(name)}
    return EVERY if set(policies) == everybody else ", ".join(policies)


def confirm(name: str, policies: Sequence[str] = ()) -> None:
    """Replay two seeds of every row that is out of date, or of those of some policies; where the
    regrets are as stored, to the four digits that are, the row was played by code that plays alike.
    """
    stored = runs(name)
    old = {
        each
        for kind in ("earlier", "unknown")
        for each in out_of_date(name).get(kind, ())
        if each[1] in stored.get(each[0], {}) and (not policies or each[1] in policies)
    }
    confirmed: dict[Pair, str] = {}
    for cell in cells(name):
        if pair(cell) in old and pair(cell) not in confirmed:
            mine = stored[cell.environment_label][cell.policy_label]
            if _plays_alike(replace(cell, seeds=(min(mine), max(mine))), mine):
                confirmed[pair(cell)] = cell.code
    for each in sorted(old - confirmed.keys()):
        print("other regrets:", *each, sep=" | ")
    print(f"{name}: {len(confirmed)} of {len(old)} rows confirmed")
    _recode(name, confirmed)


def _plays_alike(cell: Cell, stored: dict[int, float]) -> bool:
    frame = run_pinned(cell, PluginFiles.of([cell]))
    last = frame.filter(pl.col("round") == pl.col("round").max())
    found = dict(zip(last["seed"], last["regret"]))
    return all(abs(found[seed] - stored[seed]) < 1e-4 for seed in cell.seeds)


def _recode(name: str, codes: dict[Pair, str]) -> None:
    lines = tables.stored(name)
    for line in lines:
        line["code"] = codes.get((line["environment"], line["policy"]), line.get("code", ""))
    tables.write(name, lines, ends="\n")


def main(words: list[str]) -> None:
    if words[:1] == ["confirm"]:
        confirm(words[1], words[2:])
        return
    for name in (*STUDIES, *CARDS):
        command = (
            f"driftbandit suite all --suite {name}" if name in CARDS else f"driftbandit run {name}"
        )
        found = out_of_date(name)
        for kind, some in found.items():
            print(f"{name}: {len(some)} rows {WORDS[kind]}: {_whose(some, name)}")
        whose = _whose([each for some in found.values() for each in some], name)
        if found:
            part = "" if whose == EVERY or name in CARDS else f' --policies "{whose}"'
            print(f"    {command}{part}")


if __name__ == "__main__":
    main(sys.argv[1:])
