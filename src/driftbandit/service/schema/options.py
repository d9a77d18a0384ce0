"""Options of a loop and of a candidate as data: JSON or TOML to values of the library, and back.

The options are the fields of `Declaration`, `Settings` and `Shadow`. A new one needs a row in
`ROWS`: how it looks in JSON, and what makes the library's value of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from msgspec import defstruct

from driftbandit import validate
from driftbandit.features import Features
from driftbandit.loop.config import Budget, Declaration, Guard, Settings, exploration_rule
from driftbandit.loop.loop import Loop
from driftbandit.loop.prior import Prior
from driftbandit.loop.state.definition import Shadow
from driftbandit.problem import Problem
from driftbandit.recipe import Recipe
from driftbandit.reward import Preference, Reward
from driftbandit.service.schema.messages import FieldDifference

COLUMNS = ("Number", "Category", "Flag", "Vector")
POLICIES = ("AutoDOMD", "DOMD")
RULES = ("Floor", "Thompson", "InverseGap")
MOST_TERMS, MOST_DIM = 100_000, 512  # what one declaration may ask of memory


def read_features(data: Mapping[str, Any]) -> Features:
    """Columns by name; the sizes are checked before anything is made."""
    sides = {}
    for side in ("context", "arm"):
        columns = data.get(side, {})
        if not isinstance(columns, Mapping):
            raise ValueError(f"features.{side} must be a mapping from names to columns")
        sides[side] = {name: _recipe(each, COLUMNS) for name, each in columns.items()}
    widths = [1 + sum(each.width for each in side.values()) for side in sides.values()]
    if widths[0] * widths[1] > MOST_TERMS:
        raise ValueError(
            f"these columns make {widths[0] * widths[1]} terms, more than {MOST_TERMS}: use "
            "fewer values, or a smaller size"
        )
    made = _built(Features, {**data, **sides})
    if made.size > MOST_DIM:
        raise ValueError(f"a row has {made.size} coordinates, more than {MOST_DIM}: lower dim")
    return made


def read_reward(data: Mapping[str, Any]) -> Reward:
    """A reward, or a preference: {"type": "Preference", "wait": "10min"}."""
    kind = data.get("type", "Reward")
    if kind not in ("Reward", "Preference"):
        raise ValueError(f"reward.type must be Reward or Preference, got {validate.show(kind)}")
    return _built(Reward if kind == "Reward" else Preference, data)


def read_exploration(data: Any) -> Any:
    """A share of uniform exploration, or a rule by its type."""
    return _recipe(data, RULES) if isinstance(data, Mapping) else exploration_rule(data)


def read_guard(data: Any) -> Any:
    """Metrics by name, each a reward; true is a guard without any, false ends it."""
    if isinstance(data, bool):
        return Guard() if data else False
    metrics = data.get("metrics", {})
    if not isinstance(metrics, Mapping) or not all(
        isinstance(m, Mapping) for m in metrics.values()
    ):
        raise ValueError("guard.metrics must be a mapping from names to rewards")
    read = {name: read_reward(each) for name, each in metrics.items()}
    return _built(Guard, {**data, "metrics": read})


def read_prior(data: Mapping[str, Any]) -> Prior:
    """Expected rewards of arms by name, or {"expected": ..., "weight": 30}."""
    return _built(Prior, data if "expected" in data else {"expected": data})


def read_budget(data: Any) -> Any:
    """A budget, or a list of them; false ends it."""
    if isinstance(data, bool):
        if data:
            raise ValueError("budget must be a budget, a list of them, or false")
        return False
    listed = data if isinstance(data, list) else [data]
    return [_built(Budget, each) for each in listed]


def read_policy(data: Any, problem: Problem) -> Any:
    """By its name, or with options: {"type": "DOMD", "discount": 0.99}."""
    data = {"type": data} if isinstance(data, str) else data
    return _recipe(data, POLICIES, problem=problem.to_dict())


def _recipe(data: Any, allowed: tuple[str, ...], **more: Any) -> Any:
    """A recipe of an allowed type, with what the service adds. A request never makes the service
    import a plug-in, so no value in it may be a recipe, either."""
    if not isinstance(data, Mapping) or data.get("type") not in allowed:
        raise ValueError(
            f"expected a mapping whose type is one of {', '.join(allowed)}, such as "
            f"{{'type': {allowed[0]!r}}}, got {validate.show(data)}"
        )
    if nested := next((name for name, value in data.items() if isinstance(value, Mapping)), None):
        raise ValueError(
            f"{data['type']}.{nested} must be a number, text or a list, got "
            f"{validate.show(data[nested])}"
        )
    return Recipe.from_dict({**data, **more})


def _built(kind: type[Any], data: Mapping[str, Any]) -> Any:
    """A dataclass from its fields."""
    values = {name: value for name, value in data.items() if name != "type"}
    known = [field.name for field in fields(kind) if field.init and field.name != "base"]
    if unknown := sorted(values.keys() - set(known)):
        raise ValueError(f"{kind.__name__} has no {unknown[0]!r}: it has {', '.join(known)}")
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{kind.__name__} cannot be built: {error}") from None


class OptionRow(NamedTuple):
    """An option: its type in JSON, and what reads it; a policy is read with features and reward."""

    json: Any
    read: Callable[[Any], Any] = lambda value: value


ROWS = {
    "features": OptionRow(dict[str, Any], read_features),
    "reward": OptionRow(dict[str, Any], read_reward),
    "policy": OptionRow(str | dict[str, Any]),
    "exploration": OptionRow(float | dict[str, Any], read_exploration),
    "mode": OptionRow(str),
    "holdout": OptionRow(float),
    "guard": OptionRow(dict[str, Any] | bool, read_guard),
    "half_life": OptionRow(float | str),
    "retention": OptionRow(float | str),
    "key": OptionRow(str),
    "seed": OptionRow(int),
    "clock": OptionRow(str),
    "arms": OptionRow(dict[str, dict[str, Any]]),
    "prior": OptionRow(dict[str, Any], read_prior),
    "population": OptionRow(float | str),
    "shares": OptionRow(dict[str, list[float]]),
    "budget": OptionRow(dict[str, Any] | list[dict[str, Any]] | bool, read_budget),
    "sticky": OptionRow(float | str | bool),
    "history": OptionRow(bool),  # of a candidate
}
DECLARED = [field.name for field in fields(Declaration) if "meaning" in field.metadata]
SETTINGS = [field.name for field in fields(Settings) if field.name not in ("trials", "plans")]


def _message(name: str, options: list[str], doc: str) -> Any:
    types = [(each, ROWS[each].json | None, None) for each in options]
    made = defstruct(name, types, forbid_unknown_fields=True, module=__name__)
    made.__doc__ = doc
    return made


LoopDeclaration = _message(
    "LoopDeclaration",
    [*DECLARED, *SETTINGS],
    "What a loop is. A new one needs features and reward; what is left out stays as it is.",
)
LoopChanges = _message("LoopChanges", SETTINGS, "How decisions are made from now on.")
CandidateDeclaration = _message(
    "CandidateDeclaration",
    [field.name for field in fields(Shadow) if field.name != "name"],
    "What differs from the live policy. `half_life` belongs to a policy. The candidate first "
    "learns from the log, unless `history` is false.",
)


def given(message: Any) -> dict[str, Any]:
    """Return the options that a declaration gives, as values of the library; a policy stays as it
    was sent."""
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    return {name: ROWS[name].read(value) for name, value in values.items() if value is not None}


def loop_options(declared: Any, encoding: int | None = None) -> dict[str, Any]:
    """Return the options of `Loop` that a declaration gives; features by the rules of the loop's
    `encoding`, if it has one already."""
    found = given(declared)
    if encoding is not None and "features" in found:
        found["features"] = found["features"].under(encoding)
    if {"policy", "features", "reward"} <= found.keys():
        problem = found["features"].problem(found["reward"])
        found["policy"] = read_policy(found["policy"], problem)
    return found


def check_new(options: Mapping[str, Any]) -> None:
    """Raise unless the options make a loop, before anything is stored for it."""
    for name in ("features", "reward"):
        if name not in options:
            raise ValueError(f"a new loop needs {name}: send them with the declaration")
    Settings().changed(options).check_declaration(Declaration(**_among(DECLARED, options)))


def _among(names: list[str], options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def candidate_options(loop: Loop, declared: Any, features: Features) -> dict[str, Any]:
    """Return the options of `Loop.shadow`; a policy is made for the candidate's features, or for
    these."""
    found = given(declared)
    if "half_life" in found and "policy" not in found:
        raise ValueError("half_life belongs to a policy: send that, too")
    if "policy" in found:
        problem = found.get("features", features).problem(loop.declaration.reward)
        found["policy"] = read_policy(found["policy"], problem)
    return found


def loop_difference(loop: Loop, declared: Any) -> list[FieldDifference]:
    """Return what a declaration gives and the loop has otherwise."""
    options = loop_options(declared, loop.declaration.features.encoding)
    before = loop.declaration.to_dict() | loop.settings.to_dict()
    before["features"] = loop.features.to_dict()
    now = before | _as_stored(loop, options)
    names = set(options)
    if now["features"] in [*_versions(loop.features), loop.declaration.features.to_dict()]:
        names.discard("features")
    catalogue = loop.runtime.definition.now.catalogue
    if catalogue and options.get("arms") == {k: arm.columns for k, arm in catalogue.arms.items()}:
        names.discard("arms")
    return [each for name in sorted(names) for each in _apart(name, before[name], now[name])]


def _as_stored(loop: Loop, options: dict[str, Any]) -> dict[str, Any]:
    """The same options as the ledger would have them."""
    was = loop.declaration
    own = {"features": was.features, "reward": was.reward} | _among(DECLARED, options)
    problem = own["features"].problem(own["reward"])
    if "policy" not in own:
        own["policy"] = was.policy if problem == was.policy.problem else type(was.policy)
    elif isinstance(own["policy"], (str, dict)):
        own["policy"] = read_policy(own["policy"], problem)
    settings = loop.settings.changed(options)
    return replace(was, **own).to_dict() | settings.to_dict()


def _versions(features: Features | None) -> Iterator[dict[str, Any]]:
    """Features as they are, and as they were before they grew."""
    while features is not None:
        yield features.to_dict()
        features = features.base


def candidate_difference(loop: Loop, was: Shadow, declared: Any) -> list[FieldDifference]:
    """Return what a declaration gives and the candidate has otherwise."""
    now = candidate_options(loop, declared, was.features)
    if "policy" in now:
        own = {"features": was.features, "half_life": None} | now
        learning = ("features", "policy", "half_life")
        made = replace(loop.declaration, **{name: own[name] for name in learning})
        now |= {"policy": made.timed_policy, "half_life": made.half_life}
    before = was.to_dict()
    after = {k: v.to_dict() if hasattr(v, "to_dict") else v for k, v in now.items()}
    return [each for name in sorted(after) for each in _apart(name, before[name], after[name])]


def _apart(name: str, before: Any, now: Any) -> Iterator[FieldDifference]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for each in dict.fromkeys([*before, *now]):
            yield from _apart(f"{name}.{each}", before.get(each), now.get(each))
    elif before != now and _list(before) != _list(now):
        yield FieldDifference(name, before, now)


def _list(value: Any) -> Any:
    """A tuple as JSON has it."""
    return list(value) if isinstance(value, tuple) else value
