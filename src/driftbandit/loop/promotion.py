"""Candidates in an open loop: shadow, trial, comparison, promotion. A policy acts by evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driftbandit import validate
from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.candidates.comparison import Comparison, leads, standings
from driftbandit.loop.config import LEVEL, Settings, exploration_rule
from driftbandit.loop.deciding.choose import probe
from driftbandit.loop.errors import ConflictError, UnknownCandidateError
from driftbandit.loop.runtime import Runtime
from driftbandit.loop.state.definition import Shadow
from driftbandit.loop.storage.events import DEFAULT, LIVE
from driftbandit.validate import nearest, show


def shadow(
    runtime: Runtime,
    name: Any,
    policy: Any,
    features: Any,
    exploration: Any,
    half_life: Any,
    history: Any,
) -> None:
    """Add a candidate that learns and never acts."""
    name = validate.text("a candidate's name", name)
    if policy is features is exploration is None:
        raise ValueError("a candidate needs policy=, features= or exploration= of its own")
    if exploration is not None:
        exploration = exploration_rule(exploration)
    if not isinstance(history, bool):
        raise ValueError(f"history must be True or False, got {show(history)}")
    with runtime.switching:
        _check_free(runtime, name)
        learning = _learning(runtime, policy, features, half_life)
        made = Shadow(name=name, exploration=exploration, history=history, **learning)
        _probe(runtime, made)
    with runtime.trainer.backfill.prepared(made, runtime.learner), runtime.switching:
        _check_free(runtime, name)
        _probe(runtime, made)  # settings may be others now
        runtime.change("shadow", made.to_dict())


def _check_free(runtime: Runtime, name: str) -> None:
    """Raise if a candidate cannot have this name, or cannot be declared here."""
    runtime.check_trains()
    taken = [each.name for each in runtime.definition.now.shadows.values()]
    if name in (LIVE, DEFAULT, *taken):
        raise ConflictError(f"{name!r} is taken: every candidate of a loop has a name of its own")


def _probe(runtime: Runtime, made: Shadow) -> None:
    settings = runtime.settings
    one = Candidate(0, made, runtime.definition.now.declaration)
    probe(one.exploration(settings), one.learner.bandit)
    runtime.candidates.probe(settings, runtime.learner)


def _learning(runtime: Runtime, policy: Any, features: Any, half_life: Any) -> dict[str, Any]:
    """Return features and policy of a candidate, those of the live policy if nothing is given."""
    live = runtime.learner.version
    if half_life is not None and policy is None:
        raise ValueError("half_life belongs to a policy: pass policy=, too")
    if policy is None and features is None:
        return {"features": live.features, "policy": live.policy, "half_life": live.half_life}
    made = replace(
        runtime.definition.now.declaration,
        features=live.features if features is None else features,
        policy=type(live.policy) if policy is None else policy,
        half_life=live.half_life if policy is None else half_life,
    )
    return {"features": made.features, "policy": made.timed_policy, "half_life": made.half_life}


def trial(runtime: Runtime, name: Any, share: Any) -> None:
    """Give a candidate a share of decisions; 0 ends its trial."""
    with runtime.switching:
        _known(runtime, name)
        chosen = runtime.settings
        runtime.configure(replace(chosen, trials={**chosen.trials, name: share}))


def retire(runtime: Runtime, name: Any) -> None:
    """Remove a candidate."""
    with runtime.switching:
        runtime.check_trains()
        _known(runtime, name)
        settings = _without(runtime.settings, name)
        runtime.change("retire", {"name": name, "settings": settings.to_dict()})


def _known(runtime: Runtime, name: Any) -> None:
    names = list(runtime.candidates.candidates)
    if name not in names:
        there = f"{nearest(name, names)}" if names else "it has none at all, loop.shadow adds one"
        raise UnknownCandidateError(f"this loop has no candidate {show(name)}: {there}")


def acting(runtime: Runtime) -> str:
    """Return which policy acts, as comparisons name it."""
    aside = runtime.candidates.demoted or runtime.settings.mode == "apprentice"
    return DEFAULT if aside else LIVE


def acts(runtime: Runtime) -> str:
    """Return which policy acts, by the name that it had as a candidate."""
    return runtime.learner.version.policy_name if acting(runtime) == LIVE else DEFAULT


def shares(runtime: Runtime) -> dict[str, float]:
    """Return the candidates, and the share of decisions that each has."""
    trials = runtime.settings.trials
    return {name: trials.get(name, 0.0) for name in [*runtime.candidates.candidates]}


def compare(runtime: Runtime) -> Comparison:
    """Return how the candidates stand."""
    candidates, settings = runtime.candidates, runtime.settings
    level = settings.guard.level if settings.guard else LEVEL
    metrics = settings.guard.metrics if settings.guard else {}
    reward = runtime.definition.now.declaration.reward
    with runtime.learner.lock:
        totals, skipped = candidates.add_up().copy(), dict(candidates.skipped)
        unread = {name: one.unread for name, one in candidates.candidates.items()}
    alpha = (1.0 - level) / max(1, len(unread))
    return Comparison(
        acting=acting(runtime),
        level=level,
        values=standings(totals, reward, level),
        leads=tuple(leads(totals, reward, metrics, alpha)),
        trials=dict(settings.trials),
        skipped=skipped,
        unread=unread,
    )


def promote(runtime: Runtime, name: Any, expected_live: Any, force: bool) -> None:
    """Let a candidate act, or the live policy again, if the comparison allows it."""
    if not isinstance(force, bool):
        raise ValueError(f"force must be True or False, got {show(force)}")
    with runtime.switching:
        runtime.check_trains()
        if name != LIVE:
            _known(runtime, name)
        now = acting(runtime)
        if expected_live not in (None, now) or name == now:
            raise ConflictError(
                f"{now!r} acts now: promote another policy over {now!r}, got {show(name)}"
            )
        found = compare(runtime)
        refused = refusal(found, name, now)
        if refused and not force:
            raise ConflictError(refused, found.between(name, now))
        evidence = {"over": now, "forced": bool(refused), "evidence": found.to_dict()}
        _promote(runtime, name, evidence)


def _promote(runtime: Runtime, name: str, data: dict[str, Any]) -> None:
    """Switch with one event: a candidate acts with its own exploration."""
    chosen = replace(_without(runtime.settings, name), mode="active")
    if name != LIVE:
        own = runtime.candidates.candidates[name].exploration(chosen)
        chosen = replace(chosen, exploration=own)
    runtime.change("promote", {"name": name, **data, "settings": chosen.to_dict()})
    runtime.candidates.on_look = runtime.demote_if_worse


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
