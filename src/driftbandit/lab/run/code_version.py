"""The version of the code behind a result: a hash over every module that it imports.

Imports are read from the sources, not run, and followed inside this package and inside the folder
of a plug-in. A name that a package only passes on leads to the module that defines it: what uses
one environment does not depend on all. Comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

from driftbandit.plugins import home_of
from driftbandit.recipe import Recipe

PACKAGE = "driftbandit"
HERE = Path(__file__).resolve().parents[3]
ALWAYS = "driftbandit.lab.run.play"  # plays every cell
ENDINGS = (".py", "/__init__.py", *EXTENSION_SUFFIXES)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Roots = Mapping[str, str]  # modules that define classes; the folders from which they are imported


def roots_of(*recipes: str) -> dict[str, str]:
    """The modules that define these recipes, given as JSON, and those inside them."""
    roots = {}
    for name in sorted({name for text in recipes for name in re.findall(r'"type": "(\w+)"', text)}):
        for kind in Recipe.kinds(name)[name].__mro__:
            module = kind.__module__
            if issubclass(kind, Recipe) and not module.startswith(f"{PACKAGE}."):
                roots[module.replace("__mp_main__", "__main__")] = str(home_of(module))
            elif issubclass(kind, Recipe):
                roots[module] = ""  # wherever this package is
    return roots


def is_installed(home: str) -> bool:
    """Return whether a folder is one of Python's own, where everything else lies too."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(home).parts)


class Versions:
    """Versions of the code of recipes, as it is on disk now; every file is read once."""

    def __init__(self) -> None:
        self._sources: dict[frozenset[tuple[str, str]], Sources] = {}
        self._known: dict[frozenset[tuple[str, str]], str] = {}

    def of(self, *recipes: str) -> str:
        """The version behind recipes, given as JSON."""
        return self.of_roots(roots_of(*recipes))

    def of_roots(self, roots: Roots) -> str:
        """The version of modules and of all that they need."""
        what = frozenset(roots.items())
        if what not in self._known:
            self._known[what] = self.sources(roots).version(roots)
        return self._known[what]

    def sources(self, roots: Roots) -> Sources:
        """The sources among which these modules find what they import."""
        places = frozenset(
            (name.split(".")[0] if is_installed(home) else "", home)
            for name, home in roots.items()
            if home
        )
        return self._sources.setdefault(places, Sources(places))


class Sources:
    """Modules of this package and of the folders of plug-ins; of installed packages, their own."""

    def __init__(self, places: Iterable[tuple[str, str]]) -> None:
        self._tops = {top: Path(home) for top, home in places if top} | {PACKAGE: HERE}
        self._homes = [Path(home) for top, home in sorted(places) if not top]
        self._paths: dict[str, Path | None] = {}
        self._needs: dict[str, frozenset[str]] = {}

    def version(self, roots: Iterable[str]) -> str:
        """Hash over all modules that the roots need."""
        digest = hashlib.sha256()
        for name in sorted(self.modules(roots)):
            digest.update(f"{name}\0{self._parsed(name).text}\0".encode())
        return digest.hexdigest()[:16]

    def modules(self, roots: Iterable[str]) -> dict[str, Path]:
        """The modules that the roots import, and those that these import, and so on."""
        found: dict[str, Path] = {}
        waiting = [ALWAYS, *roots]
        while waiting:
            name = waiting.pop()
            path = self.find(name)
            if path is not None and name not in found:
                found[name] = path
                waiting += self._needed(name)
        return found

    def _needed(self, name: str) -> frozenset[str]:
        if name not in self._needs:
            links = self._parsed(name).links
            modules = {module for link in links for module in self._led_to(link)}
            self._needs[name] = frozenset(modules.union(self._parents(name)))
        return self._needs[name]

    def find(self, name: str) -> Path | None:
        """The file of a module, its folder if it is a package without code, or None."""
        if name not in self._paths:
            self._paths[name] = self._find(name)
        return self._paths[name]

    def _find(self, name: str) -> Path | None:
        if name == "__main__":
            return Path(str(sys.modules[name].__file__)).resolve()
        top = self._tops.get(name.split(".")[0])
        for home in [top] if top else self._homes:
            stem = str(home.joinpath(*name.split(".")))
            paths = [Path(stem + ending) for ending in ENDINGS]
            known = next((path for path in paths if path.is_file()), None)
            if known or Path(stem).is_dir():
                return known or Path(stem)
        return None

    def _parsed(self, name: str) -> Parsed:
        path = self.find(name)
        assert path is not None
        return parsed(path, name if _is_package(path) else name.rpartition(".")[0])

    def _parents(self, name: str) -> Iterator[str]:
        """Packages around a module that do more than pass names on."""
        parts = name.split(".")
        for depth in range(1, len(parts)):
            package = ".".join(parts[:depth])
            if self.find(package) is not None and not self._parsed(package).bare:
                yield package

    def _led_to(self, link: ImportedName) -> Iterable[str]:
        """The modules that an import depends on."""
        path = self.find(link.module)
        if path is None:
            return
        if not _is_package(path):
            yield link.module
        elif link.names:
            yield from self._from_package(path, link)
        elif not self._parsed(link.module).bare:
            yield link.module

    def _from_package(self, path: Path, link: ImportedName) -> Iterator[str]:
        package, (first, *rest) = link.module, link.names
        passed_on = self._passed_on(package, path)
        if first == "*":
            yield package
            for each in passed_on.values():
                yield from self._led_to(each)
        elif first in passed_on:
            target = passed_on[first]
            yield from self._led_to(ImportedName(target.module, (*target.names, *rest)))
        elif self.find(f"{package}.{first}") is not None:
            yield from self._led_to(ImportedName(f"{package}.{first}", tuple(rest)))
        elif not (first.startswith("__") and first.endswith("__")):
            yield package

    def _passed_on(self, package: str, path: Path) -> dict[str, ImportedName]:
        """Names that a package takes from elsewhere, also those it loads when they are asked for
        (a stub says from where)."""
        names = dict(self._parsed(package).passed_on)
        stub = path.with_suffix(".pyi")
        if stub.is_file():
            names |= parsed(stub, package).passed_on
        own = (ImportedName(package), *(ImportedName(package, (name,)) for name in names))
        return {name: link for name, link in names.items() if link not in own}


def _is_package(path: Path) -> bool:
    return path.is_dir() or path.stem == "__init__"


class ImportedName(NamedTuple):
    """A module, and the names that are taken from it one after the other."""

    module: str
    names: tuple[str, ...] = ()


class Parsed(NamedTuple):
    """A source file."""

    text: str  # without comments and docstrings
    links: frozenset[ImportedName]  # everything it imports
    passed_on: dict[str, ImportedName]  # names of this module that come from others
    bare: bool  # nothing but imports and names such as __all__


EMPTY = Parsed("", frozenset(), {}, True)

# CPython's constructor of syntax trees keeps its depth in a variable that all threads share: two
# threads that parse at once, as on a Dask worker, may raise SystemError.
_parsing = threading.Lock()


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
    with _parsing:
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


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, ImportedName]]:
    """Names that an import statement binds, and what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, ImportedName(alias.name)
            if alias.asname is None:
                top = alias.name.split(".")[0]
                yield top, ImportedName(top)
    if isinstance(node, ast.ImportFrom):
        base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            yield alias.asname or alias.name, ImportedName(module, (alias.name,))


def _used(tree: ast.Module, aliases: dict[str, ImportedName]) -> Iterator[ImportedName]:
    """Attributes of imported modules: `import package as p` takes what p.name says."""
    for node in ast.walk(tree):
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if names and isinstance(node, ast.Name) and node.id in aliases:
            link = aliases[node.id]
            yield ImportedName(link.module, (*link.names, *reversed(names)))


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        names = [n for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
        return all(n.id.startswith("__") and n.id.endswith("__") for n in names)
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, (ast.Import, ast.ImportFrom))


def _text(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)
