"""The catalogue of a loop: arms by name with their columns, as the log says. A decision may leave
its arms out, or name some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from operator import is_
from types import MappingProxyType
from typing import Any, NamedTuple

from driftbandit.features import Features
from driftbandit.features.columns import Mappings
from driftbandit.loop.storage.events import ArmChange, plain_columns
from driftbandit.validate import nearest, show


class CatalogueArm(NamedTuple):
    """An arm of the catalogue. One that is paused is not on offer."""

    columns: dict[str, Any]
    paused: bool = False


class Selection(NamedTuple):
    """What a caller asked of the catalogue: columns by name that hold for this decision alone;
    `whole` if no arm was named."""

    named: Mapping[str, dict[str, Any]]
    whole: bool
    default: Any

    def is_same(self, names: Sequence[Any], arms: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether a decision with these arms can be an answer to this question: the
        catalogue may have been another one then."""
        if self.whole:
            return True
        asked = [self.named.get(name) for name in names]
        return all(
            each is not None and each.items() <= columns.items()
            for each, columns in zip(asked, arms)
        )


class Catalogue:
    """Arms by name; an immutable value."""

    def __init__(self, arms: Mapping[str, CatalogueArm]) -> None:
        self.arms: Mapping[str, CatalogueArm] = MappingProxyType(dict(arms))
        offered = {name: arm.columns for name, arm in arms.items() if not arm.paused}
        self.names, self.rows = list(offered), list(offered.values())  # what is on offer
        self._without: dict[Set[str], list[dict[str, Any]]] = {}

    def offers(self, rows: list[Any]) -> bool:
        """Return whether these are the rows of all arms on offer."""
        return len(rows) == len(self.rows) and all(map(is_, rows, self.rows))

    def without(self, columns: Set[str]) -> list[dict[str, Any]]:
        """Return the rows of all arms on offer without some columns, made once."""
        if columns not in self._without:
            self._without[columns] = [
                {name: value for name, value in row.items() if name not in columns}
                for row in self.rows
            ]
        return self._without[columns]

    def after(self, change: ArmChange) -> Catalogue:
        """Return the catalogue after one more event."""
        rest, name = dict(self.arms), change.name
        if change.change == "add":
            rest[name] = CatalogueArm(change.columns or {})
        elif change.change == "retire":
            rest.pop(name, None)
        elif name in rest:
            rest[name] = CatalogueArm(rest[name].columns, change.change == "pause")
        return Catalogue(rest)

    def select(self, arms: Any, default: Any, fallback: bool) -> tuple[Selection, dict[str, Any]]:
        """Return what was asked, and the arms that are on offer of it, by name. A default that was
        played elsewhere is one of them even if it is paused now."""
        if arms is None:
            asked = Selection({}, True, default)
            found = dict(zip(self.names, self.rows))
        else:
            named = _named(arms)
            asked = Selection(named, False, default)
            found = {name: self._columns(name, own) for name, own in named.items()}
            found = {name: row for name, row in found.items() if not self.arms[name].paused}
        if fallback:
            played = default if isinstance(default, (list, tuple)) else [default]
            own = {name: self._columns(name, asked.named.get(name)) for name in played}
            found = own | found
        return asked, found

    def _columns(self, name: str, own: Mapping[str, Any] | None) -> dict[str, Any]:
        arm = self.arms.get(name)
        if arm is None:
            hint = nearest(name, list(self.arms)) if self.arms else "it is empty"
            raise ValueError(
                f"the catalogue has no arm {show(name)}: {hint}; loop.add_arm adds one"
            )
        return {**arm.columns, **own} if own else arm.columns

    def offered(self, default: Any) -> Any:
        """Return a default without arms that are paused: None if the only one is."""
        if isinstance(default, str) and default in self.arms and self.arms[default].paused:
            return None
        return default


def _named(arms: Any) -> dict[str, dict[str, Any]]:
    """Return the arms that a caller named, with the columns that it gave."""
    if isinstance(arms, Mapping):
        if not all(isinstance(row, Mapping) for row in arms.values()):
            raise ValueError("arms must be a mapping from names to columns, or a list of names")
        return {str(name): plain_columns(row) for name, row in arms.items()}
    if isinstance(arms, (list, tuple)) and all(isinstance(each, str) for each in arms):
        return {name: {} for name in arms}
    raise ValueError(
        "this loop has a catalogue: leave arms out, name some of its arms, such as ['a', 'b'], or "
        f"pass columns that differ, such as {{'a': {{'price': 9}}}}, got {show(arms)}"
    )


def check_arms(
    rows: Sequence[Any], live: Features, others: Iterable[Features] = (), costs: Iterable[str] = ()
) -> None:
    """Raise if arms have a column that no policy reads and that is no cost, or a value that the
    live policy cannot read."""
    known = frozenset(costs).union(*(each.arm for each in (live, *others)))
    Mappings("an arm", rows, known)
    side = live.plan.arm
    own = [{name: value for name, value in row.items() if name in side.names} for row in rows]
    if own:
        side.encode(side.read("an arm", own))
