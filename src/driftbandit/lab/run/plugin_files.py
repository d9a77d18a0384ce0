"""What workers need besides this package: the modules of plug-ins, and their sources."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from driftbandit import plugins
from driftbandit.lab.run.cells import Cell
from driftbandit.lab.run.code_version import Versions, is_installed, roots_of


@dataclass(frozen=True)
class PluginFiles:
    """Modules to import, and the folders in which they are found."""

    modules: tuple[str, ...]
    homes: tuple[str, ...]

    @staticmethod
    def of(cells: Iterable[Cell]) -> PluginFiles:
        """Return what these cells need."""
        return PluginFiles.of_recipes(r for cell in cells for r in (cell.environment, cell.policy))

    @staticmethod
    def of_recipes(recipes: Iterable[str]) -> PluginFiles:
        """Return what these recipes need, given as JSON."""
        roots = {name: home for name, home in roots_of(*recipes).items() if home}
        modules = sorted(roots.keys() - {"__main__"})  # a worker runs the script anyway
        return PluginFiles(tuple(modules), tuple(sorted({roots[name] for name in modules})))

    def load(self) -> None:
        """Import the modules in this process."""
        for home in self.homes:
            plugins.enter(Path(home))
        for name in self.modules:
            try:
                importlib.import_module(name)
            except Exception as error:
                raise ValueError(
                    f"a worker cannot import {name!r}: {type(error).__name__}: {error}; install "
                    "there what it needs"
                ) from error

    def files(self) -> dict[str, bytes]:
        """The sources of the modules and of what they import; installed packages are not sent."""
        found: dict[str, bytes] = {}
        for name in self.modules:
            home = plugins.home_of(name)
            if not is_installed(str(home)):
                sources = Versions().sources({name: str(home)})
                for path in sources.modules([name]).values():
                    if path.is_file() and home in path.parents:
                        found[path.relative_to(home).as_posix()] = path.read_bytes()
        return found


def unpack(files: dict[str, bytes], folder: Path) -> None:
    """Write sources into a folder, from which they are imported from now on."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        module = name.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")
        sys.modules.pop(module, None)  # an earlier study may have sent others
    if files:
        importlib.invalidate_caches()
        sys.path.insert(0, str(folder))
