"""What callers ask, checked at the door."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from driftbandit.features.values import nearest
from driftbandit.loop.decision import Name, Request
from driftbandit.validate import show

LONGEST = 200  # characters of an id or a key


def request(context: Any, arms: Any, default: Any) -> Request:
    """Context, arms and default; the features check columns and values."""
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
    return Request(context, names, rows, _default(names, default))


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
