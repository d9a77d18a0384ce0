"""Labels: text in which the names of options, in braces, stand for their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from driftbandit.recipe import Recipe
from driftbandit.validate import closest

BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
FIELD = re.compile(r"([A-Za-z_]\w*)(?::([<>^]?[+]?0?\d{0,2}(?:\.\d{1,2})?[a-zA-Z%]?))?")


class LabelError(ValueError):
    """A label that says nothing or something else than is meant."""


def labelled(label: str | None, name: str, options: Mapping[str, Any], swept: Iterable[str]) -> str:
    """The label of one variant, or its name, with every swept option that it does not mention.

    A name mentions an option whose value, a word, is part of it: "elec2, time" needs no more.

    >>> labelled("S = {radius:g}", "Circle", {"radius": 3.0}, ["radius"])
    'S = 3'
    >>> labelled(None, "Circle", {"radius": 3.0, "turns": 2}, ["radius", "turns"])
    'Circle, radius = 3, turns = 2'
    """
    mentioned: set[str] = set()

    def value(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        field = FIELD.fullmatch(match[1] or "")
        if field is None or field[1] not in options:
            raise LabelError(_unknown(label or "", match, list(options)))
        mentioned.add(field[1])
        return _formatted(label or "", options[field[1]], field[2] or "")

    text = name if label is None else BRACES.sub(value, label)
    if label is None:
        mentioned = {key for key, word in options.items() if isinstance(word, str) and word in name}
    rest = [f"{key} = {_shown(options[key])}" for key in swept if key not in mentioned]
    return ", ".join([text, *rest])


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word."""
    known = sorted(known)
    near = closest(word, known)
    names = (repr(name) if "," in name else name for name in known)
    return f": did you mean {near!r}?" if near else f": known are {', '.join(names)}"


def _unknown(label: str, match: re.Match[str], known: list[str]) -> str:
    name = (match[1] or "").split(":")[0]
    said = f"the label {label!r} has {match[0]!r}, but braces hold the name of an option"
    if name in known:
        return f"{said} and at most a format such as {{{name}:.2g}}"
    hint = nearest(name, known) if name and known else ""
    return f"{said}{hint}; write {{{{ and }}}} for braces that are to be seen"


def _formatted(label: str, value: Any, form: str) -> str:
    try:
        return format(_shown(value) if isinstance(value, Mapping) else value, form)
    except (ValueError, TypeError) as error:
        raise LabelError(
            f"the label {label!r} cannot show {value!r} as {form!r}: {error}"
        ) from None


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and "type" in value:
        return str(Recipe.from_dict(value))
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else str(value)
