"""What callers ask, checked and brought into the form in which it is decided and logged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from driftbandit import validate
from driftbandit.ids import new_id
from driftbandit.loop.deciding.slates import POSITION
from driftbandit.loop.deciding.types import Name, Request
from driftbandit.loop.state.catalogue import Catalogue, Selection
from driftbandit.loop.storage.events import plain_columns
from driftbandit.validate import show

ONE_TYPE = ({str}, {int})  # of the names of arms, as they nearly always are


def request(
    context: Any,
    arms: Any,
    default: Any,
    k: Any = None,
    *,
    id: Any = None,
    key: Any = None,
    at: float | None = None,
    fallback: bool = False,
    catalogue: Catalogue | None = None,
) -> Request:
    """Return a request; the features check columns and values. With a `catalogue`, arms are what it
    has on offer: all of them if none is named."""
    if not isinstance(context, Mapping):
        raise ValueError(
            f"the context must be a mapping such as {{'age': 31}}, got {show(context)}"
        )
    if k is not None:
        k = validate.count("k", k, "positions of a slate")
    names: list[Name]
    asked: Selection | None = None
    if catalogue is not None:
        asked, selected = catalogue.select(arms, default, fallback)
        names, rows = [*selected], [*selected.values()]  # plain since they were declared or named
        default = default if fallback else catalogue.offered(default)
        if not names and default is None:
            raise ValueError(
                "no arm is on offer: resume or add one (loop.resume_arm, loop.add_arm), or pass a "
                "default to return instead"
            )
    elif arms is None:
        raise ValueError("this loop has no catalogue: pass arms=, or declare a loop with arms=")
    else:
        names, rows = _arms(arms)
    own = new_id() if id is None else validate.text("id", id)
    if key is not None:
        key = validate.text("key", key)
    if default is not None or k is not None or not names:
        default = _checked_default(names, rows, default, k)
    if k is not None and POSITION in context:
        raise ValueError(f"with k= the loop fills {POSITION!r} in: leave it out")
    columns = plain_columns(context)
    return Request(columns, names, rows, default, k, own, key, id is None, fallback, at, asked)


def _arms(arms: Any) -> tuple[list[Name], list[Any]]:
    """Return the names of arms, and their columns."""
    rows: Iterable[Any]
    if isinstance(arms, Mapping):
        names, rows = list(arms), arms.values()
    elif isinstance(arms, (list, tuple)):
        names, rows = list(range(len(arms))), arms
    else:
        raise ValueError(
            "arms must be a mapping from names to columns, such as {'a': {'price': 9}}, or a list "
            f"of columns, got {show(arms)}"
        )
    if {*map(type, names)} not in ONE_TYPE:
        names = [_name(each) for each in names]
        if len({str(each) for each in names}) < len(names):  # which is what logs and HTTP show
            raise ValueError(
                f"every arm needs a name of its own, also as text, got {show(names)}: 1 and '1' "
                "look the same in a log"
            )
    return names, [*map(plain_columns, rows)]


def _name(name: Any) -> Name:
    if not isinstance(name, (str, int)) or isinstance(name, bool):
        raise ValueError(f"an arm's name must be text or a whole number, got {show(name)}")
    return int(name) if isinstance(name, int) else str.__str__(name)


def _checked_default(names: list[Name], rows: list[Any], default: Any, k: int | None) -> Any:
    return _default(names, default) if k is None else _slate_default(names, rows, default, k)


def _default(names: list[Name], default: Any) -> Name | None:
    """Return the arm to play when the loop does not choose."""
    if default is None and not names:
        raise ValueError("there is no arm: pass at least one, or a default to return instead")
    if default is None:
        return None
    if not isinstance(default, (str, int)) or isinstance(default, bool):
        raise ValueError(f"default must be the name of an arm, got {show(default)}")
    default = _name(default)
    if names and default not in names:
        hint = validate.nearest(default, names)
        raise ValueError(f"default must be one of the arms, got {show(default)}: {hint}")
    return default


def _slate_default(names: list[Name], rows: list[Any], default: Any, k: int) -> Any:
    """Return the slate to show when the loop does not choose."""
    if names and k > len(names):
        raise ValueError(f"k must be at most the number of arms, {len(names)}, got {k}")
    if any(isinstance(each, Mapping) and POSITION in each for each in rows):
        raise ValueError(f"with k= the loop fills {POSITION!r} in: leave it out")
    if default is None:
        return _default(names, None)
    if not isinstance(default, (list, tuple)) or len(default) != k:
        raise ValueError(f"the default of a slate is a list of {k} arms, got {show(default)}")
    each = [_default(names, name) for name in default]
    if None in each or len(set(each)) < k:
        raise ValueError(f"default must name {k} different arms, got {show(default)}")
    return each
