"""What a release must pass: `make release-check`.

Wheel and sdist are built, and twine looks at their metadata. Then both are installed into fresh
environments: the wheel with the newest dependencies on every supported Python that is here, and
with the oldest that pyproject.toml allows; the sdist once. In each, the README's programs run from
what was installed, in an empty folder; with the extras, so do the tutorial and the command line.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from benchmarks.examples import ROOT

MINORS = range(10, 15)  # of Python 3; what is not here is named and left out
EXTRAS = ("evidence", "service")


class Trial(NamedTuple):
    """An environment to make: what it is called, its Python, what is installed, which versions."""

    name: str
    python: str
    built: Path
    pins: tuple[str, ...] = ()


def run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """What a command prints; what it said is shown if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """Wheel and sdist, with metadata that a registry takes."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel, sdist


def interpreters() -> Iterator[tuple[int, str]]:
    """The supported Pythons of this machine, on the path or pyenv's."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for minor in MINORS:
        kept = sorted(home.glob(f"versions/3.{minor}.*/bin/python"))
        found = str(kept[-1]) if kept else shutil.which(f"python3.{minor}")
        if found is None:
            print(f"Python 3.{minor} is not here: left out", flush=True)
        else:
            yield minor, found


def oldest() -> tuple[str, ...]:
    """The smallest version of every dependency that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [Requirement(text) for text in project["dependencies"]]
    wanted = list(EXTRAS)
    for extra in wanted:  # which grows: an extra may ask for others
        asked = [Requirement(text) for text in project["optional-dependencies"][extra]]
        wanted += [name for need in asked if need.name == project["name"] for name in need.extras]
        needs += asked
    least = {n.name: s.version for n in needs for s in n.specifier if s.operator == ">="}
    return tuple(f"{name}=={version}" for name, version in least.items())


def trials(wheel: Path, sdist: Path) -> Iterator[Trial]:
    here = list(interpreters())
    for minor, python in here:
        yield Trial(f"wheel, Python 3.{minor}, newest dependencies", python, wheel)
    minor, python = here[0]
    yield Trial(f"wheel, Python 3.{minor}, oldest dependencies", python, wheel, oldest())
    minor, python = here[-1]
    yield Trial(f"sdist, Python 3.{minor}, newest dependencies", python, sdist)


def attempt(trial: Trial, folder: Path) -> None:
    """Install and use it as a stranger would, away from this checkout."""
    run(trial.python, "-m", "venv", folder / "env")
    python, pins = folder / "env" / "bin" / "python", folder / "pins.txt"
    pins.write_text("\n".join(trial.pins))
    install = python, "-m", "pip", "install", "--quiet", "--constraint", pins
    empty = folder / "empty"
    empty.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["NUMBA_CACHE_DIR"] = str(folder / "kernels")

    run(*install, trial.built)
    run(python, "-I", "-c", readme(), cwd=empty, env=env)
    run(*install, f"{trial.built}[{','.join(EXTRAS)}]")
    run(python, "-I", ROOT / "examples" / "news.py", cwd=empty, env=env)
    for command in (["--help"], ["policies"], ["evaluate", "news.db"]):
        run(folder / "env" / "bin" / "driftbandit", *command, cwd=empty, env=env)


def readme() -> str:
    """All programs of the README, one after the other."""
    text = (ROOT / "README.md").read_text()
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S))


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        built = build(Path(work) / "dist")
        for place, trial in enumerate(trials(*built)):
            start, folder = time.perf_counter(), Path(work) / str(place)
            folder.mkdir()
            attempt(trial, folder)
            print(f"{trial.name}: {time.perf_counter() - start:.0f} s", flush=True)
            shutil.rmtree(folder)
        print(", ".join(path.name for path in built), "can be released")


if __name__ == "__main__":
    main()
