"""Running the cells of a study: in local processes, or on a Dask cluster; one code path.

Workers get a cell and give back a frame; only the parent writes to the store. So results do not
depend on the engine, the number of workers or the blocks of seeds, and a run that was
interrupted goes on where it was.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import polars as pl

from driftbandit.lab.cells import Cell, cells_of, run_cell
from driftbandit.lab.spec import Study
from driftbandit.lab.store import Store
from driftbandit.recipe import Recipe
from driftbandit.simulation import simulate

RETRIES = 3  # times that a pool whose worker died is built anew


Progress = Callable[[int, int], None]  # cells done, cells in all


@dataclass(frozen=True)
class Engine:
    """Where cells run: local processes, or Dask at an address ("local" starts a cluster here)."""

    workers: int | None = None
    scheduler: str | None = None
    block: int = 10  # seeds in a cell

    def pool_size(self, cells: int) -> int:
        return min(self.workers or os.cpu_count() or 1, max(1, cells))


def execute(
    study: Study,
    text: str,
    store: Store,
    engine: Engine | None = None,
    progress: Progress = lambda done, total: None,
) -> int:
    """Run the cells that are not stored yet; returns how many that were."""
    engine = engine or Engine()
    if study.tune_on and study.first_seed < study.tune_on:
        raise ValueError(
            f"seeds from first_seed = {study.first_seed} on would judge what tune_on = "
            f"{study.tune_on} chose with them: raise first_seed"
        )
    cells, ran = cells_of(study, engine.block), 0
    for trial in study.trials():
        labels, best, more = tune(trial, text, store, engine, progress)
        cells = [c for c in cells if c.policy_label not in labels or _variant(c) in best]
        ran += more
    return ran + run_cells(cells, study.name, text, store, engine, progress)


def run_cells(
    cells: list[Cell], name: str, text: str, store: Store, engine: Engine, progress: Progress
) -> int:
    missing = [cell for cell in cells if not store.has(cell)]
    done = len(cells) - len(missing)
    progress(done, len(cells))
    store.keep(text)
    if not missing:
        return 0
    workers, cores = engine.pool_size(len(missing)), os.cpu_count() or 1
    facts = {"study": name, "cells": len(missing), "engine": engine.scheduler or "processes"}
    store.start(facts | {"workers": workers, "shared_cores": workers > cores})
    warm(missing)
    for cell, frame in results_of(missing, workers, engine.scheduler):
        store.add(cell, frame)
        done += 1
        progress(done, len(cells))
    return len(missing)


def tune(
    trial: Study, text: str, store: Store, engine: Engine, progress: Progress
) -> tuple[set[str], set[tuple[str, str]], int]:
    """Labels of the policies on trial, their best variants by environment, and how many cells ran.

    Trials are kept in `tuning/` beside the results.
    """
    cells, trials = cells_of(trial, engine.block), Store(store.folder / "tuning")
    ran = run_cells(cells, trial.name, text, trials, engine, progress)
    totals: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for cell in cells:
        rivals = totals.setdefault((cell.environment_label, cell.policy_label), {})
        rivals[_variant(cell)] = rivals.get(_variant(cell), 0.0) + trials.final_regret(cell)
    best = {min(rivals, key=lambda v: rivals[v]) for rivals in totals.values()}
    return {label for _, label in totals}, best, ran


def _variant(cell: Cell) -> tuple[str, str]:
    return cell.environment, cell.policy


_warm: set[tuple[str, str]] = set()  # kinds of cells whose kernels this process has loaded


def warm(cells: list[Cell]) -> None:
    """Load the kernels of these cells, so that nobody's first round pays for it.

    The parent does it before there are workers: compiling the same kernel in several races.
    """
    for cell in cells:
        policy, world = json.loads(cell.policy), json.loads(cell.environment)
        kind = policy["type"], policy["problem"]["family"]["type"]
        if kind not in _warm:
            _warm.add(kind)
            short = world | {"horizon": min(world["horizon"], 3)}
            short |= {key: 0 for key in ("jumps", "bursts") if key in short}
            simulate(Recipe.from_dict(policy), Recipe.from_dict(short), (0,))


def results_of(
    cells: list[Cell], workers: int, scheduler: str | None
) -> Iterator[tuple[Cell, pl.DataFrame]]:
    """Finished cells in the order they finish; cells of a worker that died are run again."""
    waiting = list(cells)
    for attempt in range(RETRIES + 1):
        try:
            with pool_of(workers, scheduler) as pool:
                futures = {pool.submit(run_pinned, cell): cell for cell in waiting}
                try:
                    for future in as_completed(futures):
                        frame = future.result()
                        waiting.remove(futures[future])
                        yield futures[future], frame
                except BaseException:
                    for future in futures:
                        future.cancel()
                    raise
            return
        except BrokenProcessPool:
            if attempt == RETRIES:
                raise ValueError(
                    f"workers died {RETRIES + 1} times; what was finished is stored, run it again"
                ) from None


@contextmanager
def pool_of(workers: int, scheduler: str | None) -> Iterator[Executor]:
    """Something with `submit`: a pool of processes, or a Dask cluster."""
    if scheduler is None:
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _settle, (os.getpid(),))
        try:
            yield pool
        except BaseException:  # an interrupt does not wait for the cells that are running
            for process in (getattr(pool, "_processes", None) or {}).values():
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return
    from dask.distributed import Client, LocalCluster

    if scheduler != "local":
        with Client(scheduler) as client:
            yield client.get_executor()
        return
    options: dict[str, Any] = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "dashboard_address": None,
    }
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        yield client.get_executor()


def _settle(parent: int) -> None:
    """Workers leave Ctrl-C to the parent, and end when the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_pinned(cell: Cell) -> pl.DataFrame:
    """`run_cell` with one thread for linear algebra: small matrices only suffer from more."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        warm([cell])
        return run_cell(cell)
