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
    """In how many parts to do `count` rows of work."""
    return max(1, min(CORES, count // LEAST))


def spread(work: Callable[[int], None], parts: int) -> None:
    """work(0), ..., work(parts - 1), at the same time; the caller's thread does the first."""
    others = [_threads().submit(work, part) for part in range(1, parts)]
    work(0)
    for other in others:
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
