"""Custom families in kernels, by the address of a C function.

Kernels know a shipped family by a small code. For any other they get the address of a function of
(order, z) in its place: m, mu and mu' for the orders 0, 1 and 2. It calls the family's methods in
Python, or is compiled from what `Family.compiled` gives. Stored kernels hold no address, so no
kernel is compiled again for another family.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import cfunc, float64, int64
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from driftbandit.core.compiled import COMPILED, inlined
from driftbandit.families import CUSTOM, Family

NAMES = "m", "mu", "dmu"  # by order

_signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_double)
_functions: dict[Family, Function] = {}  # forever: recipes hold addresses of them
_by_address: dict[float, Function] = {}


class Function:
    """m, mu and mu' of a family as one C function, and what went wrong in it last."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self._trouble: tuple[str, Any] | None = None
        self._c: Any = _compiled(family) or _signature(self)
        place = ctypes.cast(getattr(self._c, "ctypes", self._c), ctypes.c_void_p).value or 0
        self.address = float(place)
        if int(self.address) != place:  # above 2^53, where no system of today puts code
            raise ValueError(f"the address {place:#x} does not fit into a float64")

    def __call__(self, order: int, z: float) -> float:
        """NaN if the family raises, for no exception passes through compiled code."""
        try:
            found = float(getattr(self.family, NAMES[order])(z))
        except BaseException as error:  # also Ctrl-C
            self._trouble = f"{NAMES[order]}({z:.9g})", error
            return math.nan
        if not math.isfinite(found):
            self._trouble = f"{NAMES[order]}({z:.9g})", found
        return found

    def guard(self, rows: Any, which: Any, call: Callable[[], Any]) -> Any:
        """call(), after which these rows are as before if the family has failed in it."""
        before = rows[which].copy()
        try:
            return call()
        except FloatingPointError as error:  # the kernel's: some number was not finite
            rows[which] = before
            blame, cause = self._blame(str(error))
            raise blame from cause
        except BaseException:
            rows[which] = before
            raise

    def guarded(self, learn: Any) -> Any:
        """The kernel `learn` for one row."""
        return lambda q, row, *rest: self.guard(row, slice(None), lambda: learn(q, row, *rest))

    def _blame(self, what: str) -> tuple[BaseException, BaseException | None]:
        """What to raise, and from what."""
        (what, found), self._trouble = self._trouble or (what, "no number"), None
        cause = found if isinstance(found, BaseException) else None
        if cause is not None and not isinstance(cause, Exception):
            return cause, None  # Ctrl-C
        how = f"is {found}" if cause is None else f"raised {type(cause).__name__}: {cause}"
        blame = ValueError(
            f"{what} of {self.family!r} {how}, so it was not learnt. Methods of a family take any "
            "float: driftbandit.checks.check_family finds what is wrong"
        )
        return blame, cause


def function_of(family: Family) -> Function | None:
    """The C function of a family, or None for one whose link is compiled into the kernels."""
    if family.link.code != CUSTOM:
        return None
    try:
        found = _functions.get(family) or _functions.setdefault(family, Function(family))
    except TypeError as error:
        raise ValueError(
            f"{family!r} cannot be hashed ({error}): a family is a frozen dataclass of plain values"
        ) from None
    _by_address[found.address] = found
    return found


def code_of(family: Family) -> float:
    """What a recipe holds in the place LINK."""
    found = function_of(family)
    return float(family.link.code) if found is None else found.address


def _compiled(family: Family) -> Any:
    """A C function of the family's compiled functions, if it has any."""
    given = family.compiled() if COMPILED else None
    if given is None:
        return None
    m, mu, dmu = given

    def values(order: int, z: float) -> float:
        try:
            if order == 0:
                return m(z)
            return mu(z) if order == 1 else dmu(z)
        except Exception:
            return math.nan

    try:
        return cfunc("float64(int64, float64)", error_model="numpy")(values)
    except NumbaError as error:
        raise ValueError(
            f"compiled() of {family!r} must give m, mu and mu' as functions of numba's njit that "
            f"take one float: {str(error).strip().splitlines()[-1]}"
        ) from None


@intrinsic
def _call(_typing: Any, _address: Any, _order: Any, _z: Any) -> Any:
    """The C function at an address that is kept as a float."""

    def build(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        whole, real = ir.IntType(64), ir.DoubleType()
        kind = ir.FunctionType(real, [whole, real]).as_pointer()
        address, order, z = args
        return builder.call(builder.inttoptr(builder.fptoui(address, whole), kind), [order, z])

    return float64(float64, int64, float64), build


def _call_plain(address: float, order: int, z: float) -> float:
    return _by_address[address](order, z)


call = _call if COMPILED else _call_plain


@inlined
def value(address: float, order: int, z: float) -> float:
    """m, mu or mu' of a custom family, which must be a number."""
    found = call(address, order, z)
    if not abs(found) < math.inf:
        raise FloatingPointError("m, mu or dmu")
    return found
