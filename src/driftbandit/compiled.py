"""Calling compiled kernels from Python at the price of a C call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import typeof


def direct(kernel: Any) -> Callable[..., Any]:
    """`kernel` without numba's type dispatch, which costs 2 us a call for named tuples.

    The first call compiles for its argument types; later calls must have the same types, which
    the policies ensure by converting arrays to contiguous float64 at their door.
    """
    entry = None

    def call(*args: Any) -> Any:
        nonlocal entry
        if entry is None:
            entry = _entry_point(kernel, args)
        return entry(*args)

    return call


def _entry_point(kernel: Any, args: tuple[Any, ...]) -> Any:
    if not hasattr(kernel, "get_overload"):  # NUMBA_DISABLE_JIT=1: an ordinary function
        return kernel
    types = tuple(typeof(a) for a in args)
    kernel.compile(types)
    return kernel.get_overload(types)
