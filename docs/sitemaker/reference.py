"""Docstrings as pages. They are Markdown, so MyST reads them as they are.

`{names} bandit armset` shows the public names from these modules, `{all-of} lab` all that a module
offers.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import stringify_signature

from sitemaker import names

EXAMPLE = re.compile(r"^(>>> .*(?:\n.+)*)", flags=re.M)
PAGE = re.compile(r"\bdocs/([\w-]+\.md)\b")


def markdown(docstring: str) -> str:
    """A docstring with its examples fenced and its pages linked."""
    text = EXAMPLE.sub(r"```pycon\n\1\n```", inspect.cleandoc(docstring))
    return PAGE.sub(r"[docs/\1](../\1)", text)


def signature(value: Any) -> str:
    """Arguments and what is returned; nothing for what cannot be called."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    public = [p for p in found.parameters.values() if not p.name.startswith("_")]
    found = found.replace(parameters=public)
    text = stringify_signature(found, unqualified_typehints=True)
    text = re.sub(r"<factory>|<object object at \w+>", "...", text)
    return re.sub(r" -> None$", "", text)


def block(kind: str, head: str, body: str, options: str = "") -> str:
    """A directive of the Python domain whose fence is longer than every fence inside."""
    fence = "`" * max(4, *(len(run) + 1 for run in re.findall("`{3,}", body)), 0)
    return f"{fence}{{py:{kind}}} {head}\n{options}\n{body}\n{fence}\n"


def entry(full: str, value: Any) -> str:
    """One class or function of the current module, with all that belongs to it."""
    name = full.rpartition(".")[2]
    text = markdown(value.__doc__ or "")
    if not inspect.isclass(value):
        return block("function", name + signature(value), text)
    parts = [text, *_bases(value), *map(_member, filter(_has_text, names.members(value)))]
    return block("class", name + signature(value), "\n\n".join(parts))


def _has_text(member: names.Member) -> bool:
    return bool(member.text)


def _bases(cls: type) -> Iterator[str]:
    """The public classes right above, where more members are described."""
    known = names.public()
    above = [base.__name__ for base in cls.__bases__ if base.__name__ in known]
    if above:
        yield "Also has all of " + ", ".join(f"{{py:class}}`{name}`" for name in above) + "."


def _member(member: names.Member) -> str:
    text = markdown(member.text or "")
    if member.kind == "property":
        return block("property", member.name, text)
    function = getattr(member.value, "__func__", member.value)
    head = member.name + _without_first(signature(function), member.kind != "staticmethod")
    options = "" if member.kind == "method" else f":{member.kind}:\n"
    return block("method", head, text, options)


def _without_first(text: str, bound: bool) -> str:
    """Arguments without `self` or `cls`, which no caller writes."""
    return re.sub(r"^\((?:self|cls)(?:, )?", "(", text) if bound else text


class Names(SphinxDirective):
    """`{names} module ...`: public names from these modules."""

    required_arguments, final_argument_whitespace = 1, True
    find = staticmethod(names.of_names)

    def run(self) -> list[Any]:
        found = list(self.find(self.arguments[0]))
        if not found:
            raise self.error(f"{self.arguments[0]}: no public name is from there")
        text = "\n".join([self._head(), *(entry(*each) for each in found)])
        return self.parse_text_to_nodes(StringList(text.splitlines(), source=self.arguments[0]))

    def _head(self) -> str:
        return "```{py:currentmodule} driftbandit\n```\n"


class AllOf(Names):
    """`{all-of} name`: what a module offers, after its own docstring."""

    find = staticmethod(names.of_module)

    def _head(self) -> str:
        name = f"driftbandit.{self.arguments[0]}"
        text = markdown(importlib.import_module(name).__doc__ or "")
        return f"```{{py:module}} {name}\n```\n\n{text}\n"


def setup(app: Any) -> None:
    app.add_directive("names", Names)
    app.add_directive("all-of", AllOf)  # Sphinx has a `module` of its own
