"""The catalogue of an open loop: add arms, pause, resume and retire them. Each is an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftbandit import validate
from driftbandit.loop.config import MOST_ARMS
from driftbandit.loop.errors import ConflictError, UnknownArmError
from driftbandit.loop.runtime import Runtime
from driftbandit.loop.state.catalogue import Catalogue, CatalogueArm, check_arms
from driftbandit.loop.storage.events import ArmChange, encode, plain
from driftbandit.loop.writing.pending import Pending
from driftbandit.validate import nearest, show


def add(runtime: Runtime, name: Any, columns: Any) -> None:
    """Add an arm, or give it other columns; one that was paused is on offer again."""
    name = validate.text("an arm's name", name)
    if not isinstance(columns, Mapping):
        raise ValueError(f"columns must be a mapping such as {{'price': 9}}, got {show(columns)}")
    columns = plain(columns)
    with runtime.switching:
        known = catalogue(runtime).arms
        if name not in known and len(known) >= MOST_ARMS:
            raise ValueError(f"a catalogue has at most {MOST_ARMS} arms: retire one")
        check_columns(runtime, [columns])
        _check_costs(runtime, name, columns)
        if known.get(name) != CatalogueArm(columns):
            _store(runtime, ArmChange(name, "add", columns))


def _check_costs(runtime: Runtime, name: str, columns: Mapping[str, Any]) -> None:
    """Raise if an arm states no cost that a budget needs and that all others state: every decision
    without arms would be refused. If others leave it out, decisions bring it."""
    others = [arm.columns for other, arm in catalogue(runtime).arms.items() if other != name]
    for cost in runtime.settings.budget:
        if cost not in columns and others and all(cost in each for each in others):
            raise ValueError(
                f"arm {show(name)} states no {cost!r}, which the budget needs and all other arms "
                f"state: pass a number from 0 on, such as {{{cost!r}: 0.002}}"
            )


def pause(runtime: Runtime, name: Any) -> None:
    """Take an arm off offer; `resume` brings it back."""
    with runtime.switching:
        if not _known(runtime, name).paused:
            _store(runtime, ArmChange(name, "pause"))


def resume(runtime: Runtime, name: Any) -> None:
    """Put a paused arm on offer again."""
    with runtime.switching:
        if _known(runtime, name).paused:
            _store(runtime, ArmChange(name, "resume"))


def retire(runtime: Runtime, name: Any) -> None:
    """Remove an arm from the catalogue."""
    with runtime.switching:
        _known(runtime, name)
        _store(runtime, ArmChange(name, "retire"))


def catalogue(runtime: Runtime) -> Catalogue:
    """Return the arms of the loop; raise if every decision brings its own."""
    found = runtime.definition.now.catalogue
    if found is None:
        raise ConflictError(
            "every decision of this loop brings its arms: declare another loop with arms={...}, "
            "or arms={} for a catalogue that is empty at first"
        )
    return found


def check_columns(runtime: Runtime, rows: list[Any]) -> None:
    """Raise if arms have a column that no policy reads, or a value that the live one cannot."""
    definition = runtime.definition.now
    others = [each.features for each in definition.shadows.values()]
    check_arms(rows, definition.latest.features, others, definition.costs)


def _known(runtime: Runtime, name: Any) -> CatalogueArm:
    arms = catalogue(runtime).arms
    if name not in arms:
        there = nearest(name, list(arms)) if arms else "it is empty"
        raise UnknownArmError(
            f"the catalogue has no arm {show(name)}: {there}; loop.add_arm adds one"
        )
    return arms[name]


def _store(runtime: Runtime, change: ArmChange) -> None:
    runtime.writer.submit(Pending("arm", data=encode(change)))
