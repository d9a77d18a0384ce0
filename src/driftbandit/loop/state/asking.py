"""Asking: about which decisions candidates say what they would have done.

A vote counts for what a policy knew when the decision was made. So the trainer asks as it passes
the decision's event, and the reward windows tell it which decisions those are. Versions before 0.3
asked when the reward was known: what they compared does not count, and comparisons of their logs
begin with the first lasting event that a later version has stored (`recount`, if nothing else).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from driftbandit.loop.storage.events import LIVE, Event
from driftbandit.recipe import Recipe

FIRST = 2  # the first version of payloads whose writer asks at the decision


class Asking(NamedTuple):
    """Who there is to ask, after some lasting event. `since` is the event from which on decisions
    are compared, None if there is none yet."""

    names: frozenset[str] = frozenset()  # candidates
    guarded: bool = False
    apprentice: bool = False  # by its mode: the default acts
    demoted: bool = False  # by the guard
    since: int | None = None

    @property
    def needed(self) -> bool:
        """Whether votes are not in the log: those of candidates, or of a live policy that the guard
        watches while the default acts."""
        aside = self.apprentice or self.demoted
        return self.since is not None and bool(self.names or (self.guarded and aside))

    def after(self, event: Event) -> Asking:
        """Return who there is to ask after one more lasting event."""
        since = event.seq if self.since is None and event.v >= FIRST else self.since
        now, kind = self._replace(since=since), event.kind
        if kind == "shadow":
            return now._replace(names=self.names | {event.read()["name"]})
        if kind == "demote":
            return now._replace(demoted=True)
        if kind == "configure":
            return now._with(event.read())
        if kind in ("retire", "promote"):
            said = event.read()
            gone = {said.name} - {LIVE}
            demoted = self.demoted and kind == "retire"
            return now._replace(names=self.names - gone, demoted=demoted)._with(said.settings)
        return now

    def _with(self, settings: Any) -> Asking:
        chosen: Any = Recipe.from_dict(settings)
        return self._replace(
            guarded=chosen.guard is not None, apprentice=chosen.mode == "apprentice"
        )
