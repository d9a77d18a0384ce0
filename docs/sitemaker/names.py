"""What is public, which page shows it, and what nobody has described. Needs no Sphinx."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import driftbandit

DOCS = Path(__file__).parent.parent
DIRECTIVE = re.compile(r"^```\{(names|all-of)\} (.+)$", flags=re.M)


class Member(NamedTuple):
    name: str
    kind: str  # of Sphinx's Python domain
    value: Any  # as a class holds it
    text: str | None  # its own docstring


def public() -> dict[str, str]:
    """Every name of the package, and the module that `__init__.pyi` takes it from."""
    stub = ast.parse(Path(driftbandit.__file__).with_suffix(".pyi").read_text())
    froms = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {a.name: node.module or a.name for node in froms for a in node.names}


def named(prefixes: list[str]) -> list[str]:
    """Public names from these modules, and from modules inside them, in this order."""
    found = (
        name
        for prefix in prefixes
        for name, module in public().items()
        if f"{module}.".startswith(f"{prefix}.")
    )
    return list(dict.fromkeys(found))


def shown() -> dict[str, list[str]]:
    """Public names, and the pages of the reference that show them."""
    pages: dict[str, list[str]] = {name: [] for name in public()}
    for page in sorted((DOCS / "api").glob("*.md")):
        for kind, argument in DIRECTIVE.findall(page.read_text()):
            found = named(argument.split()) if kind == "names" else [argument]
            for name in set(found) & set(pages):
                pages[name].append(page.name)
    return pages


def members_of_module(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module offers: `__all__`, or all that it defines under a public name."""
    own = (n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__)
    for name in getattr(module, "__all__", None) or sorted(own):
        value = getattr(module, name)
        if not name.startswith("_") and not inspect.ismodule(value):
            yield name, value


def members(cls: type) -> Iterator[Member]:
    """Methods and properties that a class defines itself, in the order of the source."""
    for name, value in vars(cls).items():
        kind = _kind(value)
        if kind and not name.startswith("_"):
            yield Member(name, kind, value, getattr(value, "__doc__", None))


def _kind(value: Any) -> str | None:
    if isinstance(value, (property, cached_property)):
        return "property"
    if isinstance(value, classmethod):
        return "classmethod"
    if isinstance(value, staticmethod):
        return "staticmethod"
    return "method" if inspect.isfunction(value) else None


def undescribed() -> Iterator[str]:
    """Public names, and members of public classes, that have no docstring of their own or of a
    class above them."""
    for full, value in everything():
        if not (getattr(value, "__doc__", None) or "").strip():
            yield full
        for member in members(value) if inspect.isclass(value) else ():
            above = (getattr(base, member.name, None) for base in value.__mro__[1:])
            if not member.text and not any(getattr(each, "__doc__", None) for each in above):
                yield f"{full}.{member.name}"


def everything() -> Iterator[tuple[str, Any]]:
    """All that the reference shows, by full name."""
    for page in sorted((DOCS / "api").glob("*.md")):
        for kind, argument in DIRECTIVE.findall(page.read_text()):
            yield from (of_names if kind == "names" else of_module)(argument)


def of_names(argument: str) -> Iterator[tuple[str, Any]]:
    for name in named(argument.split()):
        yield f"driftbandit.{name}", getattr(driftbandit, name)


def of_module(argument: str) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(f"driftbandit.{argument}")
    for name, value in members_of_module(module):
        yield f"{module.__name__}.{name}", value
