"""Compiling kernels, and calling them from Python at the price of a C call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from numba import carray, config, njit, typeof
from numba.core import cgutils, types
from numba.extending import intrinsic

COMPILED = not config.DISABLE_JIT


_seen: set[str] = set()


def _drop_stale_caches(folder: str) -> None:
    """Delete cached kernels in a folder that are older than the newest source file of the package.

    numba notices when a kernel's own file changes, not when that of a kernel it calls does.
    """
    if not folder or folder in _seen:
        return
    _seen.add(folder)
    newest = max(source.stat().st_mtime for source in Path(__file__).parent.rglob("*.py"))
    for index in Path(folder).glob("*.nbi"):
        with suppress(OSError):  # another process may be at it, or the folder read-only
            if index.stat().st_mtime < newest:
                index.unlink()


F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F, *, nogil: bool = False) -> F:
    """Compile and cache on disk.

    Division as in C and NumPy, without a test for zero each time; no fastmath, so that the lines
    mean the same with NUMBA_DISABLE_JIT=1. With `nogil` several threads may run it at once.
    """
    compiled: F = njit(cache=True, error_model="numpy", nogil=nogil)(function)
    if COMPILED:
        _drop_stale_caches(compiled.stats.cache_path)  # type: ignore[attr-defined]
    return compiled


def direct(function: Any) -> Callable[..., Any]:
    """`function` without numba's type dispatch, which costs 2 us a call for named tuples.

    The first call compiles for its argument types; later calls must have the same types, which
    the policies ensure by converting arrays to contiguous float64 at their door.
    """
    entry = None

    def call(*args: Any) -> Any:
        nonlocal entry
        if entry is None:
            entry = _entry_point(function, args)
        return entry(*args)

    return call


def _entry_point(function: Any, args: tuple[Any, ...]) -> Any:
    if not COMPILED:
        return function
    signature = tuple(typeof(a) for a in args)
    function.compile(signature)
    return function.get_overload(signature)


def only_for(function: Any, *args: Any) -> Any:
    """`function`, compiled for the types of these arguments; others raise TypeError from now on."""
    signature = tuple(typeof(a) for a in args)
    if signature not in function.overloads:
        function.disable_compile(False)
        function.compile(signature)
        function.disable_compile()
    return function


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@kernel
def _borrow(a: Any) -> Any:
    return carray(_pointer(a.ctypes.data), a.shape, a.dtype)


@kernel
def piece(a: Any, start: int, shape: Any, dtype: Any) -> Any:
    """The part of a flat float64 array from `start` on, as an array of this shape and type."""
    return carray(_pointer(a.ctypes.data + 8 * start), shape, dtype)


# The same contiguous array without reference counting: numba counts every view of an array with
# two atomic instructions, which at d = 5 costs as much as the arithmetic. For use inside kernels
# on arguments, which their caller keeps alive; so is `piece`.
borrow = _borrow if COMPILED else lambda a: a
