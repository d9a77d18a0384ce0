"""What CONTRIBUTING promises: CI does what the Makefile does, and every source has its tests."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CI = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]["test"]


@pytest.fixture
def changed(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.changed")


@pytest.fixture
def rows(changed):
    return changed.table((ROOT / "CONTRIBUTING.md").read_text())


def commands(target):
    """The lines of a target in the Makefile and of those that it makes, without the folder of its
    tools."""
    text = (ROOT / "Makefile").read_text()
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, flags=re.M)[1].splitlines()
    found = []
    for line in (line.strip().replace("$(BIN)/", "") for line in lines):
        made = re.fullmatch(r"\$\(MAKE\) --jobs \d+ (.*)", line)
        found += [each for own in made[1].split() for each in commands(own)] if made else [line]
    return found


def test_windows_runs_what_make_test_runs_elsewhere():
    (elsewhere,) = (s for s in CI["steps"] if s.get("if") == "runner.os != 'Windows'")
    (windows,) = (s for s in CI["steps"] if s.get("if") == "runner.os == 'Windows'")
    assert elsewhere["run"] == "make test PYTHON=python"
    install, *rest = windows["run"].splitlines()
    assert install.endswith("install --quiet --editable '.[test]'")
    assert rest == commands("test")


def test_all_tests_of_kernels_also_run_with_plain_python():
    (command,) = (line for line in commands("test") if "NUMBA_DISABLE_JIT" in line)
    places = [ROOT / word for word in command.split() if word.startswith("tests/")]
    marked = [p for p in (ROOT / "tests").rglob("test_*.py") if "mark.kernel" in p.read_text()]
    own = Path(__file__)
    assert [p for p in marked if p != own and not any(map(p.is_relative_to, places))] == []


def test_ci_runs_every_python_that_is_promised():
    start = "Programming Language :: Python :: 3."
    promised = [c.split()[-1] for c in PROJECT["classifiers"] if c.startswith(start)]
    assert CI["strategy"]["matrix"]["python"] == promised
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_every_source_has_its_tests(rows, changed):
    for start, tests in rows.items():
        assert (ROOT / start).exists(), f"CONTRIBUTING has a row for {start}"
        for test in tests:
            assert (ROOT / test).exists(), f"CONTRIBUTING runs {test}"
    for folder in (p for p in (ROOT / "src" / "driftbandit").iterdir() if p.is_dir()):
        if (folder / "__init__.py").exists():
            assert f"src/driftbandit/{folder.name}/" in rows


def test_the_most_exact_row_counts_and_a_folder_covers_its_files(changed):
    rows = {"src/": ["tests/site"], "src/a/": ["tests/lab", "tests/lab/test_lab.py"]}
    assert changed.tests_of(["src/a/b.py"], rows) == ["tests/lab"]
    assert changed.tests_of(["src/b.py"], rows) == ["tests/site"]
    own = "tests/core/test_domd.py"
    assert changed.tests_of([own, "docs/x.md"], rows) == [own]
    assert changed.tests_of(["tests/core/test_gone.py", "README.md"], rows) == []
