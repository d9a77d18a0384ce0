"""Progress bars: on a terminal, in a notebook, and silent everywhere else."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

BETWEEN = 0.2  # seconds between two drawings in a notebook


@contextmanager
def rounds_bar(
    label: str, total: int | None, progress: bool | Callable[[int], None]
) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the number of steps just done."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda steps: None
        return
    done = 0
    with cells_bar(label) as (advance, _):

        def step(steps: int) -> None:
            nonlocal done
            done += steps
            advance(done, total)

        yield step


@contextmanager
def cells_bar(
    label: str,
) -> Iterator[tuple[Callable[[int, int | None], None], Callable[[str], None]]]:
    """Give two functions: one to call with what is done and what there is in all, and one that says
    what is being done."""
    notebook = notebook_display()
    if notebook is not None:
        bar = NotebookBar(label, notebook)
        yield bar.advance, bar.say
        bar.draw()
        return
    with _terminal_bar(label) as functions:
        yield functions


@contextmanager
def _terminal_bar(
    label: str,
) -> Iterator[tuple[Callable[[int, int | None], None], Callable[[str], None]]]:
    """Draw what is done, its rate and the time left; nothing if there is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None, rate="")

        def advance(done: int, total: int | None) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            rate = f"{speed:.2f} per s" if speed else ""
            bar.update(task, completed=done, total=total, rate=rate)

        yield advance, lambda what: bar.update(task, description=f"{label}: {what}")


def notebook_display() -> Any:
    """Return IPython's module of displays inside a notebook's kernel, None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return importlib.import_module("IPython.display")


class NotebookBar:
    """A bar in the output of a notebook's cell, in plain HTML: no widgets are needed."""

    def __init__(self, label: str, display: Any) -> None:
        self._label, self._what, self._display = label, "", display
        self._done, self._total, self._drawn = 0, None, 0.0  # type: int, int | None, float
        self._handle = display.display(display.HTML(self._html()), display_id=True)

    def advance(self, done: int, total: int | None) -> None:
        """Note what is done; draw it, but not too often."""
        self._done, self._total = done, total
        if time.monotonic() - self._drawn > BETWEEN:
            self.draw()

    def say(self, what: str) -> None:
        """Note what is being done."""
        self._what = f": {what}"

    def draw(self) -> None:
        """Draw what is known now."""
        self._drawn = time.monotonic()
        self._handle.update(self._display.HTML(self._html()))

    def _html(self) -> str:
        known = f' value="{self._done}" max="{self._total}"' if self._total else ""
        count = f"{self._done:,} of {self._total:,}" if self._total else f"{self._done:,}"
        return f"{escape(self._label + self._what)} <progress{known}></progress> {count}"
