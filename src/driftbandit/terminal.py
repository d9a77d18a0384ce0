"""Tables in a terminal, in a form that fits into its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from driftbandit.estimators.formatting import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Row = tuple[str, ...]
PIPE = 240  # columns: a file or a pipe has room
REGRETS = "Dynamic regret at the horizon, mean ± deviation over seeds; lower is better"
NO_METHOD = ("Oracle", "Uniform")  # what methods are compared with
COST = "µs per round"


def show_table(title: str, header: Row, rows: Sequence[Row]) -> None:
    """What does not fit is wrapped."""
    _console().print(_table(title, header, rows))


def show_regrets(lines: Sequence[dict[str, Any]]) -> None:
    """Print policies down and environments across, or turned; if neither fits, one environment
    after the other. The policy with the least regret comes first, and a sentence says which."""
    console, lines = _console(), by_regret(lines)
    tables = (_table(REGRETS, *form) for form in _forms(lines))
    table = next((table for table in tables if _fits(console, table)), None)
    if table:
        console.print(table)
        console.print(conclusion(lines), highlight=False, markup=False)
        return
    console.print(REGRETS, highlight=False)
    for world in dict.fromkeys(line["environment"] for line in lines):
        rows = [(x["policy"], _regret(x)) for x in lines if x["environment"] == world]
        console.print(f"\n{world}", markup=False, highlight=False)
        console.print(_table("", ("policy", "regret"), rows))
    console.print(f"\n{conclusion(lines)}", highlight=False, markup=False)


def by_regret(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort policies by their mean place over environments, those that played everywhere first."""
    places: dict[str, list[int]] = {}
    for world in dict.fromkeys(line["environment"] for line in lines):
        mine = sorted((x for x in lines if x["environment"] == world), key=lambda x: x["mean"])
        for place, line in enumerate(mine):
            places.setdefault(line["policy"], []).append(place)
    most = max(map(len, places.values()))
    mean = {name: sum(found) / len(found) for name, found in places.items()}
    return sorted(lines, key=lambda x: (len(places[x["policy"]]) < most, mean[x["policy"]]))


def conclusion(lines: Sequence[dict[str, Any]]) -> str:
    """Say which policy has the least regret in how many environments."""
    best: dict[str, int] = {}
    worlds = list(dict.fromkeys(line["environment"] for line in lines))
    for world in worlds:
        mine = [x for x in lines if x["environment"] == world and x["policy"] not in NO_METHOD]
        if mine:
            name = min(mine, key=lambda line: line["mean"])["policy"]
            best[name] = best.get(name, 0) + 1
    ranked = sorted(best.items(), key=lambda pair: -pair[1])
    told = ", ".join(f"{name} in {count}" for name, count in ranked)
    return f"Least regret, of {plural(len(worlds), 'environment')}: {told}."


def _forms(lines: Sequence[dict[str, Any]]) -> Iterator[tuple[Row, list[Row]]]:
    """Headings and rows, the best form first."""
    policies = tuple(dict.fromkeys(line["policy"] for line in lines))
    worlds = tuple(dict.fromkeys(line["environment"] for line in lines))
    cells = {(line["policy"], line["environment"]): _regret(line) for line in lines}
    costs = _costs(lines)
    across = [(p, *(cells.get((p, w), "") for w in worlds), *costs.get(p, ())) for p in policies]
    last = (COST,) if costs else ()
    turned = [(w, *(cells.get((p, w), "") for p in policies)) for w in worlds]
    for header, rows in (
        (("policy", *worlds, *last), across),
        (("environment", *policies), turned),
    ):
        yield header, rows
        yield _narrowed(header, rows), rows


def _costs(lines: Sequence[dict[str, Any]]) -> dict[str, tuple[str]]:
    """What a late round costs, in a tuple, by policy; nothing if it was not measured."""
    known = (line for line in lines if line.get("late_us") is not None)
    return {line["policy"]: (f"{line['late_us']:.3g}",) for line in known}


def _narrowed(header: Row, rows: list[Row]) -> Row:
    """Headings wrapped at words, as wide as what stands below or as their longest word."""
    columns = zip(header, *rows)
    return tuple(
        "\n".join(wrap(head, max(map(len, (*_words(head), *cells))))) for head, *cells in columns
    )


def _words(text: str) -> list[str]:
    """What must not be broken; a hyphen is the end of a word, too."""
    return wrap(text, 1, break_long_words=False)


def _fits(console: Console, table: Table) -> bool:
    """Whether no line of it would be wrapped."""
    free = console.options.update(max_width=10**6)
    return console.measure(table, options=free).maximum <= console.width


def _regret(line: dict[str, Any]) -> str:
    spread = f" ± {line['deviation']:.0f}" if line["seeds"] > 1 else ""
    return f"{line['mean']:.0f}{spread}"


def _table(title: str, header: Row, rows: Sequence[Row]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(*map(escape, header), title=title)
    for row in rows:
        table.add_row(*map(escape, row))  # a label such as [/red] is no markup
    return table


def _console() -> Console:
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=PIPE)
