"""The past of a loop: what its ledger says it is."""

from __future__ import annotations

from typing import NamedTuple

from driftbandit.loop.config import Declaration, Settings
from driftbandit.loop.state.versions import Shadow, Version, shadows, versions
from driftbandit.loop.storage.events import Event
from driftbandit.loop.storage.ledger import Ledger
from driftbandit.recipe import Recipe

SETTING = ("set", "promote", "retire")  # events that say how decisions are made from there on


class Past(NamedTuple):
    """What a ledger says a loop is."""

    declaration: Declaration
    settings: dict[int, Settings]  # by the seq of their event
    versions: dict[str, Version]
    shadows: dict[int, Shadow]  # all candidates that ever were, by the seq of their event


def past(ledger: Ledger) -> Past | None:
    """What was declared; None for a new loop."""
    events = ledger.declared()
    if not events:
        return None
    declaration: Declaration = Recipe.from_dict(events[0].read())
    settings = {e.seq: _settings(e) for e in events if e.kind in SETTING}
    return Past(declaration, settings, versions(declaration, events), shadows(events))


def _settings(event: Event) -> Settings:
    data = event.read()
    found: Settings = Recipe.from_dict(data if event.kind == "set" else data["settings"])
    return found
