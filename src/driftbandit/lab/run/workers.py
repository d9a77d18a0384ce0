"""Workers: local processes, or those of a Dask cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing import get_context

from driftbandit.lab.run.plugin_files import PluginFiles


def pool_of(
    workers: int, scheduler: str | None, plugin_files: PluginFiles
) -> AbstractContextManager[Executor]:
    """Something with `submit`; an error that leaves it stops the workers of this machine."""
    if scheduler is None:
        return _processes(workers)
    from driftbandit.lab.run import cluster

    if scheduler == "local":
        return cluster.local_cluster(workers, partial(settle, os.getpid()))
    return cluster.cluster_at(scheduler, plugin_files)


@contextmanager
def _processes(workers: int) -> Iterator[Executor]:
    pool = ProcessPoolExecutor(workers, get_context("spawn"), settle, (os.getpid(),))
    try:
        yield pool
    except BaseException:
        # An interrupt does not wait for the cells that are running. No future is cancelled before:
        # a pool whose workers have gone would raise InvalidStateError over it.
        for process in (getattr(pool, "_processes", None) or {}).values():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def settle(parent: int) -> None:
    """Workers leave Ctrl-C to the parent, and end when the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
