"""Opening a loop: declare a new one, or go on with the one that the ledger has."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NoReturn

from driftbandit.loop.config import Declaration, Settings
from driftbandit.loop.storage.events import Event, write
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.loop.storage.store import is_url
from driftbandit.loop.training.replay import Past, past
from driftbandit.validate import show


def check_new(path: Any, given: Mapping[str, Any]) -> None:
    """No file is made for a mistake in a path."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the name of a file, such as 'shop.db', got {show(path)}")
    new = given["features"] is not None and given["reward"] is not None
    if not new and not is_url(path) and not os.path.exists(path):
        raise ValueError(
            f"{os.fspath(path)!r} does not exist: a new loop needs features= and reward="
        )


def declared(ledger: Ledger, given: Mapping[str, Any]) -> Past:
    """What the loop is; what was not given (None) is as it was declared."""
    with ledger.turn(ledger.last()):  # two may want to declare it at once
        found = past(ledger)
        if found is None:
            _declare(ledger, given)
    if found is None:
        return declared(ledger, given)
    changed = {name: value for name, value in given.items() if value is not None}
    declaration = found.declaration
    for field in fields(declaration):
        if field.name in changed and not _same(found, field.name, changed[field.name]):
            _refuse(ledger, field.name)
    return found


def _declare(ledger: Ledger, given: Mapping[str, Any]) -> None:
    for name in ("features", "reward"):
        if given[name] is None:
            raise ValueError(f"{ledger.path!r} has no loop {ledger.name!r} yet: pass {name}=")
    names = {field.name for field in fields(Declaration)}
    own = {k: v for k, v in given.items() if k in names and v is not None}
    declaration, chosen = Declaration(**own), settings(Settings(), given)
    now = time.time() if declaration.clock == "wall" else 0.0
    recipes = enumerate((("declare", declaration), ("set", chosen)), start=1)
    ledger.append([Event(k, kind, now, data=write(r.to_dict())) for k, (kind, r) in recipes])


def _same(found: Past, name: str, value: Any) -> bool:
    """Whether a value means what was declared; features may be given as they are now."""
    if name == "features":
        return value in [version.features for version in found.versions.values()]
    declaration = found.declaration
    if name == "reward":
        return bool(value == declaration.reward)
    return bool(getattr(replace(declaration, **{name: value}), name) == getattr(declaration, name))


def _refuse(ledger: Ledger, name: str) -> NoReturn:
    remedy = "use loop.add_features(...), or" if name == "features" else "use"
    raise ValueError(
        f"loop {ledger.name!r} was declared with another {name}: leave it out to go on, "
        f"{remedy} another name for a new loop"
    )


def settings(before: Settings, given: Mapping[str, Any]) -> Settings:
    """The settings with what was given changed."""
    names = ("exploration", "mode", "holdout")
    changed = {name: given[name] for name in names if given[name] is not None}
    if given["guard"] is not None:  # False ends it
        changed["guard"] = given["guard"] or None
    return replace(before, **changed)
