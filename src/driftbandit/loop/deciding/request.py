"""What callers ask, checked at the door."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from driftbandit import validate
from driftbandit.features.values import nearest
from driftbandit.loop.deciding.slates import POSITION
from driftbandit.loop.deciding.types import Name, Request
from driftbandit.validate import show

LONGEST = 200  # characters of an id or a key


def request(context: Any, arms: Any, default: Any, k: Any = None) -> Request:
    """Context, arms, default and positions; the features check columns and values."""
    if not isinstance(context, Mapping):
        raise ValueError(
            f"the context must be a mapping such as {{'age': 31}}, got {show(context)}"
        )
    if isinstance(arms, Mapping):
        names, rows = list(arms), list(arms.values())
    elif isinstance(arms, (list, tuple)):
        names, rows = list(range(len(arms))), list(arms)
    else:
        raise ValueError(
            "arms must be a mapping from names to columns, such as {'a': {'price': 9}}, or a list "
            f"of columns, got {show(arms)}"
        )
    for name in names:
        if not is_name(name):
            raise ValueError(f"an arm's name must be text or a whole number, got {show(name)}")
    if k is None:
        return Request(context, names, rows, _default(names, default))
    k = validate.count("k", k, "positions of a slate")
    if names and k > len(names):
        raise ValueError(f"k must be at most the number of arms, {len(names)}, got {k}")
    if any(isinstance(each, Mapping) and POSITION in each for each in (context, *rows)):
        raise ValueError(f"with k= the loop fills {POSITION!r} in: leave it out")
    return Request(context, names, rows, _defaults(names, default, k), k)


def is_name(name: Any) -> bool:
    return isinstance(name, (str, int)) and not isinstance(name, bool)


def _default(names: list[Name], default: Any) -> Name | None:
    """The arm to play when the loop stands aside."""
    if default is None and not names:
        raise ValueError("there is no arm: pass at least one, or a default to return instead")
    if default is not None and not is_name(default):
        raise ValueError(f"default must be the name of an arm, got {show(default)}")
    if default is not None and names and default not in names:
        raise ValueError(
            f"default must be one of the arms, got {show(default)}: {nearest(default, names)}"
        )
    return default


def _defaults(names: list[Name], default: Any, k: int) -> list[Name] | None:
    """The slate to show when the loop stands aside."""
    if default is None:
        return _default(names, None)  # type: ignore[return-value]
    if not isinstance(default, (list, tuple)) or len(default) != k:
        raise ValueError(f"the default of a slate is a list of {k} arms, got {show(default)}")
    each = [_default(names, name) for name in default]
    if None in each or len(set(each)) < k:
        raise ValueError(f"default must name {k} different arms, got {show(default)}")
    return each  # type: ignore[return-value]


def text(name: str, value: Any) -> str:
    """An id or a key."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= LONGEST:
        raise ValueError(
            f"{name} must be printable text of at most {LONGEST} characters, got {show(value)}: "
            "convert numbers with str()"
        )
    return value


def new_id() -> str:
    """An id that nobody else has. It begins with the time: neighbours are stored together."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"
