"""A row's fields as kernels see them: views that cost nothing.

numba counts the references to an array in every slice of it, with two atomic instructions each
time, and reshapes through a call: at d = 5 that took longer than the arithmetic. A view is not
counted, so somebody must hold the array: the caller of the kernel, or, of what the kernel has made
itself, a later line that names it, because numba frees an array after its last use by name.
Views of one array keep LLVM from vectorising loops over two of them: matrices have their own.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from driftbandit.core import layout
from driftbandit.core.compiled import COMPILED, inlined
from driftbandit.core.layout import NUMBERS, THETA, Floats


@intrinsic
def _view(_typing: Any, array: Any, at: Any, shape: Any) -> Any:
    kind, sizes = types.Array(array.dtype, len(shape), "C"), types.UniTuple(types.intp, len(shape))

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = context.make_array(array)(context, builder, args[0])
        found = context.make_array(kind)(context, builder)
        lengths, strides = cgutils.unpack_tuple(builder, args[2]), [whole.itemsize]
        for length in lengths[:0:-1]:
            strides.insert(0, builder.mul(strides[0], length))
        data = builder.gep(whole.data, [args[1]], inbounds=True)
        populate_array(found, data, lengths, strides, whole.itemsize, None)
        return found._getvalue()

    return kind(array, types.intp, sizes), build


def _plain(array: Any, at: int, shape: tuple[int, ...]) -> Any:
    return array.reshape(-1)[at : at + math.prod(shape)].reshape(shape)


# (array, at, shape) -> the numbers of a contiguous array from this place on, in this shape
view = _view if COMPILED else _plain

learners_at, usual_at = inlined(layout.learners_at), inlined(layout.usual_at)


@inlined
def borrowed(array: Any) -> Any:
    """The whole array, whose slices then are not counted either."""
    return view(array, 0, array.shape)


@inlined
def pooled(row: Floats, d: int) -> tuple[Floats, Floats]:
    """theta and H of a row, DOMD's or AutoDOMD's."""
    return view(row, THETA, (d,)), view(row, THETA + d, (d, d))


@inlined
def learners(row: Floats, d: int, n: int) -> tuple[Floats, Floats, Floats, Floats]:
    """The n learners in a row of AutoDOMD: numbers (10, n), thetas (n, d), Hs and Ps (n, d, d)."""
    a, b, c, e = learners_at(d, n)
    numbers, thetas, square = view(row, a, (NUMBERS, n)), view(row, b, (n, d)), (n, d, d)
    return numbers, thetas, view(row, c, square), view(row, e, square)
