"""Put stored results into the documents: `make docs`.

With the folder of all results as argument it first collects what the documents quote into
docs/results; without it, it only fills the tables that `<!-- table: name -->` announces, the
numbers in sentences that `<!-- say: name -->` does, and the code and output of examples.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    budget,
    calendars,
    charts,
    claims,
    commands,
    declarations,
    drawn,
    drawn_parts,
    examples,
    explain,
    hindsight,
    lockin,
    one_discount,
    pitch,
    rare,
    scorecards,
    sharp,
    stored_studies,
    streams_figure,
    tables,
    theorems,
    worlds,
)
from benchmarks.tables import stored

ROOT = Path(__file__).parent.parent
AGE = "<!-- played --><!-- end -->"  # a page's sentence about the age of what it quotes
PLAYED = re.compile(r"<!-- played -->.*?<!-- end -->", re.S)
MISSING = "(not stored yet)"  # what a table or a sentence says until its study was run
# Ours; the best rival in drift and in flips; the one that needs no knowledge of the world. They
# stand on top of the page.
MESSAGE = ("AutoDOMD", "DOMD-GLB", sharp.RULE, "SCB-WeightUCB", "SW-GLUCB", "MASTER + GLM-UCB")
TOP = 6  # rows of the table that a page of evidence begins with
FIRST_ASKED = (  # a table, the beginning of its row, and how the top of the page says it
    (
        *("bench", "Bandit, d=5, 30 arms, over NumPy"),
        "a round of Algorithm 1 in NumPy takes so many times as long as one of `Bandit`",
    ),
    (
        *("roads", "AutoDOMD over DOMD, d=5"),
        "a round of AutoDOMD takes so many times as long as one of DOMD",
    ),
    (
        *("bench", "a round at the end of 1000000"),
        "round 1,000,000 takes so many times as long as round 2,000",
    ),
    (
        *("bench", "choose of 100,000 arms, d=50, theory's"),
        "the best of 100,000 arms takes so many times as long as `argmax(X @ theta)`",
    ),
    (
        *("roads", "AutoDOMD, empty cache"),
        "first round of AutoDOMD on a new machine, compiling included: CPU seconds",
    ),
    (
        *("loop", "8 threads on one core, 20 arms"),
        "decisions per second of a loop, stored on the disk, 8 threads on one core",
    ),
)
PAGES = ("docs/tutorial.md", "docs/cli.md", "docs/from-vw.md", "docs/from-bayesianbandits.md")
PAGES += ("docs/from-personalizer.md",)
PAGES += ("README.md", "docs/reproduced.md", "docs/auto.md", "docs/peers.md", "docs/fleet.md")
PAGES += (
    "docs/research.md",
    "docs/lab.md",
    "docs/leaderboard.md",
    "docs/theory.md",
    "docs/bob.md",
    "docs/streams.md",
)
PAGES += (
    "docs/rewards.md",
    "docs/loop.md",
    "docs/budgets.md",
    "docs/deployment.md",
    "docs/evidence.md",
    "docs/promotion.md",
    "docs/speed.md",
    "docs/features.md",
    "docs/differences.md",
    "docs/families.md",
    "docs/promises.md",
    "docs/batch.md",
    "docs/clusters.md",
    "docs/how-far.md",
    "docs/openfeature.md",
)
PAGES += tuple(f"docs/gallery/{page.name}" for page in sorted(examples.FIGURES.glob("*.md")))


def collect(results: Path) -> None:
    """Final numbers of every study that was run. What the folder does not hold stays as it was
    stored."""
    from driftbandit.lab import RunStore, fit_orders
    from driftbandit.lab.report.regret_slopes import orders_table
    from driftbandit.lab.report.summary import curves

    def run(name: str) -> bool:
        return (results / name).exists()

    for name in filter(run, stored_studies.STUDIES):
        stored_studies.collect(name, results)
    if run("paper-figure"):
        quarters(curves(RunStore(results / "paper-figure"), 10_000)).write_csv(
            tables.RESULTS / "paper-quarters.csv", float_precision=4
        )
    if run("many-worlds"):
        worlds.collect(results)
    for name in filter(run, worlds.PANELS):
        worlds.collect_panels(name)
    for name in filter(run, (f"suites/{suite}.json" for suite in stored_studies.CARDS)):
        scorecards.collect(results / name)
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
    return tables.markdown([head, *rows])


def whole(measured: str) -> str:
    """A large number without a power of ten: 2,290 for 2.29e+03."""
    return f"{float(measured):,.0f}" if "e+" in measured else measured


def as_stored(name: str) -> str:
    """A table as it was written."""
    lines = stored(name)
    return tables.markdown([list(lines[0]), *(list(line.values()) for line in lines)])


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
    return tables.markdown(rows)


def peer_costs() -> str:
    """Choosing and learning apart, and what the process grew by."""
    head = ["learner", "choose, µs", "update, µs", "mean of both, µs", "process growth, MB"]
    names = ("contender", "choose_us", "update_us", "mean_us", "resident_mb")
    return tables.markdown(
        [head, *([line[name] for name in names] for line in stored("peers-speed"))]
    )


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
    return tables.markdown(rows)


def peer_ratios() -> str:
    head = ["choose + update, d = 5, 30 arms", "measured", "wanted"]
    return tables.markdown([head, *(list(line.values()) for line in stored("peers-ratios"))])


def peer_installs() -> str:
    head = ["package", "Python", "version", "not measured because"]
    return tables.markdown([head, *(list(line.values()) for line in stored("peers-install"))])


def top_of(rows: list[list[str]], names: Sequence[str]) -> str:
    """The heading and the named rows of a table, for the top of a page."""
    found = {row[0]: row for row in rows[1:]}
    return tables.markdown([rows[0], *(found[name] for name in names if name in found)])


def top_auto() -> str:
    """AutoDOMD next to the best fixed setting and to the best baseline of each panel."""
    head, *rows = rows_of(worlds.summary_table())
    return tables.markdown([head, *(row for row in rows if "theory-tuned" not in row[0])])


def top_leaderboard() -> str:
    """The first six places of suite-1."""
    head, *rows = rows_of(scorecards.leaderboard("suite-1"))
    return tables.markdown([head[1:], *(row[1:] for row in rows[:TOP])])


def top_streams() -> str:
    """The six best learners on real streams in time order."""
    head, *rows = rows_of(streams_figure.table())
    kept = [0, *(k for k, name in enumerate(head) if name.endswith(", time"))]
    rows.sort(key=lambda row: -sum(float(row[k].strip("*").split()[0]) for k in kept[1:]))
    return tables.markdown([[row[k] for k in kept] for row in [head, *rows[:TOP]]])


def top_speed() -> str:
    """What users ask first, from the tables of the page."""
    rows = [["what", "measured", "required"]]
    for table, figure, words in FIRST_ASKED:
        line = next(x for x in stored(table) if x["figure"].startswith(figure))
        rows.append([words, whole(line["measured"]), line["required"]])
    return tables.markdown(rows)


def rows_of(table: str) -> list[list[str]]:
    """The cells of a table in Markdown, without the line below its heading."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


def proof() -> str:
    """Both sides of every inequality, in the last round and where they are closest."""
    head = ["world", "in the paper", "what", "left, at T", "right", "left, tightest", "right"]
    rows = [
        [line[n] for n in ("world", "place", "claim", "left", "right")]
        + [line["tightest_left"], line["tightest_right"]]
        for line in stored("proof")
    ]
    return tables.markdown([head, *rows])


TABLES = {
    "packages": lambda: tables.markdown(pitch.short_table()),
    "allpackages": lambda: tables.markdown(pitch.packages_table()),
    "commands": commands.reference,
    "proof": proof,
    "rebalanced": lambda: tables.markdown(theorems.bounds_table()),
    "onediscount": one_discount.table,
    "table1": lambda: tables.markdown(theorems.orders_table()),
    "leaderboard": lambda: scorecards.leaderboard("suite-1"),
    "suite": lambda: scorecards.suite_worlds("suite-1"),
    "leaderboard2": lambda: scorecards.leaderboard("suite-2"),
    "suite2": lambda: scorecards.suite_worlds("suite-2"),
    "leaderboard3": lambda: scorecards.leaderboard("suite-3"),
    "auto": worlds.summary_table,
    "autotop": top_auto,
    "leaderboardtop": top_leaderboard,
    "streamstop": top_streams,
    "reproducetop": lambda: top_of(rows_of(grid("paper-figure", regret, cost=True)), MESSAGE),
    "speedtop": top_speed,
    "sharpbounds": lambda: tables.markdown(sharp.bounds_table()),
    "sharpreach": lambda: tables.markdown(sharp.reach_table()),
    "sharpdimension": lambda: grid("sharp-dimension", regret),
    "sharpgrid": lambda: tables.markdown(sharp.grid_table()),
    "catalogue": lambda: grid(stored_studies.CATALOGUE, regret),
    "worlds": worlds.worlds_table,
    "together": worlds.together_table,
    "ablation": worlds.ablation_table,
    "explain": explain.table,
    "declarations": declarations.table,
    "drawn": drawn.axes_table,
    "drawnparts": drawn_parts.table,
    "rare": rare.table,
    "lockin": lockin.table,
    "calendars": calendars.table,
    "bob": lambda: grid("bob", regret),
    "reproduce": lambda: grid("paper-figure", regret, cost=True),
    "bench": lambda: figures("bench"),
    "fleet": lambda: figures("fleet"),
    "trials": lambda: figures("trials"),
    "loop": lambda: figures("loop"),
    "stages": lambda: figures("walk-stages"),
    "chain": lambda: figures("chain"),
    "keys": lambda: figures("keys"),
    "erasure": lambda: figures("erasure"),
    "requests": lambda: as_stored("requests"),
    "intervals": lambda: as_stored("intervals"),
    "hardintervals": lambda: as_stored("intervals-hard"),
    "healthintervals": lambda: as_stored("intervals-health"),
    "shrinkage": lambda: as_stored("shrinkage"),
    "evidence": lambda: figures("evidence"),
    "promotion": lambda: as_stored("promotion"),
    "promotion_late": lambda: as_stored("promotion-late"),
    "promotion_lost": lambda: as_stored("promotion-lost"),
    "oracles": lambda: as_stored("oracles"),
    "roads": lambda: figures("roads"),
    "links": lambda: figures("links"),
    "service": lambda: figures("service"),
    "sizing": lambda: figures("sizing"),
    "hostile": lambda: figures("hostile"),
    "ofrep": lambda: figures("ofrep"),
    "nights": lambda: figures("nights"),
    "deciders": lambda: figures("deciders"),
    "telemetry": lambda: figures("telemetry"),
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
    "readings": lambda: tables.markdown(claims.readings_table()),
    "wholereadings": lambda: tables.markdown(claims.whole_readings_table()),
    "spread": lambda: tables.markdown(claims.spread_table()),
    "budget": lambda: grid("same-tuning-budget", regret),
    "routing": budget.table,
    "unknowndrift": lambda: grid("unknown-drift", regret),
    "referee": lambda: figures("referee"),
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
    """A page with its tables, and the numbers in its sentences, made anew; and with what is to be
    said of the code that played the studies it quotes."""
    quoted: set[str] = set()

    def made(make) -> str:
        found, files = tables.quoted_by(lambda: or_missing(make))
        quoted.update(files)
        return found

    def table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{made(TABLES[match[1]])}\n<!-- end -->"

    def say(match: re.Match[str]) -> str:
        return f"<!-- say: {match[1]} -->{made(claims.SAYS[match[1]])}<!-- end -->"

    def quote(match: re.Match[str]) -> str:
        kind, name, cell = match.groups()
        made = {"example": examples.code, "output": examples.output}[kind]
        return f"<!-- {kind}: {name} {cell} -->\n{made(name, cell)}\n<!-- end -->"

    text = re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end -->", table, text, flags=re.S)
    outputs = r"<!-- (example|output): ([\w/]+) (\w+) -->\n.*?<!-- end -->"
    text = re.sub(outputs, quote, text, flags=re.S)
    text = re.sub(r"<!-- say: (\w+) -->.*?<!-- end -->", say, text, flags=re.S)
    studies = stored_studies.studies_in(quoted)
    if studies and PLAYED.search(text) is None:
        raise ValueError(
            f"a page that quotes {', '.join(studies)} must have {AGE}: it says by itself "
            "which rows were played by earlier code"
        )
    return PLAYED.sub(lambda _: f"<!-- played -->{stored_studies.said(studies)}<!-- end -->", text)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        collect(Path(sys.argv[1]))
    charts.draw()
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text()))
