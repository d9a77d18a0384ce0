"""Spreading compiled work over the cores with ordinary threads, and LAPACK's calls over none.

numba's own `prange` ends the process when two threads launch it at once (its work queue) or when
it is used after a fork (GNU OpenMP); threads that hold no interpreter lock do neither.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from numba import config

CORES: int = config.NUMBA_NUM_THREADS
LEAST = 128  # rows that are worth waking a thread for
SHARED_FROM = 96  # dimensions: from about 100 on, OpenBLAS shares one factorisation among threads

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


def single(call: Callable[..., Any], d: int) -> Callable[..., Any]:
    """Return `call` with LAPACK on one thread meanwhile. Threads that share the factorisation of
    one small matrix wait for each other, busily: at d = 128 on two cores that takes ten times as
    long, and the last digits would depend on the number of cores."""
    if d < SHARED_FROM:
        return call

    def alone(*args: Any) -> Any:
        shared = [(lib, n) for lib in _lapack() if (n := lib.get_num_threads()) > 1]
        for lib, _ in shared:
            lib.set_num_threads(1)
        try:
            return call(*args)
        finally:
            for lib, n in shared:
                lib.set_num_threads(n)

    return alone


@cache
def _lapack() -> list[Any]:
    """The libraries that kernels call through numba: SciPy's, or all if it shares one."""
    import scipy.linalg.cython_lapack  # noqa: F401  loads it
    from threadpoolctl import ThreadpoolController

    found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    own = [lib for lib in found if "scipy" in os.path.dirname(lib.filepath)]
    return own or found


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
