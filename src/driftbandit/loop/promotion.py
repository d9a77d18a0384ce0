"""Trials and promotion: who may act, by proof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driftbandit.features.values import nearest
from driftbandit.loop.candidates.comparison import Comparison, leads, standings
from driftbandit.loop.config import Settings
from driftbandit.loop.guard import LEVEL
from driftbandit.loop.runtime import ConflictError, Desk
from driftbandit.loop.storage.events import DEFAULT, LIVE
from driftbandit.validate import show


class UnknownError(ValueError):
    """There is no such candidate."""


def trial(desk: Desk, name: Any, share: Any) -> None:
    """A share of decisions for a candidate; 0 ends its trial."""
    with desk.switching:
        _known(desk, name)
        chosen = desk.current[1]
        desk.configure(replace(chosen, trials={**chosen.trials, name: share}))


def retire(desk: Desk, name: Any) -> None:
    """A candidate goes."""
    with desk.switching:
        desk.check_place()
        _known(desk, name)
        desk.change("retire", {"name": name}, _without(desk.current[1], name))


def _known(desk: Desk, name: Any) -> None:
    names = list(desk.panel.candidates)
    if name not in names:
        there = f"{nearest(name, names)}" if names else "it has none at all, loop.shadow adds one"
        raise UnknownError(f"this loop has no candidate {show(name)}: {there}")


def acting(desk: Desk) -> str:
    """Who acts, as comparisons name it."""
    aside = desk.panel.demoted or desk.current[1].mode == "apprentice"
    return DEFAULT if aside else LIVE


def acts(desk: Desk) -> str:
    """Who acts, by the name that it had as a candidate."""
    return desk.learner.version.who if acting(desk) == LIVE else DEFAULT


def shares(desk: Desk) -> dict[str, float]:
    """Candidates, and the share of decisions that each has."""
    trials = desk.current[1].trials
    return {name: trials.get(name, 0.0) for name in [*desk.panel.candidates]}


def compare(desk: Desk) -> Comparison:
    """How everybody stands."""
    panel, settings = desk.panel, desk.current[1]
    level = settings.guard.level if settings.guard else LEVEL
    metrics = settings.guard.metrics if settings.guard else {}
    reward = desk.past.declaration.reward
    with desk.learner.lock:
        tally, skipped = panel.tally.copy(), dict(panel.skipped)
        unread = {name: one.unread for name, one in panel.candidates.items()}
    alpha = (1.0 - level) / max(1, len(unread))
    return Comparison(
        acting=acting(desk),
        level=level,
        values=standings(tally, reward, level),
        leads=tuple(leads(tally, reward, metrics, alpha)),
        trials=dict(settings.trials),
        skipped=skipped,
        unread=unread,
    )


def promote(desk: Desk, name: Any, over: Any, force: bool) -> None:
    """Let a candidate act, or the live policy again, if the comparison allows it."""
    if not isinstance(force, bool):
        raise ValueError(f"force must be True or False, got {show(force)}")
    with desk.switching:
        desk.check_place()
        if name != LIVE:
            _known(desk, name)
        now = acting(desk)
        if over not in (None, now) or name == now:
            raise ConflictError(
                f"{now!r} acts now: promote another policy over {now!r}, got {show(name)}"
            )
        found = compare(desk)
        refused = refusal(found, name, now)
        if refused and not force:
            raise ConflictError(refused, found.between(name, now))
        _promote(desk, name, {"over": now, "forced": bool(refused), "evidence": found.to_dict()})


def _promote(desk: Desk, name: str, data: dict[str, Any]) -> None:
    """One event for all of the switch: a candidate acts by its own rule."""
    chosen = replace(_without(desk.current[1], name), mode="active")
    if name != LIVE:
        chosen = replace(chosen, exploration=desk.panel.candidates[name].exploration(chosen))
    desk.change("promote", {"name": name, **data}, chosen)
    desk.panel.alarm = desk.guard


def _without(settings: Settings, name: str) -> Settings:
    return replace(settings, trials={k: v for k, v in settings.trials.items() if k != name})


def refusal(found: Comparison, name: str, over: str) -> str:
    """Why one must not be promoted over another, in numbers; "" if it may."""
    both = found.between(name, over)
    if not any(each.metric is None for each in both):
        return f"{name} was not compared with {over} yet: wait until some decisions are trained"
    for each in both:
        if each.better < 0 or (each.metric is None and each.better == 0):
            return each.words(found.level)
    if found.unread.get(name):
        return f"{name} could not read the latest decision: pass the columns that it requires"
    return ""
