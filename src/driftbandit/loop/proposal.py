"""Proposals: new candidates, which learn and never act."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.config import exploration_rule
from driftbandit.loop.deciding.mixture import probe
from driftbandit.loop.deciding.request import text
from driftbandit.loop.runtime import ConflictError, Desk
from driftbandit.loop.state.versions import Shadow
from driftbandit.loop.storage.events import DEFAULT, LIVE
from driftbandit.validate import show


def shadow(
    desk: Desk,
    name: Any,
    policy: Any,
    features: Any,
    exploration: Any,
    half_life: Any,
    history: Any,
) -> None:
    """A candidate that learns and never acts."""
    name = text("a candidate's name", name)
    if policy is features is exploration is None:
        raise ValueError("a candidate needs policy=, features= or exploration= of its own")
    if exploration is not None:
        exploration = exploration_rule(exploration)
    if not isinstance(history, bool):
        raise ValueError(f"history must be True or False, got {show(history)}")
    with desk.switching:
        _check_free(desk, name)
        learning = _learning(desk, policy, features, half_life)
        made = Shadow(name=name, exploration=exploration, history=history, **learning)
        _probe(desk, Candidate(0, made, desk.past.declaration))
    with desk.trainer.newcomers.prepared(made, desk.learner), desk.switching:
        _check_free(desk, name)
        _probe(desk, Candidate(0, made, desk.past.declaration))  # settings may be others now
        desk.change("shadow", made.to_dict())


def _check_free(desk: Desk, name: str) -> None:
    """Raise if a candidate cannot have this name, or cannot be declared here."""
    desk.check_place()
    if name in (LIVE, DEFAULT, *(each.name for each in desk.past.shadows.values())):
        raise ConflictError(f"{name!r} is taken: every candidate of a loop has a name of its own")


def _probe(desk: Desk, one: Candidate) -> None:
    settings = desk.current[1]
    probe(one.exploration(settings), one.learner.bandit)
    desk.panel.probe(settings, desk.learner)


def _learning(desk: Desk, policy: Any, features: Any, half_life: Any) -> dict[str, Any]:
    """Features and policy of a candidate, those of the live policy if nothing is given."""
    live = desk.learner.version
    if half_life is not None and policy is None:
        raise ValueError("half_life belongs to a policy: pass policy=, too")
    if policy is None and features is None:
        return {"features": live.features, "policy": live.policy, "half_life": live.half_life}
    made = replace(
        desk.past.declaration,
        features=live.features if features is None else features,
        policy=type(live.policy) if policy is None else policy,
        half_life=live.half_life if policy is None else half_life,
    )
    return {"features": made.features, "policy": made.trained, "half_life": made.half_life}
