"""Put stored results into the documents: `make docs`.

With the folder of all results as argument it first collects what the documents quote into
docs/results; without it, it only fills the tables that `<!-- table: name -->` announces, the
numbers in sentences that `<!-- say: name -->` does, and the code and output of examples.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import (
    calendars,
    claims,
    commands,
    declarations,
    examples,
    explain,
    hindsight,
    lockin,
    one_discount,
    pitch,
    rare,
    sharp,
    streams_figure,
    tables,
    theorems,
    worlds,
)
from benchmarks.tables import stored

ROOT = Path(__file__).parent.parent
STUDIES = (
    *("paper-figure", "regret-orders", "coverage", "sensitivity"),
    *("scaling-in-time", "unstated-choices", "many-worlds", "ablation"),
    *("same-tuning-budget", "scaling-in-dimension", "late-rewards", "bob"),
    *(worlds.CATALOGUE, "sharp-dimension"),
)
MISSING = "(not stored yet)"  # what a table or a sentence says until its study was run
# Ours; the best rival in drift and in flips; the one that needs no knowledge of the world.
MESSAGE = ("AutoDOMD", "DOMD-GLB", sharp.RULE, "SCB-WeightUCB", "SW-GLUCB", "MASTER + GLM-UCB")
PAGES = ("docs/tutorial.md", "docs/cli.md", "docs/from-vw.md", "docs/from-bayesianbandits.md")
PAGES += ("docs/from-personalizer.md",)
PAGES += ("README.md", "docs/reproduced.md", "docs/auto.md", "docs/peers.md", "docs/fleet.md")
PAGES += ("docs/leaderboard.md", "docs/theory.md", "docs/bob.md", "docs/streams.md")
PAGES += (
    "docs/rewards.md",
    "docs/loop.md",
    "docs/deployment.md",
    "docs/evidence.md",
    "docs/promotion.md",
    "docs/speed.md",
    "docs/features.md",
    "docs/differences.md",
    "docs/families.md",
    "docs/promises.md",
)
PAGES += tuple(f"docs/gallery/{page.name}" for page in sorted(examples.FIGURES.glob("*.md")))


def collect(results: Path) -> None:
    """Final numbers of every study that was run, and the figure of the comparison. What the folder
    does not hold stays as it was stored."""
    from driftbandit.lab import RunStore, finals, fit_orders
    from driftbandit.lab.report.regret_slopes import orders_table
    from driftbandit.lab.report.summary import curves

    def run(*names: str) -> bool:
        return all((results / name).exists() for name in names)

    for name in filter(run, STUDIES):
        finals(RunStore(results / name)).write_csv(
            tables.RESULTS / f"{name}.csv", float_precision=4
        )
    if run("paper-figure"):
        draw_message(results / "paper-figure")
        quarters(curves(RunStore(results / "paper-figure"), 10_000)).write_csv(
            tables.RESULTS / "paper-quarters.csv", float_precision=4
        )
    if run("many-worlds"):
        worlds.collect(results)
    if run(worlds.CATALOGUE):
        worlds.collect_panels(results)
    if run(sharp.STUDY):
        sharp.collect(results)
    for name in filter(run, ("suites/suite-1.json", "suites/suite-2.json")):
        shutil.copy(results / name, tables.RESULTS)
    if run("regret-orders"):
        orders = orders_table(fit_orders(RunStore(results / "regret-orders")))
        (tables.RESULTS / "regret-orders.md").write_text(orders)


def quarters(curves):
    """Which share of its final mean regret a policy had in each quarter of the horizon."""
    import polars as pl

    pair = "environment", "policy"
    share = pl.col("round") / pl.col("round").max().over(pair)
    regret = pl.col("regret") / pl.col("regret").last().over(pair)
    return (
        curves.sort(*pair, "round")
        .with_columns(regret, quarter=(4 * share).ceil().cast(pl.Int64))
        .group_by(*pair, "quarter", maintain_order=True)
        .agg(pl.col("regret").last())
        .with_columns(pl.col("regret").diff().over(pair).fill_null(pl.col("regret")))
        .pivot("quarter", index=pair, values="regret")
        .rename(dict(zip("1234", claims.QUARTERS)))
    )


def draw_message(folder: Path) -> None:
    """The figure of the comparison with a few policies in colour and the others grey."""
    from driftbandit.lab import RunStore
    from driftbandit.lab.report.figures import draw_regret
    from driftbandit.lab.report.summary import curves

    with tempfile.TemporaryDirectory() as target:
        drawn = draw_regret(curves(RunStore(folder)), Path(target), focus=MESSAGE)
        shutil.copy(drawn["png"], tables.RESULTS / "paper-figure.png")


def grid(name: str, cell, *, cost: bool = False) -> str:
    """Policies down, environments across."""
    lines = stored(name)
    worlds = list(dict.fromkeys(line["environment"] for line in lines))
    last = ["µs per round, early → late"] if cost else []
    rows = ["| policy | " + " | ".join(worlds + last) + " |"]
    rows.append("|---" * (len(worlds) + 1 + len(last)) + "|")
    for policy in dict.fromkeys(line["policy"] for line in lines):
        mine = {line["environment"]: line for line in lines if line["policy"] == policy}
        cells = [cell(mine[world]) if world in mine else "" for world in worlds]
        if cost:
            first = next(iter(mine.values()))
            cells.append(f"{float(first['early_us']):.1f} → {float(first['late_us']):.1f}")
        rows.append(f"| {policy} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def regret(line: dict[str, str]) -> str:
    spread = f" ± {float(line['deviation']):.0f}" if line["seeds"] != "1" else ""
    return mean(line) + spread


def mean(line: dict[str, str]) -> str:
    return f"{float(line['mean']):.0f}"


def covered(line: dict[str, str]) -> str:
    return f"{100 * float(line['coverage']):.1f} %" if line["coverage"] else ""


def pace(line: dict[str, str]) -> str:
    """Cost of a late round."""
    return f"{float(line['late_us']):.1f}"


def alone(line: dict[str, str]) -> str:
    """Cost of a round of one learner alone on a core."""
    mean, deviation = float(line["mean_us"]), float(line["deviation_us"])
    digits = 1 if mean < 100 else 0
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def figures(name: str) -> str:
    """What a benchmark printed, with what is required."""
    head = ["figure", "measured", "required"]
    rows = ([line["figure"], whole(line["measured"]), line["required"]] for line in stored(name))
    return markdown([head, *rows])


def whole(measured: str) -> str:
    """A large number without a power of ten: 2,290 for 2.29e+03."""
    return f"{float(measured):,.0f}" if "e+" in measured else measured


def as_stored(name: str) -> str:
    """A table as it was written."""
    lines = stored(name)
    return markdown([list(lines[0]), *(list(line.values()) for line in lines)])


def markdown(rows: list[list[str]]) -> str:
    """Rows, the first of them the heading, as a table."""
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def peers() -> str:
    """One line a contender: what it costs and keeps, its regret in every world."""
    regrets = stored("peers")
    worlds = list(dict.fromkeys(line["world"] for line in regrets))
    head = ["learner", "reads of the arms", "µs per round", "bytes", "seeds", *worlds]
    rows = [head]
    for speed in stored("peers-speed"):
        mine = {x["world"]: x for x in regrets if x["contender"] == speed["contender"]}
        cost = float(speed["choose_us"]) + float(speed["update_us"])
        rows.append(
            [
                *(
                    speed["contender"],
                    speed["sees"],
                    f"{cost:.1f}" if cost < 100 else f"{cost:.0f}",
                ),
                *(f"{int(speed['bytes']):,}", speed["seeds"]),
                *(regret(mine[world]) for world in worlds),
            ]
        )
    absent = (line for line in stored("peers-install") if line["reason"])
    for line in absent:
        rows.append([line["peer"], f"not installed: {line['reason']}", *[""] * (len(head) - 2)])
    return markdown(rows)


def peer_costs() -> str:
    """Choosing and learning apart, and what the process grew by."""
    head = ["learner", "choose, µs", "update, µs", "mean of both, µs", "process growth, MB"]
    names = ("contender", "choose_us", "update_us", "mean_us", "resident_mb")
    return markdown([head, *([line[name] for name in names] for line in stored("peers-speed"))])


def peer_settings() -> str:
    """The setting that won on the tuning seeds, learners down, worlds across."""
    won = {(x["contender"], x["world"]): json.loads(x["setting"]) for x in stored("peers")}
    worlds = list(dict.fromkeys(world for _, world in won))
    rows = [["learner", *worlds]]
    for learner in dict.fromkeys(learner for learner, _ in won):
        settings = [won[learner, world] for world in worlds]
        if any(settings):
            shown = (", ".join(f"{k} {v}" for k, v in one.items()) for one in settings)
            rows.append([learner, *(text.removeprefix("options ") or "defaults" for text in shown)])
    return markdown(rows)


def peer_ratios() -> str:
    head = ["choose + update, d = 5, 30 arms", "measured", "wanted"]
    return markdown([head, *(list(line.values()) for line in stored("peers-ratios"))])


def peer_installs() -> str:
    head = ["package", "Python", "version", "why not"]
    return markdown([head, *(list(line.values()) for line in stored("peers-install"))])


def leaderboard(suite: str) -> str:
    """Scores of every policy on a suite, with what each must know beforehand."""
    from driftbandit.lab.report import scorecards
    from driftbandit.policies.catalogue import CATALOGUE

    card = scorecards.read_card(tables.RESULTS / f"{suite}.json")
    needs = {entry.policy.__name__: entry.needs for entry in CATALOGUE}
    head, *rows = scorecards.score_rows(card)
    table = [["", *head, "must know beforehand"]]
    for place, (name, *shown) in enumerate(rows, start=1):
        kind = next(iter(card["policies"][name].values()))["recipe"]["type"]
        table.append(
            [str(place) if shown[0] != scorecards.MISSING else "", name, *shown, needs[kind]]
        )
    return markdown(table)


def suite_worlds(suite: str) -> str:
    """The worlds of a suite, numbered, and every policy's share of the reference in them."""
    from driftbandit.lab.report import scorecards

    card = scorecards.read_card(tables.RESULTS / f"{suite}.json")
    numbered = [
        f"{k}. {world}, playing at random: {facts['reference']:.0f}"
        for k, (world, facts) in enumerate(card["worlds"].items(), start=1)
    ]
    return "\n".join([*numbered, "", markdown([list(row) for row in scorecards.world_rows(card)])])


def proof() -> str:
    """Both sides of every inequality, in the last round and where they are closest."""
    head = ["world", "in the paper", "what", "left, at T", "right", "left, tightest", "right"]
    rows = [
        [line[n] for n in ("world", "place", "claim", "left", "right")]
        + [line["tightest_left"], line["tightest_right"]]
        for line in stored("proof")
    ]
    return markdown([head, *rows])


TABLES = {
    "packages": lambda: markdown(pitch.short_table()),
    "allpackages": lambda: markdown(pitch.packages_table()),
    "commands": commands.reference,
    "proof": proof,
    "rebalanced": lambda: markdown(theorems.bounds_table()),
    "onediscount": one_discount.table,
    "table1": lambda: markdown(theorems.orders_table()),
    "leaderboard": lambda: leaderboard("suite-1"),
    "suite": lambda: suite_worlds("suite-1"),
    "leaderboard2": lambda: leaderboard("suite-2"),
    "suite2": lambda: suite_worlds("suite-2"),
    "auto": worlds.summary_table,
    "sharpbounds": lambda: markdown(sharp.bounds_table()),
    "sharpreach": lambda: markdown(sharp.reach_table()),
    "sharpdimension": lambda: grid("sharp-dimension", regret),
    "sharpgrid": lambda: markdown(sharp.grid_table()),
    "catalogue": lambda: grid(worlds.CATALOGUE, regret),
    "worlds": worlds.worlds_table,
    "together": worlds.together_table,
    "ablation": worlds.ablation_table,
    "explain": explain.table,
    "declarations": declarations.table,
    "rare": rare.table,
    "lockin": lockin.table,
    "calendars": calendars.table,
    "bob": lambda: grid("bob", regret),
    "reproduce": lambda: grid("paper-figure", regret, cost=True),
    "bench": lambda: figures("bench"),
    "fleet": lambda: figures("fleet"),
    "trials": lambda: figures("trials"),
    "loop": lambda: figures("loop"),
    "chain": lambda: figures("chain"),
    "intervals": lambda: as_stored("intervals"),
    "hardintervals": lambda: as_stored("intervals-hard"),
    "evidence": lambda: figures("evidence"),
    "promotion": lambda: as_stored("promotion"),
    "promotion_late": lambda: as_stored("promotion-late"),
    "oracles": lambda: as_stored("oracles"),
    "roads": lambda: figures("roads"),
    "links": lambda: figures("links"),
    "service": lambda: figures("service"),
    "sizing": lambda: figures("sizing"),
    "hostile": lambda: figures("hostile"),
    "peers": peers,
    "costs": peer_costs,
    "settings": peer_settings,
    "ratios": peer_ratios,
    "installs": peer_installs,
    "streams": streams_figure.table,
    "stream_settings": streams_figure.settings,
    "hindsight": hindsight.table,
    "late": lambda: grid("late-rewards", regret),
    "orders": lambda: (tables.RESULTS / "regret-orders.md").read_text().rstrip(),
    "coverage": lambda: grid("coverage", covered),
    "sensitivity": lambda: grid("sensitivity", mean),
    "choices": lambda: grid("unstated-choices", regret),
    "readings": lambda: markdown(claims.readings_table()),
    "wholereadings": lambda: markdown(claims.whole_readings_table()),
    "spread": lambda: markdown(claims.spread_table()),
    "budget": lambda: grid("same-tuning-budget", regret),
    "dimension": lambda: grid("scaling-in-dimension", pace),
    "runtime": lambda: grid("runtime", alone),
    "time": lambda: grid(
        "scaling-in-time", lambda line: f"{int(float(line['bytes'])):,} B", cost=True
    ),
}


def or_missing(made) -> str:
    """What was made of stored results, where there are any."""
    try:
        return made()
    except FileNotFoundError:
        return MISSING


def filled(text: str) -> str:
    """A page with its tables, and the numbers in its sentences, made anew."""

    def table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{or_missing(TABLES[match[1]])}\n<!-- end -->"

    def say(match: re.Match[str]) -> str:
        return f"<!-- say: {match[1]} -->{or_missing(claims.SAYS[match[1]])}<!-- end -->"

    def quote(match: re.Match[str]) -> str:
        kind, name, cell = match.groups()
        made = {"example": examples.code, "output": examples.output}[kind]
        return f"<!-- {kind}: {name} {cell} -->\n{made(name, cell)}\n<!-- end -->"

    text = re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end -->", table, text, flags=re.S)
    quoted = r"<!-- (example|output): ([\w/]+) (\w+) -->\n.*?<!-- end -->"
    text = re.sub(quoted, quote, text, flags=re.S)
    return re.sub(r"<!-- say: (\w+) -->.*?<!-- end -->", say, text, flags=re.S)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        collect(Path(sys.argv[1]))
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text()))
