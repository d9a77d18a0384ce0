"""Compiling kernels, and calling them from Python at the price of a C call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import carray, config, njit, typeof
from numba.core import cgutils, types
from numba.extending import intrinsic

COMPILED = not config.DISABLE_JIT


@cache
def _sources() -> tuple[float, int]:
    """What the package's source files looked like when they were imported."""
    found = [source.stat() for source in Path(__file__).parent.rglob("*.py")]
    return max(stat.st_mtime for stat in found), sum(stat.st_size for stat in found)


F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F, *, nogil: bool = False, inline: bool = False) -> F:
    """Compile and cache on disk.

    Division as in C and NumPy, without a test for zero each time; no fastmath, so that the lines
    mean the same with NUMBA_DISABLE_JIT=1. With `nogil` several threads may run it at once. What
    is `inline` becomes part of its callers: at d = 5 handing arrays over costs more than using
    them.
    """
    compiled: F = njit(cache=True, error_model="numpy", nogil=nogil, forceinline=inline)(function)
    if COMPILED:
        # numba stamps what it stores with the kernel's own file, not with those of kernels it calls
        stored = compiled._cache._cache_file  # type: ignore[attr-defined]
        stored._source_stamp = stored._source_stamp, _sources()
    return compiled


inlined = partial(kernel, inline=True)


def direct(function: Any, *, sized: bool = False) -> Callable[..., Any]:
    """`function` without numba's type dispatch, which costs 2 us a call for named tuples.

    The first call compiles for its argument types; later calls must have the same types, which
    the policies ensure by converting arrays to contiguous float64 at their door. One that is
    `sized` has a size for its first argument and is compiled for each.
    """
    entries: dict[Any, Any] = {}

    def call(*args: Any) -> Any:
        size = args[0] if sized else ()
        if size not in entries:
            entries[size] = entry_point(function, *args)
        return entries[size](*args)

    return call


def size_of(n: int) -> tuple[None, ...]:
    """n as a size: nothing, n times. Its length is part of its type, so code is compiled for this
    n, without loops over it, and handing it over costs next to nothing."""
    return (None,) * n


def entry_point(function: Any, *args: Any) -> Any:
    """`function` as compiled for the types of these arguments, or for these types, which it takes
    on trust: it crashes on arrays with another number of axes."""
    if not COMPILED:
        return function
    signature = tuple(a if isinstance(a, types.Type) else typeof(a) for a in args)
    function.compile(signature)
    return function.get_overload(signature)


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@kernel
def _shaped(a: Any, shape: Any) -> Any:
    return carray(_pointer(a.ctypes.data), shape, a.dtype)


@kernel
def _borrow(a: Any) -> Any:
    return _shaped(a, a.shape)


@kernel
def piece(address: int, start: int, shape: Any, dtype: Any) -> Any:
    """What lies in memory from the `start`-th eight bytes on, as an array of this shape and type;
    for use inside kernels on what their caller keeps alive."""
    return carray(_pointer(address + 8 * start), shape, dtype)


# The same contiguous array without reference counting: numba counts every view of an array with
# two atomic instructions, which at d = 5 costs as much as the arithmetic. For use inside kernels
# on arguments, which their caller keeps alive.
borrow = _borrow if COMPILED else lambda a: a

# The same in another shape, which the compiler may know beforehand.
shaped = _shaped if COMPILED else lambda a, shape: a.reshape(shape)


@kernel
def upto(n: int) -> range:
    """0, ..., n - 1 as numbers without a sign: an index that cannot count from the end lets the
    compiler see that a loop walks through memory, and do several steps of it at once."""
    return range(np.uint64(n))


# LAPACK's dpotrf as numba links it; np.linalg.cholesky allocates and clears, which at d = 256
# takes twice as long as the factorisation.
_matrix: Any = types.CPointer(types.float64)  # type: ignore[attr-defined]
_potrf: Any = types.ExternalFunction(
    "numba_xxpotrf", types.intc(types.char, types.char, types.intp, _matrix, types.intp)
)


@kernel
def _cholesky(A: Any) -> None:
    if _potrf(ord("d"), ord("L"), len(A), A.ctypes, len(A)) != 0:  # rows are LAPACK's columns
        raise np.linalg.LinAlgError("the matrix is not positive definite")


def _cholesky_plain(A: Any) -> None:
    A[:] = np.linalg.cholesky(A.T).T


# Overwrite the upper half of A, which alone is read, with the C' of A = C C'.
cholesky = _cholesky if COMPILED else _cholesky_plain
