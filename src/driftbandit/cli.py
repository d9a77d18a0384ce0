"""The command line: each command is a few lines over the public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Contextual bandits that keep up with a changing world.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Folder = Annotated[Path, typer.Option("--out", help="Folder for results and figure.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of random seeds.")]
Horizon = Annotated[int, typer.Option(min=2, help="Rounds per run.")]


@app.command()
def demo(out: Folder = Path("results/demo"), seeds: Seeds = 5, horizon: Horizon = 1000) -> None:
    """A quick version of the paper's comparison: S = 1, a table and a figure."""
    _compare("demo", out, seeds, horizon, radii=(1.0,))


@app.command()
def reproduce(
    out: Folder = Path("results/reproduce"), seeds: Seeds = 20, horizon: Horizon = 5000
) -> None:
    """The paper's comparison at full size: S = 1 and 3, T = 5000, 20 seeds."""
    _compare("reproduce", out, seeds, horizon, radii=(1.0, 3.0))


@app.command()
def policies() -> None:
    """Every policy: paper, what it must know beforehand, cost and memory per round, regret."""
    from rich.console import Console
    from rich.table import Table

    from driftbandit.policies.catalogue import CATALOGUE, Entry

    console = Console()
    if not console.is_terminal:
        console = Console(width=240)  # a file or a pipe has room
    shown = Table("name", *Entry._fields[1:], title="Policies; cost and memory per round")
    for entry in CATALOGUE:
        shown.add_row(entry.policy.__name__, *entry[1:])
    console.print(shown)


def _compare(name: str, out: Path, seeds: int, horizon: int, radii: Sequence[float]) -> None:
    from rich.console import Console
    from rich.table import Table

    from driftbandit import lab

    console, plan = Console(), lab.panels(horizon=horizon, radii=radii)
    with _bars(sum(len(panel.policies) for panel in plan)) as progress:
        results = lab.run_panels(plan, range(seeds), out, progress)
    rows = lab.table(results)
    shown = Table(title=f"Dynamic regret, T = {horizon}, mean ± deviation over {seeds} seeds")
    for column in rows[0]:
        shown.add_column(column, justify="left" if column == "policy" else "right")
    for row in rows:
        shown.add_row(*row.values())
    console.print(shown)
    figure = lab.draw(results, out / f"{name}.png")
    numbers = lab.write_csv(results, out / f"{name}.csv")
    console.print(f"Figure:  {figure}", soft_wrap=True)
    console.print(f"Numbers: {numbers}", soft_wrap=True)
    console.print(f"Runs:    {out} (driftbandit.Run.load opens one)", soft_wrap=True)


class _bars:  # noqa: N801 - a context manager that reads like a function
    """A bar for all runs and one for the current run; silent where nobody watches."""

    def __init__(self, runs: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description:<48}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self.all = self.bar.add_task("all runs", total=runs)
        self.run = self.bar.add_task("", total=1)
        self.started = 0

    def __enter__(self) -> Callable[[str, int], Callable[[int], None]]:
        self.bar.start()
        return self._next

    def _next(self, label: str, rounds: int) -> Callable[[int], None]:
        self.bar.update(self.all, completed=self.started)
        self.started += 1
        self.bar.reset(self.run, total=rounds, description=label)
        return lambda done: self.bar.advance(self.run, done)

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.bar.update(self.all, completed=self.started)
        self.bar.stop()


def main() -> None:
    """Entry point: errors of the caller are one line, Ctrl-C is quiet."""
    import sys

    try:
        app()
    except (ValueError, OSError, ImportError) as error:
        print(f"driftbandit: {error}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == 130:
            print("driftbandit: interrupted", file=sys.stderr)
        raise
