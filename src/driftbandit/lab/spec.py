"""Studies as TOML files: environments x policies x seeds, where lists expand into sweeps."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from driftbandit.environments import Environment
from driftbandit.policies import Policy
from driftbandit.recipe import Recipe


class Entry(BaseModel):
    """A policy or an environment of a study; whatever else it holds goes to its constructor."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    label: str | None = None

    def variants(self, defaults: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """The options of every combination of its lists."""
        options = {**(defaults or {}), **(self.model_extra or {})}
        swept = {key: value for key, value in options.items() if isinstance(value, list)}
        for values in itertools.product(*swept.values()):
            yield options | dict(zip(swept, values))


class PolicyEntry(Entry):
    """`tuning` is "theory" (from_theory) or "practical" (the plain constructor)."""

    tuning: Literal["theory", "practical"] = "theory"
    only: tuple[str, ...] = ()  # environments in which it is played; empty for all
    seeds: int | None = Field(default=None, ge=1)  # fewer than the study's, where it is slow
    tune_on: int = Field(default=0, ge=0)  # as the study's, for this policy alone: a yardstick


class Study(BaseModel):
    """A validated study."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[\w-]+$")
    title: str = ""
    horizon: int | list[int] = 5000
    seeds: int = Field(default=20, ge=1)
    first_seed: int = Field(default=0, ge=0)
    points: int = Field(default=250, ge=2)
    environments: tuple[Entry, ...] = Field(min_length=1)
    policies: tuple[PolicyEntry, ...] = Field(min_length=1)
    tune_on: int = Field(default=0, ge=0)  # seeds for choosing each policy's best variant first

    def worlds(self) -> list[tuple[str, Environment, dict[str, Any]]]:
        """Label, environment and swept values of every environment."""
        found = []
        for entry in self.environments:
            for options in entry.variants({"horizon": self.horizon}):
                world = _build(entry.type, options, Environment)
                found.append((_label(entry, options, world.name), world, options))
        return found

    def trials(self) -> list[Study]:
        """Smaller studies that choose among the variants of policies before they are judged, on
        seeds that judge nobody."""
        groups: dict[int, list[PolicyEntry]] = {}
        for entry in self.policies:
            groups.setdefault(entry.tune_on or self.tune_on, []).append(entry)
        seeds = {"first_seed": 0, "points": 2}
        return [
            self.model_copy(update=seeds | {"seeds": n, "policies": tuple(entries)})
            for n, entries in groups.items()
            if n
        ]

    def contenders(self, world: Environment) -> list[tuple[str, Policy, dict[str, Any]]]:
        """Label, policy and options of every policy played in this environment."""
        return [found[:3] for found in self.contests(world)]

    def contests(self, world: Environment) -> list[tuple[str, Policy, dict[str, Any], int]]:
        """The contenders, and on how many seeds each is played."""
        found = []
        for entry in self.policies:
            if not entry.only or type(world).__name__ in entry.only:
                for options in entry.variants():
                    kind: Any = _kind(entry.type, Policy)
                    build = kind.from_theory if entry.tuning == "theory" else kind
                    arguments = {key: _revived(value) for key, value in options.items()}
                    if entry.tuning == "theory":
                        policy = build(world.problem, **arguments)
                    else:
                        policy = build(problem=world.problem, **arguments)
                    seeds = min(self.seeds, entry.seeds or self.seeds)
                    found.append((_label(entry, options, policy.name), policy, options, seeds))
        return found


def _label(entry: Entry, options: Mapping[str, Any], name: str) -> str:
    return (entry.label or name).format(**options)


def _revived(value: Any) -> Any:
    return Recipe.from_dict(value) if isinstance(value, Mapping) and "type" in value else value


def _kind(name: str, base: type[Recipe]) -> type[Recipe]:
    known = {k: v for k, v in Recipe.kinds(name).items() if issubclass(v, base) and v is not base}
    if name not in known:
        raise ValueError(f"unknown {base.__name__.lower()} {name!r}{_nearest(name, list(known))}")
    return known[name]


def _build(name: str, options: Mapping[str, Any], base: type[Recipe]) -> Any:
    kind: Any = _kind(name, base)
    return kind(**{key: _revived(value) for key, value in options.items()})


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f": did you mean {near[0]!r}?" if near else f": known are {', '.join(sorted(known))}"


def shipped() -> list[str]:
    """Names of the studies that come with the package."""
    folder = resources.files("driftbandit.lab") / "studies"
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if ".toml" in item.name
    )


def read_study(source: str | Path) -> tuple[Study, str]:
    """A study and its text, from a TOML file or a shipped name.

    Errors name the line, the offending word and the nearest valid one.
    """
    path = Path(source)
    if path.suffix != ".toml" and not path.exists():
        if str(source) not in shipped():
            hint = _nearest(str(source), shipped())
            raise ValueError(f"no study file and no shipped study {str(source)!r}{hint}")
        text = (resources.files("driftbandit.lab") / "studies" / f"{source}.toml").read_text()
    else:
        text = path.read_text(encoding="utf-8")
    return parse_study(text, str(source)), text


def changed(text: str, **changes: int | None) -> str:
    """The text of a study with some of its top-level numbers replaced."""
    for key, value in changes.items():
        if value is not None:
            text = re.sub(rf"(?m)^{key}\s*=.*\n", "", text, count=1)
            text = f"{key} = {value}\n{text}"
    return text


def parse_study(text: str, source: str) -> Study:
    """Validate the text of a study."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source}: {error}") from None
    try:
        study = Study.model_validate(data)
    except ValidationError as error:
        errors = error.errors()
        first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
        raise ValueError(f"{source}{_where(text, first['loc'])}: {_problem(first)}") from None
    _check_options(study, text, source)
    return study


def _problem(error: Any) -> str:
    *path, key = [str(part) for part in error["loc"]] or [""]
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}{_nearest(key, list(Study.model_fields))}"
    if error["type"] == "missing":
        return f"{'.'.join([*path, key])} is missing"
    return f"{'.'.join([*path, key])} = {error['input']!r}: {error['msg']}"


def _where(text: str, location: tuple[Any, ...]) -> str:
    """`, line N` of the last named key, in its own table where tables repeat."""
    names = [part for part in location if isinstance(part, str)]
    index = next((part for part in location if isinstance(part, int)), 0)
    lines, seen = text.splitlines(), -1
    for number, line in enumerate(lines, start=1):
        seen += bool(names) and line.strip() == f"[[{names[0]}]]"
        in_table = seen == index or not any(line.strip() == f"[[{names[0]}]]" for line in lines)
        if names and in_table and re.match(rf"\s*{re.escape(names[-1])}\s*=", line):
            return f", line {number}"
    return ""


def _check_options(study: Study, text: str, source: str) -> None:
    """Build everything once: an option that a class does not know, or refuses, names its line."""
    groups = (
        ("environments", study.environments, Environment),
        ("policies", study.policies, Policy),
    )
    for group, entries, base in groups:
        for index, entry in enumerate(entries):
            try:
                kind = _kind(entry.type, base)
            except ValueError as error:
                raise ValueError(
                    f"{source}{_where(text, (group, index, 'type'))}: {error}"
                ) from None
            fields = dataclasses.fields(kind)  # type: ignore[arg-type]
            known = [f.name for f in fields if f.name != "problem"]
            known += getattr(kind, "also_takes", ())
            for key in entry.model_extra or {}:
                if key not in known:
                    place = _where(text, (group, index, key))
                    raise ValueError(
                        f"{source}{place}: {entry.type} has no option {key!r}{_nearest(key, known)}"
                    )
    try:
        for _, world, _ in study.worlds():
            study.contenders(world)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{source}: {error}") from None
