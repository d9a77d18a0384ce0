"""Fill the tables of README.md from stored results: `make docs`."""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"


def reproduce_table() -> str:
    """Policies down, panels across, from reproduce.csv."""
    with (RESULTS / "reproduce.csv").open() as file:
        lines = list(csv.DictReader(file))
    panels = list(dict.fromkeys(line["panel"] for line in lines))
    rows = ["| policy | " + " | ".join(panels) + " | µs per round, early → late |"]
    rows.append("|---" * (len(panels) + 2) + "|")
    for policy in dict.fromkeys(line["policy"] for line in lines):
        mine = {line["panel"]: line for line in lines if line["policy"] == policy}
        cells = [
            f"{float(mine[p]['regret']):.0f} ± {float(mine[p]['deviation']):.0f}"
            if p in mine
            else ""
            for p in panels
        ]
        first = next(iter(mine.values()))
        cost = f"{float(first['us_early']):.1f} → {float(first['us_late']):.1f}"
        rows.append(f"| {policy} | " + " | ".join(cells) + f" | {cost} |")
    return "\n".join(rows)


def _regret(line: dict[str, str]) -> str:
    return f"{float(line['regret']):.0f} ± {float(line['deviation']):.0f}"


def bench_table() -> str:
    """The figures of bench.csv."""
    with (RESULTS / "bench.csv").open() as file:
        lines = list(csv.reader(file))[1:]
    rows = ["| figure | measured | required |", "|---|---|---|"]
    return "\n".join(
        rows + [f"| {what} | {found} | {required} |" for what, found, required in lines]
    )


def filled(text: str) -> str:
    """README's text with its tables made anew."""
    for name, table in (("reproduce", reproduce_table()), ("bench", bench_table())):
        marks = rf"(<!-- table: {name} -->\n).*?(<!-- end -->)"
        text = re.sub(marks, lambda m, t=table: f"{m[1]}{t}\n{m[2]}", text, flags=re.S)
    return text


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(filled(page.read_text()))
