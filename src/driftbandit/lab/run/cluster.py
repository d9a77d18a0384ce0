"""Dask clusters: one on this machine, or one that runs elsewhere. Dask is an extra: import late."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, WorkerPlugin

from driftbandit.lab.run.plugin_files import PluginFiles, unpack


class Setup(WorkerPlugin):  # type: ignore[misc]
    """Prepares a Dask worker, also one that joins later."""

    name = "driftbandit"  # a new one takes the place of the one before

    def __init__(self, begin: Callable[[], None] | None, files: dict[str, bytes]) -> None:
        self.begin, self.files = begin, files

    def setup(self, worker: Any) -> None:
        """Called by Dask in every worker."""
        if self.begin is not None:
            self.begin()
        unpack(self.files, Path(worker.local_directory) / f"plugins-{uuid.uuid4().hex}")


@contextmanager
def local_cluster(workers: int, begin: Callable[[], None]) -> Iterator[Executor]:
    """Start a cluster on this machine; each worker calls `begin` first."""
    options: dict[str, Any] = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "dashboard_address": ":0",  # any free port: there may be other clusters
        "silence_logs": logging.ERROR,
    }
    with ExitStack() as stack:
        with _undisturbed():
            cluster = stack.enter_context(LocalCluster(processes=True, **options))
            client = stack.enter_context(Client(cluster))
            client.register_plugin(Setup(begin, {}))
        try:
            yield client.get_executor()
        except BaseException:  # closing would wait for the cells that are running
            cluster.sync(_end, cluster)
            raise


async def _end(cluster: LocalCluster) -> None:
    ends = (nanny.close(timeout=0.2) for nanny in cluster.workers.values())
    await asyncio.gather(*ends, return_exceptions=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits until this is done: a cluster that is half started cannot be closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            raise KeyboardInterrupt


@contextmanager
def cluster_at(address: str, plugin_files: PluginFiles) -> Iterator[Executor]:
    """The cluster of a running scheduler; the sources of plug-ins are sent to its workers."""
    with Client(address) as client:
        if not client.scheduler_info()["workers"]:
            warnings.warn(
                f"{address} has no workers yet: start one with `dask worker {address}`",
                stacklevel=1,
            )
        executor = client.get_executor()
        try:
            _prepare(client, plugin_files)
            yield executor
        except BaseException:
            executor.shutdown(wait=False)  # cancels what is still to be played
            raise
        finally:  # workers that join for other work need nothing of ours
            with suppress(Exception):
                client.unregister_worker_plugin(Setup.name)


def _prepare(client: Client, plugin_files: PluginFiles) -> None:
    try:
        client.register_plugin(Setup(None, plugin_files.files()))
    except Exception as error:  # Dask gives an error of a worker a type of its own
        raise ValueError(
            f"the Dask workers cannot be prepared: {error}; install the driftbandit[dask] of this "
            "process there"
        ) from error
