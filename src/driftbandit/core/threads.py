"""Spreading compiled work over the cores with ordinary threads.

numba's own `prange` ends the process when two threads launch it at once (its work queue) or when
it is used after a fork (GNU OpenMP); threads that hold no interpreter lock do neither.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from numba import config

CORES: int = config.NUMBA_NUM_THREADS
LEAST = 128  # rows that are worth waking a thread for

_pool: ThreadPoolExecutor | None = None


def parts_of(count: int) -> int:
    """In how many parts to do `count` rows of work: several a core, in case one is held up."""
    return max(1, min(4 * CORES if CORES > 1 else 1, count // LEAST))


def spread(work: Callable[[int], None], parts: int) -> None:
    """work(0), ..., work(parts - 1) on all cores; the caller's thread takes part."""
    left = iter(range(parts))  # shared: whoever is free takes the next

    def some() -> None:
        for part in left:
            work(part)

    others = [_threads().submit(some) for _ in range(min(CORES, parts) - 1)]
    try:
        some()
    finally:
        for other in others:
            if not other.cancel():  # it has begun
                other.result()


def _threads() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=CORES, thread_name_prefix="driftbandit")
    return _pool


def _forget_pool() -> None:
    """Threads do not survive a fork."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
