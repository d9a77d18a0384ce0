"""Opening a loop: declare a new one, or resume the one that the ledger has."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NoReturn

from driftbandit.loop.config import DRAWS, Declaration, Settings
from driftbandit.loop.state.catalogue import check_arms
from driftbandit.loop.state.definition import Definition, define
from driftbandit.loop.storage.chain import BEGINS
from driftbandit.loop.storage.events import Event, encode, plain
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.storage.store import is_url
from driftbandit.validate import show


def check_path(path: Any, given: Mapping[str, Any]) -> None:
    """Raise for a mistake in a path, before a file is made."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the name of a file, such as 'shop.db', got {show(path)}")
    new = given.get("features") is not None and given.get("reward") is not None
    if not new and not is_url(path) and not os.path.exists(path):
        there = "" if os.fspath(path) == ":memory:" else f"{os.fspath(path)!r} does not exist: "
        raise ValueError(f"{there}a new loop needs features= and reward=")


def declared(ledger: Ledger, given: Mapping[str, Any]) -> Definition:
    """Return what the loop is; what was not given (None) is as it was declared."""
    if isinstance(arms := given.get("arms"), Mapping):
        given = {**given, "arms": {name: plain(columns) for name, columns in arms.items()}}
    with ledger.turn(ledger.last()):  # two processes may want to declare it at once
        found = define(ledger.lasting())
        if found is None:
            _declare(ledger, given)
        else:
            _begin_chain(ledger, found)
    if found is None:
        return declared(ledger, given)
    for field in fields(found.declaration):
        value = given.get(field.name)
        if value is not None and not _same(found, field.name, value):
            _refuse(ledger, field.name)
    return found


def _declare(ledger: Ledger, given: Mapping[str, Any]) -> None:
    for name in ("features", "reward"):
        if given.get(name) is None:
            raise ValueError(f"{ledger.path!r} has no loop {ledger.name!r} yet: pass {name}=")
    names = {field.name for field in fields(Declaration)}
    chosen = {k: v for k, v in given.items() if k in names and v is not None}
    declaration = Declaration(**chosen, name=ledger.name, draws=DRAWS)
    settings = Settings().changed(given)
    settings.check_declaration(declaration)
    if declaration.arms is not None:
        rows = [columns for _, columns in declaration.arms]
        check_arms(rows, declaration.features, costs=settings.budget)
    now = time.time() if declaration.clock == "wall" else 0.0
    recipes = (("declare", declaration), ("configure", settings))
    events = [
        Event(k, kind, now, data=encode(r.to_dict())) for k, (kind, r) in enumerate(recipes, 1)
    ]
    ledger.append(events)


def _begin_chain(ledger: Ledger, found: Definition) -> None:
    """Begin the chain of a ledger that has none yet."""
    head = ledger.newest()
    if head.link is None:
        now = time.time() if found.declaration.clock == "wall" else 0.0
        ledger.append([Event(head.seq + 1, BEGINS, now)])


def _same(found: Definition, name: str, value: Any) -> bool:
    """Return whether a value means what was declared; features may be given as they are now."""
    if name == "features":
        known = [version.features for version in found.versions.values()]
        return value in known or value.under(found.declaration.features.encoding) in known
    declaration = found.declaration
    if name == "arms" and found.catalogue is not None:
        now = {arm: each.columns for arm, each in found.catalogue.arms.items()}
        return dict(value) in (now, dict(declaration.arms))
    if name == "reward":
        return bool(value == declaration.reward)
    return bool(getattr(replace(declaration, **{name: value}), name) == getattr(declaration, name))


def _refuse(ledger: Ledger, name: str) -> NoReturn:
    remedies = {"features": "use loop.add_features(...), or", "arms": "use loop.add_arm(...), or"}
    remedy = remedies.get(name, "use")
    raise ValueError(
        f"loop {ledger.name!r} was declared with another {name}: leave it out to resume, "
        f"{remedy} another name for a new loop"
    )
