"""Put stored results into the documents: `make docs`.

With the folder of all results as argument it first collects what the documents quote into
docs/results; without it, it only fills the tables that `<!-- table: name -->` announces.
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
from pathlib import Path

from benchmarks import worlds

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
STUDIES = (
    *("paper-figure", "regret-orders", "coverage", "sensitivity"),
    *("scaling-in-time", "unstated-choices", "many-worlds", "ablation"),
)
PAGES = ("README.md", "docs/reproduced.md", "docs/auto.md")


def collect(results: Path) -> None:
    """Final numbers of every study that was run, and the figure of the comparison."""
    from driftbandit.lab import Store, finals, fit_orders
    from driftbandit.lab.orders import orders_table

    for name in STUDIES:
        finals(Store(results / name)).write_csv(RESULTS / f"{name}.csv", float_precision=4)
    shutil.copy(results / "paper-figure" / "report" / "regret.png", RESULTS / "paper-figure.png")
    orders = orders_table(fit_orders(Store(results / "regret-orders")))
    (RESULTS / "regret-orders.md").write_text(orders)


def lines_of(name: str) -> list[dict[str, str]]:
    with (RESULTS / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def grid(name: str, cell, *, cost: bool = False) -> str:
    """Policies down, environments across."""
    lines = lines_of(name)
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
    return f"{float(line['mean']):.0f} ± {float(line['deviation']):.0f}"


def mean(line: dict[str, str]) -> str:
    return f"{float(line['mean']):.0f}"


def covered(line: dict[str, str]) -> str:
    return f"{100 * float(line['coverage']):.0f} %" if line["coverage"] else ""


def bench() -> str:
    """The figures of bench.csv."""
    rows = ["| figure | measured | required |", "|---|---|---|"]
    rows += [
        f"| {row['figure']} | {row['measured']} | {row['required']} |" for row in lines_of("bench")
    ]
    return "\n".join(rows)


TABLES = {
    "auto": worlds.summary_table,
    "worlds": worlds.worlds_table,
    "ablation": worlds.ablation_table,
    "reproduce": lambda: grid("paper-figure", regret, cost=True),
    "bench": bench,
    "orders": lambda: (RESULTS / "regret-orders.md").read_text().rstrip(),
    "coverage": lambda: grid("coverage", covered),
    "sensitivity": lambda: grid("sensitivity", mean),
    "choices": lambda: grid("unstated-choices", regret),
    "time": lambda: grid(
        "scaling-in-time", lambda line: f"{int(float(line['bytes'])):,} B", cost=True
    ),
}


def filled(text: str) -> str:
    """A page with its tables made anew."""

    def table(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n{TABLES[match[1]]()}\n<!-- end -->"

    return re.sub(r"<!-- table: (\w+) -->\n.*?<!-- end -->", table, text, flags=re.S)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        collect(Path(sys.argv[1]))
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text()))
