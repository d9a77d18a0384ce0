"""What one source file says and which names it imports, read from its syntax tree."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

Chain = tuple[str, ...]
Docs = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Link(NamedTuple):
    """A module, and the names that are taken from it one after the other."""

    module: str
    names: Chain = ()


class Parsed(NamedTuple):
    """A source file."""

    text: str  # without comments and docstrings
    links: frozenset[Link]  # everything it imports
    passed_on: dict[str, Link]  # names of this module that come from others
    bare: bool  # nothing but imports and names such as __all__


EMPTY = Parsed("", frozenset(), {}, True)


def parsed(path: Path, package: str) -> Parsed:
    """A file of a package, or of none (""); a folder without __init__.py is an empty one."""
    if path.is_dir():
        return EMPTY
    stat = path.stat()
    return _parsed(path, package, stat.st_mtime_ns, stat.st_size)


@cache
def _parsed(path: Path, package: str, time: int, size: int) -> Parsed:
    data = path.read_bytes()
    if path.suffix not in (".py", ".pyi"):  # compiled
        return Parsed(hashlib.sha256(data).hexdigest(), frozenset(), {}, False)
    tree = ast.parse(data)
    links, aliases = set(), {}
    for node in _walk(tree):
        for alias, link in _imported(node, package):
            links.add(link)
            aliases[alias] = link
    links |= set(_used(tree, aliases))
    passed_on = {a: link for n in tree.body for a, link in _imported(n, package)}
    bare = all(_says_nothing(node) for node in tree.body)
    return Parsed(_text(tree), frozenset(links), passed_on, bare)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees."""
    yield node
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        children = list(node.orelse)
    for child in children:
        yield from _walk(child)


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, Link]]:
    """Names that an import statement binds, and what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, Link(alias.name)
            if alias.asname is None:
                top = alias.name.split(".")[0]
                yield top, Link(top)
    if isinstance(node, ast.ImportFrom):
        base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, Link(module, (alias.name,))


def _used(tree: ast.Module, aliases: dict[str, Link]) -> Iterator[Link]:
    """Attributes of imported modules: `import package as p` takes what p.name says."""
    for node in ast.walk(tree):
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if names and isinstance(node, ast.Name) and node.id in aliases:
            link = aliases[node.id]
            yield Link(link.module, (*link.names, *reversed(names)))


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        names = [n for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        return all(n.id.startswith("__") and n.id.endswith("__") for n in names)
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, (ast.Import, ast.ImportFrom))


def _text(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, Docs) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)
