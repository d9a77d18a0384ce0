"""Studies as TOML files: read, changed and checked, with the line of every mistake."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from driftbandit import plugins
from driftbandit.environments import Environment
from driftbandit.lab.study.labels import LabelError, nearest
from driftbandit.lab.study.selection import part_of
from driftbandit.lab.study.study import PIECEWISE, PolicyEntry, Study, StudyEntry, kind_of
from driftbandit.policies import Policy

__all__ = ["Study", "changed", "outline", "parse_study", "read_study", "shipped", "study_text"]


def shipped() -> list[str]:
    """Names of the studies that come with the package."""
    folder = resources.files("driftbandit.lab") / "studies"
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if ".toml" in item.name
    )


def read_study(
    source: str | Path,
    *,
    environments: str | None = None,
    policies: str | None = None,
    **changes: Any,
) -> tuple[Study, str]:
    """A study and its text, from a TOML file or a shipped name, with changes as in `changed`.

    `environments` and `policies` keep a part of it, as `part_of` says. Errors name the line, the
    offending word and the nearest valid one.
    """
    text = study_text(source)
    text = changed(text, **changes) if any(changes.values()) and outline(text, source) else text
    study = parse_study(text, str(source))
    if environments is not None or policies is not None:
        text = part_of(text, study, environments, policies)
        study = parse_study(text, str(source))
    return study, text


def study_text(source: str | Path) -> str:
    """Return the text of a study: a TOML file, or a shipped name."""
    path = Path(source)
    if path.suffix != ".toml" and not path.exists():
        if str(source) not in shipped():
            hint = nearest(str(source), shipped())
            raise ValueError(f"no study file and no shipped study {str(source)!r}{hint}")
        return (resources.files("driftbandit.lab") / "studies" / f"{source}.toml").read_text()
    return path.read_text(encoding="utf-8")


def changed(
    text: str,
    *,
    seeds: int | None = None,
    horizon: int | None = None,
    plugins: Sequence[str] = (),
) -> str:
    """The text of a study with other seeds, with another horizon in every environment, and with
    more plug-ins; the rest stays as it is written."""
    import tomlkit

    data: Any = tomlkit.parse(text)
    if seeds is not None:
        data["seeds"] = seeds
    if horizon is not None:
        data["horizon"] = horizon
        for entry in data.get("environments", ()):
            entry.pop("horizon", None)
    if plugins:
        data["plugins"] = list(dict.fromkeys([*data.get("plugins", ()), *plugins]))
    return tomlkit.dumps(data)


def outline(text: str, source: str | Path) -> Study:
    """The study that a text describes; its classes are neither imported nor checked."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source}: {error}") from None
    try:
        return Study.model_validate(data)
    except ValidationError as error:
        errors = error.errors()
        first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
        raise ValueError(f"{source}{_where(text, first['loc'])}: {_problem(first)}") from None


def parse_study(text: str, source: str) -> Study:
    """Validate the text of a study: its plug-ins are imported and everything is built once."""
    study = outline(text, source)
    with _blamed(text, source, "plugins"):
        plugins.load(study.plugins, Path(source).parent)
    for index, entry in enumerate(study.environments):
        _check_options(entry, Environment, text, source, ("environments", index))
    for index, rival in enumerate(study.policies):
        _check_options(rival, Policy, text, source, ("policies", index))
        with _blamed(text, source, "policies", index, "only"):
            _check_only(rival, study)
    _check_built(study, text, source)
    return study


@contextmanager
def _blamed(text: str, source: str, *place: Any) -> Iterator[None]:
    """Errors inside name the line of this key, or of the table's type where it has no such key."""
    try:
        yield
    except Exception as error:
        key = "label" if isinstance(error, LabelError) else place[-1]
        line = _where(text, (*place[:-1], key)) or _where(text, (*place[:-1], "type"))
        said = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{source}{line}: {said}") from error


def _problem(error: Any) -> str:
    *path, key = [str(part) for part in error["loc"]] or [""]
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}{nearest(key, Study.model_fields)}"
    if error["type"] == "missing":
        return f"{'.'.join([*path, key])} is missing"
    return f"{'.'.join([*path, key])} = {error['input']!r}: {error['msg']}"


def _where(text: str, location: Sequence[Any]) -> str:
    """`, line N` of the last named key, in its own table where tables repeat."""
    names = [part for part in location if isinstance(part, str)]
    index = next((part for part in location if isinstance(part, int)), None)
    table, seen = None, -1
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line):
            table = header[1]
            seen += table == names[0]
        here = table is None if index is None else table == names[0] and seen == index
        if here and re.match(rf"\s*{re.escape(names[-1])}\s*=", line):
            return f", line {number}"
    return ""


def _check_options(
    entry: StudyEntry,
    base: type[Environment | Policy],
    text: str,
    source: str,
    place: tuple[str, int],
) -> None:
    """An option that a class does not know names its line."""
    with _blamed(text, source, *place, "type"):
        kind = kind_of(entry.type, base)
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    known = [f.name for f in fields if f.name != "problem"]
    known += getattr(kind, "also_takes", ())
    for key in entry.model_extra or {}:
        with _blamed(text, source, *place, key):
            if key not in known:
                raise ValueError(f"{entry.type} has no option {key!r}{nearest(key, known)}")


def _check_only(entry: PolicyEntry, study: Study) -> None:
    """A policy that is played nowhere would be left out in silence."""
    types = {world.type for world in study.environments}
    for name in entry.only:
        if name not in types and name != PIECEWISE:
            near = nearest(name, {*types, PIECEWISE})
            try:
                kind_of(name, Environment)
            except ValueError:
                raise ValueError(f"only = {name!r} is no environment{near}") from None
    if entry.only and not any(entry.plays(world) for _, world, _ in study.worlds()):
        raise ValueError(
            f"{entry.type} is never played: only names {', '.join(entry.only)}, but the study has "
            f"{', '.join(sorted(types))}"
        )


def _check_built(study: Study, text: str, source: str) -> None:
    """Build everything: what a class refuses names its line, and so does a label that is taken."""
    worlds: dict[str, Environment] = {}
    for index, entry in enumerate(study.environments):
        with _blamed(text, source, "environments", index, "type"):
            for label, world, _ in study.worlds_of(entry):
                if worlds.setdefault(label, world).to_dict() != world.to_dict():
                    raise _taken("environments", label)
    for world in worlds.values():
        taken: dict[str, tuple[Policy, bool]] = {}
        for index, rival in enumerate(study.policies):
            with _blamed(text, source, "policies", index, "type"):
                for label, policy, _, _ in study.contests_of(rival, world):
                    other, merged = taken.setdefault(label, (policy, study.merges(rival)))
                    if merged and study.merges(rival):
                        continue
                    if other.to_dict() != policy.to_dict():
                        raise _taken("policies", label)


def _taken(group: str, label: str) -> LabelError:
    return LabelError(f"two {group} that differ are called {label!r}: give each its own label")
