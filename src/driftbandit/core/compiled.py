"""Compiling kernels, and keeping what was compiled on disk."""

from __future__ import annotations

import gc
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from numba import config, njit

COMPILED = not config.DISABLE_JIT
REMEDY = "set NUMBA_CACHE_DIR to a folder that this process may write to"

logger = logging.getLogger("driftbandit")
F = TypeVar("F", bound=Callable[..., Any])

_kernels: list[Any] = []
_reasons: list[str] = []
_compiling = RLock()  # numba has one too, but knows nothing of `disable_compile`

if hasattr(os, "register_at_fork"):  # no child inherits a lock that nobody will release
    os.register_at_fork(
        before=_compiling.acquire,
        after_in_parent=_compiling.release,
        after_in_child=_compiling.release,
    )


def kernel(function: F, *, nogil: bool = True) -> F:
    """Compile when first called, and cache on disk where there is a place for it.

    Division as in C and NumPy, without a test for zero each time; no fastmath, so that the lines
    mean the same with NUMBA_DISABLE_JIT=1. Kernels run without Python's lock, so callers lock what
    threads share; one that keeps it (`nogil=False`) is atomic as it is.
    """
    options = {"error_model": "numpy", "nogil": nogil}
    try:
        compiled: F = njit(cache=True, **options)(function)
    except RuntimeError as error:  # numba found no folder it may write to
        _warn(str(error))
        return njit(**options)(function)
    if COMPILED:
        _stamp(compiled)
        _kernels.append(compiled)
    return compiled


def atomic(function: F) -> F:
    """A kernel on one row, called from Python: it keeps Python's lock, so that no thread sees half
    of it, which costs a third of what a lock of its own would."""
    return kernel(function, nogil=False)


def inlined(function: F) -> F:
    """A small function that becomes part of the kernels that call it: each kernel of its own takes
    a tenth of a second to compile."""
    compiled: F = njit(error_model="numpy", inline="always")(function)
    return compiled


def _stamp(compiled: Any) -> None:
    """Let what is stored depend on all sources of the engine.

    numba compares a stored kernel with its own file only, not with those of the kernels it calls.
    """
    stored: Any = getattr(compiled._cache, "_cache_file", None)
    if hasattr(stored, "_source_stamp"):
        stored._source_stamp = stored._source_stamp, _sources()


@cache
def _sources() -> tuple[float, int]:
    folder = Path(__file__).parent
    sources = [*folder.glob("*.py"), folder.parent / "theory" / "radius.py"]
    found = [source.stat() for source in sources]
    return max(stat.st_mtime for stat in found), sum(stat.st_size for stat in found)


def ready(function: Any, *signature: Any) -> None:
    """Load `function` for these argument types, or compile it, and nothing else ever after: other
    arguments then raise TypeError, where numba would compile again."""
    if not COMPILED or signature in function.signatures:
        return
    with _compiling, _undisturbed():
        function.disable_compile(False)
        _say_once(function)
        try:
            function.compile(signature)
        except Exception as error:
            if not _without_cache(error):
                raise
            function.compile(signature)
        finally:
            function.disable_compile()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No garbage collection: numba makes millions of objects, and looking through them again and
    again takes a tenth of the time to compile."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _without_cache(error: Exception) -> bool:
    """Stop using the disk, if it was the disk that failed; whether there is hope now."""
    from numba.core.caching import NullCache
    from numba.core.errors import NumbaError

    if isinstance(error, NumbaError):
        return False
    _warn(f"{type(error).__name__}: {error}")
    for compiled in _kernels:
        compiled._cache = NullCache()
    return True


def _warn(reason: str) -> None:
    """Once: all kernels have the same trouble."""
    _reasons.append(reason)
    if len(_reasons) > 1:
        return
    warnings.warn(
        f"driftbandit compiles in memory, for some seconds in every process: {reason}. To keep "
        f"what is compiled, {REMEDY}",
        RuntimeWarning,
        stacklevel=4,
    )


def cache_folder() -> str | None:
    """Where compiled kernels are stored, or None where they are not."""
    return _kernels[0].stats.cache_path if COMPILED and _kernels else None


_said: set[str] = set()


def _say_once(function: Any) -> None:
    """Tell a first user what they are waiting for; who has a warm cache is told nothing."""
    folder = cache_folder()
    stored = folder is not None and any(Path(folder).glob(f"*.{function.__name__}-*.nbc"))
    if not _said and not stored:
        _said.add(function.__name__)
        logger.warning(
            "compiling, which takes some seconds, once per machine; `driftbandit warmup` does it "
            "beforehand"
        )
