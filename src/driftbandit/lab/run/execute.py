"""Running the cells of a study: in local processes, or on a Dask cluster; one code path.

Workers get a cell and give back a frame; only the parent writes to the store. So results do not
depend on the engine, the number of workers or the blocks of seeds, and a run that was
interrupted resumes where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import polars as pl

from driftbandit.lab.run.cells import Cell, cells_of, run_cell
from driftbandit.lab.run.code_version import Versions
from driftbandit.lab.run.plugin_files import PluginFiles
from driftbandit.lab.run.store import RunStore
from driftbandit.lab.run.workers import pool_of
from driftbandit.lab.study.study_file import Study
from driftbandit.progress import cells_bar
from driftbandit.recipe import Recipe
from driftbandit.simulation import simulate

RETRIES = 3  # times that a pool whose worker died is built anew

Progress = Callable[[int, int], None]  # cells done, cells in all
Say = Callable[[str], None]  # what is being done


@dataclass(frozen=True)
class Engine:
    """Where cells run: local processes, or Dask at an address ("local" starts a cluster here)."""

    workers: int | None = None
    scheduler: str | None = None
    block: int = 10  # seeds in a cell

    def pool_size(self, cells: int) -> int:
        """Processes for so many cells."""
        return min(self.workers or os.cpu_count() or 1, max(1, cells))


class Done(NamedTuple):
    """How many cells were run, and how many were stored already."""

    ran: int
    stored: int


@dataclass(frozen=True)
class _Job:
    """What all cells of a run have in common."""

    study: Study
    store: RunStore
    engine: Engine
    progress: Progress
    say: Say


def execute(
    study: Study,
    text: str,
    store: RunStore,
    engine: Engine | None = None,
    progress: Progress | bool = False,
    say: Say = lambda what: None,
) -> Done:
    """Run the cells that are not stored yet.

    `progress=True` draws a bar, on a terminal or in a notebook; a function is called with the
    cells that are done and all cells.
    """
    if progress is True:
        with cells_bar(study.name) as (advance, tell):
            return execute(study, text, store, engine, advance, tell)
    engine = engine or Engine()
    most = max((trial.seeds for trial in study.trials()), default=0)
    if study.first_seed < most:
        raise ValueError(
            f"seeds from first_seed = {study.first_seed} on would judge what tune_on = "
            f"{most} chose with them: raise first_seed"
        )
    told = progress if callable(progress) else lambda done, total: None
    job = _Job(study, store, engine, told, say)
    trials = [cells_of(trial, engine.block) for trial in study.trials()]
    tuning = replace(job, store=RunStore(store.folder / "tuning"))
    if trials:
        tuning.store.keep(text, [cell for cells in trials for cell in cells])
    cells, ran, stored = cells_of(study, engine.block), 0, 0
    for trial in trials:
        done = run_cells(trial, tuning, "choosing variants")
        labels, best = chosen(trial, tuning.store)
        cells = [c for c in cells if c.policy_label not in labels or _variant(c) in best]
        ran, stored = ran + done.ran, stored + done.stored
    store.keep(text, cells)
    done = run_cells(cells, job, "cells")
    return Done(ran + done.ran, stored + done.stored)


def run_cells(cells: list[Cell], job: _Job, what: str) -> Done:
    """Run what of these cells is not stored yet."""
    missing = job.store.missing(cells)
    done = Done(len(missing), len(cells) - len(missing))
    job.progress(done.stored, len(cells))
    if not missing:
        return done
    begin(missing)
    workers, cores = job.engine.pool_size(len(missing)), os.cpu_count() or 1
    scheduler = job.engine.scheduler
    facts = {"study": job.study.name, "cells": len(missing), "engine": scheduler or "processes"}
    plugin_files = PluginFiles.of(missing)
    facts |= {"workers": workers, "shared_cores": workers > cores}
    job.store.start(facts, plugin_files.modules)
    job.say("compiling")
    warm(missing)
    job.say(what)
    for n, (cell, frame) in enumerate(
        results_of(missing, workers, scheduler, plugin_files), start=1
    ):
        job.store.add(cell, frame)
        job.progress(done.stored + n, len(cells))
    return done


def begin(cells: list[Cell]) -> None:
    """Draw the first round of every world: what it lacks, such as data, is said before anything is
    played."""
    for cell in {cell.environment: cell for cell in cells}.values():
        world = Recipe.from_dict(json.loads(cell.environment))
        next(iter(world.blocks(cell.seeds[:1], 1)))


def chosen(cells: list[Cell], store: RunStore) -> tuple[set[str], set[tuple[str, str]]]:
    """Labels of the policies on trial, and their best variants by environment."""
    totals: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for cell, regret in zip(cells, store.final_regrets(cells)):
        rivals = totals.setdefault((cell.environment_label, cell.policy_label), {})
        rivals[_variant(cell)] = rivals.get(_variant(cell), 0.0) + regret
    best = {min(rivals, key=lambda v: rivals[v]) for rivals in totals.values()}
    return {label for _, label in totals}, best


def _variant(cell: Cell) -> tuple[str, str]:
    return cell.environment, cell.policy


_warm: set[tuple[Any, ...]] = set()  # kinds of cells whose kernels this process has loaded


class _EnoughError(Exception):
    """Three rounds were played."""


def warm(cells: list[Cell]) -> None:
    """Load the kernels of these cells, so that no first round is timed with it.

    The parent does it before there are workers: compiling the same kernel in several races.
    """
    for cell in cells:
        policy, world = (Recipe.from_dict(json.loads(r)) for r in (cell.policy, cell.environment))
        kind = type(policy), type(policy.problem.family), policy.problem.dim
        if kind not in _warm:
            _warm.add(kind)
            with suppress(_EnoughError):
                simulate(policy, world, (0,), watch=_stop)


def _stop(t: int, memory: Any, theta: Any) -> None:
    if t > 3:
        raise _EnoughError


def results_of(
    cells: list[Cell], workers: int, scheduler: str | None, plugin_files: PluginFiles
) -> Iterator[tuple[Cell, pl.DataFrame]]:
    """Finished cells in the order they finish; cells of a worker that died are run again."""
    waiting = list(cells)
    for attempt in range(RETRIES + 1):
        try:
            with pool_of(workers, scheduler, plugin_files) as pool:
                futures = {pool.submit(run_pinned, cell, plugin_files): cell for cell in waiting}
                for future in finished(futures):
                    frame = future.result()
                    waiting.remove(futures[future])
                    yield futures[future], frame
            return
        except BrokenProcessPool:
            if attempt == RETRIES:
                raise ValueError(
                    f"workers died {RETRIES + 1} times; what was finished is stored, run it again"
                ) from None


def finished(futures: Collection[Future[Any]]) -> Iterator[Future[Any]]:
    """Futures in the order they finish.

    Ctrl-C ends the wait, which `concurrent.futures.as_completed` does not promise: once Polars has
    set its own signal handler, a wait without a time limit goes on until a cell is done.
    """
    done: SimpleQueue[Future[Any]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    for _ in range(len(futures)):
        while True:
            try:
                yield done.get(timeout=0.5)
                break
            except Empty:
                continue


def run_pinned(cell: Cell, plugin_files: PluginFiles) -> pl.DataFrame:
    """`run_cell` with one thread for linear algebra: small matrices only suffer from more."""
    from threadpoolctl import threadpool_limits

    plugin_files.load()
    _check_code(cell)
    with threadpool_limits(1):
        warm([cell])
        return run_cell(cell)


def _check_code(cell: Cell) -> None:
    """A worker whose code is not what the cell's key says would store a lie."""
    if _versions().of(cell.environment, cell.policy) != cell.code:
        raise ValueError(
            f"a worker has other code for {cell.policy_label!r} in {cell.environment_label!r} than "
            "this process: install the same driftbandit everywhere, edit nothing while a study "
            "runs, and run it again"
        )


@cache
def _versions() -> Versions:
    return Versions()
