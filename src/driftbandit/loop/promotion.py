"""Candidates in an open loop: shadow, trial, comparison, promotion. A policy acts by evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from driftbandit import validate
from driftbandit.estimators.formatting import number
from driftbandit.estimators.spend import KEPT
from driftbandit.loop.candidates.candidate import Candidate
from driftbandit.loop.candidates.comparison import Comparison, Errors, leads, losses, standings
from driftbandit.loop.candidates.totals import TrialPlan
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
    if runtime.definition.now.declaration.learns_preferences:
        raise ConflictError(
            "a loop that learns from preferences compares no candidates: declare another loop, and "
            "let both decide for a share of people"
        )
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
    probe(one.exploration(settings), one.learner.bandit, bool(settings.budget))
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


def trial(runtime: Runtime, name: Any, share: Any, effect: Any) -> None:
    """Give a candidate a share of decisions; 0 ends its trial."""
    if effect is not None:
        meaning = "gain, as a part of the live policy's reward"
        effect = validate.interval("effect", effect, meaning, low=1e-3, high=100.0)
    with runtime.switching:
        _known(runtime, name)
        chosen = runtime.settings
        stretch, before = chosen.plans.get(name, (0, None))
        plans = dict(chosen.plans)
        if stretch == 0 or effect not in (None, before):  # from here on other rows count
            plans[name] = stretch + 1, effect
        runtime.configure(replace(chosen, trials={**chosen.trials, name: share}, plans=plans))


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
    spending = runtime.definition.now.spending

    def errors(name: str) -> Errors:
        stretch = totals.plans.get(name, TrialPlan()).stretch
        return Errors(spending.error(name, level, stretch), 1.0 - level)

    return Comparison(
        acting=acting(runtime),
        level=level,
        values=standings(totals, reward, level),
        leads=tuple(leads(totals, reward, metrics, errors)),
        losses=tuple(losses(totals)),
        arm_losses=tuple(totals.lost.unequal()),
        spend=totals.spend(level),
        trials=dict(settings.trials),
        skipped=skipped,
        unread=unread,
    )


def promote(runtime: Runtime, name: Any, expected_live: Any, force: bool, not_worse: Any) -> None:
    """Let a candidate act, or the live policy again, if the comparison allows it."""
    if not isinstance(force, bool):
        raise ValueError(f"force must be True or False, got {show(force)}")
    margins = _margins(runtime, not_worse)
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
        refused = refusal(found, name, now) or too_bad(found, name, now, margins)
        if refused and not force:
            raise ConflictError(refused, found.between(name, now))
        known = found.to_dict() | {"not_worse": margins}
        evidence = {"over": now, "forced": bool(refused), "evidence": known}
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
    trials = {k: v for k, v in settings.trials.items() if k != name}
    plans = {k: v for k, v in settings.plans.items() if k != name}
    return replace(settings, trials=trials, plans=plans)


def _margins(runtime: Runtime, not_worse: Any) -> dict[str, float]:
    """Return by how much a candidate may be worse in metrics, each in its unit."""
    guard = runtime.settings.guard
    known = list(guard.metrics) if guard else []
    if not_worse is None:
        return {}
    if not isinstance(not_worse, Mapping):
        raise ValueError(
            f"not_worse must be a mapping such as {{'cost': 0.05}}, got {show(not_worse)}"
        )
    for name in not_worse:
        if name not in known:
            remedy = nearest(name, known) if known else "declare it with guard=Guard(metrics=...)"
            raise ValueError(f"the guard has no metric {show(name)}: {remedy}")
    meaning = "by which it may be worse, in its unit"
    return {k: validate.positive(f"margin of {k!r}", v, meaning) for k, v in not_worse.items()}


def too_bad(found: Comparison, name: str, over: str, margins: Mapping[str, float]) -> str:
    """Return in which metric one may be worse than another by more than its margin, in numbers; ""
    if that is ruled out in all of them."""
    for metric, margin in margins.items():
        both = [each for each in found.between(name, over) if each.metric == metric]
        worst = both[0].worst if both else math.inf
        if worst >= margin:
            known = f": it may be worse by {number(worst)}" if both else ": nothing is known of it"
            return f"{name} is not shown to be at most {number(margin)} worse in {metric!r}{known}"
    return ""


def refusal(found: Comparison, name: str, over: str) -> str:
    """Return why one must not be promoted over another, in numbers; "" if it may."""
    both = found.between(name, over)
    if not any(each.metric is None for each in both):
        return f"{name} was not compared with {over} yet: wait until some decisions are trained"
    for each in both:
        if each.better < 0 or (each.metric is None and each.better == 0):
            return each.words()
        if each.metric is None and each.recent < 0:
            return f"{name} was better than {over}, but the latest rows speak against it: wait"
    unfair = [loss.words() for loss in found.losses if (loss.first, loss.second) == (name, over)]
    for words in (*unfair, *(loss.words() for loss in found.arm_losses)):
        return f"{words}: find out why, or pass force=True"
    for budget, parts in found.spend.items():
        own, other = parts.get(name), parts.get(over)
        if own and own.value > max(KEPT, other.value if other else 0.0):
            return (
                f"{name} would spend {own.words()} of budget {budget!r}: it must keep the budget, "
                "or pass force=True"
            )
    if found.unread.get(name):
        return f"{name} could not read the latest decision: pass the columns that it requires"
    return ""
