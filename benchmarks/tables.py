"""The tables of docs/results: how benchmarks store what they found, and read it again."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "docs" / "results"
Line = dict[str, Any]
Figure = tuple[str, float, str, bool]  # what, measured, required, reached


def write(name: str, lines: Sequence[Line], digits: str = ".4f", ends: str = "\r\n") -> None:
    """Lines with the same names into a file of docs/results."""
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]), lineterminator=ends)
        writer.writeheader()
        for line in lines:
            numbers = {k: f"{v:{digits}}" for k, v in line.items() if isinstance(v, float)}
            writer.writerow(line | numbers)


_quoted: set[str] = set()  # files that were read since `quoted_by` began


def quoted_by(made: Callable[[], str]) -> tuple[str, set[str]]:
    """What was made, and the files of docs/results that it was made of."""
    _quoted.clear()
    return made(), set(_quoted)


def quote(name: str) -> None:
    """Note that a file of docs/results is read."""
    _quoted.add(name)


def stored(name: str) -> list[dict[str, str]]:
    """The lines of a file of docs/results."""
    quote(name)
    with (RESULTS / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


SPELLED = {"world": "environment"}  # columns of files whose name in pages is another


def markdown(rows: list[list[str]]) -> str:
    """Rows, the first of them the heading, as a table."""
    rows = [[SPELLED.get(name, name) for name in rows[0]], *rows[1:]]
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def write_rows(path: Path | None, rows: Iterable[Sequence[object]]) -> None:
    """Rows, the first of them the heading, into the file that was asked for, if one was."""
    if path:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)


def told(
    name: str, lines: Iterable[Line], cells: Callable[[Line], list[str]], store: bool
) -> list[Line]:
    """All lines, each printed as it comes, as it will be read again; stored if asked."""
    found = []
    for line in lines:
        print(" | ".join(cells({k: str(v) for k, v in line.items()})), flush=True)
        found.append(line)
    if store:
        write(name, found)
    return found


def report(title: str, found: Iterable[Figure], path: Path | None) -> int:
    """Print figures as a table, write them to a CSV file if asked; 1 if one is missed."""
    from rich.console import Console
    from rich.table import Table

    table = Table("figure", "measured", "required", "reached", title=title)
    reached, rows = [], [("figure", "measured", "required")]
    for what, measured, required, ok in found:
        table.add_row(what, f"{measured:.4g}", required, "yes" if ok else "NO")
        rows.append((what, f"{measured:.3g}", required))
        reached.append(ok)
    write_rows(path, rows)
    Console(width=130).print(table)
    return 0 if all(reached) else 1
