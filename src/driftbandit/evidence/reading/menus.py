"""Menus: the arms of a row, as logs write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import validate
from driftbandit.evidence.reading.chunk import ARM, Ints, Menu

KEPT = 10_000  # different menus in memory at once


class MenuError(ValueError):
    """Why a row has no menu, or its action is not on it."""


class Menus:
    """Menus of a log, each made once; `fixed` is what all rows offer that say nothing else."""

    def __init__(self, fixed: Any = None) -> None:
        self._known: dict[str, Menu] = {}
        self.names: list[str] = []  # of all arms so far, in the order they were seen
        self._codes: dict[str, int] = {}
        try:
            self._fixed = None if fixed is None else menu_of(fixed, None)
        except MenuError as error:
            raise ValueError(
                "arms must be a list of names, or a mapping from names to columns, got "
                f"{validate.show(fixed)}"
            ) from error

    def menu(self, offered: Any, names: Any) -> Menu:
        """Return what a row offers, from JSON, lists or mappings; None means what all have."""
        if offered is None and names is None:
            if self._fixed is None:
                raise MenuError("no arms: name their column, or pass arms=")
            return self._fixed
        text = offered if isinstance(offered, str) and names is None else f"{offered!r}|{names!r}"
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            found = self._known[text] = menu_of(offered, names)
        return found

    def place(self, menu: Menu, action: Any) -> int:
        """Return where an action is on its menu: a name, or a place counted from 0."""
        if isinstance(action, (float, np.floating)) and float(action).is_integer():
            action = int(action)  # frames turn whole numbers into floats where some are missing
        place = menu.places.get(action if isinstance(action, str) else str(action))
        if place is None:
            raise MenuError("an action that is not among the arms")
        return place

    def codes(self, menus: Sequence[Menu]) -> Ints:
        """Numbers of all arms' names, menu after menu, the same in the whole log."""
        numbered = {
            id(menu): [self._code(name) for name in menu.names] for menu in dict.fromkeys(menus)
        }
        return np.array([code for menu in menus for code in numbered[id(menu)]], dtype=np.int64)

    def _code(self, name: str) -> int:
        if name not in self._codes:
            self._codes[name] = len(self.names)
            self.names.append(name)
        return self._codes[name]


def menu_of(offered: Any, names: Any) -> Menu:
    """A menu from a mapping of names to columns, a list of columns, or a list of names."""
    offered, names = _parsed(offered), _parsed(names)
    if isinstance(offered, Mapping):
        names, offered = list(offered), list(offered.values())
    elif offered is None or _are_names(offered):
        names = offered if names is None else names
        offered = [None] * len(names) if isinstance(names, (list, tuple)) else None
    if not isinstance(offered, (list, tuple)) or not isinstance(names, (list, tuple, type(None))):
        raise MenuError("arms that are neither a list nor a mapping")
    named = [str(name) for name in (range(len(offered)) if names is None else names)]
    if not named or len(set(named)) < len(named) or len(offered) != len(named):
        raise MenuError("no arms, or the same name twice")
    return Menu(named, _columns(offered, named))


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value.tolist() if isinstance(value, np.ndarray) else value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise MenuError("arms that are not JSON") from None


def _are_names(offered: Any) -> bool:
    listed = isinstance(offered, (list, tuple)) and len(offered) > 0
    return listed and all(isinstance(each, (str, int)) for each in offered)


def _columns(offered: Any, names: list[str]) -> list[Mapping[str, Any]]:
    """Columns of arms; where there are none at all, the name is the only one."""
    columns = [{} if each is None else each for each in offered]
    if not all(isinstance(each, Mapping) for each in columns):
        raise MenuError("an arm that is not a mapping of columns")
    return columns if any(columns) else [{ARM: name} for name in names]
