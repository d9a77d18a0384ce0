"""Classes that live outside this package: modules named by a study, and entry points.

A package offers its classes by entry points whose names are the names of the classes:

    [project.entry-points."driftbandit.policies"]
    MyUCB = "my_package.policies:MyUCB"

A package that keeps ledgers in another database offers its store by the scheme of its addresses:

    [project.entry-points."driftbandit.stores"]
    oracle = "my_package.store:Oracle"
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterable
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

GROUPS = ("driftbandit.policies", "driftbandit.environments", "driftbandit.families")
STORES = "driftbandit.stores"

_stamps: dict[str, tuple[int, int]] = {}  # time and size of the file that a module came from


def load(names: Iterable[str], near: Path) -> None:
    """Import modules that lie in the folder `near`, in the current folder or on Python's path.

    A module whose file has changed since is imported again.
    """
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(
                f"a plug-in is named as in an import statement, without .py, got {name!r}"
            )
        importlib.invalidate_caches()  # a file may be younger than what Python remembers
        home = _found(name, near)
        if home is not None:
            _forget_changed(home)
            _check_free(name, home)
            enter(home)
        _import(name, near)
        _remember(name)


def enter(folder: Path) -> None:
    """Let modules of this folder be imported, before others of the same name."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def offered(name: str) -> None:
    """Import the class of this name if an installed package offers it by an entry point."""
    for group in GROUPS:
        for entry in entry_points(group=group, name=name):
            kind = _load_entry(entry)
            if getattr(kind, "__name__", None) != name:
                raise ValueError(
                    f"the entry point {name} = {entry.value!r} gives {kind!r}: an entry point of "
                    f"{group} has the name of its class"
                )


def offered_store(scheme: str) -> Any:
    """Return the store that an installed package offers for addresses that begin with `scheme`."""
    for entry in entry_points(group=STORES, name=scheme):
        return _load_entry(entry)
    raise ValueError(
        f"no store for {scheme}:// is installed: a ledger is a file such as shop.db, a "
        f"postgresql:// address, or that of a package with an entry point in {STORES}"
    )


def load_offered(group: str) -> None:
    """Import all classes that installed packages offer in a group; a warning names what fails."""
    for entry in entry_points(group=group):
        try:
            _load_entry(entry)
        except ValueError as error:
            warnings.warn(str(error), stacklevel=2)


def _load_entry(entry: EntryPoint) -> Any:
    """What an entry point stands for."""
    try:
        return entry.load()
    except Exception as error:
        raise ValueError(
            f"the entry point {entry.name} = {entry.value!r} does not load: "
            f"{type(error).__name__}: {error}; repair or uninstall its package"
        ) from error


def home_of(name: str) -> Path:
    """The folder from which a loaded module was imported."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or not Path(file).is_file():
        raise ValueError(
            f"classes of {name} have no source file, so that no worker can import them: write them "
            'into a module, as my_module.py, and say plugins = ["my_module"]'
        )
    path = Path(file).resolve()
    depth = name.count(".") + (path.stem == "__init__")
    return path.parents[min(depth, len(path.parents) - 1)]


def _found(name: str, near: Path) -> Path | None:
    top = name.split(".")[0]
    for folder in (near.resolve(), Path.cwd()):
        spec = PathFinder.find_spec(top, [str(folder)])
        if spec is not None and spec.origin is not None:
            return folder
    return None


def _check_free(name: str, home: Path) -> None:
    """Two modules of one name cannot be loaded at once."""
    if name in sys.modules and home_of(name) != home:
        raise ValueError(
            f"the plug-in {name!r} of {home} cannot be loaded, because {home_of(name)} has a "
            "module of that name, which is loaded already: rename it"
        )


def _import(name: str, near: Path) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise ValueError(f"the plug-in {name!r} needs {error.name!r}: install it") from error
        raise ValueError(
            f"no plug-in {name!r}: there is no {name.replace('.', '/')}.py in {near.resolve()}, in "
            "the current folder or on Python's path"
        ) from None
    except Exception as error:
        raise ValueError(
            f"the plug-in {name!r} does not import: {type(error).__name__}: {error}"
        ) from error


def _remember(name: str) -> None:
    for other, path in _files(home_of(name)).items():
        _stamps.setdefault(other, _stamp(path))


def _forget_changed(home: Path) -> None:
    """Forget all modules of a folder if one of them was edited: the others may hold on to it."""
    files = _files(home)
    if any(_stamps.get(name, _stamp(path)) != _stamp(path) for name, path in files.items()):
        for name in files:
            del sys.modules[name]
            _stamps.pop(name, None)


def _files(home: Path) -> dict[str, Path]:
    """Loaded modules that were imported from a folder, but for this package and the script."""
    found = {}
    for name, module in list(sys.modules.items()):
        ours = name.split(".")[0] in ("driftbandit", "__main__", "__mp_main__")
        if not ours and getattr(module, "__file__", None) and home_of(name) == home:
            found[name] = Path(str(module.__file__))
    return found


def _stamp(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size
