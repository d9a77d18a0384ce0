"""Proposals: new candidates, which learn and never act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from driftbandit.features import Features
from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.config import check_rule
from driftbandit.loop.deciding.mixture import probe
from driftbandit.loop.deciding.request import text
from driftbandit.loop.runtime import ConflictError, Desk
from driftbandit.loop.state.versions import Shadow
from driftbandit.loop.storage.events import DEFAULT, LIVE
from driftbandit.validate import show


def shadow(
    desk: Desk, name: Any, given: Sequence[Any], rule: Any, half_life: Any, history: Any
) -> None:
    """A candidate that learns and never acts."""
    name = text("a candidate's name", name)
    if rule is not None:
        check_rule(rule)
    elif not given:
        raise ValueError("a candidate has features, a policy or a rule of its own: pass one")
    if not isinstance(history, bool):
        raise ValueError(f"history must be True or False, got {show(history)}")
    with desk.switching:
        _check_free(desk, name)
        learning = _learning(desk, given, half_life)
        made = Shadow(name=name, rule=rule, history=history, **learning)
        _probe(desk, Candidate(0, made, desk.past.declaration))
    with desk.teacher.newcomers.prepared(made, desk.learner), desk.switching:
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
    probe(one.rule(settings), one.learner.bandit)
    desk.panel.probe(settings, desk.learner)


def _learning(desk: Desk, given: Sequence[Any], half_life: Any) -> dict[str, Any]:
    """Features and policy of a candidate, those of the live policy where nothing is given."""
    live = desk.learner.version
    features = [each for each in given if isinstance(each, Features)]
    policies = [each for each in given if not isinstance(each, Features)]
    if len(features) > 1 or len(policies) > 1:
        raise ValueError("a candidate has one declaration of features and one policy: pass those")
    if half_life is not None and not policies:
        raise ValueError("half_life belongs to a policy: pass that, too")
    if not given:
        return {"features": live.features, "policy": live.policy, "half_life": live.half_life}
    made = replace(
        desk.past.declaration,
        features=features[0] if features else live.features,
        policy=policies[0] if policies else type(live.policy),
        half_life=half_life if policies else live.half_life,
    )
    return {"features": made.features, "policy": made.taught, "half_life": made.half_life}
