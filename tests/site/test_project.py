"""The project as files: docs that run, versions that agree, imports that stay light."""

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import driftbandit

ROOT = Path(__file__).parents[2]
MODULES = [
    m.name
    for m in pkgutil.walk_packages(driftbandit.__path__, "driftbandit.")
    if "__main__" not in m.name
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


PAGES = sorted(["README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))])
QUOTED = re.compile(
    r"<!-- example: .*?<!-- end -->", flags=re.S
)  # tests/site/test_site.py runs them


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_python_in_docs_runs(page, tmp_path):
    text = QUOTED.sub("", (ROOT / page).read_text())
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    if blocks:
        script = tmp_path / "page.py"
        script.write_text("\n".join(blocks))
        done = subprocess.run(
            [sys.executable, script], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_links_in_docs_exist():
    for page in map(ROOT.joinpath, PAGES):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_numbers_in_the_documents_are_the_stored_results(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    readme = importlib.import_module("benchmarks.readme")
    for page in readme.PAGES:
        text = (ROOT / page).read_text()
        assert readme.filled(text) == text, f"{page}: run `python -m benchmarks.readme`"


def test_versions_agree():
    project = (ROOT / "pyproject.toml").read_text()
    citation = (ROOT / "CITATION.cff").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f'version = "{driftbandit.__version__}"' in project
    assert f"version: {driftbandit.__version__}" in citation
    assert f"## {driftbandit.__version__}" in changelog


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import driftbandit", "numba"),
        ("from driftbandit import DOMD, Bandit, Problem", "matplotlib pandas rich typer sqlite3"),
        ("from driftbandit import DOMD, Bandit", "driftbandit.mle driftbandit.environments"),
    ],
)
def test_import_loads_no_more_than_it_needs(code, absent):
    code = f"{code}; import sys; print({set(absent.split())} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["GLOC", "Circle"])
def test_a_recipe_that_was_not_loaded_yet_is_found_by_its_name(name):
    code = f"from driftbandit import Recipe; print(Recipe.kinds({name!r})[{name!r}].__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == name


ASK = """
import numpy as np
from driftbandit.core.domd import age_row
from driftbandit.core.layout import GAMMA, LAM, D
row = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 4.0])
q = np.zeros(20)
q[D], q[GAMMA], q[LAM] = 1, 0.5, 2.0
age_row(q, row, 1.0)
print(row[-1], sum(age_row.stats.cache_hits.values()))
"""


def test_kernels_stored_from_other_sources_are_not_taken(tmp_path):
    """Also where a kernel's own file is the same, and only one that it calls has changed."""
    shutil.copytree(Path(driftbandit.__path__[0]), tmp_path / "driftbandit")
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}

    def norm_and_hits():
        command = [sys.executable, "-c", ASK]
        return subprocess.run(command, env=env, capture_output=True, text=True).stdout.split()

    assert norm_and_hits() == ["3.000000000000001", "0"]
    assert norm_and_hits() == ["3.000000000000001", "1"]
    called = tmp_path / "driftbandit" / "core" / "linalg.py"
    called.write_text(called.read_text().replace("EPS = 2.0**-52", "EPS = 2.0**-52 + 1.0 / 3.0"))
    assert norm_and_hits() == ["4.000000000000001", "0"]
