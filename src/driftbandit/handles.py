"""Python's arrays and numbers as they are: compiled code is handed the object and looks itself.

numba's own conversion of an array takes its type, axes and layout on trust, and checking them in
Python costs as much as half a decision. A `Handle` is an object's address, which costs nothing to
pass; `is_floats` reads the C structure that NumPy promises to every extension (`PyArrayObject`),
the object's type first, so that any object may be asked.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.cgutils import voidptr_t
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from driftbandit.compiled import COMPILED, kernel, piece
from driftbandit.linalg import Floats

HEADER = object.__basicsize__ // 8  # words of 8 bytes before an object's own; its type comes last
DATA, AXES, SHAPE, DTYPE, FLAGS = (HEADER + word for word in (0, 1, 2, 5, 6))
PLAIN = 0x0101  # NumPy's flags for contiguous and aligned


def _as_promised() -> bool:
    """Whether compiled code is there and will find arrays laid out as said here. And whether it
    keeps other threads out, as long as it runs: a Python without its lock does not."""
    a = np.empty((2, 3))
    if not COMPILED or np.ndarray.__basicsize__ < 8 * (FLAGS + 1):
        return False
    words = (ctypes.c_int64 * (FLAGS + 1)).from_address(id(a))
    shape = (ctypes.c_int64 * 2).from_address(words[SHAPE])
    known = words[HEADER - 1], words[DATA], words[DTYPE], words[AXES] & 0xFFFFFFFF, *shape
    expected = id(np.ndarray), a.ctypes.data, id(a.dtype), 2, 2, 3
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    return locked and known == expected and words[FLAGS] & PLAIN == PLAIN


class Handle(types.Type):
    """The numba type of an object that is handed over as it is."""

    def __init__(self) -> None:
        super().__init__(name="driftbandit.Handle")


class Real(types.Type):
    """The numba type of an object that becomes a float if it is a float or an int, and otherwise
    NaN."""

    def __init__(self) -> None:
        super().__init__(name="driftbandit.Real")


handle, real = Handle(), Real()


@register_model(Handle)
class _HandleModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, voidptr_t)


@register_model(Real)
class _RealModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager[types.float64].get_value_type())


@unbox(Handle)
def _unbox_handle(kind: Any, found: Any, c: Any) -> Any:
    return NativeValue(c.builder.bitcast(found, voidptr_t))


@unbox(Real)
def _unbox_real(kind: Any, found: Any, c: Any) -> Any:
    nan = c.context.get_constant(types.float64, np.nan)
    value = cgutils.alloca_once_value(c.builder, nan)
    number = c.builder.or_(*(_is_instance(c, found, name) for name in ("PyFloat", "PyLong")))
    with c.builder.if_then(number):
        c.builder.store(c.pyapi.float_as_double(found), value)
        with c.builder.if_then(c.pyapi.c_api_error(), likely=False):  # an int beyond all floats
            c.pyapi.err_clear()
            c.builder.store(nan, value)
    return NativeValue(c.builder.load(value))


def _is_instance(c: Any, found: Any, name: str) -> Any:
    """isinstance(found, float), where the name is PyFloat."""
    pointers = c.builder.bitcast(found, voidptr_t.as_pointer())
    kind = c.builder.load(cgutils.gep_inbounds(c.builder, pointers, HEADER - 1))
    signature = ir.FunctionType(ir.IntType(32), [voidptr_t, voidptr_t])
    function = cgutils.get_or_insert_function(c.builder.module, signature, "PyType_IsSubtype")
    wanted = c.builder.bitcast(c.pyapi.get_c_object(f"{name}_Type"), voidptr_t)
    return cgutils.is_not_null(c.builder, c.builder.call(function, [kind, wanted]))


AVAILABLE = _as_promised()


@intrinsic
def address(typing: Any, found: Any) -> Any:
    """Where the object is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], context.get_value_type(types.intp))

    return types.intp(found), generate


@intrinsic
def number(typing: Any, found: Any) -> Any:
    """The float that a `Real` is."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return types.float64(found), generate


def passport() -> Floats:
    """What `is_floats` compares with: the addresses of NumPy's array type and of float64."""
    return np.array([id(np.ndarray), id(np.dtype(np.float64))]).view(float)


@kernel
def is_floats(found: Any, axes: int, known: int) -> bool:
    """Whether it is an array of float64 with so many axes, contiguous; `known` is where a
    passport lies."""
    words = piece(address(found), 0, (FLAGS + 1,), np.int64)
    passport = piece(known, 0, (2,), np.int64)
    return (
        words[HEADER - 1] == passport[0]
        and words[DTYPE] == passport[1]
        and (words[AXES] & 0xFFFFFFFF) == axes
        and (words[FLAGS] & PLAIN) == PLAIN
    )


@kernel
def length(found: Any, axis: int) -> int:
    """Of an axis of an array that passed `is_floats`."""
    return piece(piece(address(found), SHAPE, (1,), np.int64)[0], axis, (1,), np.int64)[0]


@kernel
def floats(found: Any, shape: Any) -> Floats:
    """What an array that passed `is_floats` holds."""
    return piece(piece(address(found), DATA, (1,), np.int64)[0], 0, shape, np.float64)
