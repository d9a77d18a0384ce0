"""Declarations as data: JSON or TOML to the options of a loop, and what differs from one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from driftbandit import validate
from driftbandit.features import Features
from driftbandit.loop.config import Declaration, Settings
from driftbandit.loop.guard import Guard
from driftbandit.loop.loop import Loop
from driftbandit.loop.opening import settings
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe
from driftbandit.reward import Reward
from driftbandit.service.schema.candidate_messages import Proposed
from driftbandit.service.schema.messages import Changes, Declared, Difference

UNSET: dict[str, Any] = dict.fromkeys(("exploration", "mode", "holdout", "guard"))
COLUMNS = ("Number", "Category", "Flag", "Vector")
POLICIES = ("AutoDOMD", "DOMD")
RULES = ("Floor", "Thompson", "InverseGap")
MOST_TERMS, MOST_DIM = 100_000, 512  # what one declaration may ask of memory


def options(declared: Declared) -> dict[str, Any]:
    """The options of `Loop` that a declaration gives."""
    given = given_of(declared)
    if "features" in given:
        given["features"] = features(given["features"])
    if "reward" in given:
        given["reward"] = reward(given["reward"])
    if "exploration" in given:
        given["exploration"] = exploration(given["exploration"])
    if "guard" in given:
        given["guard"] = guard(given["guard"])
    if "policy" in given and {"features", "reward"} <= given.keys():
        given["policy"] = policy(given["policy"], given["features"].problem(given["reward"]))
    return given


def check_new(given: dict[str, Any]) -> None:
    """Whether the options make a loop, before anything is stored for it."""
    for name in ("features", "reward"):
        if name not in given:
            raise ValueError(f"a new loop needs {name}: send them with the declaration")
    own = {field.name: given[field.name] for field in fields(Declaration) if field.name in given}
    Declaration(**own)
    settings(Settings(), {**UNSET, **given})


def changes(changed: Changes) -> dict[str, Any]:
    """The options of `Loop.configure`."""
    given = given_of(changed)
    made = {"exploration": exploration, "guard": guard}
    return given | {name: make(given[name]) for name, make in made.items() if name in given}


def given_of(message: Declared | Changes | Proposed) -> dict[str, Any]:
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    return {name: value for name, value in values.items() if value is not None}


def features(data: Mapping[str, Any]) -> Features:
    """Columns by name; the sizes are checked before anything is made."""
    sides = {}
    for side in ("context", "arm"):
        columns = data.get(side, {})
        if not isinstance(columns, Mapping):
            raise ValueError(f"features.{side} must be a mapping from names to columns")
        sides[side] = {name: recipe(each, COLUMNS) for name, each in columns.items()}
    widths = [1 + sum(each.width for each in side.values()) for side in sides.values()]
    if widths[0] * widths[1] > MOST_TERMS:
        raise ValueError(
            f"these columns make {widths[0] * widths[1]} terms, more than {MOST_TERMS}: use "
            "fewer values, or a smaller size"
        )
    made = build(Features, {**data, **sides})
    if made.size > MOST_DIM:
        raise ValueError(f"a row has {made.size} coordinates, more than {MOST_DIM}: lower dim")
    return made


def reward(data: Mapping[str, Any]) -> Reward:
    return build(Reward, data)


def exploration(data: Any) -> Any:
    """A share of uniform exploration, or a rule by its type."""
    return data if isinstance(data, (int, float)) else recipe(data, RULES)


def guard(data: Any) -> Any:
    """Metrics by name, each a reward; true is a guard without any, false ends it."""
    if isinstance(data, bool):
        return Guard() if data else False
    metrics = data.get("metrics", {})
    if not isinstance(metrics, Mapping) or not all(
        isinstance(m, Mapping) for m in metrics.values()
    ):
        raise ValueError("guard.metrics must be a mapping from names to rewards")
    return build(Guard, {**data, "metrics": {name: reward(each) for name, each in metrics.items()}})


def policy(data: Any, problem: Problem) -> Any:
    """By its name, or with options: {"type": "DOMD", "discount": 0.99}."""
    data = {"type": data} if isinstance(data, str) else data
    return recipe({**data, "problem": problem.to_dict()}, POLICIES)


def recipe(data: Any, allowed: tuple[str, ...]) -> Any:
    """A recipe of an allowed type; a request never makes the service import a plug-in."""
    if not isinstance(data, Mapping) or data.get("type") not in allowed:
        raise ValueError(
            f"expected a mapping whose type is one of {', '.join(allowed)}, such as "
            f"{{'type': {allowed[0]!r}}}, got {validate.show(data)}"
        )
    return Recipe.from_dict(data)


def build(kind: type[Any], data: Mapping[str, Any]) -> Any:
    """A dataclass from its fields."""
    values = {name: value for name, value in data.items() if name != "type"}
    known = [field.name for field in fields(kind) if field.name != "base"]
    if unknown := sorted(values.keys() - set(known)):
        raise ValueError(f"{kind.__name__} has no {unknown[0]!r}: it has {', '.join(known)}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{kind.__name__} cannot be built: {error}") from None


def difference(loop: Loop, declared: Declared) -> list[Difference]:
    """What a declaration gives and the loop has otherwise."""
    given = given_of(declared)
    before: dict[str, Any] = {
        **loop.declaration.to_dict(),
        "features": loop.features.to_dict(),
        **loop.settings.to_dict(),
    }
    now = before | _as_stored(loop, options(declared))
    names = set(given)
    known = [*_versions(loop.features), loop.declaration.features.to_dict()]
    if "features" in now and now["features"] in known:
        names.discard("features")
    return [each for name in sorted(names) for each in apart(name, before[name], now[name])]


def _as_stored(loop: Loop, given: dict[str, Any]) -> dict[str, Any]:
    """The same options as the ledger would have them."""
    was = loop.declaration
    own = {field.name: given[field.name] for field in fields(Declaration) if field.name in given}
    own = {"features": was.features, "reward": was.reward} | own
    problem = own["features"].problem(own["reward"])
    if "policy" not in own:
        own["policy"] = was.policy if problem == was.policy.problem else type(was.policy)
    elif isinstance(own["policy"], (str, dict)):
        own["policy"] = policy(own["policy"], problem)
    rest = {field.name: getattr(was, field.name) for field in fields(Declaration)} | own
    return {**Declaration(**rest).to_dict(), **settings(loop.settings, UNSET | given).to_dict()}


def _versions(features: Features | None) -> Iterator[dict[str, Any]]:
    """Features as they are, and as they were before they grew."""
    while features is not None:
        yield features.to_dict()
        features = features.base


def apart(name: str, before: Any, now: Any) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for each in dict.fromkeys([*before, *now]):
            yield from apart(f"{name}.{each}", before.get(each), now.get(each))
    elif before != now and list_of(before) != list_of(now):
        yield Difference(name, before, now)


def list_of(value: Any) -> Any:
    """A tuple as JSON has it."""
    return list(value) if isinstance(value, tuple) else value
